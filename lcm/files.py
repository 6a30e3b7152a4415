"""Files: written whole or not at all; and where derived ones are kept between runs."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import platformdirs


@contextmanager
def written_whole(path: Path) -> Iterator[BinaryIO]:
    """Give a stream whose bytes become the file at the end, and on disk; an error in between leaves what was there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    try:
        with os.fdopen(descriptor, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        Path(name).replace(path)
    finally:
        Path(name).unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def cache_dir() -> Path:
    """`LCM_CACHE_DIR`, else the user's cache folder. Whatever is in it can be deleted and is made again."""
    named = os.environ.get("LCM_CACHE_DIR")
    return Path(named).expanduser() if named else Path(platformdirs.user_cache_dir("lcm", appauthor=False))
