"""Drop what tells nothing."""

from dataclasses import dataclass

import polars as pl

from lcm.protocols.retrieval import Batch
from lcm.retrieval.frames import kept_rows
from lcm.retrieval.lookup import texts_of
from lcm.retrieval.ranking.ordering import is_one_query
from lcm.retrieval.ranking.reasons import told_of
from lcm.writing.noise import are_noise


@dataclass(frozen=True, slots=True)
class NoiseFilter:
    """Drop documents whose text is noise: see `lcm.writing.noise`. Each group of patterns can be switched off.

    Source: memory-lancedb-pro, filterNoise.
    """

    denials: bool = True
    meta_questions: bool = True
    boilerplate: bool = True
    complaints: bool = False
    """Complaints about the memory are questions about it too."""

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        ids = frame["document_id"]
        if not is_one_query(frame):
            ids = ids.unique(maintain_order=True)  # of all different, row by row those of the frame
        texts = texts_of(batch, ids)
        if texts.has_nulls():  # of what the batch does not see
            ids, texts = ids.filter(texts.is_not_null()), texts.drop_nulls()
        is_noise = are_noise(
            texts,
            denials=self.denials,
            meta_questions=self.meta_questions,
            boilerplate=self.boilerplate,
            complaints=self.complaints,
        )
        if not is_noise.any():
            return frame
        if len(ids) == len(frame):
            return kept_rows(frame, ~is_noise.to_numpy())
        noise = ids.filter(is_noise)
        return frame.filter(~pl.col("document_id").is_in(noise.implode()))

    def reasons(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        """Of what is dropped, that its text is noise."""
        kept = self(frame, batch).select("query_id", "document_id")
        dropped = frame.join(kept, on=["query_id", "document_id"], how="anti", maintain_order="left")
        return told_of(dropped, pl.lit("its text tells nothing: a denial, a question about memory, or a greeting"))
