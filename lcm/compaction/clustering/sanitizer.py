"""What a summarizer need not read: payloads that nobody said."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from lcm.checks import check_range

_FENCE = "```"
_FENCED = "[sanitized fenced payload omitted for continuity]"
_TRANSPORT = "[sanitized transport payload omitted for continuity]"
_OPAQUE = "[sanitized opaque payload omitted for continuity]"
_NOTHING_LEFT = "[sanitized empty payload omitted for continuity]"
_DATA = "data:"


@dataclass(frozen=True, slots=True)
class Sanitizer:
    """A note in the place of each long fenced block, each long data URI, and each line with a long opaque run; lines
    without words next to each other become one, and the text is trimmed.

    Lengths are of UTF-8 bytes. A fence begins at a line that starts with three backticks after blanks, and reaches to
    the next such line, or to the end of the text; the lines of a short block are judged like all others. An opaque run
    is one of base64 characters, also in its form for URLs, or of hexadecimal digits, between ends of words, whose
    letters are ASCII's.

    Source: libravdb memory 1.4.4.
    """

    fence_bytes: int = 240
    fence_lines: int = 8
    """Between its ends; either makes a block long."""
    data_bytes: int = 64
    """Of a line that starts with `data:`."""
    opaque_bytes: int = 96
    """Of a line; a shorter one stays, whatever runs it holds."""
    base64_run: int = 80
    hex_run: int = 64

    def __post_init__(self) -> None:
        check_range(self, "fence_bytes", "fence_lines", "data_bytes", "opaque_bytes", "base64_run", "hex_run", ge=1)

    def sanitize(self, text: str) -> str:
        """The text as a summarizer is shown it; blank stays blank."""
        if not text.strip():
            return ""
        kept: list[str] = []
        for line in self._without_long_blocks(text.strip().replace("\r\n", "\n").split("\n")):
            said = self._line(line)
            kept += [] if not said.strip() and kept and not kept[-1].strip() else [said]
        return "\n".join(kept).strip() or _NOTHING_LEFT

    def _without_long_blocks(self, lines: list[str]) -> Iterator[str]:
        place = 0
        while place < len(lines):
            stop = place + 1
            if lines[place].strip().startswith(_FENCE):
                while stop < len(lines) and not lines[stop].strip().startswith(_FENCE):
                    stop += 1
                inner = stop - place - 1
                stop = min(stop + 1, len(lines))
                block = lines[place:stop]
                yield from [_FENCED] if self._is_long_block(block, inner) else block
            else:
                yield lines[place]
            place = stop

    def _is_long_block(self, block: list[str], inner: int) -> bool:
        return inner >= self.fence_lines or _byte_length("\n".join(block)) >= self.fence_bytes

    def _line(self, line: str) -> str:
        said = line.strip()
        if not said:
            return ""
        length = _byte_length(said)
        if said.startswith(_DATA) and length >= self.data_bytes:
            return _TRANSPORT
        return _OPAQUE if length >= self.opaque_bytes and self._is_opaque(said) else line

    def _is_opaque(self, line: str) -> bool:
        return bool(
            re.search(rf"\b[A-Za-z0-9+/=_-]{{{self.base64_run},}}\b", line, re.ASCII)
            or re.search(rf"\b[0-9a-fA-F]{{{self.hex_run},}}\b", line, re.ASCII)
        )


def _byte_length(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))
