"""Files: written whole or not at all; for whom; and where derived ones are kept between runs."""

import hashlib
import os
import re
import secrets
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import platformdirs

from lcm.errors import LcmError
from lcm.faults import naming
from lcm.redaction import redacted

_UMASK = "LCM_UMASK"
_OWNER_ALONE = "077"
_PLAIN_NAME = re.compile("[a-z0-9_][a-z0-9_.-]{0,63}")
_RESERVED = {"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(10))}
"""What Windows opens as devices."""
_private = threading.Lock()
_inside: list[int] = []
"""The process's own umask, once for each `private` that is open."""


def open_to(bits: int = 0o777) -> int:
    """The bits of a mode that files and folders are made with: their owner's, unless `LCM_UMASK` says otherwise.

    Raises:
        LcmError: if that is no mask.
    """
    mask = os.environ.get(_UMASK) or _OWNER_ALONE
    if not re.fullmatch("[0-7]{1,4}", mask):
        raise LcmError(f"{_UMASK} must be an octal mask such as 022, got {mask!r}")
    return bits & ~int(mask, 8)


@contextmanager
def private() -> Iterator[None]:
    """Files and folders that are made inside, or in a function that this decorates, have the modes of `open_to`.

    What SQLite puts beside a file later has the mode of the file. The mask is one of the whole process: what other
    threads make meanwhile is private too.
    """
    with _private:
        before = os.umask(0o777 & ~open_to())
        _inside.append(_inside[0] if _inside else before)
    try:
        yield
    finally:
        with _private:
            before = _inside.pop()
            if not _inside:
                os.umask(before)


@contextmanager
def written_whole(path: Path, *, is_checked: bool = False) -> Iterator[BinaryIO]:
    """Give a stream whose bytes become the file at the end, and on disk; an error in between leaves what was there.

    Args:
        is_checked: whether its sum tells where a loss of power damaged it, and it is then made again: nobody waits for
            the disk.
    """
    made = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with naming(path):
            with private():
                path.parent.mkdir(parents=True, exist_ok=True)
                opened = made.open("xb")
            with opened as stream:
                yield stream
                stream.flush()
                if not is_checked:
                    os.fsync(stream.fileno())
        made.replace(path)
    finally:
        made.unlink(missing_ok=True)
    if is_checked:
        return
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def is_below(path: Path, roots: Iterable[Path]) -> bool:
    """Whether a path is one of the roots or lies below one; all are resolved already."""
    return any(path.is_relative_to(root) for root in roots)


def file_name(text: str) -> str:
    """A name for a file from a text of data: no path, of no system's own, and another for another text, in case too."""
    if _PLAIN_NAME.fullmatch(text) and text.partition(".")[0] not in _RESERVED and not text.endswith("."):
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{re.sub('[^a-z0-9_-]', '_', text.lower())[:64]}-{digest}"


def write_text(path: Path, text: str, *, is_checked: bool = False) -> None:
    """Write a file that says something of a run: whole or not at all, and without what looks like a key.

    Args:
        is_checked: as of `written_whole`.
    """
    with written_whole(path, is_checked=is_checked) as file:
        file.write(redacted(text).encode())


def cache_dir() -> Path:
    """`LCM_CACHE_DIR`, else the user's cache folder. Whatever is in it can be deleted and is made again."""
    named = os.environ.get("LCM_CACHE_DIR")
    return Path(named).expanduser() if named else Path(platformdirs.user_cache_dir("lcm", appauthor=False))


def from_here(place: Path) -> Path:
    """A path as everybody is told it: relative to the current folder where it lies below that."""
    here = Path.cwd()
    return place.relative_to(here) if place.is_absolute() and place.is_relative_to(here) else place
