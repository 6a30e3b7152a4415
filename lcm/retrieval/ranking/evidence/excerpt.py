"""What a query is ranked among where a talk is large: some turns of it, and those around them, counted as the whole."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import repeat

import numpy as np
import numpy.typing as npt
import polars as pl

from lcm.retrieval.ranking.evidence.growing_columns import runs
from lcm.retrieval.ranking.evidence.haystack import Haystack, Numbers, Places, highest
from lcm.retrieval.ranking.evidence.speakers import Speakers
from lcm.retrieval.ranking.evidence.standard_scores import standardised
from lcm.retrieval.ranking.evidence.talk import Talk


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Turns of a talk: those of some documents, and those around them in their sessions.

    Every array has one entry a turn, in the order of the talk, unless it says otherwise. Standard scores are among the
    turns asked for; how often words are, and what vectors are compared with, is counted over the whole talk.
    """

    talk: Talk
    numbers: Places
    """In the talk."""
    asked: Places
    """Places of the turns that were asked for."""
    documents: Places
    """The numbers in the talk of the documents of all turns, ascending."""
    turns: Places
    """Of each document the place of its turn."""
    sessions: Places
    sections: Places
    session_numbers: Places
    """In the talk, of each of `sessions`."""
    steps: Mapping[int, Places]
    """Distance -> the place of the turn so far behind each in its session, -1 where there is none."""

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def speakers(self) -> Speakers:
        return self.talk.speakers

    @property
    def days(self) -> Numbers:
        return self.talk.days[self.numbers]

    @property
    def progress(self) -> Numbers:
        """How far on it became known, from 0 to 1, by its place in the talk."""
        return self.numbers / max(1, len(self.talk) - 1)

    @property
    def authors(self) -> Places:
        """The number of the speaker's name in the talk, -1 where none is named."""
        numbers = [self.talk.author_numbers[author] for author in self.speakers.authors]
        found = self.talk.authors[self.numbers].astype(np.int64)
        return np.where(np.isin(found, numbers), found, -1)

    def places_of(self, document_ids: pl.Series) -> Places:
        """The place of each document, -1 of one that is not seen."""
        return _places(_numbers(self.talk, document_ids), self.documents)

    def beside(self, values: Numbers, distance: int) -> Numbers:
        """For each turn the value of that `distance` places before it in its session, 0 where there is none."""
        found = np.zeros_like(values)
        places = self.steps[-distance]
        takers = np.flatnonzero(places >= 0)
        found[takers] = values[places[takers]]
        return found

    def around(self, radius: int) -> Places:
        """Shape (n, 2 radius + 1): the places of each turn and of those up to `radius` before and behind it."""
        return np.stack([self.steps[distance] for distance in range(-radius, radius + 1)], axis=1)

    def best_of(self, groups: Places, values: Numbers) -> Numbers:
        """For each turn the highest value in its group, as `sessions` or `sections` number them."""
        return highest(groups, values)[groups]

    def standardised(self, values: Numbers) -> Numbers:
        """Standard scores of turns, or of documents, among those of the turns that were asked for."""
        if len(values) == len(self):
            return standardised(values, values[self.asked])
        is_asked = np.zeros(len(self), np.bool_)
        is_asked[self.asked] = True
        return standardised(values, values[is_asked[self.turns]])


Seen = Haystack | Excerpt
"""What a query is ranked among: all that it may see, or an excerpt."""


def excerpt(talk: Talk, document_ids: pl.Series, radius: int) -> Excerpt:
    """The turns of some documents, and those up to `radius` before and behind each in its session.

    The last one of each radius stays at hand: several stages look at the rows of one query.
    """
    key = excerpt, radius
    known: tuple[pl.Series, Excerpt] | None = talk.cache.get(key)
    if known is None or not known[0].equals(document_ids):
        numbers = _numbers(talk, document_ids)
        turns = told_apart(talk.turns[numbers[(numbers >= 0) & (numbers < talk.documents)]], len(talk))[0]
        known = document_ids, excerpt_of(talk, turns, radius)
        talk.cache[key] = known
    return known[1]


def _numbers(talk: Talk, document_ids: pl.Series) -> Places:
    """The number in a talk of each document, -1 of one that is not in it; those asked for last stay at hand."""
    known: tuple[pl.Series, Places] | None = talk.cache.get(_numbers)
    if known is None or not known[0].equals(document_ids):
        found = map(talk.positions.get, document_ids.to_list(), repeat(-1))
        known = talk.cache[_numbers] = document_ids, np.fromiter(found, np.int64, len(document_ids))
    return known[1]


def excerpt_of(talk: Talk, turns: npt.NDArray[np.integer], radius: int) -> Excerpt:
    """The same of turns by their numbers, ascending."""
    asked = turns.astype(np.int64)
    found = [asked]
    for step in (-1, 1):
        near = asked
        for _ in range(radius):
            near = talk.next_to(near, step)
            near = near[near >= 0]
            found.append(near)
    numbers, places = told_apart(np.concatenate(found), len(talk))
    place_of = np.full(len(talk) + 1, -1)  # the last stands for none
    place_of[numbers] = np.arange(len(numbers))
    steps = {0: np.arange(len(numbers))}
    for step in (-1, 1):
        near = numbers
        for distance in range(1, radius + 1):
            near = talk.next_to(near, step)
            steps[step * distance] = place_of[near]
    begins, ends = talk.begins[numbers].astype(np.int64), talk.ends(numbers)
    session_numbers, sessions = told_apart(talk.sessions[numbers], len(talk.session_lengths))
    return Excerpt(
        talk=talk, numbers=numbers, asked=places[: len(asked)], documents=runs(begins, ends),
        turns=np.repeat(np.arange(len(numbers)), ends - begins), sessions=sessions,
        sections=told_apart(talk.sections[numbers], len(talk))[1], session_numbers=session_numbers, steps=steps,
    )  # fmt: skip


def told_apart(numbers: npt.NDArray[np.integer], count: int) -> tuple[Places, Places]:
    """Those that differ, ascending, and the place of each among them: `np.unique`, sooner than by sorting.

    Args:
        count: above all of them.
    """
    places = np.zeros(count, np.int64)
    places[numbers] = 1
    found = np.flatnonzero(places)
    places[found] = np.arange(len(found))
    return found, places[numbers]


def _places(wanted: Places, numbers: Places) -> Places:
    """The place of each wanted number among some, ascending; -1 of what is not there."""
    places = np.searchsorted(numbers, wanted)
    is_here = places < len(numbers)
    is_here[is_here] = numbers[places[is_here]] == wanted[is_here]
    return np.where(is_here, places, -1)
