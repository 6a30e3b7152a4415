"""The file of a saved index: one file, whole or absent, that knows when it was damaged.

Layout, behind the check: length of the header, header as JSON, named blobs end to end.
"""

import json
import mmap
from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from lcm.derived import DERIVED_START, mapped_derived, write_derived
from lcm.errors import StoreError
from lcm.faults import DamagedError

_LENGTH_BYTES = 8
_ALIGNED = 64
"""Bytes: the first blob begins at a multiple in its file, so that its numbers can be looked at where they are."""

Blob = bytes | memoryview
"""A large part of a file: what is read is a view of the file itself."""


def write_index(
    path: Path, settings: Mapping[str, Any], content: Mapping[str, Any], blobs: Mapping[str, Blob | list[Blob]]
) -> None:
    """Write tmp, fsync, rename, fsync the folder.

    Args:
        settings: what must be equal for the file to be of use to its reader.
        content: the rest of the header; JSON values.
        blobs: the large parts, whole or in pieces.
    """
    pieces = {name: blob if isinstance(blob, list) else [blob] for name, blob in blobs.items()}
    header = json.dumps(
        {
            "settings": dict(settings),
            "content": dict(content),
            "blobs": {name: sum(map(len, blob)) for name, blob in pieces.items()},
        }
    ).encode()
    header += b" " * (-(DERIVED_START + _LENGTH_BYTES + len(header)) % _ALIGNED)
    write_derived(path, [len(header).to_bytes(_LENGTH_BYTES, "big"), header, *chain(*pieces.values())])


def read_index(path: Path, settings: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Blob]]:
    """Give back the content and blobs of `write_index`.

    Raises:
        StoreError: if the file is missing, damaged, or written with other settings.
    """
    try:
        body = mapped_derived(path)
    except OSError as err:
        raise StoreError(f"cannot read the index file {str(path)!r} ({err.strerror}); rebuild it") from err
    except DamagedError as err:
        raise StoreError(f"the index file {str(path)!r} is damaged or no index file; rebuild it") from err
    header_end = _LENGTH_BYTES + int.from_bytes(body[:_LENGTH_BYTES], "big")
    header = json.loads(bytes(body[_LENGTH_BYTES:header_end]))
    if header["settings"] != dict(settings):
        raise StoreError(
            f"the index file {str(path)!r} was written with {header['settings']}, expected {dict(settings)}; rebuild it"
        )
    blobs: dict[str, Blob] = {}
    position = header_end
    for name, length in header["blobs"].items():
        blobs[name] = body[position : position + length]
        position += length
    return header["content"], blobs


def let_go(blob: Blob) -> None:
    """Give back the memory that reading a blob took; whoever looks at its file again reads it again."""
    if isinstance(blob, memoryview) and isinstance(blob.obj, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        blob.obj.madvise(mmap.MADV_DONTNEED)
