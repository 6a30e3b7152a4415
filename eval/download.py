"""Downloads of published files: checked by their digest, and gone on with where they were cut off.

What is not whole lies beside its place under a name that ends in `.part`; nothing reads such a file.
"""

import shutil
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import requests

from lcm.derived import sum_of
from lcm.errors import LcmError

PARTIAL = ".part"
"""How the name of a file ends whose download is not done."""
_CHUNK = 1 << 16  # what a broken connection loses at most
_TIMEOUT_SECONDS = (10.0, 60.0)
"""To connect, and between two pieces."""
_BROKEN = (
    requests.exceptions.ConnectionError,
    requests.exceptions.ChunkedEncodingError,
    requests.exceptions.ReadTimeout,
)
Progress = Callable[[int, int | None], None]
"""Is told how many bytes of how many are there."""


class MissingFileError(LcmError):
    """A server has no file of that address."""


@dataclass(frozen=True, slots=True)
class Remote:
    """A published file."""

    address: str
    sha256: str | None = None
    """None: not known, so that it is taken as it comes."""
    size_bytes: int | None = None
    mirrors: str = "base_url=URL"
    """What names another place to have it from, for messages."""


def download(remote: Remote, path: Path, progress: Progress) -> str:
    """Bring a file to its place, whole or not at all, and return its digest; one that is there stays as it is.

    Raises:
        LcmError: if another file lies there, the server has none (MissingFileError), it is not the one of that digest,
            the connection breaks off for good, or there is no room. What is there of it is kept, unless it is another.
    """
    if path.exists():
        found = sum_of(path)
        if remote.sha256 not in (None, found):
            raise LcmError(
                f"{path} is there and is another file: sha256 is {found}, expected {remote.sha256}; remove it, or name "
                "another folder"
            )
        return found
    part = path.with_name(path.name + PARTIAL)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        free, lacking = shutil.disk_usage(path.parent).free, (remote.size_bytes or 0) - _size(part)
        if lacking > free:
            needs = f"{path.name} needs {lacking / 1e6:,.1f} MB more; make room, or name another folder"
            raise LcmError(f"{path.parent} has room for {free / 1e6:,.1f} MB, and {needs}")
        _fetch(remote, part, progress)
    except requests.exceptions.RequestException as error:
        raise LcmError(
            f"{remote.address} cannot be reached ({type(error).__name__}); {_told(part)}; try again, name a mirror "
            f"with {remote.mirrors}, or put the file at {path} by hand"
        ) from error
    except OSError as error:
        raise LcmError(f"{path}: {error.strerror or error}; {_told(part)}") from error
    found = sum_of(part)
    if remote.sha256 not in (None, found):
        part.unlink()
        raise LcmError(
            f"{remote.address} is not the pinned file: sha256 is {found}, expected {remote.sha256}; it is removed again"
        )
    part.rename(path)
    return found


def _fetch(remote: Remote, part: Path, progress: Progress) -> None:
    """Bring what lacks; a connection that breaks is taken up again as long as each brings something."""
    while True:
        before = _size(part)
        if remote.size_bytes is not None and before >= remote.size_bytes:
            return
        try:
            _fetch_on(remote, part, before, progress)
        except _BROKEN:
            if _size(part) <= before:
                raise
        else:
            return


def _fetch_on(remote: Remote, part: Path, before: int, progress: Progress) -> None:
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={before}-"} if before else {})
    with closing(requests.get(remote.address, headers=headers, stream=True, timeout=_TIMEOUT_SECONDS)) as response:
        if response.status_code == requests.codes.requested_range_not_satisfiable:
            return  # nothing lacks: the digest tells whether that is so
        if response.status_code not in (requests.codes.ok, requests.codes.partial_content):
            kind = MissingFileError if response.status_code == requests.codes.not_found else LcmError
            raise kind(
                f"{remote.address}: the server says {response.status_code} {response.reason}; {_told(part)}; a mirror "
                f"is named by {remote.mirrors}"
            )
        begins = response.headers.get("Content-Range", "")
        goes_on = response.status_code == requests.codes.partial_content and begins.startswith(f"bytes {before}-")
        there = before if goes_on else 0
        length = response.headers.get("Content-Length")
        whole = there + int(length) if length is not None and length.isdecimal() else None
        with part.open("ab" if goes_on else "wb") as file:
            for chunk in response.iter_content(_CHUNK):
                file.write(chunk)
                there += len(chunk)
                progress(there, whole)


def _told(part: Path) -> str:
    there = _size(part)
    return f"{there / 1e6:,.1f} MB are there, and the same command goes on from there" if there else "nothing is there"


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
