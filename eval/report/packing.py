"""Data that lies compressed in a page, in blocks that are unpacked when somebody looks.

A block is JSON, packed by gzip, in base64: letters that end no element and mean nothing to a browser, whatever a
transcript says.
"""

import base64
import gzip
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from lcm.encoding import well_formed

_LEVEL = 6
"""Of gzip: a tenth larger than the best, at a third of its time."""


@dataclass(slots=True)
class Blocks:
    """The blocks of one page, by name."""

    packed: dict[str, str] = field(default_factory=dict)
    """Name -> base64; names are the page's own, never words of a transcript."""

    def add(self, name: str, value: Any) -> None:
        text = well_formed(json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False))
        self.packed[name] = base64.b64encode(gzip.compress(text.encode(), _LEVEL, mtime=0)).decode()

    def add_series(self, name: str, parts: Iterable[Sequence[Any]]) -> list[int]:
        """Add the parts of one long list, `name0`, `name1`, ...; returns where each begins."""
        starts, at = [], 0
        for number, part in enumerate(parts):
            self.add(f"{name}{number}", part)
            starts.append(at)
            at += len(part)
        return starts

    @property
    def size(self) -> int:
        """Bytes in the page."""
        return sum(map(len, self.packed.values()))


def parted(rows: Sequence[Any], sizes: Iterable[int], most: int) -> Iterator[Sequence[Any]]:
    """Cut a list into parts of about `most`, a row counting as its size says."""
    begin, total = 0, 0
    for place, size in enumerate(sizes):
        if total and total + size > most:
            yield rows[begin:place]
            begin, total = place, 0
        total += size
    if begin < len(rows):
        yield rows[begin:]
