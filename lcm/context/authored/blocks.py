"""The blocks of a Markdown text, each with the byte at which its words start."""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Literal, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

from lcm.context.authored.lines import Line
from lcm.errors import LcmError
from lcm.records.rules import Rules

BlockKind = Literal["ListItem", "Blockquote", "Paragraph", "Heading", "CodeBlock", "HTMLBlock"]

_MOST_NESTED = 100
"""What lies deeper the parser leaves out without a word, so it is refused."""
_LEAVES: dict[str, BlockKind] = {
    "paragraph_open": "Paragraph",
    "heading_open": "Heading",
    "fence": "CodeBlock",
    "code_block": "CodeBlock",
    "html_block": "HTMLBlock",
}
_AS_WRITTEN = ("CodeBlock", "HTMLBlock")
"""Kinds that keep their lines."""
_LISTS = ("bullet_list_open", "ordered_list_open")


class Block(NamedTuple):
    """One block at the top of a document, or one item of a list there."""

    kind: BlockKind
    text: str
    """Its plain words; never empty."""
    position: int
    """Byte offset of the first of them in the file."""


def blocks(lines: Sequence[Line], rules: Rules) -> Iterator[Block]:
    """The blocks of a document in order, by CommonMark without tables; rules and what has no words yield nothing.

    Words come without their emphasis; of links the words remain, of images those that stand for them, of tags all;
    the space between words is one blank. Code and HTML stay as they are, without the space around them.

    Args:
        lines: of the document, front matter left out.
        rules: between the paragraphs, nested items and other blocks within one item or quote stands a blank; by those
            of the original nothing, so that the last word of one and the first of the next become a word.

    Raises:
        LcmError: if blocks are nested so deeply that words would be lost.
    """
    tokens = _parser().parse("".join(line.text + line.end for line in lines))
    if any(token.level >= _MOST_NESTED - 1 for token in tokens):
        raise LcmError(f"blocks are nested {_MOST_NESTED} deep")
    for kind, inner in _top_blocks(tokens):
        leaves = [_Leaf.of(*leaf, lines) for leaf in _leaves(inner)]
        text = ("" if rules == "original" else " ").join(leaf.text for leaf in leaves)
        text = text.strip() if kind in _AS_WRITTEN else " ".join(text.split())
        if text:
            yield Block(kind, text, next(leaf.position for leaf in leaves if leaf.text.strip()))


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"maxNesting": _MOST_NESTED})


def _top_blocks(tokens: Sequence[Token]) -> Iterator[tuple[BlockKind, Sequence[Token]]]:
    """The blocks at the top, lists as their items, with the tokens of each."""
    start = 0
    for number, token in enumerate(tokens):
        if token.level == 0 and token.nesting >= 0:
            start = number
        if token.level == 0 and token.nesting <= 0:
            opening, inner = tokens[start], tokens[start : number + 1]
            if opening.type in _LISTS:
                for item in _items(inner):
                    yield "ListItem", item
            elif opening.type == "blockquote_open":
                yield "Blockquote", inner
            elif kind := _LEAVES.get(opening.type):
                yield kind, inner


def _items(tokens: Sequence[Token]) -> Iterator[Sequence[Token]]:
    starts = [number for number, token in enumerate(tokens) if token.type == "list_item_open" and token.level == 1]
    for start, end in zip(starts, [*starts[1:], len(tokens)], strict=True):
        yield tokens[start:end]


def _leaves(tokens: Sequence[Token]) -> Iterator[tuple[Token, Token]]:
    """The tokens that hold words, each with the one that says what it is."""
    for before, token in zip([*tokens[:1], *tokens], tokens, strict=False):
        if token.type == "inline":
            yield token, before
        elif token.type in ("fence", "code_block", "html_block"):
            yield token, token


class _Leaf(NamedTuple):
    text: str
    position: int

    @classmethod
    def of(cls, token: Token, opening: Token, lines: Sequence[Line]) -> "_Leaf":
        text = _words(token.children or ()) if token.type == "inline" else token.content
        return cls(text, _position(token, opening, lines) if text.strip() else 0)


def _position(token: Token, opening: Token, lines: Sequence[Line]) -> int:
    """Where the words of a leaf start: behind the marks of what it lies in, and behind its own."""
    assert token.map is not None
    content = token.content.split("\n")
    blank = next(number for number, line in enumerate(content) if line.strip())
    line = lines[token.map[0] + blank + (token.type == "fence")]
    if opening.type == "heading_open" and opening.markup.startswith("#"):
        behind = line.text[line.text.index("#") + len(opening.markup) :]
        length = len(behind.lstrip())
    else:
        # The words are the end of their line.
        length = len(content[blank].strip()) + len(line.text) - len(line.text.rstrip())
    return line.position + len(line.text[: len(line.text) - length].encode())


def _words(tokens: Sequence[Token]) -> str:
    return "".join(
        " " if token.type in ("softbreak", "hardbreak") else _words(token.children) if token.children else token.content
        for token in tokens
    )
