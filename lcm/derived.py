"""Derived files: written whole together with their check, and read only where they still are what was written.

A file carries its check in front of what it holds; a record of JSON has it as one more of its keys. The files of a
folder that others read too, in their own formats, have theirs in a list beside them, `SHA256SUMS`, as
`sha256sum --check` takes it.
"""

import hashlib
import json
import mmap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lcm.faults import DamagedError, is_of_machine, naming
from lcm.files import written_whole
from lcm.given import opened_as_is, plain_bytes

SUMS = "SHA256SUMS"
_MAGIC = b"lcm derived 1\n"
SUM = "sha256"
DERIVED_START = len(_MAGIC) + hashlib.sha256().digest_size
"""Bytes in front of what a file carries."""


def write_derived(path: Path, parts: Sequence[bytes | memoryview]) -> None:
    """Write a file of these parts, end to end, behind their check."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    with written_whole(path, is_checked=True) as file:
        file.write(_MAGIC)
        file.write(digest.digest())
        for part in parts:
            file.write(part)


def read_derived(path: Path) -> memoryview:
    """What `write_derived` wrote.

    Raises:
        DamagedError: if it is not what was written.
        OSError: if it cannot be read, for instance because it is not there.
    """
    with naming(path):
        data = plain_bytes(path)
    body = memoryview(data)[DERIVED_START:]
    if not data.startswith(_MAGIC) or hashlib.sha256(body).digest() != data[len(_MAGIC) : DERIVED_START]:
        raise DamagedError(f"{path} is damaged")
    return body


def mapped_derived(path: Path) -> memoryview:
    """As `read_derived`; what is not looked at stays in the file, and the system may take back what was."""
    with naming(path), opened_as_is(path) as file:
        start = file.read(DERIVED_START)
        digest = hashlib.file_digest(file, "sha256").digest()
        if not start.startswith(_MAGIC) or digest != start[len(_MAGIC) :]:
            raise DamagedError(f"{path} is damaged")
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))[DERIVED_START:]


def sealed(record: Mapping[str, Any]) -> dict[str, Any]:
    """A record as JSON will give it back, and its sum."""
    read: dict[str, Any] = json.loads(json.dumps(record, default=str))
    return {**read, SUM: _sum(read)}


def unsealed(record: object, keys: Iterable[str]) -> dict[str, Any] | None:
    """The record that was `sealed`; None where it is not as it was written.

    Args:
        keys: that it has; with these alone it is one that was written before records had sums.
    """
    if not isinstance(record, dict):
        return None
    told = {key: value for key, value in record.items() if key != SUM}
    is_whole = told.keys() == set(keys) and record.get(SUM, _sum(told)) == _sum(told)
    return told if is_whole else None


def sum_of(path: Path) -> str:
    with naming(path), opened_as_is(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def seal(folder: Path, names: Iterable[str] | None = None) -> None:
    """Write the list of files of a folder with their sums, in place of an earlier one.

    Args:
        names: of the files; None = all.
    """
    names = (file.name for file in folder.iterdir()) if names is None else names
    lines = [f"{sum_of(folder / name)}  {name}\n" for name in sorted(names) if name != SUMS]
    with written_whole(folder / SUMS) as file:
        file.write("".join(lines).encode())


def is_sealed_whole(folder: Path) -> bool:
    """Whether a folder holds the files of its list, all of them as they were written, and no other."""
    try:
        return _sums(folder).keys() == {one.name for one in folder.iterdir()} - {SUMS} and changed_in(folder) is None
    except (OSError, DamagedError) as error:
        if is_of_machine(error):
            raise
        return False


def changed_in(folder: Path) -> Path | None:
    """The first file of a folder's list that is not as it was written; the list itself where that is damaged, and None
    where there is none."""
    path = folder / SUMS
    if not path.exists():
        return None
    try:
        for name, digest in _sums(folder).items():
            path = folder / name
            if sum_of(path) != digest:
                return path
    except (OSError, DamagedError) as error:
        if is_of_machine(error):
            raise
        return path
    return None


def is_listed(path: Path) -> bool:
    """Whether the list of a file's folder names it, be the file there or not.

    Raises:
        DamagedError: if the list is damaged.
    """
    return (path.parent / SUMS).exists() and path.name in _sums(path.parent)


def checked(path: Path, remedy: str) -> Path:
    """The path, of a file that its folder's list says is as it was written; in a folder without a list any may be.

    Args:
        remedy: what to do where it is not.
    Raises:
        DamagedError: if it is not, or the list is damaged.
    """
    if not path.exists():
        return path
    try:
        if not (path.parent / SUMS).exists():  # written before there were lists, or copied by itself
            opened_as_is(path).close()
            return path
        if _sums(path.parent).get(path.name) == sum_of(path):
            return path
    except OSError as error:
        raise DamagedError(f"{error.filename} cannot be read ({error.strerror}); {remedy}") from error
    raise DamagedError(f"{path} is damaged: it is not as it was written; {remedy}")


def _sum(record: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()


def _sums(folder: Path) -> dict[str, str]:
    path = folder / SUMS
    with naming(path):
        content = plain_bytes(path)
    lines = content.split(b"\n")
    try:
        sums = dict(line.decode().split("  ", 1)[::-1] for line in lines[:-1])
    except ValueError as error:
        raise DamagedError(f"{path} is damaged; make the folder again") from error
    if not sums or lines[-1]:
        raise DamagedError(f"{path} is damaged; make the folder again")
    return sums
