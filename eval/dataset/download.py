"""Downloads of published files: checked by their digest, and gone on with where they were cut off.

What is not whole lies beside its place under a name that ends in `.part`; no such file is ever read as a dataset.
"""

import hashlib
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import requests

from eval.dataset.card import PinnedFile, Release
from eval.dataset.published import PARTIAL
from lcm.errors import DatasetError

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


def address_of(release: Release, pin: PinnedFile, dataset: str, base_url: str | None) -> str | None:
    """Where a file of a release is to be had; None: nowhere.

    Args:
        release: of which it is a file.
        pin: the file.
        dataset: the name of its dataset.
        base_url: of a mirror laid out as `LCM_DATASETS_DIR`; None: where it was published.
    """
    if base_url is not None:
        return f"{base_url.rstrip('/')}/{quote(f'{dataset}/{pin.path}')}"
    return None if release.url is None else f"{release.url}{quote(pin.address or pin.path)}"


def download(address: str, pin: PinnedFile, folder: Path, progress: Progress) -> Path:
    """Bring a file into a folder, whole or not at all; one that is there already is left as it is.

    Raises:
        DatasetError: if another file lies there, the server has none, it is not the pinned one, the connection breaks
            off for good, or there is no room. What is there of it is kept, unless it is not the pinned one.
    """
    path = folder / pin.path
    if path.exists():
        found = _digest(path)
        if found != pin.sha256:
            raise DatasetError(
                f"{path} is there and is another file: sha256 is {found}, expected {pin.sha256}; remove it, or name "
                "another folder with into=FOLDER"
            )
        return path
    part = path.with_name(path.name + PARTIAL)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _check_room(part, pin)
        _fetch(address, pin, part, progress)
    except requests.exceptions.RequestException as error:
        raise DatasetError(
            f"{address} cannot be reached ({type(error).__name__}); {_told(part)}; try again, name a mirror with "
            f"base_url=URL or LCM_DATASETS_URL, or put the file at {path} by hand"
        ) from error
    except OSError as error:
        raise DatasetError(f"{path}: {error.strerror or error}; {_told(part)}") from error
    found = _digest(part)
    if found != pin.sha256:
        part.unlink()
        raise DatasetError(
            f"{address} is not the pinned file: sha256 is {found}, expected {pin.sha256}; it is removed again"
        )
    part.rename(path)
    return path


def _fetch(address: str, pin: PinnedFile, part: Path, progress: Progress) -> None:
    """Bring what lacks; a connection that breaks is taken up again as long as each brings something."""
    while True:
        before = _size(part)
        if pin.size_bytes is not None and before >= pin.size_bytes:
            return
        try:
            _fetch_on(address, part, before, progress)
        except _BROKEN:
            if _size(part) <= before:
                raise
        else:
            return


def _fetch_on(address: str, part: Path, before: int, progress: Progress) -> None:
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={before}-"} if before else {})
    with closing(requests.get(address, headers=headers, stream=True, timeout=_TIMEOUT_SECONDS)) as response:
        if response.status_code == requests.codes.requested_range_not_satisfiable:
            return  # nothing lacks: the digest tells whether that is so
        if response.status_code not in (requests.codes.ok, requests.codes.partial_content):
            raise DatasetError(
                f"{address}: the server says {response.status_code} {response.reason}; {_told(part)}; a mirror is "
                "named by base_url=URL or LCM_DATASETS_URL"
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


def _check_room(part: Path, pin: PinnedFile) -> None:
    if pin.size_bytes is not None:
        lacking = pin.size_bytes - _size(part)
        free = shutil.disk_usage(part.parent).free
        if lacking > free:
            raise DatasetError(
                f"{part.parent} has room for {free / 1e6:,.1f} MB, and {pin.path} needs {lacking / 1e6:,.1f} MB more; "
                "make room, or name another folder with into=FOLDER"
            )


def _told(part: Path) -> str:
    there = _size(part)
    return f"{there / 1e6:,.1f} MB are there, and the same command goes on from there" if there else "nothing is there"


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _digest(path: Path) -> str:
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
