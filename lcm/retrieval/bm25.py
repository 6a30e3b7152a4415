"""BM25 as Lucene computes it, over whatever holds terms: documents of an index, turns, windows, sessions.

Source: the lucene method of bm25s 0.3: idf = ln(1 + (N - n + .5) / (n + .5)), weight = idf * f / (f + k1 (1 - b + b
length / mean length)).
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from lcm.protocols.columns import Numbers, Places

Postings = Iterable[tuple[Places, Any]]
"""Of each term the places that hold it, each once, and how often."""
K1, B = 1.2, 0.75
"""Lucene's own."""


def idf(held: Any, count: int) -> Any:
    """How much a term weighs that so many of `count` places hold: a number, or an array of them."""
    return np.log1p((count - held + 0.5) / (held + 0.5))


def norms(lengths: npt.NDArray[Any], k1: float = K1, b: float = B) -> Numbers:
    """What the times that a term stands in a place are held against, by how many terms each place has."""
    mean = lengths.mean() if len(lengths) else 0.0
    found: Numbers = k1 * ((1 - b) + b * lengths / (mean or 1.0))
    return found


def scores(postings: Postings, norms: Numbers) -> Numbers:
    """The sum over the terms, a number a place: 0 where it holds none of them."""
    found = np.zeros(len(norms))
    for places, times in postings:
        found[places] += idf(len(places), len(norms)) * (times / (norms[places] + times))
    return found


def coverage(postings: Postings, count: int) -> Numbers:
    """The share of the terms, weighed by their idf, that each of `count` places holds."""
    found, total = np.zeros(count), 0.0
    for places, _ in postings:
        found[places] += idf(len(places), count)
        total += idf(len(places), count)
    return found / total if total else found
