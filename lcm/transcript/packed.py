"""Packed files, unpacked as they are read, and no further than text could have been packed."""

import gzip
import io
from pathlib import Path
from typing import Any

from lcm.errors import TranscriptError
from lcm.limits import UNPACKED_RATIO

_ANY_BYTES = 64 * 2**20
"""What any file may become."""
_CHUNK_BYTES = 2**18


def unpacked(path: Path) -> io.BufferedReader:
    """What a gzip file holds, as a stream.

    Raises:
        TranscriptError: when it is read, where it becomes more than `UNPACKED_RATIO` allows.
    """
    return io.BufferedReader(_Bounded(path), _CHUNK_BYTES)


class _Bounded(io.RawIOBase):
    def __init__(self, path: Path) -> None:
        self._path = path
        self._most = max(_ANY_BYTES, path.stat().st_size * UNPACKED_RATIO.value)
        self._read = 0
        self._stream = gzip.open(path)  # noqa: SIM115 - closed with this

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        found = self._stream.read1(len(buffer))
        self._read += len(found)
        if self._read > self._most:
            raise TranscriptError(
                f"{self._path}: becomes more than {self._most:,} bytes when it is unpacked, {UNPACKED_RATIO.value} for "
                f"each of its own, as no recorded text does; {UNPACKED_RATIO.variable} raises the limit"
            )
        buffer[: len(found)] = found
        return len(found)

    def close(self) -> None:
        self._stream.close()
        super().close()
