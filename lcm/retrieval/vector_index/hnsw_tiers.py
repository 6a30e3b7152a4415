"""Several widths of every vector: the narrow ones answer what they can, the full one the rest.

The full width (an `HnswIndex`) is the truth. Every lower width is an index tier derived from it: where one is missing,
damaged, failed or still without its rotation, queries go on to the next and answers stay right. A tier that
could not follow is dirty, in memory and in its file, and is derived again by the next `add` or `load`.

Rescored, a lower width only proposes candidates: their scores are the exact full-width cosines, bit for bit, and what
can differ is which documents were found. Its exit is then decided by the margin: how far the last wanted result
stands above the narrow cosine of the last candidate. No document that was left out has a higher narrow cosine than that
candidate; it would have to gain the margin from the numbers that were cut off to be missed.

Source: libravdb memory 1.3.5 and 1.4.4 for widths, thresholds and dirty tiers; margin, rescoring and rotation are ours.
"""

import importlib.metadata
import itertools
import logging
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from lcm.checks import check_choice, check_range
from lcm.errors import StoreError
from lcm.protocols.models import Vectors
from lcm.protocols.retrieval import IndexAnswer
from lcm.retrieval.indexing import Ranked, refuse_negative, refuse_unequal
from lcm.retrieval.vector_index.exact import ExactIndex, to_grid
from lcm.retrieval.vector_index.hnsw import Hnsw
from lcm.retrieval.vector_index.rows import Rows, VisibleRows
from lcm.retrieval.vector_index.tier import NearestRows, Rotation, Tier, learn, source_digest

_log = logging.getLogger(__name__)

Numbers = npt.NDArray[np.int64]
"""Which queries of a batch are asked."""


class StepResult(NamedTuple):
    """The answer of one width of a cascade to one query."""

    answer: Ranked
    evidence: float
    """What is held against the width's threshold: its best score, or another measure of how sure it is."""
    is_by_graph: bool = False
    """Not every vector was looked at."""


class Step(NamedTuple):
    """What a query met at one width on its way."""

    place: int
    """Of the width, from 0: the narrowest."""
    evidence: float
    """0 where nothing was found."""
    is_exit: bool
    is_by_graph: bool = False
    """Not every vector of the width was looked at."""


class Descent(NamedTuple):
    """The way of one query down the widths of a cascade."""

    answer: Ranked
    steps: tuple[Step, ...]
    """The last is the exit."""


AskWidth = Callable[[Numbers], Sequence[StepResult]]
"""Asks a width some queries of a batch; one `StepResult` each, in their order."""


_NOTHING = StepResult(([], []), 0.0)


@dataclass(frozen=True, slots=True)
class HnswTiers:
    """Settings."""

    widths: Sequence[int | None] = (64, 256, None)
    """Numbers a vector, ascending; None, the last, is the full width. Those that the embedder does not exceed are
    left out."""
    exit_thresholds: Sequence[float] = (0.05, 0.05)
    """One a lower width: what its evidence must reach for a query to end there."""
    exit_by: Literal["margin", "best_score"] = "margin"
    """The evidence: the k-th result's exact cosine less the last candidate's narrow one, or the best result's score."""
    rescoring: Literal["full_width", "none"] = "full_width"
    """What scores a lower width's results: exact full-width cosines, or its own."""
    candidates: int = 50
    """How many a lower width proposes at least. Unused without rescoring, as are the next two."""
    candidates_a_result: int = 5
    """So many for each result wanted, if that is more."""
    candidates_share: float = 0.25
    """Of the visible vectors: where more would be proposed, the full width is asked at once."""
    rotation: Literal["none", "pca"] = "none"
    """Cut vectors as they are, or turned by a rotation learnt from the documents."""
    rotation_from: int = 256
    """Vectors there must be to learn it; with fewer the full width answers."""
    rotation_growth: float = 2.0
    """It is learnt again when there are so many times as many."""
    tiers_from: int = 1000
    """Visible vectors there must be for a lower width to be asked; with fewer the full width is as fast."""
    flat_below: int = 10_000
    """A lower width of fewer rows than this has no graph: all rows are looked at; 0 means that its graph always
    answers."""
    m: int = 16
    ef_construction: int = 200
    ef: int = 100
    ef_a_result: int = 2
    seed: int = 0
    exact_below: int = 5000
    largest_share: float = 0.125
    """As in `Hnsw`, which is the full width; the graphs of the lower widths take all but `ef_a_result` and
    `exact_below`, too."""
    unused_where: ClassVar[Mapping[str, Mapping[str, object]]] = {
        "candidates": {"rescoring": "none"},
        "candidates_a_result": {"rescoring": "none"},
        "candidates_share": {"rescoring": "none"},
        "rotation_from": {"rotation": "none"},
        "rotation_growth": {"rotation": "none"},
        "largest_share": {"exact_below": 0, "flat_below": 0},
    }
    """Setting -> the values of others that leave it without effect."""

    def __post_init__(self) -> None:
        lower = [width for width in self.widths[:-1] if width is not None]
        if not self.widths or self.widths[-1] is not None or len(lower) != len(self.widths) - 1:
            raise ValueError(f"widths must be numbers and then null, the full width, got {list(self.widths)}")
        if lower and (lower[0] < 1 or any(after <= before for before, after in itertools.pairwise(lower))):
            raise ValueError(f"widths must be >= 1 and ascend, got {list(self.widths)}")
        if len(self.exit_thresholds) != len(lower):
            raise ValueError(
                f"exit_thresholds must be one a lower width, {len(lower)}, got {list(self.exit_thresholds)}"
            )
        if any(math.isnan(threshold) for threshold in self.exit_thresholds):
            raise ValueError(f"exit_thresholds must be numbers, got {list(self.exit_thresholds)}")
        check_choice(self, exit_by=("best_score", "margin"), rescoring=("full_width", "none"), rotation=("none", "pca"))
        if self.exit_by == "margin" and self.rescoring == "none":
            raise ValueError("exit_by 'margin' compares with full-width cosines: set rescoring to 'full_width'")
        check_range(self, "candidates", "candidates_a_result", "rotation_from", ge=1)
        check_range(self, "candidates_share", gt=0, le=1)
        check_range(self, "tiers_from", "flat_below", ge=0)
        check_range(self, "rotation_growth", gt=1)
        self.full_width()

    def full_width(self) -> Hnsw:
        return Hnsw(**{one.name: getattr(self, one.name) for one in fields(Hnsw)})

    def lower_widths(self, dim: int) -> list[Tier]:
        """Index tiers for vectors of `dim` numbers, narrowest first, still empty."""
        graph = replace(self.full_width(), exact_below=self.flat_below)
        widths = [width for width in self.widths if width is not None and width < dim]
        return [Tier(graph, width, is_rescored=self.rescoring == "full_width") for width in widths]

    def is_due(self, learnt: Rotation | None, vectors: int) -> bool:
        """Whether a rotation must be learnt from so many vectors, for the first time or again."""
        if self.rotation == "none" or vectors < self.rotation_from:
            return False
        return learnt is None or vectors >= self.rotation_growth * learnt.learnt_from

    def build(self, dim: int, *, incidents: Counter[str]) -> "HnswTiersIndex":
        return HnswTiersIndex(self, dim, incidents)


class HnswTiersIndex:
    """The documents that a cascade of widths finds. Safe to use from several threads.

    Incidents, what lower widths failed at: `index_tier_insert`, `index_tier_search`, `index_tier_file`.
    """

    def __init__(self, settings: HnswTiers, dim: int, incidents: Counter[str]) -> None:
        self._incidents = incidents
        self._settings = settings
        self._dim = dim
        self._full = settings.full_width().build(dim, incidents=incidents)
        self._lock = self.exact.lock
        self._tiers = settings.lower_widths(dim)
        self.exact.followers.append(self._follow)

    def __len__(self) -> int:
        return len(self._full)

    @property
    def exact(self) -> ExactIndex:
        """All vectors in their full width; changed through this index alone."""
        return self._full.exact

    @property
    def widths(self) -> tuple[int, ...]:
        """Numbers a vector in each index tier, the full width last."""
        return (*(tier.width for tier in self._tiers), self._dim)

    def add(self, ids: Sequence[str], vectors: Vectors) -> None:
        """Add one vector to each id; an id given again, here or later, has one vector more.

        Raises:
            ValueError: if ids and vectors differ in number, or a vector is neither of unit length nor zero;
                nothing is added.
        """
        rows = to_grid(vectors, self._dim)
        refuse_unequal(len(ids), len(rows), "vectors")
        with self._lock:
            total, due = self.exact.settled().count + len(rows), self._settings.is_due
            stale = [tier for tier in self._tiers if tier.dirt is not None or due(tier.rotation, total)]
            for tier in filter(self._is_ready, self._tiers):  # first, for the full width may move rows at once
                self._try(tier, partial(tier.add, rows))
            self._full.add(ids, rows)
            self._derive(stale)

    def remove(self, ids: Sequence[str]) -> None:
        """Forget these ids with all of their vectors.

        Raises:
            ValueError: if an id is not in the index; nothing is removed.
        """
        self._full.remove(ids)

    def search(self, vectors: Vectors, k: int, allowed: Sequence[str] | None = None) -> list[Ranked]:
        return [descent.answer for descent in self.descents(vectors, k, allowed)]

    def search_tiers(
        self, vectors: Vectors, k: int, allowed: Sequence[str] | None = None
    ) -> list[tuple[list[str], list[float], int]]:
        widths = self.widths
        return [(*found.answer, widths[found.steps[-1].place]) for found in self.descents(vectors, k, allowed)]

    def answers(self, vectors: Vectors, k: int, allowed: Sequence[str] | None = None) -> list[IndexAnswer]:
        widths = self.widths
        return [
            IndexAnswer(*found.answer, widths[found.steps[-1].place], found.steps[-1].is_by_graph)
            for found in self.descents(vectors, k, allowed)
        ]

    def descents(self, vectors: Vectors, k: int, allowed: Sequence[str] | None = None) -> list[Descent]:
        """As `search`, with every width that a query was asked of."""
        queries = to_grid(vectors, self._dim)
        refuse_negative(k)
        with self._lock:
            seen = self.exact.settled().visible(allowed)
            visible, wanted = len(seen.rows), min(k, seen.ids)
            if self._settings.rescoring == "none":
                count, is_worth_it = wanted, wanted > 0
            else:
                count = max(self._settings.candidates, self._settings.candidates_a_result * wanted)
                is_worth_it = wanted > 0 and count <= visible * self._settings.candidates_share
            full_place = len(self._tiers)
            if visible < self._settings.tiers_from or not (is_worth_it and self._tiers):
                found = [_result(answer) for answer in self._full.answers(queries, k, allowed)]
                return [Descent(one.answer, (Step(full_place, one.evidence, True, one.is_by_graph),)) for one in found]

            def ask_lower(tier: Tier, numbers: Numbers) -> list[StepResult]:
                return self._ask_lower(tier, queries[numbers], count, wanted, seen)

            def ask_full(numbers: Numbers) -> list[StepResult]:
                some = queries if len(numbers) == len(queries) else queries[numbers]
                return [_result(answer) for answer in self._full.answers(some, k, allowed)]

            asked: list[AskWidth] = [*(partial(ask_lower, tier) for tier in self._tiers), ask_full]
            return descend(len(queries), asked, self._settings.exit_thresholds)

    def vectors_of(self, ids: Sequence[str]) -> Vectors:
        return self._full.vectors_of(ids)

    def save(self, path: Path) -> None:
        """Write the full width to `path` and every lower one beside it, with its width as suffix."""
        with self._lock:
            source = source_digest(*self.exact.contents())
            for tier in self._tiers:
                self._write(path, tier, source)
            self._full.save(path)

    def load(self, path: Path) -> None:
        """Replace the content; a lower width whose file is of no use is derived again, and its file written.

        Raises:
            StoreError: if the file of the full width is missing, damaged, or of other settings; nothing is replaced.
        """
        with self._lock:
            self._full.load(path)
            self._tiers = self._settings.lower_widths(self._dim)
            ids, vectors = self.exact.contents()
            source, lost = source_digest(ids, vectors), []
            for tier in self._tiers:
                try:
                    tier.read(path, self._file_settings(tier), source)
                except StoreError as err:
                    if self._settings.rotation == "none" or self._settings.is_due(None, len(vectors)):
                        _log.warning("%s: derived from the full width", err)
                        self._incidents["index_tier_file"] += 1
                        tier.dirt = str(err)
                        lost.append(tier)
            self._derive(lost)
            for tier in lost:
                self._write(path, tier, source)

    def _is_ready(self, tier: Tier) -> bool:
        """Whether a tier can answer: it is not dirty, and has the rotation that it needs."""
        return tier.dirt is None and (self._settings.rotation == "none" or tier.rotation is not None)

    def _follow(self, order: Rows) -> None:
        for tier in filter(self._is_ready, self._tiers):
            self._try(tier, partial(tier.follow, order))

    def _derive(self, tiers: Sequence[Tier]) -> None:
        """Derive tiers from the full width: all of their rows, and the rotation where it is due."""
        if not tiers:
            return
        _, vectors = self.exact.contents()
        learnt: list[Rotation] = []

        def derive(tier: Tier) -> None:
            if self._settings.is_due(tier.rotation, len(vectors)):
                if not learnt:
                    learnt.append(learn(vectors))
                tier.rotation = learnt[0].first(tier.width)
            tier.dirt = None
            if self._is_ready(tier):
                tier.rebuild(vectors)

        for tier in tiers:
            self._try(tier, partial(derive, tier))

    def _try(self, tier: Tier, change: Callable[[], None]) -> None:
        try:
            change()
        except (RuntimeError, MemoryError, np.linalg.LinAlgError) as err:
            _log.warning("the index tier of width %d could not follow (%s): it waits to be derived", tier.width, err)
            self._incidents["index_tier_insert"] += 1
            tier.dirt = str(err) or type(err).__name__

    def _write(self, path: Path, tier: Tier, source: str) -> None:
        try:
            if tier.dirt is None and not self._is_ready(tier):
                tier.path(path).unlink(missing_ok=True)
            else:
                tier.write(path, self._file_settings(tier), source)
        except OSError as err:
            _log.warning("the index tier of width %d was not written (%s): it can be derived", tier.width, err)
            self._incidents["index_tier_file"] += 1

    def _file_settings(self, tier: Tier) -> dict[str, Any]:
        """What the rows and the graph of a tier depend on."""
        kept = ("rescoring", "rotation", "m", "ef_construction", "seed")
        return {
            "kind": "index tier",
            "dim": self._dim,
            **{name: getattr(self._settings, name) for name in kept},
            "width": tier.width,
            "hnswlib": importlib.metadata.version("hnswlib"),
        }

    def _ask_lower(self, tier: Tier, queries: Vectors, count: int, wanted: int, seen: VisibleRows) -> list[StepResult]:
        if not self._is_ready(tier):
            return [_NOTHING] * len(queries)
        try:
            if self._settings.rescoring == "none":
                return self._own_answers(tier, queries, wanted, seen)
            return self._rescored(queries, tier.nearest(queries, count, seen), wanted)
        except (RuntimeError, MemoryError) as err:
            _log.warning("the index tier of width %d did not answer (%s): its queries go on", tier.width, err)
            self._incidents["index_tier_search"] += 1
            return [_NOTHING] * len(queries)

    def _rescored(self, queries: Vectors, nearest: Sequence[NearestRows], wanted: int) -> list[StepResult]:
        exact = self.exact
        if exact.settled().has_one_row_an_id:
            answers = exact.rank(queries, np.stack([one.rows for one in nearest]), wanted)
        else:
            answers = [exact.rank_owners(query, one.rows, wanted) for query, one in zip(queries, nearest, strict=True)]
        if self._settings.exit_by == "best_score":
            evidence = [_first(answer) for answer in answers]
        else:
            evidence = [
                answer[1][-1] - float(one.scores[-1]) if len(answer[0]) == wanted else -math.inf
                for answer, one in zip(answers, nearest, strict=True)
            ]
        told = zip(answers, evidence, nearest, strict=True)
        return [StepResult(answer, sure, one.is_by_graph) for answer, sure, one in told]

    def _own_answers(self, tier: Tier, queries: Vectors, wanted: int, seen: VisibleRows) -> list[StepResult]:
        visible = len(seen.rows)
        answers = [_NOTHING] * len(queries)
        count, waiting = wanted, np.arange(len(queries))
        while len(waiting):  # several rows of one id may crowd out others
            crowded = []
            for query, nearest in zip(waiting.tolist(), tier.nearest(queries[waiting], count, seen), strict=True):
                names, firsts = self.exact.settled().owners_of(nearest.rows)
                if len(names) >= wanted or count >= visible:
                    answer = names[:wanted], nearest.scores[firsts][:wanted].tolist()
                    answers[query] = StepResult(answer, _first(answer), nearest.is_by_graph)
                else:
                    crowded.append(query)
            count, waiting = min(2 * count, visible), np.array(crowded, np.int64)
        return answers


def _result(answer: IndexAnswer) -> StepResult:
    found = answer.ids, answer.cosines
    return StepResult(found, _first(found), answer.is_by_graph)


def _first(answer: Ranked) -> float:
    """The best of nothing is 0."""
    return answer[1][0] if answer[1] else 0.0


def descend(
    queries: int, widths: Sequence[AskWidth], thresholds: Sequence[float], is_late: Callable[[], bool] | None = None
) -> list[Descent]:
    """Ask the narrowest width all queries, and each next one those that it left open.

    A query is done where a width found something and its evidence is >= the threshold; the last width's answer is
    taken as it is, and always asked for.

    Args:
        queries: how many there are.
        widths: narrowest first, at least one.
        thresholds: one a width but the last.
        is_late: asked before each width but the last, which is gone to at once when it says yes; None = never late.
    """
    answers: list[Ranked] = [([], [])] * queries
    trails: list[list[Step]] = [[] for _ in range(queries)]
    waiting = np.arange(queries)
    last = len(widths) - 1
    for place, ask in enumerate(widths):
        if place < last and is_late is not None and is_late():
            continue
        if not len(waiting):
            break
        left = []
        for number, (answer, evidence, is_by_graph) in zip(waiting.tolist(), ask(waiting), strict=True):
            is_exit = place == last or (bool(answer[0]) and evidence >= thresholds[place])
            trails[number].append(Step(place, evidence if answer[0] else 0.0, is_exit, is_by_graph))
            if is_exit:
                answers[number] = answer
            else:
                left.append(number)
        waiting = np.array(left, np.int64)
    return [Descent(answer, tuple(steps)) for answer, steps in zip(answers, trails, strict=True)]
