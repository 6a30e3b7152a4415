"""Blocks of Markdown: their words, and the byte where they start."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.context.authored import blocks, lines_of
from lcm.errors import LcmError
from lcm.records.rules import Rules

PARAGRAPHS = {
    "*a* __b__ ***c***": "a b c",
    "[a](http://x.y 'title') [b] [c][d]\n\n[d]: http://z": "a [b] c",
    "![picture of *a* harbour](x.png)": "picture of a harbour",
    "`a  b` c": "a b c",
    r"1 \* 2 &amp; 3 &#x41;": "1 * 2 & 3 A",
    "<http://x.y> <me@x.y>": "http://x.y me@x.y",
    "copy <source> to <target>": "copy <source> to <target>",
    "a\nb  \nc\\\nd": "a b c d",
    "| a | b |\n|---|---|\n| 1 | 2 |": "| a | b | |---|---| | 1 | 2 |",  # no extension of Markdown is read
    "~~a~~ http://x.y": "~~a~~ http://x.y",
}
STARTS = {
    "   a": "a",
    "##   a ##": "a",
    "a\nb\n===": "a",
    "-\ta": "a",
    "-\n  a": "a",
    "- - a": "a",
    "10) # a": "a",
    ">> a": "a",
    "> - **a**": "**a**",
    "- ```\n  a\n  ```": "a",
    "-     a": "a",
    "é\n\n日本 a\n\n> a": "é",
}


def found(text: str, rules: Rules = "corrected") -> list[tuple[str, str, int]]:
    return [tuple(block) for block in blocks(lines_of(text), rules)]


def test_a_paragraph_is_its_words() -> None:
    assert {text: found(text) for text in PARAGRAPHS} == {
        text: [("Paragraph", words, 0)] for text, words in PARAGRAPHS.items()
    }


def test_code_and_html_keep_their_lines_and_what_is_empty_is_no_block() -> None:
    assert found("```py\n\n  if a:\n\n    b\n```") == [("CodeBlock", "if a:\n\n    b", 9)]
    assert found("\ta\n\t  b\n") == [("CodeBlock", "a\n  b", 1)]
    assert found("  <div>\n  a\n</div>\n") == [("HTMLBlock", "<div>\n  a\n</div>", 2)]
    assert found("***\n\n#\n\n-\n\n>\n\n```\n```\n\n[a]: http://b\n") == found("") == []


def test_every_item_of_a_list_is_a_block_with_all_that_lies_in_it_and_breaks_are_blanks() -> None:
    text = "1. one\n\n   more\n   - nested\n     > deep\n2. two\n   ```\n   code\n   ```\n"
    assert found(text) == [("ListItem", "one more nested deep", 3), ("ListItem", "two code", text.index("two"))]
    assert found(text, "original")[0][1] == "onemorenesteddeep"
    assert found("> a\n> b\n>\n> c", "original") == [("Blockquote", "a bc", 2)]
    assert found("> a\n> b\n>\n> c", "corrected") == [("Blockquote", "a b c", 2)]


def test_a_position_is_the_byte_of_the_first_word() -> None:
    for end in ("\n", "\r\n", "\r"):
        for text, start in STARTS.items():
            text = text.replace("\n", end)
            (_, _, position), *_ = found(text)
            assert position == len(text[: text.index(start)].encode())


PIECES = st.sampled_from(
    [
        *("- ", "* ", "1. ", "> ", "    ", "\t", "# ", "## ", "```\n", "\n", "\n\n", "\r\n"),
        *("wörd ", "日本", "a", "<b>", "*", "`"),
    ]
)


@given(st.lists(PIECES, max_size=25).map("".join), st.sampled_from(["original", "corrected"]))
def test_positions_rise_and_lie_where_words_are_and_no_word_is_lost(text: str, rules: Rules) -> None:
    raw = text.encode()
    positions = [position for _, _, position in found(text, rules)]
    assert positions == sorted(set(positions))
    for position in positions:
        assert not raw[position:].decode()[0].isspace()  # between characters, too
    words = "".join(block for _, block, _ in found(text, rules))
    info = sum(line.count("wörd") for line in text.replace("\r\n", "\n").split("\n") if "```" in line)
    assert text.count("wörd") - info <= words.count("wörd") <= text.count("wörd")


def test_what_is_nested_too_deeply_is_refused_and_not_lost() -> None:
    assert found("> " * 90 + "a") == [("Blockquote", "a", 180)]
    with pytest.raises(LcmError, match="blocks are nested 100 deep"):
        found("> " * 200 + "a")
