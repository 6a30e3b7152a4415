"""Which documents of an excerpt, and which of its sessions, hold a stem, and how many of the whole talk do."""

from collections.abc import Hashable

import numpy as np

from lcm.retrieval.ranking.evidence.excerpt import Excerpt
from lcm.retrieval.ranking.evidence.haystack import Numbers, Places
from lcm.retrieval.ranking.evidence.postings import Counted
from lcm.retrieval.ranking.evidence.talk import Talk


class ExcerptStems:
    """Of the documents of an excerpt."""

    def __init__(self, seen: Excerpt) -> None:
        self._seen = seen
        self.lengths: Numbers = seen.talk.lengths[seen.documents].astype(np.float64)
        self._known: dict[str, tuple[Places, Numbers]] = {}

    def held(self, term: str) -> tuple[Places, Numbers]:
        if term not in self._known:
            holders, counts = self._seen.talk.held(term)
            wanted = self._seen.documents
            if len(holders) < len(wanted):
                found = np.searchsorted(wanted, holders)
                is_here = found < len(wanted)
                is_here[is_here] = wanted[found[is_here]] == holders[is_here]
                self._known[term] = found[is_here], counts[is_here].astype(np.float64)
            else:
                places = np.searchsorted(holders, wanted)
                is_here = places < len(holders)
                is_here[is_here] = holders[places[is_here]] == wanted[is_here]
                self._known[term] = np.flatnonzero(is_here), counts[places[is_here]].astype(np.float64)
        return self._known[term]


class SessionStems:
    """Of the sessions of an excerpt, whose documents need not all be in it."""

    def __init__(self, seen: Excerpt) -> None:
        self._seen = seen
        self.lengths: Numbers = seen.talk.session_lengths[seen.session_numbers].astype(np.float64)

    def held(self, term: str) -> tuple[Places, Numbers]:
        talk, numbers = self._seen.talk, self._seen.session_numbers
        holders, counts = talk.held(term)
        sessions = talk.sessions[talk.turns[holders]]
        times = np.bincount(sessions, counts, int(numbers.max(initial=-1)) + 1)[numbers]
        places = np.flatnonzero(times)
        return places, times[places].astype(np.float64)


def counted(talk: Talk, of: Hashable) -> Counted:
    """What is counted over all documents, turns or sessions of a talk, or windows of so many turns to each side.

    A window is taken to be as long as so many mean turns.
    """
    places = {"documents": talk.documents, "sessions": len(talk.session_lengths)}.get(str(of), len(talk))
    mean = float(talk.session_lengths.sum()) / max(1, places)
    return Counted(
        places, mean * (2 * of + 1) if isinstance(of, int) else mean, lambda stem: talk.holder_count(stem, of)
    )
