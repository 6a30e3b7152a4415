"""What words say: BM25 of a passage, of the turns around it and of its session, without names."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl

from lcm.checks import check_range
from lcm.protocols.retrieval import Batch
from lcm.retrieval.ranking.columns import with_evidence
from lcm.retrieval.ranking.evidence.excerpt import Excerpt, Seen
from lcm.retrieval.ranking.evidence.excerpt_stems import ExcerptStems, SessionStems, counted
from lcm.retrieval.ranking.evidence.haystack import Haystack, Numbers
from lcm.retrieval.ranking.evidence.postings import Postings, stem_index
from lcm.retrieval.ranking.evidence.text_facts import asks, content_words, stem_of

COLUMNS = (
    "words_window", "words_wide_window", "words_before", "words_behind", "words_after_question", "words_passage",
    "covered_passage", "words_session", "covered_session",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class WordEvidence:
    """Add columns: standard scores among all turns that the query may see, but for shares in [0, 1].

    BM25 is of stems without stop words, author names left out of both sides, since a name matches half of all turns.
    `words_window` and `words_wide_window`: of the text from `window` and `wide_window` turns before to as many behind,
    in the session; `words_before` and `words_behind`: of the turn before and behind; `words_after_question`: of the
    turn before, where positive and that turn ends in a question mark; `words_passage`: of the document alone, where a
    turn was cut into several; `covered_passage`: the share of the query's stems, by idf, that the document holds;
    `words_session` and `covered_session`: of the session's text.

    Source: ours.
    """

    window: int = 2
    wide_window: int = 3

    def __post_init__(self) -> None:
        check_range(self, "window", "wide_window", ge=1)

    makes = COLUMNS

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        texts = batch.queries["text"]

        def evidence(seen: Seen, row: int) -> list[Numbers]:
            terms = query_stems(seen, texts[row])
            laid = self._of_excerpt(seen) if isinstance(seen, Excerpt) else self._laid(seen)
            words = seen.standardised(laid.turns.scores(terms))
            return [
                seen.standardised(laid.windows.scores(terms)),
                seen.standardised(laid.wide_windows.scores(terms)),
                seen.beside(words, 1),
                seen.beside(words, -1),
                seen.beside(words.clip(0.0) * laid.asks, 1),
                seen.standardised(laid.passages.scores(terms)),
                laid.passages.coverage(terms),
                seen.standardised(laid.sessions.scores(terms)[seen.sessions]),
                laid.sessions.coverage(terms)[seen.sessions],
            ]

        return with_evidence(frame, batch, COLUMNS, evidence, max(self.window, self.wide_window))

    def _laid(self, haystack: Haystack) -> "_TurnPostings":
        key = (WordEvidence, self)
        if key not in haystack.cache:
            index, turns = stem_index(haystack, of_turns=False), haystack.turns
            passages = Postings(index)
            haystack.cache[key] = _TurnPostings(
                passages if len(turns) == len(haystack) else Postings(index, turns[:, np.newaxis]),
                passages,
                Postings(index, haystack.around(self.window)[turns]),
                Postings(index, haystack.around(self.wide_window)[turns]),
                Postings(index, haystack.sessions[turns][:, np.newaxis]),
                np.array([float(asks(content)) for content in haystack.contents]),
            )
        laid: _TurnPostings = haystack.cache[key]
        return laid

    def _of_excerpt(self, seen: Excerpt) -> "_TurnPostings":
        index, turns = ExcerptStems(seen), seen.turns
        return _TurnPostings(
            Postings(index, turns[:, np.newaxis], counted(seen.talk, "turns")),
            Postings(index, None, counted(seen.talk, "documents")),
            Postings(index, seen.around(self.window)[turns], counted(seen.talk, self.window)),
            Postings(index, seen.around(self.wide_window)[turns], counted(seen.talk, self.wide_window)),
            Postings(SessionStems(seen), None, counted(seen.talk, "sessions")),
            seen.talk.facts[seen.numbers, 3].astype(np.float64),
        )


class _TurnPostings(NamedTuple):
    turns: Postings
    passages: Postings
    windows: Postings
    wide_windows: Postings
    sessions: Postings
    asks: Numbers


def query_stems(seen: Seen, text: str) -> list[str]:
    """Stems of a query's content words, without author names."""
    words = content_words(seen.speakers.without_names(text))
    return [stem_of(word) for word in words if word not in seen.speakers.names]
