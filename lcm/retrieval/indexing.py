"""What indexes of vectors and of texts have in common: what they refuse, how they pick the best, their file; and BM25.

The file of a saved index is one file, whole or absent, that knows when it was damaged. Behind the check: length of the
header, header as JSON, named blobs end to end.

BM25 is as Lucene computes it, over whatever holds terms: documents of an index, turns, windows, sessions. Source: the
lucene method of bm25s 0.3: idf = ln(1 + (N - n + .5) / (n + .5)), weight = idf * f / (f + k1 (1 - b + b length / mean
length)).
"""

import json
import mmap
from collections.abc import Container, Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lcm.derived import DERIVED_START, mapped_derived, write_derived
from lcm.errors import StoreError
from lcm.faults import DamagedError
from lcm.protocols.retrieval import Numbers, Places

Postings = Iterable[tuple[Places, Any]]
"""Of each term the places that hold it, each once, and how often."""
K1, B = 1.2, 0.75
"""Lucene's own."""


def bm25_idf(held: Any, count: int) -> Any:
    """How much a term weighs that so many of `count` places hold: a number, or an array of them."""
    return np.log1p((count - held + 0.5) / (held + 0.5))


def bm25_norms(lengths: npt.NDArray[Any], k1: float = K1, b: float = B) -> Numbers:
    """What the times that a term stands in a place are held against, by how many terms each place has."""
    mean = lengths.mean() if len(lengths) else 0.0
    found: Numbers = k1 * ((1 - b) + b * lengths / (mean or 1.0))
    return found


def bm25_scores(postings: Postings, norms: Numbers) -> Numbers:
    """The sum over the terms, a number a place: 0 where it holds none of them."""
    found = np.zeros(len(norms))
    for places, times in postings:
        found[places] += bm25_idf(len(places), len(norms)) * (times / (norms[places] + times))
    return found


def bm25_coverage(postings: Postings, count: int) -> Numbers:
    """The share of the terms, weighed by their idf, that each of `count` places holds."""
    found, total = np.zeros(count), 0.0
    for places, _ in postings:
        found[places] += bm25_idf(len(places), count)
        total += bm25_idf(len(places), count)
    return found / total if total else found


Ranked = tuple[list[str], list[float]]
"""Ids and their scores, best first."""

_SHOWN = 10
SORTED_SHARE = 1 / 4
"""Wanting more than this share of the scores, sort them all."""
_LENGTH_BYTES = 8
_ALIGNED = 64
"""Bytes: the first blob begins at a multiple in its file, so that its numbers can be looked at where they are."""
Blob = bytes | memoryview
"""A large part of a file: what is read is a view of the file itself."""


def best(ids: Sequence[str], scores: npt.NDArray[np.float64], k: int) -> Ranked:
    """The k highest scores with their ids, descending, ties in the given order."""
    order = best_places(scores, k)
    return [ids[place] for place in order.tolist()], scores[order].tolist()


def best_places(scores: npt.NDArray[np.floating], k: int) -> npt.NDArray[np.int64]:
    """The places of the k highest scores, descending, ties in the given order."""
    candidates = np.arange(len(scores))
    if 0 < k < len(scores) * SORTED_SHARE:
        candidates = np.flatnonzero(scores >= np.partition(scores, len(scores) - k)[len(scores) - k])
    order: npt.NDArray[np.int64] = candidates[np.argsort(-scores[candidates], kind="stable")[:k]]
    return order


def refuse_negative(k: int) -> None:
    if k < 0:
        raise ValueError(f"k must be >= 0, got {k}")


def refuse_unequal(ids: int, values: int, what: str) -> None:
    if ids != values:
        raise ValueError(f"add needs as many {what} as ids, got {values} {what} and {ids} ids")


def refuse_unknown(ids: Iterable[str], known: Container[str]) -> None:
    """Raise ValueError if some ids cannot be removed because they are not there."""
    unknown = {document_id for document_id in ids if document_id not in known}
    if unknown:
        raise ValueError(f"cannot remove what is not in the index: {_shown(unknown)}")


def refuse_known(ids: Iterable[str], known: Container[str]) -> None:
    """Raise ValueError if some ids cannot be added because they are there already, or given twice."""
    seen: set[str] = set()
    twice = set()
    for document_id in ids:
        if document_id in known or document_id in seen:
            twice.add(document_id)
        seen.add(document_id)
    if twice:
        raise ValueError(f"cannot add an id twice, remove it first: {_shown(twice)}")


def _shown(ids: set[str]) -> str:
    return ", ".join(map(repr, sorted(ids)[:_SHOWN])) + (", ..." if len(ids) > _SHOWN else "")


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
