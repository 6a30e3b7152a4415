"""What the vectors of a second embedder say, beside those of the memory's own."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from lcm.protocols.models import Embedder, Vectors
from lcm.protocols.retrieval import Batch
from lcm.retrieval.indexes import embedded, embedded_texts, mean_vector
from lcm.retrieval.ranking.evidence.excerpt import Excerpt, Seen
from lcm.retrieval.ranking.evidence.haystack import Places
from lcm.retrieval.ranking.evidence.kept_vectors import KeptVectors
from lcm.retrieval.ranking.evidence.laid_vectors import LaidVectors
from lcm.retrieval.ranking.evidence.vector_evidence import with_cosines

_NAMES = {name: f"further_{name}" for name in ("meaning_passage", "meaning_window", "meaning_session")}
COLUMNS = tuple(_NAMES.values())
_kept = KeptVectors(50_000)  # texts that are kept need not even be cut into windows


@dataclass(frozen=True, slots=True)
class FurtherVectorEvidence:
    """Add columns of `VectorEvidence` by another embedder than the memory's: `further_meaning_passage`,
    `further_meaning_window` and `further_meaning_session`.

    The documents are embedded here, as a memory embeds them: once a haystack, and what a cache keeps not even then.

    Source: ours.
    """

    embedder: Embedder

    makes = COLUMNS

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        name = self.embedder.name  # a model that is not there is no failure to be survived

        key = FurtherVectorEvidence, name

        def laid(seen: Seen) -> LaidVectors:
            if isinstance(seen, Excerpt):
                return LaidVectors.of_excerpt(seen, key, vectors_of)
            if key not in seen.cache:
                seen.cache[key] = LaidVectors.of(seen, vectors_of(np.arange(len(batch.documents))))
            known: LaidVectors = seen.cache[key]
            return known

        def vectors_of(numbers: Places) -> Vectors:
            return _of_texts(self.embedder, name, embedded_texts(batch.documents[numbers]))

        return with_cosines(frame, batch, _NAMES, self.embedder, laid)


def _of_texts(embedder: Embedder, name: str, texts: Sequence[str]) -> Vectors:
    """The vector of each text: the normalised mean of its windows."""

    def made(missing: list[str]) -> Vectors:
        return np.concatenate([mean_vector(windows) for windows in embedded(embedder, missing)])

    return _kept.of(name, texts, made)
