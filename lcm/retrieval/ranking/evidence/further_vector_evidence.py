"""What the vectors of a second embedder say, beside those of the memory's own."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from lcm.protocols.models import Embedder, Vectors
from lcm.protocols.retrieval import Batch
from lcm.retrieval.indexes import embedded, embedded_texts, mean_vector
from lcm.retrieval.ranking.evidence.kept_rows import KeptRows, Places
from lcm.retrieval.ranking.evidence.talk import talk_of
from lcm.retrieval.ranking.evidence.vector_evidence import with_cosines

_NAMES = {name: f"further_{name}" for name in ("meaning_passage", "meaning_window", "meaning_session")}
COLUMNS = tuple(_NAMES.values())


@dataclass(frozen=True, slots=True)
class FurtherVectorEvidence:
    """Add columns of `VectorEvidence` by another embedder than the memory's: `further_meaning_passage`,
    `further_meaning_window` and `further_meaning_session`.

    The documents are embedded here, as a memory embeds them: once while the memory is open, and what a cache keeps not
    even then.

    Source: ours.
    """

    embedder: Embedder

    makes = COLUMNS

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        name = self.embedder.name  # a model that is not there is no failure to be survived
        key = FurtherVectorEvidence, name
        talk = talk_of(batch)

        def vectors_of(documents: Places) -> Vectors:
            numbers = talk.numbers[documents]
            place_of = dict(zip(numbers.tolist(), documents.tolist(), strict=True))

            def made(missing: Places) -> Vectors:
                places = pl.Series([place_of[number] for number in missing.tolist()], dtype=pl.UInt32)
                return self._embedded(embedded_texts(batch.documents[places]))

            with talk.talks.lock:
                kept: KeptRows = talk.talks.kept.setdefault(key, KeptRows(self.embedder.dim))
                return kept.of(numbers, made)

        return with_cosines(frame, batch, _NAMES, self.embedder, key, vectors_of)

    def _embedded(self, texts: Sequence[str]) -> Vectors:
        """The vector of each text: the normalised mean of its windows."""
        return np.concatenate([mean_vector(windows) for windows in embedded(self.embedder, texts)])
