"""What the vectors of a second embedder say, beside those of the memory's own."""

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from lcm.protocols.models import Embedder, Vectors
from lcm.protocols.retrieval import Batch
from lcm.retrieval.indexes import embedded, embedded_texts, mean_vector
from lcm.retrieval.ranking.evidence.haystack import Numbers, haystack_of
from lcm.retrieval.ranking.evidence.vector_evidence import with_cosines

_NAMES = {name: f"further_{name}" for name in ("meaning_passage", "meaning_window", "meaning_session")}
COLUMNS = tuple(_NAMES.values())
_KEPT = 50_000  # vectors: live talk grows by a few texts a question, and all others need not even be cut into windows
_vectors: OrderedDict[tuple[str, str], Vectors] = OrderedDict()
_lock = threading.Lock()


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

        def documents() -> Numbers:
            cache = haystack_of(batch.documents).cache
            if (FurtherVectorEvidence, name) not in cache:
                texts = embedded_texts(batch.documents)
                cache[FurtherVectorEvidence, name] = _of_texts(self.embedder, name, texts).astype(np.float64)
            vectors: Numbers = cache[FurtherVectorEvidence, name]
            return vectors

        return with_cosines(frame, batch, _NAMES, self.embedder, documents)


def _of_texts(embedder: Embedder, name: str, texts: Sequence[str]) -> Vectors:
    """The vector of each text: the normalised mean of its windows; those embedded last are kept."""
    with _lock:
        known = {text: _vectors[name, text] for text in texts if (name, text) in _vectors}
    missing = [text for text in dict.fromkeys(texts) if text not in known]
    known |= zip(missing, map(mean_vector, embedded(embedder, missing)), strict=True)
    with _lock:
        for text in known:
            _vectors[name, text] = known[text]
            _vectors.move_to_end((name, text))
        while len(_vectors) > _KEPT:
            _vectors.popitem(last=False)
    return np.concatenate([known[text] for text in texts])
