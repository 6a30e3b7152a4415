"""Which notes are tagged."""

import pytest

from lcm.context.authored.obsidian import is_tagged


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
