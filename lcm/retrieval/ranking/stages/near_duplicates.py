"""Say a thing once: what has nearly the same words as something better steps back, and that stands for it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl

from lcm.checks import check_range
from lcm.protocols.retrieval import Batch
from lcm.retrieval.ranking.evidence.haystack import Haystack, haystack_of
from lcm.retrieval.ranking.ordering import best_first


@dataclass(frozen=True, slots=True)
class NearDuplicates:
    """Walk down the ranks of each query until `n` documents that differ are found. One that shares `least_shared` of
    its words with a better one, and has no word with a digit that this one lacks, is its near duplicate: it goes behind
    all others (`deferred`), and the better one's column `stands_for` names it.

    Shared are the stems that both have, of those that either has. Documents without words are like none.

    Source: ours; the resemblance of Broder (1997), On the resemblance and containment of documents.
    """

    least_shared: float = 0.7
    n: int = 40
    """As many documents as the ranking lets through."""

    def __post_init__(self) -> None:
        check_range(self, "least_shared", gt=0, le=1)
        check_range(self, "n", ge=1)

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        ordered = best_first(frame)
        words, ids = _Words(haystack_of(batch.documents)), ordered["document_id"].to_list()
        stands_for: list[list[str]] = [[] for _ in ids]
        is_like = np.zeros(len(ids), dtype=np.bool_)
        first = 0
        for length in ordered["query_id"].rle().struct.field("len"):
            for row, better in self._pairs([words.of(one) for one in ids[first : first + length]]):
                stands_for[first + better].append(ids[first + row])
                is_like[first + row] = True
            first += length
        deferred = pl.col("deferred") if "deferred" in ordered.columns else pl.lit(False)
        return ordered.with_columns(
            deferred=deferred | pl.Series(is_like), stands_for=pl.Series(stands_for, dtype=pl.List(pl.String))
        )

    def _pairs(self, texts: Sequence["_Text"]) -> list[tuple[int, int]]:
        """Each near duplicate with the better one that it is like, as numbers of texts, which come best first."""
        kept: list[int] = []
        found = []
        for row, text in enumerate(texts):
            better = next((one for one in kept if self._is_like(text, texts[one])), None)
            if better is not None:
                found.append((row, better))
            elif len(kept) < self.n:
                kept.append(row)
            else:
                break
        return found

    def _is_like(self, text: "_Text", better: "_Text") -> bool:
        smaller, larger = sorted((len(text.stems), len(better.stems)))
        if not smaller or smaller < self.least_shared * larger:
            return False
        shared = len(text.stems & better.stems)
        return shared >= self.least_shared * (smaller + larger - shared) and text.numbers <= better.stems


class _Text(NamedTuple):
    stems: frozenset[str]
    numbers: frozenset[str]
    """Those of the stems that hold a digit."""


@dataclass(frozen=True, slots=True)
class _Words:
    """The words of documents, each laid out when it is first asked for."""

    haystack: Haystack

    def of(self, document_id: str) -> _Text:
        key = (NearDuplicates, document_id)
        if key not in self.haystack.cache:
            place = self.haystack.positions.get(document_id)
            stems = frozenset(() if place is None else self.haystack.passage_stems[place])
            numbers = frozenset(stem for stem in stems if any(map(str.isdigit, stem)))
            self.haystack.cache[key] = _Text(stems, numbers)
        text: _Text = self.haystack.cache[key]
        return text
