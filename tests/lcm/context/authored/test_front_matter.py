"""The head of a Markdown file."""

import pytest

from lcm.context.authored.front_matter import FrontMatter, front_matter, is_tagged
from lcm.context.authored.lines import lines_of
from lcm.records.rules import Rules


def head(text: str, rules: Rules = "corrected") -> FrontMatter | None:
    return front_matter(lines_of(text), rules)


@pytest.mark.parametrize(
    ("text", "inner"),
    [
        ("---\na: b\n---\nc", "a: b"),
        ("---\na: b\n...\nc", "a: b"),
        ("---\n\n a: b \n\n---\n", "a: b"),
        ("---\n---\n", ""),
        ("---\na\n----\n---\n", "a\n----"),
    ],
)
def test_it_stands_between_marks(text: str, inner: str) -> None:
    for rules in ("original", "corrected"):
        found = head(text, rules)
        assert found is not None
        assert found.text == inner


@pytest.mark.parametrize(
    "text", ["", "a", "----\na\n---\n", " ---\na\n---\n", "---\na\n", "\n---\na\n---\n", "...\na\n---\n"]
)
def test_without_both_marks_there_is_none(text: str) -> None:
    assert head(text, "original") is head(text, "corrected") is None


@pytest.mark.parametrize("text", ["---\r\na\r\n---\r\nb", "---\na\n---", "--- \na\n---\t\nb"])
def test_only_unix_rules_mark_it_for_the_original(text: str) -> None:
    assert head(text, "original") is None
    found = head(text, "corrected")
    assert found is not None
    assert (found.text, found.length) == ("a", 3)


@pytest.mark.parametrize(
    ("lines", "targets"),
    [
        ("hop_targets: a#1", ("a#1",)),
        ("hop_targets: 'a#1' # the first", ("a#1",)),
        ("hop_targets: a#1, b#2", ("a#1", "b#2")),
        ("hop_targets: [a#1, \"b#2\", 'c#3']", ("a#1", "b#2", "c#3")),
        ('hop_targets: ["b#2", a#1]', ("b#2", "a#1")),
        ("hop_targets:\n- c#3\n\n  - 'd#4' # and so on\ntags:\n- e#5", ("c#3", "d#4")),
        ("hop_targets:\ntags: [m]\n- c#3", ()),
        ("hop_targets: a#1\nhop_targets: [b#2, a#1]\nhop_targets:\n- a#1", ("a#1", "b#2")),
        ("hop_targets: []", ()),
        ("  hop_targets: a#1\nmy_hop_targets: b#2", ()),
    ],
)
def test_hop_targets_are_taken_out_of_brackets_lists_and_quotes_each_once(lines: str, targets: tuple[str, ...]) -> None:
    found = head(f"---\n{lines}\n---\n")
    assert found is not None
    assert found.hop_targets == targets


@pytest.mark.parametrize(
    "text",
    [
        "---\ntags: [a]\n---\n",
        "---\ntag: a\n---\n",
        "---\ntitle: x\nopenclaw: yes\n---\n",
        "---\r\nmemory: yes\r\n---\r\n",
        "About #cooking",
        "#été and more",
        "```\ncode\n```\n- #tag",
    ],
)
def test_a_key_of_the_front_matter_or_a_tag_in_the_words_tags_a_note(text: str) -> None:
    assert is_tagged(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "words",
        "---\n tags: a\n---\n",
        "tags: a",
        "---\ncolour: #fff\n---\n",
        "# Heading",
        "## Heading #tag",
        "```\n#tag\n```",
        "~~~\n#tag",
        "issue #12",
        "a#b",
        "## ",
    ],
)
def test_anything_else_does_not(text: str) -> None:
    assert not is_tagged(text)
