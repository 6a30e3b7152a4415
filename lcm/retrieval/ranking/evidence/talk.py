"""A whole talk laid out for evidence of a few of its turns."""

import threading
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from lcm.retrieval.ranking.evidence.growing_columns import NumberLists
from lcm.retrieval.ranking.evidence.haystack import Numbers, Places
from lcm.retrieval.ranking.evidence.speakers import Speakers
from lcm.retrieval.ranking.evidence.term_segments import Segments, held
from lcm.retrieval.ranking.evidence.text_facts import stem_of

_MOST_TERMS = 4096  # whose holders are counted of one moment
_MOST_HELD = 64  # whose holders are kept


@dataclass(frozen=True, slots=True)
class Talk:
    """A talk at one moment: its turns in the order in which they became known, every array one entry a turn unless it
    says otherwise. What grows behind it is not seen.

    A turn is a document, or all passages that one message or step was cut into. Names of speakers count among words.
    """

    documents: int
    positions: Mapping[str, int]
    """Document id -> its number, of later documents too."""
    turns: npt.NDArray[np.int32]
    """Of each document its turn."""
    begins: npt.NDArray[np.int32]
    """The first document of each."""
    sessions: npt.NDArray[np.int32]
    sections: npt.NDArray[np.int32]
    """From one turn of the user up to the next, in a session."""
    before: npt.NDArray[np.int32]
    """The turn before each in its session, -1 where there is none."""
    behind: npt.NDArray[np.int32]
    """The turn behind each in its session, -1 where there is none; or one that is not seen yet."""
    days: Numbers
    authors: npt.NDArray[np.int32]
    """The number of what may be a speaker's name, at the beginning; -1 where there is none."""
    author_numbers: Mapping[str, int]
    roles: npt.NDArray[np.int32]
    role_names: Sequence[str | None]
    facts: npt.NDArray[np.float32]
    """Shape (n, 5): words, names, and whether it speaks of the speaker, asks, and tells a time."""
    speakers: Speakers
    lengths: npt.NDArray[np.int32]
    """Stems of each document."""
    stems: NumberLists
    """Of each document."""
    words: NumberLists
    """Of each turn, those that differ."""
    stem_numbers: Mapping[str, int]
    word_numbers: Mapping[str, int]
    vocabulary: Sequence[str]
    """The words by their numbers, later ones too."""
    segments: Segments
    """Which documents hold each stem."""
    stem_turns: Places
    """How many turns hold each stem."""
    word_turns: Places
    """How many turns hold each word."""
    session_lengths: Places
    """Stems of each session."""
    years: range
    """In which something was said."""
    lock: threading.RLock
    """Held by who changes `kept`."""
    kept: dict[Hashable, Any]
    """What stages keep of all documents and grow themselves, by their own keys."""
    holders: dict[str, tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]] = field(default_factory=dict)
    """What `held` has found last: one query asks for each of its stems a dozen times."""
    counts: dict[Hashable, int] = field(default_factory=dict)
    """How many hold what was asked for."""
    cache: dict[Hashable, Any] = field(default_factory=dict)
    """What stages have computed of this moment, by their own keys."""

    def __len__(self) -> int:
        return len(self.sessions)

    @property
    def name_stems(self) -> Sequence[int]:
        """The numbers of the stems that are names of those who speak."""
        return [self.stem_numbers[stem] for name in self.speakers.names if (stem := stem_of(name)) in self.stem_numbers]

    def held(self, stem: str) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """The documents that hold a stem, ascending, and how often."""
        found: tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]] | None = self.holders.get(stem)
        if found is None:
            if len(self.holders) > _MOST_HELD:
                self.holders.clear()
            found = self.holders[stem] = held(self.segments, self.stem_numbers.get(stem, -1))
        return found

    def ends(self, turns: Places) -> Places:
        """Of some turns the document behind the last."""
        following = np.minimum(turns + 1, len(self) - 1)
        return np.where(turns + 1 < len(self), self.begins[following], self.documents).astype(np.int64)

    def next_to(self, turns: Places, step: int) -> Places:
        """The turn before (-1) or behind (1) each in its session; -1 where there is none, and of -1."""
        found = (self.before if step < 0 else self.behind)[turns].astype(np.int64)
        found[(turns < 0) | (found >= len(self))] = -1
        return found

    def holder_count(self, stem: str, of: Hashable) -> int:
        """How many documents hold a stem, or turns, sessions, or windows of so many turns to each side.

        Args:
            of: `documents`, `turns`, `sessions`, or the number.
        """
        key = stem, of
        found = self.counts.get(key)
        if found is None:
            if len(self.counts) > _MOST_TERMS:
                self.counts.clear()
            found = self.counts[key] = self._holder_count(stem, of)
        return found

    def _holder_count(self, stem: str, of: Hashable) -> int:
        documents = self.held(stem)[0]
        if of == "documents" or not len(documents):
            return len(documents)
        turns = self.turns[documents].astype(np.int64)
        if of == "turns":
            return int(np.count_nonzero(np.diff(turns, prepend=-1)))
        if of == "sessions":
            return int(np.count_nonzero(np.bincount(self.sessions[turns])))
        assert isinstance(of, int)
        is_near = np.zeros(len(self), np.bool_)
        is_near[turns] = True
        for step in (-1, 1):
            near = turns
            for _ in range(of):
                near = self.next_to(near, step)
                near = near[near >= 0]
                is_near[near] = True
        return int(np.count_nonzero(is_near))
