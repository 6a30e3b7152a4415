"""What indexes of vectors and of texts have in common: what they refuse, and how they pick the best."""

from collections.abc import Container, Iterable, Sequence

import numpy as np
import numpy.typing as npt

Ranked = tuple[list[str], list[float]]
"""Ids and their scores, best first."""

_SHOWN = 10
SORTED_SHARE = 1 / 4
"""Wanting more than this share of the scores, sort them all."""


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
