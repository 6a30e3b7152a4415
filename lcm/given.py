"""What others give: files and folders that are opened for what they are, and unpacked no further than text is packed.

A plain file is read; a device, a pipe or a socket is not even waited for. Of a folder no link is followed that leads
out of what was named.
"""

import errno
import gzip
import io
import logging
import os
import stat
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from lcm.errors import LcmError, LimitError
from lcm.faults import naming
from lcm.files import is_below
from lcm.limits import UNPACKED_RATIO, WHOLE_FILE_BYTES

_log = logging.getLogger(__name__)
_ANY_BYTES = 64 * 2**20
"""What any file may become."""
_CHUNK_BYTES = 2**18
PACKED_ENDINGS = (".gz", ".zst")
"""How the name of a packed file may end."""


class TornError(OSError):
    """What is packed cannot be unpacked to its end."""


def opened(path: Path, refusal: type[LcmError] = LimitError) -> io.BufferedReader:
    """What a plain file holds, as a stream; what is packed by gzip or zstd is unpacked.

    Args:
        refusal: what is raised, when it is read, where the file becomes more than `UNPACKED_RATIO` allows.

    Raises:
        OSError: naming the path, if it cannot be opened, or is no plain file. When it is read: `TornError`.
    """
    return _unpacking(opened_as_is(path), Bound(path, refusal))


def packed_bytes_taken(stream: io.BufferedReader) -> int | None:
    """How much of a packed file a stream of `opened` has unpacked so far; None where the file is not packed."""
    return stream.raw.taken if isinstance(stream.raw, _Unpacked) else None


def opened_bytes(content: bytes, path: Path, refusal: type[LcmError] = LimitError) -> io.BufferedReader:
    """What a value of a file holds, as a stream; unpacked, bounded and refused as `opened` does with a file."""
    return _unpacking(io.BufferedReader(io.BytesIO(content)), Bound(path, refusal, len(content)))


def opened_as_is(path: Path) -> io.BufferedReader:
    """The bytes of a plain file, as a stream.

    Raises:
        OSError: naming the path, if it cannot be opened, or is no plain file: a pipe may never have an end.
    """
    return os.fdopen(_plain(path), "rb")


def plain_bytes(path: Path) -> bytes:
    """The bytes of a plain file, as they are.

    Raises:
        OSError: as `opened_as_is`.
    """
    with opened_as_is(path) as stream:
        return stream.read()


def read_whole(path: Path, refusal: type[LcmError] = LimitError) -> bytes:
    """What a plain file holds that is read at once; what is packed by gzip or zstd is unpacked.

    Raises:
        LcmError: of the class that is named, if there are more than `WHOLE_FILE_BYTES` allows, or it is torn.
        OSError: as `opened`.
    """
    try:
        with naming(path), opened(path, refusal) as stream:
            content = stream.read(WHOLE_FILE_BYTES.value + 1)
    except TornError as error:
        raise refusal(f"{path}: cannot be read: {error}; get the file again") from error
    if len(content) > WHOLE_FILE_BYTES.value:
        raise refusal(f"{path}: is too large to be read at once: {WHOLE_FILE_BYTES.remedy}")
    return content


class Bound:
    """How much a file may become when it is unpacked: so many bytes for each of its own, and for any file some."""

    def __init__(self, path: Path, refusal: type[LcmError] = LimitError, n_bytes: int | None = None) -> None:
        """Count nothing yet.

        Args:
            n_bytes: of what is packed; None = the file.
        """
        self._path, self._refusal = path, refusal
        n_bytes = path.stat().st_size if n_bytes is None else n_bytes
        self._most = max(_ANY_BYTES, n_bytes * UNPACKED_RATIO.value)
        self._taken = 0

    def take(self, n_bytes: int) -> None:
        """Count what was unpacked.

        Raises:
            LcmError: of the class that was named, if that is more in all than is allowed.
        """
        self._taken += n_bytes
        if self._taken > self._most:
            raise self._refusal(
                f"{self._path}: becomes more than {self._most:,} bytes when it is unpacked, {UNPACKED_RATIO.value} for "
                f"each of its own, as no recorded text does; {UNPACKED_RATIO.variable} raises the limit"
            )


def files_below(folder: Path, roots: Iterable[Path] | None = None) -> list[Path]:
    """Every plain file below a folder, in the order of their paths, each folder once.

    Links are followed as far as they stay below the roots, and one that leads elsewhere is told; devices and pipes are
    passed over; a folder that cannot be listed stands for its files, so that reading it says why.

    Args:
        roots: what was named; None = the folder alone.
    """
    named = [root.resolve() for root in ((folder,) if roots is None else roots)]
    found: list[Path] = []
    folders, seen, refused = [folder], set[tuple[int, int]](), list[OSError]()
    for start in folders:
        for where, inner, names in os.walk(start, onerror=refused.append):
            status = Path(where).stat()
            if (status.st_dev, status.st_ino) in seen:
                inner.clear()
                continue
            seen.add((status.st_dev, status.st_ino))
            inner.sort()
            links = (link for name in inner if (link := Path(where, name)).is_symlink())
            folders += [link for link in links if _is_within(link, named)]
            files = (file for name in names if (file := Path(where, name)).is_file())
            found += [file for file in files if not file.is_symlink() or _is_within(file, named)]
    return sorted([*found, *(Path(error.filename) for error in refused)])


def is_given(path: Path, folder: Path) -> bool:
    """Whether a path below a folder that was named is a plain file, and no link leads out of the folder."""
    return path.is_file() and is_within(path, folder)


def is_within(path: Path, folder: Path) -> bool:
    """Whether no link leads from a path below a folder that was named out of it; one that does is told."""
    return _is_within(path, [folder.resolve()])


def _is_within(path: Path, roots: Iterable[Path]) -> bool:
    target = path.resolve()
    if is_below(target, roots):
        return True
    _log.warning(
        "%s leads out of what was named, to %s, and is not followed: name that too to take it in", path, target
    )
    return False


def _plain(path: Path) -> int:
    mode = path.stat().st_mode  # a device may act when it is opened
    if stat.S_ISREG(mode):
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))  # it may have been replaced by a pipe
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return descriptor
        os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise OSError(errno.EINVAL, "No plain file but a device, a pipe or a socket", str(path))


_Read = Callable[[int], bytes]
"""Gives at most so many bytes, and what was unpacked before a tear before it raises."""


def _gzip(packed: io.BufferedReader) -> _Read:
    return gzip.GzipFile(fileobj=packed).read1


class _Zstd:
    """Of a read that meets a tear pyarrow gives nothing: what stands before it is read again, byte by byte."""

    def __init__(self, packed: io.BufferedReader) -> None:
        self._packed, self._given, self._most = packed, 0, 2**14
        self._streams = [self._begun()]  # one that nobody holds closes the file

    def __call__(self, size: int) -> bytes:
        try:
            found = bytes(self._streams[-1].read(min(size, self._most)))
        except OSError:
            if self._most == 1:
                raise
            self._read_again()
            found = bytes(self._streams[-1].read(1))
        self._given += len(found)
        return found

    def _read_again(self) -> None:
        self._packed.seek(0)
        self._streams.append(self._begun())
        left, self._most = self._given, 1
        while left and (found := self._streams[-1].read(min(left, 2**14))):
            left -= len(found)

    def _begun(self) -> Any:
        import pyarrow  # type: ignore[import-untyped]  # a tenth of a second, which few files need

        return pyarrow.CompressedInputStream(self._packed, "zstd")


_PACKINGS: dict[bytes, Callable[[io.BufferedReader], _Read]] = {
    b"\x1f\x8b": _gzip,
    b"\x28\xb5\x2f\xfd": _Zstd,
    **{bytes((0x50 + kind, 0x2A, 0x4D, 0x18)): _Zstd for kind in range(16)},  # frames to skip, which pzstd begins with
}
"""How a packed file begins, and what unpacks it."""


def _unpacking(stream: io.BufferedReader, bound: Bound) -> io.BufferedReader:
    begins = stream.peek(4)
    unpack = next((unpack for magic, unpack in _PACKINGS.items() if begins.startswith(magic)), None)
    return stream if unpack is None else io.BufferedReader(_Unpacked(stream, unpack(stream), bound), _CHUNK_BYTES)


class _Unpacked(io.RawIOBase):
    def __init__(self, packed: io.BufferedReader, read: _Read, bound: Bound) -> None:
        self._packed, self._read, self._bound = packed, read, bound
        self.taken = 0
        """Bytes of what is packed."""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            found = self._read(min(len(buffer), _CHUNK_BYTES))
        except (EOFError, OSError, zlib.error) as error:
            raise TornError(str(error)) from error
        self._bound.take(len(found))
        self.taken = self._packed.tell()
        buffer[: len(found)] = found
        return len(found)

    def close(self) -> None:
        self._packed.close()
        super().close()
