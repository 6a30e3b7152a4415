"""The head of a Markdown file."""

from lcm.context.authored import FrontMatter, front_matter, is_tagged, lines_of
from lcm.records.rules import Rules

BETWEEN_MARKS = {
    "---\na: b\n---\nc": "a: b",
    "---\na: b\n...\nc": "a: b",
    "---\n\n a: b \n\n---\n": "a: b",
    "---\n---\n": "",
    "---\na\n----\n---\n": "a\n----",
}
WITHOUT = ("", "a", "----\na\n---\n", " ---\na\n---\n", "---\na\n", "\n---\na\n---\n", "...\na\n---\n")
HOP_TARGETS = {
    "hop_targets: a#1": ("a#1",),
    "hop_targets: 'a#1' # the first": ("a#1",),
    "hop_targets: a#1, b#2": ("a#1", "b#2"),
    "hop_targets: [a#1, \"b#2\", 'c#3']": ("a#1", "b#2", "c#3"),
    'hop_targets: ["b#2", a#1]': ("b#2", "a#1"),
    "hop_targets:\n- c#3\n\n  - 'd#4' # and so on\ntags:\n- e#5": ("c#3", "d#4"),
    "hop_targets:\ntags: [m]\n- c#3": (),
    "hop_targets: a#1\nhop_targets: [b#2, a#1]\nhop_targets:\n- a#1": ("a#1", "b#2"),
    "hop_targets: []": (),
    "  hop_targets: a#1\nmy_hop_targets: b#2": (),
}
TAGGED = (
    *("---\ntags: [a]\n---\n", "---\ntag: a\n---\n", "---\ntitle: x\nopenclaw: yes\n---\n"),
    *("---\r\nmemory: yes\r\n---\r\n", "About #cooking", "#été and more", "```\ncode\n```\n- #tag"),
)
UNTAGGED = (
    *("", "words", "---\n tags: a\n---\n", "tags: a", "---\ncolour: #fff\n---\n", "# Heading", "## Heading #tag"),
    *("```\n#tag\n```", "~~~\n#tag", "issue #12", "a#b", "## "),
)


def head(text: str, rules: Rules = "corrected") -> FrontMatter | None:
    return front_matter(lines_of(text), rules)


def words(text: str, rules: Rules = "corrected") -> str | None:
    found = head(text, rules)
    return None if found is None else found.text


def test_front_matter_stands_between_marks() -> None:
    for rules in ("original", "corrected"):
        assert {text: words(text, rules) for text in BETWEEN_MARKS} == BETWEEN_MARKS
        assert {words(text, rules) for text in WITHOUT} == {None}


def test_only_unix_rules_mark_it_for_the_original() -> None:
    for text in ("---\r\na\r\n---\r\nb", "---\na\n---", "--- \na\n---\t\nb"):
        assert head(text, "original") is None
        found = head(text)
        assert found is not None
        assert (found.text, found.length) == ("a", 3)


def test_hop_targets_are_taken_out_of_brackets_lists_and_quotes_each_once() -> None:
    assert {lines: head(f"---\n{lines}\n---\n").hop_targets for lines in HOP_TARGETS} == HOP_TARGETS  # type: ignore[union-attr]


def test_a_key_of_the_front_matter_or_a_tag_in_the_words_tags_a_note() -> None:
    assert [text for text in (*TAGGED, *UNTAGGED) if is_tagged(text)] == list(TAGGED)
