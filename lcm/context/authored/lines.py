"""The lines of a text, and at which byte each starts."""

import re
from collections.abc import Iterator
from typing import NamedTuple

_LINE_END = re.compile(r"\r\n|\r|\n")


class Line(NamedTuple):
    """One line of an authored file, with its place."""

    text: str
    """Without its end."""
    end: str
    """What ends it; empty at the end of the file."""
    position: int
    """Of its first byte in the UTF-8 file."""


def lines_of(text: str, position: int = 0) -> list[Line]:
    """Cut a text where Markdown ends lines: at LF, CR LF and CR alone.

    Args:
        text: what is cut; joined again, the texts and ends of its lines are it.
        position: of its first byte in the file.
    """
    return list(_lines(text, position))


def _lines(text: str, position: int) -> Iterator[Line]:
    start = 0
    for match in _LINE_END.finditer(text):
        line = Line(text[start : match.start()], match.group(), position)
        yield line
        position += len(line.text.encode()) + len(line.end)
        start = match.end()
    if start < len(text):
        yield Line(text[start:], "", position)
