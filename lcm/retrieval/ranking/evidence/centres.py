"""The mean vectors of a talk and of each who speaks in it, kept as it grows.

Vectors are rounded to a grid on which their sums are exact, so that a talk that has grown has the means of one that was
there at once.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from lcm.protocols.models import Vectors
from lcm.retrieval.ranking.evidence.growing_talk import TAIL
from lcm.retrieval.ranking.evidence.haystack import Numbers, Places
from lcm.retrieval.ranking.evidence.talk import Talk

FEW = 5
"""Documents of one speaker whose mean is no better known than that of all, if there are no more."""
_GRID = 2.0**26
_AT_ONCE = 4096
VectorsOf = Callable[[Places], Vectors]
"""The vectors of some documents, by their numbers in a talk."""


@dataclass(frozen=True, slots=True)
class Centres:
    """The mean vectors at one moment: of all documents, then of those who speak."""

    rows: Numbers
    """Shape (centres, dim)."""
    of_roles: Places
    """The number of each role's centre, that of all where it has few documents."""
    of_authors: dict[int, int]
    """Likewise of those who speak by name."""

    def of(self, talk: Talk, turns: npt.NDArray[np.integer]) -> Places:
        """The number of the centre of each of some turns: its speaker's, where none is named its role's."""
        found: Places = self.of_roles[talk.roles[turns]]
        authors = talk.authors[turns]
        for author, number in self.of_authors.items():
            found[authors == author] = number
        return found


@dataclass(slots=True)
class _Sums:
    """Sums over the first documents of a talk."""

    documents: int = 0
    roles: dict[int, tuple[int, Numbers]] = field(default_factory=dict)
    """How many documents each has, and the sum of their vectors, on the grid."""
    authors: dict[int, tuple[int, int, Numbers]] = field(default_factory=dict)
    """Likewise, behind how many of the talk's documents were looked at."""


def centres_of(talk: Talk, key: Hashable, vectors_of: VectorsOf) -> Centres:
    """The mean vectors of a talk.

    Args:
        key: of the vectors, where a talk has several.
    """
    key = Centres, key
    if key not in talk.cache:
        with talk.lock:
            sums: _Sums = talk.kept.get(key) or _Sums()
            if sums.documents > talk.documents:  # it has grown since this moment
                sums = _Sums()
            _take_in(sums, talk, max(0, talk.documents - TAIL), vectors_of)
            talk.kept[key] = sums
            whole = _Sums(sums.documents, dict(sums.roles), dict(sums.authors))
            _take_in(whole, talk, talk.documents, vectors_of)
            talk.cache[key] = _centres(whole, talk)
    found: Centres = talk.cache[key]
    return found


def _take_in(sums: _Sums, talk: Talk, end: int, vectors_of: VectorsOf) -> None:
    """Add the vectors of the documents before `end`."""
    end = max(end, sums.documents)
    for first in range(sums.documents, end, _AT_ONCE):
        numbers = np.arange(first, min(first + _AT_ONCE, end))
        rows, roles = _on_grid(vectors_of(numbers)), talk.roles[talk.turns[numbers]]
        for role in np.unique(roles).tolist():
            mine = rows[roles == role]
            count, total = sums.roles.get(role, (0, np.zeros(rows.shape[1])))
            sums.roles[role] = count + len(mine), total + mine.sum(axis=0)
    authors = talk.authors[talk.turns[:end]]
    for author in (talk.author_numbers[name] for name in talk.speakers.authors):
        seen, count, total = sums.authors.get(author, (0, 0, np.zeros(())))
        numbers = seen + np.flatnonzero(authors[seen:] == author)
        for first in range(0, len(numbers), _AT_ONCE):
            total = total + _on_grid(vectors_of(numbers[first : first + _AT_ONCE])).sum(axis=0)
        sums.authors[author] = end, count + len(numbers), total
    sums.documents = end


def _centres(sums: _Sums, talk: Talk) -> Centres:
    counts, totals = zip(*sums.roles.values(), strict=True)
    rows = [np.sum(totals, axis=0) / (_GRID * sum(counts))]
    of_roles = np.zeros(max(sums.roles) + 1, np.int64)
    of_authors = {}
    for role, (count, total) in sums.roles.items():
        if count >= FEW:
            of_roles[role] = len(rows)
            rows.append(total / (_GRID * count))
    for author in sorted(talk.author_numbers[name] for name in talk.speakers.authors):
        _, count, total = sums.authors[author]
        of_authors[author] = len(rows) if count >= FEW else 0
        if count >= FEW:
            rows.append(total / (_GRID * count))
    return Centres(np.stack(rows), of_roles, of_authors)


def _on_grid(vectors: Vectors) -> Numbers:
    """Whole numbers of the grid's step."""
    found: Numbers = np.rint(vectors.astype(np.float64) * _GRID)
    return found
