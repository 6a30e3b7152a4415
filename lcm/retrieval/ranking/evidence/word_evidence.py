"""What words say: BM25 of a passage, of the turns around it and of its session, without names."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl

from lcm.checks import check_range
from lcm.protocols.retrieval import Batch
from lcm.retrieval.ranking.evidence.kept_rows import Numbers, Places
from lcm.retrieval.ranking.evidence.talk import Excerpt, Talk, with_evidence
from lcm.retrieval.ranking.evidence.text_facts import FORM, stem_of

COLUMNS = (
    "words_window", "words_wide_window", "words_before", "words_after_question", "words_passage", "covered_passage",
    "words_session", "covered_session",
)  # fmt: skip
_MOST_KNOWN = 1 << 18  # numbers of the places that are known to hold a term
_K1, _B = 1.2, 0.75


@dataclass(frozen=True, slots=True)
class WordEvidence:
    """Add columns: standard scores among all turns that the query may see, but for shares in [0, 1].

    BM25 is of stems without stop words, author names left out of both sides, since a name matches half of all turns.
    `words_window` and `words_wide_window`: of the text from `window` and `wide_window` turns before to as many behind,
    in the session; `words_before`: of the turn before; `words_after_question`: of the turn before, where positive and
    that turn ends in a question mark; `words_passage`: of the document alone, where a turn was cut into several;
    `covered_passage`: the share of the query's stems, by idf, that the document holds; `words_session` and
    `covered_session`: of the session's text.

    Source: ours.
    """

    window: int = 2
    wide_window: int = 3

    def __post_init__(self) -> None:
        check_range(self, "window", "wide_window", ge=1)

    makes = COLUMNS

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        texts = batch.queries["text"]

        def evidence(seen: Excerpt, row: int) -> list[Numbers]:
            talk = seen.talk
            places = _places(talk, self.window, self.wide_window)
            terms = [stem_of(word) for word in talk.speakers.query_words(texts[row])]
            turns, documents, sessions = seen.numbers, seen.documents, talk.sessions[seen.numbers]
            words = seen.standardised(places.turns.scores(terms)[turns])
            return [
                seen.standardised(places.windows.scores(terms)[turns]),
                seen.standardised(places.wide_windows.scores(terms)[turns]),
                seen.beside(words, 1),
                seen.beside(words.clip(0.0) * talk.forms[turns, FORM.index("asks")], 1),
                seen.standardised(places.passages.scores(terms)[documents]),
                places.passages.coverage(terms)[documents],
                seen.standardised(places.sessions.scores(terms)[sessions]),
                places.sessions.coverage(terms)[sessions],
            ]

        return with_evidence(frame, batch, COLUMNS, evidence, max(self.window, self.wide_window))


class Postings:
    """BM25 of places that documents make up: a place holds what the documents hold that count in it.

    Source: Lucene's: idf = ln(1 + (N - n + .5) / (n + .5)), weight = f (k1 + 1) / (f + k1 (1 - b + b length / mean
    length)), k1 = 1.2, b = .75.
    """

    def __init__(
        self, held: Callable[[str], tuple[Places, Numbers]], lengths: Numbers, takers: Places | None = None
    ) -> None:
        """
        Args:
            held: gives the documents that hold a term, ascending, and how often.
            lengths: terms of each document.
            takers: shape (documents, any): the places that each document counts in, -1 = none; None = every document
                is a place.
        """
        self._held, self._takers = held, takers
        self._known: dict[str, tuple[Places, Numbers]] = {}
        self._numbers_known = 0
        if takers is not None:
            self.count = int(takers.max(initial=-1)) + 1
            lengths = self._taken(np.arange(len(takers)), lengths)
        self.count = len(lengths)
        mean = lengths.mean() if len(lengths) else 0.0
        self._norms = _K1 * (1 - _B + _B * lengths / (mean or 1.0))

    def scores(self, terms: Sequence[str]) -> Numbers:
        """BM25 of every place; terms that come twice count once."""
        found = np.zeros(self.count)
        for idf, places, times in self._found(terms):
            found[places] += idf * (times * (_K1 + 1) / (times + self._norms[places]))
        return found

    def coverage(self, terms: Sequence[str]) -> Numbers:
        """The share of the terms that are anywhere, weighed by their idf, that each place holds."""
        found, total = np.zeros(self.count), 0.0
        for idf, places, _ in self._found(terms):
            found[places] += idf
            total += idf
        return found / total if total else found

    def _found(self, terms: Sequence[str]) -> Iterator[tuple[float, Places, Numbers]]:
        """Of each term that is anywhere its idf, the places that hold it, and how often."""
        for term in dict.fromkeys(terms):
            places, times = self._known.get(term) or self._of(term)
            if held := len(places):
                yield math.log(1 + (self.count - held + 0.5) / (held + 0.5)), places, times

    def _of(self, term: str) -> tuple[Places, Numbers]:
        """The places that hold a term, and how often: kept, for queries share words and ask twice."""
        places, times = self._held(term)
        if self._takers is not None and len(places):
            taken = self._taken(places, times)
            places = np.flatnonzero(taken)
            times = taken[places]
        self._numbers_known += len(places)
        if self._numbers_known > _MOST_KNOWN:
            self._known, self._numbers_known = {}, len(places)
        self._known[term] = places, times
        return places, times

    def _taken(self, documents: Places, numbers: Numbers) -> Numbers:
        """What every place gets of a number of each of these documents."""
        assert self._takers is not None
        takers = self._takers[documents]
        is_one = takers >= 0
        gifts = np.broadcast_to(numbers[:, np.newaxis], takers.shape)[is_one]
        found: Numbers = np.bincount(takers[is_one], weights=gifts, minlength=self.count).astype(np.float64)
        return found


class _Places(NamedTuple):
    turns: Postings
    passages: Postings
    windows: Postings
    wide_windows: Postings
    sessions: Postings


def _places(talk: Talk, window: int, wide_window: int) -> _Places:
    """Made once a talk."""
    key = WordEvidence, window, wide_window
    if key not in talk.cache:
        turns, passages = talk.turns, Postings(talk.held, talk.lengths)
        takers = (talk.around(window)[turns], talk.around(wide_window)[turns], talk.sessions[turns][:, np.newaxis])
        talk.cache[key] = _Places(
            Postings(talk.held, talk.lengths, turns[:, np.newaxis]) if talk.is_cut else passages,
            passages,
            *(Postings(talk.held, talk.lengths, one) for one in takers),
        )
    found: _Places = talk.cache[key]
    return found
