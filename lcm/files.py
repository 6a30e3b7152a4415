"""Files: written whole or not at all; and where derived ones are kept between runs."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import platformdirs

from lcm.faults import naming


@contextmanager
def written_whole(path: Path) -> Iterator[BinaryIO]:
    """Give a stream whose bytes become the file at the end, and on disk; an error in between leaves what was there.

    Who may read it is up to the umask, as of any file that is opened for writing.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    made = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with naming(path), made.open("xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        made.replace(path)
    finally:
        made.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def write_text(path: Path, text: str) -> None:
    """Write a file of text that is there whole or not at all."""
    with written_whole(path) as file:
        file.write(text.encode())


def cache_dir() -> Path:
    """`LCM_CACHE_DIR`, else the user's cache folder. Whatever is in it can be deleted and is made again."""
    named = os.environ.get("LCM_CACHE_DIR")
    return Path(named).expanduser() if named else Path(platformdirs.user_cache_dir("lcm", appauthor=False))
