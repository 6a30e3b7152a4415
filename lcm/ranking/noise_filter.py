"""Drop what tells nothing."""

from dataclasses import dataclass

import polars as pl

from lcm.noise import is_noise
from lcm.protocols import Batch


@dataclass(frozen=True, slots=True)
class NoiseFilter:
    """Drop documents whose text is noise: see `lcm.noise`. Each group of patterns can be switched off.

    Source: memory-lancedb-pro, filterNoise.
    """

    denials: bool = True
    meta_questions: bool = True
    boilerplate: bool = True

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        texts = batch.documents.select("document_id", "text")
        found = frame.select("document_id").unique().join(texts, on="document_id")
        noise = [document_id for document_id, text in found.iter_rows() if self._is_noise(text)]
        return frame.filter(~pl.col("document_id").is_in(noise)) if noise else frame

    def _is_noise(self, text: str) -> bool:
        return is_noise(text, denials=self.denials, meta_questions=self.meta_questions, boilerplate=self.boilerplate)
