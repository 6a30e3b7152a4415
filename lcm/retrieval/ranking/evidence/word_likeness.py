"""Words that are no match but alike: each word of a query against the word of a turn that is nearest to it."""

import logging
from dataclasses import dataclass
from itertools import chain

import polars as pl

from lcm.errors import LcmError
from lcm.faults import is_of_machine
from lcm.protocols.models import Embedder, Vectors
from lcm.protocols.retrieval import Batch
from lcm.retrieval.ranking.columns import speakers_of, with_evidence
from lcm.retrieval.ranking.evidence.excerpt import Excerpt, Seen
from lcm.retrieval.ranking.evidence.growing_talk import talk_of
from lcm.retrieval.ranking.evidence.haystack import Numbers, haystack_of
from lcm.retrieval.ranking.evidence.haystack_words import HaystackWords
from lcm.retrieval.ranking.evidence.kept_vectors import KeptVectors
from lcm.retrieval.ranking.evidence.speakers import Speakers
from lcm.retrieval.ranking.evidence.talk_words import TalkWords
from lcm.retrieval.ranking.evidence.text_facts import content_words
from lcm.retrieval.ranking.ordering import query_runs
from lcm.retrieval.source.candidates import POOLED

_log = logging.getLogger(__name__)
_kept = KeptVectors(100_000)  # of words
COLUMNS = ("alike_session", "alike_sum")


@dataclass(frozen=True, slots=True)
class WordLikeness:
    """Add columns, from the cosines of single words' vectors, less the mean of the documents' words.

    The likeness of a query's word to a document is its highest cosine with one of the document's words, what exceeds
    0.3 of it scaled to [0, 1]. Like documents are rare or frequent as words are, so a word weighs
    ln(1 + (N - n + .5) / (n + .5)), where n is the sum of its likenesses. `alike_session`: the session's best weighed
    sum over the query's words; `alike_sum`: the cosine between the sums of the word vectors of both, each weighed by
    its idf; both as standard scores. All 0 where words cannot be embedded, which is logged and counted.

    Source: ours, after ColBERT's MaxSim (Khattab and Zaharia 2020) and soft cardinality.
    """

    embedder: Embedder
    """Of single words: each is embedded once a haystack, and what a cache keeps not even then."""

    makes = COLUMNS

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        speakers = speakers_of(frame, batch)
        texts = batch.queries["text"]
        wanted = {query_id for _, query_id in query_runs(frame)}
        asked = {
            row: _query_words(speakers, texts[row])
            for row, query_id in enumerate(batch.queries["query_id"])
            if query_id in wanted
        }
        name, words = self.embedder.name, list(dict.fromkeys(chain.from_iterable(asked.values())))
        known: HaystackWords | TalkWords
        try:
            if POOLED in frame.columns:
                known = TalkWords.of(talk_of(batch), name, self.embedder.dim, words, self._embedded)
            else:
                known = HaystackWords.of(haystack_of(batch.documents), name, self.embedder.dim, words, self._embedded)
        except LcmError as error:
            if is_of_machine(error):
                raise
            _log.warning("single words could not be embedded, other evidence ranks alone: %s", error)
            batch.incidents["word likeness failed"] += len(asked)
            return frame.with_columns(pl.lit(0.0).alias(name) for name in COLUMNS)

        def evidence(seen: Seen, row: int) -> list[Numbers]:
            if isinstance(seen, Excerpt):
                assert isinstance(known, TalkWords)
                alike, cosines = known.likeness(seen, asked[row])
            else:
                assert isinstance(known, HaystackWords)
                alike, cosines = known.likeness(asked[row])
            return [seen.standardised(seen.best_of(seen.sessions, alike)), seen.standardised(cosines)]

        return with_evidence(frame, batch, COLUMNS, evidence)

    def _embedded(self, words: list[str]) -> Vectors:
        """A vector a word; at least one."""
        return _kept.of(self.embedder.name, words, lambda missing: self.embedder.embed(missing, "document"))


def _query_words(speakers: Speakers, text: str) -> list[str]:
    words = content_words(speakers.without_names(text))
    return [word for word in dict.fromkeys(words) if word not in speakers.names]
