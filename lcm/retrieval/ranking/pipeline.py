"""Ranking: one source, then named stages in order, one frame for all queries."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl

from lcm.protocols.contract import Contract, contract_of
from lcm.protocols.retrieval import (
    REASONS_SCHEMA,
    Batch,
    Columns,
    DescribedSource,
    Expansion,
    Numbers,
    Scores,
    Slot,
    Source,
    Stage,
    TellsReasons,
)
from lcm.retrieval.frames import beside, best_by, best_first, order_moves, places, query_numbers, taken
from lcm.retrieval.source.indexes import DESCRIBED_BY, POOLED, describe, found_by

_NOTHING_DONE = Contract(reads=())
"""Of a step that is off."""
POOL_ACTED = "pool"
"""Counts queries that were answered from a pool, among the slots that acted."""
SLOTS = ("reranker", "decay", "summary_expansion", "recovery")
"""The names of the stages that every ranking has a place for; a group's null choice leaves the place empty."""
_ANSWER = ("query_id", "document_id")
RELATED = pl.List(pl.Struct({"document_id": pl.String(), "score": pl.Float64()}))
RANKED_SCHEMA: dict[str, pl.DataType] = {
    "query_id": pl.String(),
    "document_id": pl.String(),
    "rank": pl.Int64(),
    "score": pl.Float64(),
    "cosine": pl.Float64(),
    "index_tier": pl.Int64(),
    "scope_class": pl.String(),
    "is_recovered": pl.Boolean(),
    "stands_for": pl.List(pl.String()),
    "related": RELATED,
}
"""What a ranking answers with. `cosine` is raw, null where the vector index did not return the document; `index_tier`
the width that answered, of an index with several; `is_recovered` marks what was fetched because ranking failed, behind
everything else; `stands_for` the ids of documents that say nearly the same and are left out in its favour;
`related` documents that are shown with it and ranked nowhere, best first."""
_WALKED = 2
"""A step that walks down an order is given so many times the rows that it lets stand."""
LISTS = ("stands_for", "related")
"""Of these, the columns of lists, empty where there is nothing to name."""
TRACE_SCHEMA: dict[str, pl.DataType] = {
    "step": pl.Int32(), "stage": pl.String(), "query_id": pl.String(), "document_id": pl.String(), "rank": pl.Int64(),
    "score": pl.Float64(), "stands_for": pl.List(pl.String()),
}  # fmt: skip
PLAN_SCHEMA: dict[str, pl.DataType] = {"query_id": pl.String(), "step": pl.Int32(), "stage": pl.String()}
SOURCE = "source"
"""Names the first step, 0, of every ranking."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """A source and the steps that its rows pass through: stages, and expansions, which may add rows."""

    source: Source
    stages: Mapping[str, Stage | Expansion] = field(default_factory=dict)
    order: Sequence[str] | None = None
    """Names of stages in the order to run; None = the order of the map. A stage set to null is left out."""
    steps: Sequence[tuple[str, Stage | Expansion]] = field(init=False, repr=False, compare=False)
    """What the rows pass, in order: without what is null, and without the slots that have nothing to do here."""
    contract: Contract = field(init=False, repr=False, compare=False)
    """What the source asks, and what it or any step does with vectors; a recovery's comparing is its own."""
    _acting: Mapping[str, Contract] = field(init=False, repr=False, compare=False)
    """Of the steps that are not off."""

    def __post_init__(self) -> None:
        if not hasattr(self.source, "candidates"):
            raise TypeError(f"source must have candidates(batch), got {self.source!r}")
        for name, stage in self.stages.items():
            if stage is not None and not callable(stage) and not isinstance(stage, Expansion):
                raise TypeError(
                    f"stages.{name} must be a stage, got {stage!r}: tune a number where its component is "
                    "configured (fusion.k=30), and choose a component by name (fusion=reciprocal_rank)"
                )
        unknown = [name for name in self.order or () if name not in self.stages]
        if unknown:
            raise ValueError(
                f"order names no stage {unknown[0]!r}; choose from: {', '.join(self.stages)}; a stage is left out by "
                "setting it to null"
            )
        if self.order is not None and len(set(self.order)) < len(self.order):
            raise ValueError(f"order names a stage twice: {list(self.order)!r}")
        steps = _steps(self.stages, self.stages if self.order is None else self.order)
        told = {name: contract_of(step) for name, step in steps}
        of_source, beside = contract_of(self.source), [one for name, one in told.items() if name != "recovery"]
        contract = Contract(
            asks=of_source.asks,
            needs_vectors=of_source.needs_vectors or any(one.needs_vectors for one in told.values()),
            compares_vectors=of_source.needs_vectors
            or any(one.needs_vectors or one.compares_vectors for one in beside)
            or any(hasattr(step, "embedder") for name, step in steps if name != "recovery"),
        )
        object.__setattr__(self, "steps", steps)
        object.__setattr__(self, "contract", contract)
        object.__setattr__(self, "_acting", {name: one for name, one in told.items() if not one.is_off})

    def rank(self, batch: Batch) -> pl.DataFrame:
        """Rows of `RANKED_SCHEMA`; best first within each query."""
        steps = self.steps
        done, frame = self._begun(batch)
        frames = [self._carried(frame, done)] * (done + 1)  # no slot is among those that are done: nobody looks there
        acted: list[str] = []
        if (at_once := self._cut_at_once(done, frames[-1], batch)) is not None:
            done, frame, acted = at_once
            frames = [frame] * (done + 1)
        for name, stage in steps[done:]:
            frames.append(passed(name, stage, frames[-1], batch) if name in self._acting else frames[-1])
        answer = _ranked(frames[-1])
        if batch.acted is not None:
            batch.acted.update(name for name in acted if not answer.is_empty())
            batch.acted.update(_slots_that_acted(steps, frames, answer, batch))
            if POOLED in frames[0].columns:
                batch.acted[POOL_ACTED] += frames[0]["query_id"].n_unique()
        return answer

    def _cut_at_once(self, done: int, frame: pl.DataFrame, batch: Batch) -> tuple[int, pl.DataFrame, list[str]] | None:
        """The rows behind the next steps, where these give scores alone, and at last cut by them, or first walk down
        their order as far as is let through: of a whole haystack, only the first rows are ever brought into an order.

        Returns:
            How many steps are then done, the rows, and the slots among them that changed the order of any; None where
            the steps are others, or one by one they would tell more.
        """
        left = enumerate(self.steps[done:], done + 1)
        acting = [(place, name, stage) for place, (name, stage) in left if name in self._acting]
        cut = next((at for at, (*_, stage) in enumerate(acting) if _cuts(stage)), 0)
        walked = cut - 1 if cut and _walks(acting[cut - 1][2]) else cut
        scoring, walking, behind = acting[:walked], acting[walked:cut], acting[cut:]
        if not scoring or "deferred" in frame.columns or not all(isinstance(stage, Scores) for *_, stage in scoring):
            return None
        given, slots, queries = list[Numbers](), list[tuple[str, list[Numbers]]](), query_numbers(frame)
        ends_cut = all(_cuts(stage) for *_, stage in behind)
        for place, name, stage in scoring:
            try:
                score = stage.scores(frame)  # type: ignore[union-attr]
            except pl.exceptions.ColumnNotFoundError:
                return None  # which is told where the step is passed
            if np.isnan(score).any():
                return None
            if name in SLOTS and batch.acted is not None:
                before = given or [Columns(frame).numbers("score")]
                if np.isnan(before[-1]).any():
                    return None
                is_last = ends_cut and place == scoring[-1][0]
                if not (is_last or order_moves(before, score, queries)):
                    return None
                slots.append((name, [*before, score]))
            given.append(score)
            frame = beside(frame, [pl.Series("score", score)])
        frame = self._carried(frame, scoring[-1][0])
        n: int = behind[0][-1].first_by_score  # type: ignore[union-attr]
        for *_, stage in walking:
            n = _WALKED * max(n, stage.first_kept)  # type: ignore[union-attr]
        first = best_by(given, queries, n)
        rows = beside(taken(frame, first), [pl.Series("score", given[-1][first])])
        for _, name, stage in walking:
            rows = passed(name, stage, rows, batch)
            kept = np.bincount(queries[first], ~rows["deferred"].to_numpy())
            if ((kept * _WALKED < n) & (np.bincount(queries) > n)).any():
                return None  # it would have looked further
        told = [name for name, scores in slots if order_moves(scores[:-1], scores[-1], queries, first)]
        return (walking or behind)[0][0], rows, told

    def filled_slots(self) -> list[str]:
        """The names of the slots that hold something with work to do here."""
        return [name for name, stage in self.steps if name in SLOTS and not is_null(stage)]

    def readers(self, columns: Collection[str]) -> list[str]:
        """The names of the steps that read one of some columns, as far as they say so."""
        return [name for name, step in self.steps if not set(contract_of(step).reads or ()).isdisjoint(columns)]

    def trace(self, batch: Batch) -> pl.DataFrame:
        """Every step's outcome: rows of `TRACE_SCHEMA`.

        A document is missing from the steps after the one that dropped it. Until a step gives scores, which are null
        before, ranks tell no more than the order in which rows came.
        """
        frame = self._candidates(batch)
        steps = [_ranked(frame).with_columns(step=pl.lit(0), stage=pl.lit(SOURCE))]
        for number, (name, stage) in enumerate(self.steps, start=1):
            frame = passed(name, stage, frame, batch)
            steps.append(_ranked(frame).with_columns(step=pl.lit(number), stage=pl.lit(name)))
        return pl.concat(steps).select(list(TRACE_SCHEMA))

    def plan(self, batch: Batch) -> pl.DataFrame:
        """The steps that each query's rows pass, in order: rows of `PLAN_SCHEMA`.

        A trace lacks those behind the one that left a query without rows.
        """
        names = [SOURCE, *(name for name, _ in self.steps)]
        steps = pl.DataFrame({"step": range(len(names)), "stage": names}, schema_overrides={"step": pl.Int32})
        return batch.queries.select("query_id").join(steps, how="cross", maintain_order="left_right")

    def found_by(self, batch: Batch) -> pl.DataFrame:
        """What each branch of the source found: rows of `FOUND_BY_SCHEMA`."""
        return found_by(self.source.candidates(batch))

    def reasons(self, batch: Batch) -> pl.DataFrame:
        """What the steps that are `TellsReasons` tell of the rows: the columns of `REASONS_SCHEMA` behind `step`."""
        frame, told = self._candidates(batch), [pl.DataFrame(schema={"step": pl.Int32(), **REASONS_SCHEMA})]
        for number, (name, stage) in enumerate(self.steps, start=1):
            if isinstance(stage, TellsReasons):
                step = pl.lit(number, pl.Int32).alias("step")
                told.append(stage.reasons(frame, batch).select(step, *REASONS_SCHEMA))
            frame = passed(name, stage, frame, batch)
        return pl.concat(told)

    def _candidates(self, batch: Batch) -> pl.DataFrame:
        if isinstance(self.source, DescribedSource):
            return self.source.described(batch)
        return describe(self.source.candidates(batch), batch)

    def _begun(self, batch: Batch) -> tuple[int, pl.DataFrame]:
        """How many of the first steps were passed before, none of them a slot, and the rows behind them."""
        before = next((place for place, (name, _) in enumerate(self.steps) if name in SLOTS), len(self.steps))
        if not before or not isinstance(self.source, DescribedSource):
            return 0, self._candidates(batch)
        done, frame, incidents = self.source.begun(self.steps[:before], batch)
        batch.incidents.update(incidents)
        return done, frame

    def _carried(self, frame: pl.DataFrame, done: int) -> pl.DataFrame:
        """The rows without what documents are described by, or a step that is done has made, and none of the steps that
        are left reads: each step that brings rows into another order moves every column."""
        told = [self._acting.get(name, _NOTHING_DONE) for name, _ in self.steps]
        unread = {*DESCRIBED_BY, *(column for one in told[:done] for column in one.makes)}
        reads = [one.reads for one in told[done:]]
        return frame if None in reads else frame.drop(unread.difference(*reads), strict=False)  # type: ignore[arg-type]


def _steps(
    stages: Mapping[str, Stage | Expansion | None], order: Iterable[str]
) -> Sequence[tuple[str, Stage | Expansion]]:
    steps = [(name, step) for name in order if (step := stages[name]) is not None]
    each = [step for _, step in steps]
    return [
        (name, step)
        for place, (name, step) in enumerate(steps)
        if not (isinstance(step, Slot) and step.is_idle(each[:place], each[place + 1 :]))
    ]


def passed(name: str, stage: Stage | Expansion, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
    """The frame after one step.

    Raises:
        ValueError: naming the step and the column that no step before it makes.
    """
    try:
        if hasattr(stage, "expand"):  # a tenth of what asking for the protocol takes
            return stage.expand(frame, batch)
        return stage(frame, batch)
    except pl.exceptions.ColumnNotFoundError as error:
        column = str(error).split('"')[1]
        raise ValueError(
            f"stage {name!r} needs the column {column!r}, which no stage before it makes: check the order"
        ) from error


def _slots_that_acted(
    steps: Sequence[tuple[str, Stage | Expansion]], frames: Sequence[pl.DataFrame], answer: pl.DataFrame, batch: Batch
) -> Iterator[str]:
    """The names of the slots that changed the answer; `frames` are what stood before each step, and behind the last."""
    for place, (name, _) in enumerate(steps):
        before, after = frames[place : place + 2]
        if name in SLOTS and after is not before and _has_acted(before, after, steps[place + 1 :], answer, batch):
            yield name


def _has_acted(
    before: pl.DataFrame,
    after: pl.DataFrame,
    behind: Sequence[tuple[str, Stage | Expansion]],
    answer: pl.DataFrame,
    batch: Batch,
) -> bool:
    """Whether a slot changed which documents answer, or their order.

    Where it changed scores alone, the steps behind it tell: a minimum may cut by them. A reranker is not asked twice.
    """
    if answer.is_empty():
        return False
    if not _is_same_answer(best_first(before), best_first(after)):
        return True
    if before["score"].equals(after["score"]):
        return False
    if any(name == "reranker" for name, _ in behind):
        return True
    without, unseen = before, replace(batch, incidents=Counter())
    for name, stage in behind:
        without = passed(name, stage, without, unseen)
    return not _is_same_answer(_ranked(without), answer)


def _walks(stage: object) -> bool:
    """Tell whether a stage walks down the order of each query's rows until it has let enough of them stand."""
    return hasattr(stage, "first_kept")


def _cuts(step: Stage | Expansion) -> bool:
    """Whether a step does no more than to let the first rows of each query through."""
    return hasattr(step, "first_by_score")


def _is_same_answer(one: pl.DataFrame, other: pl.DataFrame) -> bool:
    return one.select(_ANSWER).equals(other.select(_ANSWER))


def is_null(stage: object) -> bool:
    """Whether a stage is its group's null choice, or holds the null choice of what it works with."""
    held = getattr(stage, "recovery", None) or getattr(stage, "decay", None) or stage
    return contract_of(held).is_off


def _ranked(frame: pl.DataFrame) -> pl.DataFrame:
    rows = best_first(frame)
    names = rows.columns
    return pl.DataFrame(
        [
            rows["query_id"],
            rows["document_id"],
            pl.Series("rank", places(rows) + 1),
            rows["score"],
            rows["cosine"],
            rows["index_tier"],
            rows["scope_class"].cast(pl.String),
            rows["is_recovered"]
            if "is_recovered" in names
            else pl.Series("is_recovered", np.zeros(len(rows), np.bool_)),
            *(_lists(rows, name) for name in LISTS),
        ]
    )


def _lists(rows: pl.DataFrame, name: str) -> pl.Series:
    """A column of lists, empty ones where there are none."""
    none = pl.Series(name, [[]], RANKED_SCHEMA[name])
    if name not in rows.columns:
        return none.new_from_index(0, len(rows))
    return rows[name].fill_null(pl.lit(none).first()) if rows[name].has_nulls() else rows[name]
