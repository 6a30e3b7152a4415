"""Stages that drop rows or add some: too many, too weak, expired, noise; what an answer points to or repeats."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from lcm.checks import check_range
from lcm.protocols.columns import Columns
from lcm.protocols.contract import Contract
from lcm.protocols.retrieval import Batch, Expansion, Stage
from lcm.retrieval.frames import beside, best, best_first, kept_rows, told_of, with_rank, with_rows
from lcm.retrieval.lookup import documents_of, texts_of
from lcm.retrieval.ranking.pipeline import RELATED, passed
from lcm.retrieval.source.candidates import describe
from lcm.retrieval.source.indexes import Lexical, tried
from lcm.writing.noise import are_noise

_KEYS = ["query_id", "document_id"]


@dataclass(frozen=True, slots=True)
class Limit:
    """The first `n` candidates of each query."""

    n: int = 20
    contract = Contract(reads=())

    def __post_init__(self) -> None:
        check_range(self, "n", ge=1)

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        return best(frame, self.n)

    def reasons(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        """Of what is dropped, how many are let through."""
        dropped = with_rank(best_first(frame)).filter(pl.col("rank") > self.n)
        return told_of(dropped, pl.lit(f"the first {self.n} are let through"))


@dataclass(frozen=True, slots=True)
class MinScore:
    """Keep candidates whose score is at least `threshold`; a query may be left with none."""

    threshold: float = 0.3
    contract = Contract(reads_unit_scores=True)

    def __post_init__(self) -> None:
        check_range(self, "threshold")

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        return kept_rows(frame, ~(Columns(frame).numbers("score", missing=-np.inf) < self.threshold))

    def reasons(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        """Of what is dropped, how far its score is below the threshold."""
        dropped = frame.filter(~(pl.col("score") >= self.threshold).fill_null(False))
        told = pl.format("score {} below {}", pl.col("score").round(3), pl.lit(self.threshold))
        return told_of(dropped, told)


@dataclass(frozen=True, slots=True)
class NotExpired:
    """Drop documents whose `valid_until` is not after the query was asked; most have none.

    Source: memory-lancedb-pro, which leaves expired rows out of what it ranks.
    """

    contract = Contract(reads=("valid_until",))

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        columns = Columns(frame)
        return kept_rows(frame, columns.numbers("valid_until", missing=np.inf) > columns.numbers("asked_at"))

    def reasons(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        """Of what is dropped, when it expired."""
        expired = frame.filter(pl.col("valid_until") <= pl.col("asked_at"))
        return told_of(expired, pl.format("expired on {}", pl.col("valid_until").dt.date()))


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


@dataclass(frozen=True, slots=True)
class Hops:
    """Add the authored documents that the rows of a query point to, each with eta times the score of the best of those
    rows, where that reaches `theta_hop`; best first.

    A target that is a row already stays as it is. What is added points nowhere: one hop, whatever the graph is like.
    A score counts within [0, 1], so that what a hop finds scores less than 1, and less than the row that points to it.

    Source: libravdb memory 1.3.5, mathematical reference, section 7.7, which calls eta lambda; 1.4.4.
    """

    eta: float = 0.5
    theta_hop: float = 0.15
    contract = Contract(follows=("authored",))

    def __post_init__(self) -> None:
        check_range(self, "eta", gt=0, lt=1)
        check_range(self, "theta_hop", ge=0, le=1)

    def expand(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        points = batch.documents["hop_targets"].list.len() > 0
        if not points.any():
            return best_first(frame)
        pointing = batch.documents["document_id", "hop_targets"].filter(points)
        authored = batch.documents.select("document_id").filter(batch.documents["kind"] == "authored")
        score = self.eta * pl.col("score").fill_nan(None).fill_null(0.0).clip(0.0, 1.0)
        found = (
            frame.select("query_id", "asked_at", "document_id", score=score)
            .join(pointing, on="document_id", how="inner", maintain_order="left")
            .drop("document_id")
            .explode("hop_targets")
            .rename({"hop_targets": "document_id"})
            .join(authored, on="document_id", how="semi", maintain_order="left")
            .join(frame, on=_KEYS, how="anti", maintain_order="left")
            .group_by(_KEYS, maintain_order=True)
            .agg(pl.col("asked_at").first(), pl.col("score").max())
            .filter(pl.col("score") >= self.theta_hop)
        )
        if found.is_empty():
            return best_first(frame)
        return best_first(with_rows(frame, describe(found, batch), batch.queries["query_id"]))


@dataclass(frozen=True, slots=True)
class Related:
    """Look the whole text of each row up among the documents of its scope. The first that are no rows of the query
    themselves, and that the stages let through, stand in the row's column `related`, best first; order and scores stay.

    A lookup that fails is logged and counted, and leaves its row with none.

    Source: memory-lancedb-pro 1.1.0-beta.11, neighborEnrichment.
    """

    stages: Mapping[str, Stage | None]
    """By name what a found document passes before it counts, and what gives it its score; None is left out."""
    per_result: int = 0
    """Documents beside a row at most; 0 = none is looked for."""
    pool_size: int = 20
    """Documents that a lookup finds at most; fewer where few are wanted."""
    containment: bool = True
    """Where no word is found, look for the whole text inside the others."""
    contract = Contract(reads=())

    def __post_init__(self) -> None:
        check_range(self, "per_result", ge=0, le=5, is_whole=True)
        check_range(self, "pool_size", ge=1)

    def is_idle(self, before: Sequence[Stage | Expansion], behind: Sequence[Stage | Expansion]) -> bool:
        return self.per_result == 0

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        rows = best_first(frame)
        known = documents_of(batch, rows["document_id"], ["document_id", "text", "scope"])
        in_scope = {scope: _in_scope(batch, scope) for scope in known["scope"].unique()}
        ids = rows.group_by("query_id").agg("document_id")
        shown = {query_id: frozenset(ids) for query_id, ids in ids.iter_rows()}
        place = {query_id: at for at, query_id in enumerate(batch.queries["query_id"])}
        related = [
            self._beside(text, replace(in_scope[scope], queries=batch.queries[place[query_id]]), shown[query_id])
            for query_id, text, scope in zip(rows["query_id"], known["text"], known["scope"], strict=True)
        ]
        return beside(rows, [pl.Series("related", related, RELATED)])

    def _beside(self, text: str, batch: Batch, shown: Collection[str]) -> list[dict[str, Any]]:
        """What is related to a text, of what a batch sees, as `RELATED` holds it."""
        asked = replace(batch, queries=batch.queries.with_columns(text=pl.lit(text)))
        wanted = len(shown) + self.per_result + max(10, 4 * self.per_result)
        source = Lexical(min(wanted, self.pool_size), containment=self.containment)
        found, _ = tried("related", lambda: source.candidates(asked), asked, "an answer stands without")
        if found is None:
            return []
        rows = describe(found, asked)
        for name, stage in self.stages.items():
            rows = rows if stage is None else passed(name, stage, rows, asked)
        others = best_first(rows.filter(~pl.col("document_id").is_in(list(shown))))
        return others.head(self.per_result).select("document_id", "score").to_dicts()


def _in_scope(batch: Batch, scope: str) -> Batch:
    documents = batch.documents.filter(scope=scope)
    is_all = len(documents) == len(batch.documents)
    return batch if is_all else replace(batch, documents=documents, allowed=tuple(documents["document_id"]))
