"""Drop what tells nothing."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from lcm.protocols.retrieval import Batch
from lcm.retrieval.frames import kept_rows, told_of
from lcm.retrieval.lookup import texts_of
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
        ids = frame["document_id"].to_list()
        unique = pl.Series(list(dict.fromkeys(ids)), dtype=pl.String)
        texts = texts_of(batch, unique)
        if texts.has_nulls():  # of what the batch does not see
            unique, texts = unique.filter(texts.is_not_null()), texts.drop_nulls()
        is_noise = are_noise(
            texts,
            denials=self.denials,
            meta_questions=self.meta_questions,
            boilerplate=self.boilerplate,
            complaints=self.complaints,
        )
        noise = set(unique.filter(is_noise).to_list())
        return kept_rows(frame, np.array([one not in noise for one in ids], np.bool_))

    def reasons(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        """Of what is dropped, that its text is noise."""
        kept = self(frame, batch).select("query_id", "document_id")
        dropped = frame.join(kept, on=["query_id", "document_id"], how="anti", maintain_order="left")
        return told_of(dropped, pl.lit("its text tells nothing: a denial, a question about memory, or a greeting"))
