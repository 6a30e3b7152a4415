"""Long texts cut into passages, where a reader would pause."""

import re
from collections.abc import Iterator

_SEAM = re.compile(r"\s*$|#{1,6} |```|@@ |diff |(?:async )?def |class |func(?:tion)? |\[tool ")
"""A line before which something new begins: it is blank, or heads a section, a file's difference, a definition."""

_STOP = re.compile("[。！？]")
"""Ends a sentence where no space follows."""


def cut(text: str, size: int, first_size: int | None = None) -> list[str]:
    """A text as passages of at most `size` characters, the first of at most `first_size`.

    Lines stand together until the next would be too much; then the cut is made before the last line of the second half
    that begins something new, if there is one. A line that is longer than a passage is cut behind a sentence of Chinese
    or Japanese, else between words, one without spaces anywhere. Nothing but whitespace at the cuts is left out. The
    first passage is empty where no line fits.
    """
    found: list[str] = []
    here: list[str] = []
    length = 0  # of these lines, with a line end behind each
    room = size if first_size is None else first_size
    for line in _lines(text, size):
        while here and length + len(line) > room:
            at = _last_seam(here)
            found.append("\n".join(here[:at]))
            here, room = here[at:], size
            length = sum(map(len, here)) + len(here)
        if not here and len(line) > room:
            found.append("")
            room = size
        here.append(line)
        length += len(line) + 1
    found.append("\n".join(here))
    return [passage.strip("\n") for passage in found]


def _lines(text: str, size: int) -> Iterator[str]:
    for line in text.split("\n"):
        rest = line.rstrip()
        while len(rest) > size:
            stops = [stop.end() for stop in _STOP.finditer(rest, size // 2, size)]
            at = stops[-1] if stops else rest.rfind(" ", size // 2, size + 1)
            at = size if at < 0 else at
            yield rest[:at]
            rest = rest[at:].lstrip(" ")
        yield rest


def _last_seam(lines: list[str]) -> int:
    """How many of the lines stand before the last seam of their second half; all, where there is none."""
    for at in range(len(lines) - 1, len(lines) // 2, -1):
        if _SEAM.match(lines[at]):
            return at
    return len(lines)
