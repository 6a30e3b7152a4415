"""What words say: BM25 of a passage, of the turns around it and of its session, without names."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl

from lcm.checks import check_range
from lcm.protocols.retrieval import Batch
from lcm.retrieval.ranking.columns import standardised, with_evidence
from lcm.retrieval.ranking.evidence.haystack import Haystack, Numbers, content_words, stem_of
from lcm.retrieval.ranking.evidence.postings import Postings, TermIndex

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

        def evidence(haystack: Haystack, row: int) -> list[Numbers]:
            terms = query_stems(haystack, texts[row])
            laid = self._postings(haystack)
            words = standardised(laid.turns.scores(terms))
            return [
                standardised(laid.windows.scores(terms)),
                standardised(laid.wide_windows.scores(terms)),
                haystack.beside(words, 1),
                haystack.beside(words, -1),
                haystack.beside(words.clip(0.0) * laid.asks, 1),
                standardised(laid.passages.scores(terms)),
                laid.passages.coverage(terms),
                standardised(laid.sessions.scores(terms)[haystack.sessions]),
                laid.sessions.coverage(terms)[haystack.sessions],
            ]

        return with_evidence(frame, batch, COLUMNS, evidence)

    def _postings(self, haystack: Haystack) -> "_TurnPostings":
        key = (WordEvidence, self)
        if key not in haystack.cache:
            index, turns = TermIndex.of(haystack.passage_stems), haystack.turns
            passages = Postings(index)
            haystack.cache[key] = _TurnPostings(
                passages if len(turns) == len(haystack) else Postings(index, turns[:, np.newaxis]),
                passages,
                Postings(index, haystack.around(self.window)[turns]),
                Postings(index, haystack.around(self.wide_window)[turns]),
                Postings(index, haystack.sessions[turns][:, np.newaxis]),
                asks(haystack),
            )
        laid: _TurnPostings = haystack.cache[key]
        return laid


class _TurnPostings(NamedTuple):
    turns: Postings
    passages: Postings
    windows: Postings
    wide_windows: Postings
    sessions: Postings
    asks: Numbers


def query_stems(haystack: Haystack, text: str) -> list[str]:
    """Stems of a query's content words, without author names."""
    return [stem_of(word) for word in content_words(haystack.without_names(text)) if word not in haystack.names]


def asks(haystack: Haystack) -> Numbers:
    """1 where the first line of a turn ends in a question mark."""
    first_lines = (content.partition("\n")[0].rstrip() for content in haystack.contents)
    return np.array([float(line.endswith(("?", "？", "؟"))) for line in first_lines])
