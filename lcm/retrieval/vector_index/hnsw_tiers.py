"""Several widths of every vector: the narrow ones answer what they can, the full one the rest.

The full width (an `HnswIndex`) is the truth. Every lower width is an index tier derived from it: where one is missing,
damaged, failed or still without its rotation, queries go on to the next and answers stay right. A tier that
could not follow is dirty, in memory and in its file, and is derived again by the next `add` or `load`. Its file lies
beside the full width's and is bound to its content; one of other settings or of another content is no loss.

Rows are rounded to a grid, so that sums of products have no rounding and depend on nothing that stands beside them
(see `lcm.retrieval.vector_index.exact`). Rescored, a lower width only proposes candidates: its grid is 2**-11 and its
products are float32, half the memory traffic, cosines off by .001 at most; scores are the exact full-width cosines, bit
for bit, and what can differ is which documents were found. Its exit is then decided by the margin: how far the last
wanted result stands above the narrow cosine of the last candidate. No document that was left out has a higher narrow
cosine than that candidate; it would have to gain the margin from the numbers that were cut off to be missed. Where a
width's own cosines are the scores, the grid is that of `exact`, 2**-26, and the products are float64.

A rotation turns vectors so that their first numbers tell the most, for embedders whose own first numbers do not. The
axes are the eigenvectors of the documents' second moments, largest first (a principal component analysis about the
origin, so that cosines stay: a rotation is orthogonal). Equal vectors give equal axes and a query the same turned row
whatever stands beside it.

Source: libravdb memory 1.3.5 and 1.4.4 for widths, thresholds and dirty tiers; margin, rescoring and rotation are ours.
"""

import hashlib
import importlib.metadata
import itertools
import json
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
from lcm.retrieval.indexing import Blob, Ranked, best_places, read_index, refuse_negative, write_index
from lcm.retrieval.vector_index.exact import Rows, VisibleRows, cosines, pack, to_grid, unpack
from lcm.retrieval.vector_index.hnsw import Hnsw, RowGraph

_log = logging.getLogger(__name__)
_FINE, _COARSE = np.float32(2**26), np.float32(2**11)
_BLOCK_NUMBERS = 1 << 22
_MOMENT_GRID = 2.0**11  # products are multiples of 2**-22: sums of up to 2**30 of them are exact
_AXIS_GRID = 2.0**26
_SHORTEST = 1e-9

Numbers = npt.NDArray[np.int64]
"""Which queries of a batch are asked."""


class Step(NamedTuple):
    """What one width of a cascade answered to one query."""

    answer: Ranked
    evidence: float
    """What is held against the width's threshold: its best score, or another measure of how sure it is."""
    is_by_graph: bool = False
    """Not every vector of the width was looked at."""
    place: int = 0
    """Of the width, from 0: the narrowest."""


AskWidth = Callable[[Numbers], Sequence[Step]]
"""Asks a width some queries of a batch; one `Step` each, in their order."""
_NOTHING = Step(([], []), 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class Rotation:
    """The first axes of a rotation."""

    axes: npt.NDArray[np.float64]
    """Shape (width, dim): orthonormal rows, multiples of 2**-26."""
    learnt_from: int
    """Vectors."""

    def rotated(self, vectors: Vectors) -> npt.NDArray[np.float64]:
        """Shape (n, width): the coordinates of gridded rows along the axes."""
        products: npt.NDArray[np.float64] = vectors.astype(np.float64) @ self.axes.T
        return products

    def first(self, width: int) -> "Rotation":
        return Rotation(np.ascontiguousarray(self.axes[:width]), self.learnt_from)


class NearestRows(NamedTuple):
    """Rows of one query, nearest first, ties in the order of rows."""

    rows: Rows
    scores: npt.NDArray[np.floating]
    """Cosines at this width."""
    is_by_graph: bool
    """Not every row was looked at."""


class Tier:
    """The rows of one width, of the numbers that they have in the full width."""

    def __init__(self, settings: Hnsw, width: int, *, is_rescored: bool) -> None:
        """
        Args:
            settings: of the graph, which is empty until there are `exact_below` rows.
            width: numbers a row.
            is_rescored: rows only propose candidates.
        """
        self.width = width
        self.dirt: str | None = None
        """Why the rows are not those of the full width, until they are derived again; None: they are."""
        self.rotation: Rotation | None = None
        self._ef = settings.ef
        self._is_rescored = is_rescored
        self._rows = np.empty((0, width), np.float32)  # only the first `count` are in use
        self.count = 0
        self.graph = RowGraph(settings, width)

    @property
    def rows(self) -> Vectors:
        return self._rows[: self.count]

    def derive(self, vectors: Vectors) -> Vectors:
        """Gridded full-width rows to rows of this width."""
        turned = vectors if self.rotation is None else self.rotation.rotated(vectors).astype(np.float32)
        grid = _COARSE if self._is_rescored else _FINE
        rows: Vectors = np.rint(truncate(turned, self.width) * grid) / grid
        return rows

    def add(self, vectors: Vectors, alive: Rows, start: int) -> None:
        """Derive the rows of the full width from `start` on; `alive` are those that are not dead, of all."""
        self._take(vectors[start:])
        self.graph.add(self.rows, alive, start)

    def rebuild(self, vectors: Vectors, alive: Rows) -> None:
        """Derive all rows from those of the full width."""
        self.count = 0
        self._take(vectors)
        self.graph.rebuild(self.rows, alive)
        self.dirt = None

    def follow(self, gone: Rows | None, vectors: Vectors, alive: Rows) -> None:
        """Let rows die; where they have new numbers, derive all."""
        if gone is None:
            self.rebuild(vectors, alive)
        else:
            self.graph.follow(gone, self.rows, alive)

    def _take(self, vectors: Vectors) -> None:
        rows = self.derive(vectors)
        start, self.count = self.count, self.count + len(rows)
        if self.count > len(self._rows):
            self._rows.resize((max(self.count, 2 * len(self._rows)), self.width), refcheck=False)
        self._rows[start : self.count] = rows

    def write(self, path: Path, settings: Mapping[str, Any], source: str) -> None:
        """Write the file beside that of the full width, whose digest is `source`; of a dirty tier the mark alone."""
        content: dict[str, Any] = {"source": source, "dirt": self.dirt, "learnt_from": 0}
        blobs: dict[str, Blob] = {}
        if self.dirt is None:
            blobs = {"rows": pack(self.rows), **self.graph.blobs()}
            if self.rotation is not None:
                content["learnt_from"] = self.rotation.learnt_from
                blobs["axes"] = self.rotation.axes.astype("<f8").tobytes()
        write_index(self.path(path), settings, content, blobs)

    def read(self, path: Path, settings: Mapping[str, Any], source: str, alive: Rows) -> None:
        """Take what `write` left.

        Raises:
            StoreError: if the tier must be derived again, with the reason.
        """
        file = self.path(path)
        content, blobs = read_index(file, settings)
        if content["dirt"] is not None:
            raise StoreError(f"the index tier {str(file)!r} was left dirty ({content['dirt']})")
        if content["source"] != source:
            raise StoreError(f"the index tier {str(file)!r} was derived from other vectors")
        self.rotation = self.dirt = None
        if "axes" in blobs:
            axes = np.frombuffer(blobs["axes"], "<f8").astype(np.float64).reshape(self.width, -1)
            self.rotation = Rotation(axes, content["learnt_from"])
        self._rows = unpack(blobs["rows"], self.width).copy()
        self.count = len(self._rows)
        self.graph.read(blobs, self.rows, alive)

    def path(self, path: Path) -> Path:
        """Where it is kept, for an index that is kept at `path`."""
        return path.with_name(f"{path.name}.{self.width}")

    def nearest(self, vectors: Vectors, count: int, seen: VisibleRows) -> list[NearestRows]:
        """The `count` nearest rows, at least 1, of each gridded full-width query; all if there are fewer."""
        queries = self.derive(vectors)
        found: list[NearestRows | None] = [None] * len(queries)
        if self.graph.size and count <= len(seen.rows) and self.graph.is_worth(count, len(seen.rows)):
            nearest = self.graph.nearest(queries, count, self._ef, seen)
            found = [one and self._ordered(query, *one) for query, one in zip(queries, nearest, strict=True)]
        waiting = [query for query, one in enumerate(found) if one is None]
        rows = self.rows if seen.is_plain or not waiting else self._rows[seen.rows]
        queries_a_block = max(1, _BLOCK_NUMBERS // max(len(rows), 1))
        for start in range(0, len(waiting), queries_a_block):
            block = waiting[start : start + queries_a_block]
            products = queries[block] @ rows.T if self._is_rescored else cosines(queries[block], rows)
            for query, scores in zip(block, products, strict=True):
                places = best_places(scores, count)
                found[query] = NearestRows(seen.rows[places], scores[places], False)
        return [one for one in found if one is not None]

    def _ordered(self, query: Vectors, rows: Rows, products: npt.NDArray[np.floating]) -> NearestRows:
        if not self._is_rescored:
            products = cosines(query[np.newaxis], self._rows[rows])[0]
        order = np.lexsort((rows, -products))
        return NearestRows(rows[order], products[order], True)


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
        self.exact = self._full.exact
        """All vectors in their full width; changed through this index alone."""
        self._tiers = settings.lower_widths(dim)
        self.exact.followers.append(self._follow)

    def __len__(self) -> int:
        return len(self._full)

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
        with self.exact.lock:
            start = len(self.exact.vectors)
            self._full.add(ids, vectors)
            rows, alive, due = self.exact.vectors, self.exact.alive, self._settings.is_due
            stale = [tier for tier in self._tiers if tier.dirt is not None or due(tier.rotation, len(alive))]
            for tier in self._tiers:
                if tier not in stale and self._is_ready(tier):
                    self._try(tier, partial(tier.add, rows, alive, start))
            self._derive(stale)

    def remove(self, ids: Sequence[str]) -> None:
        """Forget these ids with all of their vectors.

        Raises:
            ValueError: if an id is not in the index; nothing is removed.
        """
        self._full.remove(ids)

    def search(self, vectors: Vectors, k: int, allowed: Sequence[str] | None = None) -> list[Ranked]:
        return [way[-1].answer for way in self.ways(vectors, k, allowed)]

    def search_tiers(
        self, vectors: Vectors, k: int, allowed: Sequence[str] | None = None
    ) -> list[tuple[list[str], list[float], int]]:
        return [(ids, scores, width) for ids, scores, width, _ in self.answers(vectors, k, allowed)]

    def answers(self, vectors: Vectors, k: int, allowed: Sequence[str] | None = None) -> list[IndexAnswer]:
        exits = [way[-1] for way in self.ways(vectors, k, allowed)]
        return [IndexAnswer(*one.answer, self.widths[one.place], one.is_by_graph) for one in exits]

    def ways(self, vectors: Vectors, k: int, allowed: Sequence[str] | None = None) -> list[list[Step]]:
        """Of each query every width that it was asked of; the last gave the answer."""
        queries = to_grid(vectors, self._dim)
        refuse_negative(k)
        with self.exact.lock:
            seen = self.exact.visible(allowed)
            visible, wanted = len(seen.rows), min(k, len(seen.firsts))
            if self._settings.rescoring == "none":
                count, is_worth_it = wanted, wanted > 0
            else:
                count = max(self._settings.candidates, self._settings.candidates_a_result * wanted)
                is_worth_it = wanted > 0 and count <= visible * self._settings.candidates_share

            def ask_lower(tier: Tier, numbers: Numbers) -> list[Step]:
                return self._ask_lower(tier, queries[numbers], count, wanted, seen)

            def ask_full(numbers: Numbers) -> list[Step]:
                answers = self._full.answers(queries[numbers], k, allowed)
                found = [((one.ids, one.cosines), one.is_by_graph) for one in answers]
                return [Step(answer, _first(answer), is_by_graph) for answer, is_by_graph in found]

            lower = self._tiers if is_worth_it and visible >= self._settings.tiers_from else []
            asked: list[AskWidth] = [*(partial(ask_lower, tier) for tier in lower), ask_full]
            ways = descend(len(queries), asked, self._settings.exit_thresholds[: len(lower)])
            if lower:
                return ways
            return [[step._replace(place=len(self._tiers)) for step in way] for way in ways]

    def vectors_of(self, ids: Sequence[str]) -> Vectors:
        return self._full.vectors_of(ids)

    def save(self, path: Path) -> None:
        """Write the full width to `path` and every lower one beside it, with its width as suffix."""
        with self.exact.lock:
            source = source_digest(*self.exact.contents())
            for tier in self._tiers:
                self._write(path, tier, source)
            self._full.save(path)

    def load(self, path: Path) -> None:
        """Replace the content; a lower width whose file is of no use is derived again, and its file written.

        Raises:
            StoreError: if the file of the full width is missing, damaged, or of other settings; nothing is replaced.
        """
        with self.exact.lock:
            self._full.load(path)
            self._tiers = self._settings.lower_widths(self._dim)
            source, alive, lost = source_digest(*self.exact.contents()), self.exact.alive, []
            for tier in self._tiers:
                try:
                    tier.read(path, self._file_settings(tier), source, alive)
                except StoreError as err:
                    if self._settings.rotation == "none" or self._settings.is_due(None, len(alive)):
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

    def _follow(self, gone: Rows | None) -> None:
        for tier in filter(self._is_ready, self._tiers):
            self._try(tier, partial(tier.follow, gone, self.exact.vectors, self.exact.alive))

    def _derive(self, tiers: Sequence[Tier]) -> None:
        """Derive tiers from the full width: all of their rows, and the rotation where it is due."""
        vectors, alive = self.exact.vectors, self.exact.alive
        learnt: list[Rotation] = []

        def derive(tier: Tier) -> None:
            if self._settings.is_due(tier.rotation, len(alive)):
                if not learnt:
                    learnt.append(learn(vectors[alive]))
                tier.rotation = learnt[0].first(tier.width)
            tier.dirt = None
            if self._is_ready(tier):
                tier.rebuild(vectors, alive)

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

    def _ask_lower(self, tier: Tier, queries: Vectors, count: int, wanted: int, seen: VisibleRows) -> list[Step]:
        if not self._is_ready(tier):
            return [_NOTHING] * len(queries)
        try:
            if self._settings.rescoring == "none":
                return self._own_answers(tier, queries, wanted, seen)
            nearest = tier.nearest(queries, count, seen)
            return [self._rescored(query, one, wanted) for query, one in zip(queries, nearest, strict=True)]
        except (RuntimeError, MemoryError) as err:
            _log.warning("the index tier of width %d did not answer (%s): its queries go on", tier.width, err)
            self._incidents["index_tier_search"] += 1
            return [_NOTHING] * len(queries)

    def _rescored(self, query: Vectors, nearest: NearestRows, wanted: int) -> Step:
        answer = self.exact.rank(query, nearest.rows, wanted)
        evidence = _first(answer)
        if self._settings.exit_by == "margin":
            is_full = len(answer[0]) == wanted
            evidence = answer[1][-1] - float(nearest.scores[-1]) if is_full else -math.inf
        return Step(answer, evidence, nearest.is_by_graph)

    def _own_answers(self, tier: Tier, queries: Vectors, wanted: int, seen: VisibleRows) -> list[Step]:
        visible = len(seen.rows)
        answers = [_NOTHING] * len(queries)
        count, waiting = wanted, np.arange(len(queries))
        while len(waiting):  # several rows of one id may crowd out others
            crowded = []
            for query, nearest in zip(waiting.tolist(), tier.nearest(queries[waiting], count, seen), strict=True):
                names, firsts = self.exact.first_of_each(nearest.rows)
                if len(names) >= wanted or count >= visible:
                    answer = names[:wanted], nearest.scores[firsts][:wanted].tolist()
                    answers[query] = Step(answer, _first(answer), nearest.is_by_graph)
                else:
                    crowded.append(query)
            count, waiting = min(2 * count, visible), np.array(crowded, np.int64)
        return answers


def _first(answer: Ranked) -> float:
    """The best of nothing is 0."""
    return answer[1][0] if answer[1] else 0.0


def descend(queries: int, widths: Sequence[AskWidth], thresholds: Sequence[float]) -> list[list[Step]]:
    """Ask the narrowest width all queries, and each next one those that it left open.

    A query is done where a width found something and its evidence is >= the threshold; the last width's answer is
    taken as it is, and always asked for.

    Args:
        queries: how many there are.
        widths: narrowest first, at least one.
        thresholds: one a width but the last.
    Returns:
        The steps of each query.
    """
    ways: list[list[Step]] = [[] for _ in range(queries)]
    waiting = np.arange(queries)
    for place, (ask, threshold) in enumerate(zip(widths, [*thresholds, -math.inf], strict=True)):
        if not len(waiting):
            break
        left = []
        for number, step in zip(waiting.tolist(), ask(waiting), strict=True):
            ways[number].append(step._replace(place=place))
            if not (step.answer[0] and step.evidence >= threshold):
                left.append(number)
        waiting = np.array(left, np.int64)
    return ways


def source_digest(ids: Sequence[str | None], vectors: Vectors) -> str:
    """What the full width holds."""
    digest = hashlib.sha256(json.dumps(list(ids)).encode())
    digest.update(pack(vectors))
    return digest.hexdigest()


def learn(vectors: Vectors) -> Rotation:
    """Learn all axes from unit vectors.

    Raises:
        numpy.linalg.LinAlgError: if the eigenvectors were not found.
    """
    rows = np.rint(vectors.astype(np.float64) * _MOMENT_GRID) / _MOMENT_GRID
    _, columns = np.linalg.eigh(rows.T @ rows)
    axes = np.ascontiguousarray(columns[:, ::-1].T)
    # An eigenvector is known up to its sign.
    largest = np.take_along_axis(axes, np.argmax(np.abs(axes), axis=1)[:, np.newaxis], axis=1)
    return Rotation(np.rint(axes * np.where(largest < 0, -1.0, 1.0) * _AXIS_GRID) / _AXIS_GRID, len(vectors))


def truncate(vectors: Vectors, width: int) -> Vectors:
    """Cut vectors to their first `width` numbers and scale each to unit length.

    u = v[:width] / |v[:width]|, the length summed in float64, the division in float32. Where the length is below 1e-9
    nothing tells a direction, and the row stays as it was cut.

    Args:
        vectors: shape (n, dim), float32; rows need not have unit length.
        width: more than `dim` keeps all of a row, 0 or less nothing.
    Returns:
        shape (n, min(width, dim)), float32.
    Source: libravdb memory 1.3.5 and 1.4.4 (widths 64, 256 and 768 of one nomic vector).
    """
    cut = np.array(vectors[:, : max(width, 0)], np.float32, order="C")
    lengths = np.sqrt(np.sum(cut.astype(np.float64) ** 2, axis=1))
    told = lengths >= _SHORTEST
    cut[told] /= lengths[told, np.newaxis].astype(np.float32)
    return cut
