"""How a vector index found what the ranking asked of it, and what it missed.

Measured of every vector index that may miss documents: the searches of the system's ranking are asked again, when the
queries are, and of exact search too. A ranking that asks more than once for a query counts as often.

- `graph_64`: searches that a graph over the first 64 numbers answered; `scan_384`: those for which every visible vector
  was looked at, by 384 numbers.
- `recall`: the share of what exact search finds that was found, of all results that were asked for; `recall@10`: of the
  first ten of both.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from eval.measures.means import Means
from eval.measures.measure import Measure, MemoryReading, SystemReading
from eval.measures.noted_index import noting, way
from lcm.memory.system import System
from lcm.protocols.retrieval import Approximate
from lcm.retrieval.indexing import Ranked

SEARCH_SCHEMA: dict[str, pl.DataType] = {
    "way": pl.String(),
    "results": pl.Int64(),
    "recall": pl.Float64(),
    "recall@10": pl.Float64(),
}
"""A row a search: `results` is how many were asked for; recalls are null where exact search finds nothing."""
_CUTOFF = 10


@dataclass(frozen=True, slots=True)
class IndexSearch(Measure):
    """Counts how each search of a vector index that may miss documents was answered, and holds it against exact."""

    subject = "answers"

    def depends_on(self, system: System) -> Sequence[object]:
        return [system.ranking] if _may_miss(system) else []

    def rows(self, reading: MemoryReading) -> pl.DataFrame:
        memory = reading.memory
        rows: list[tuple[str, int, float | None, float | None]] = []
        if isinstance(memory.live.indexes.vector_index, Approximate):
            with noting(memory) as searches:
                memory.rank(reading.queries)
            for one in searches:
                truths = memory.live.indexes.vector_index.exact.search(one.vectors, one.k, one.allowed)
                rows += [
                    (way(answer), one.k, _recall(answer.ids, truth), _recall(answer.ids[:_CUTOFF], truth, _CUTOFF))
                    for answer, truth in zip(one.answers, truths, strict=True)
                ]
        return pl.DataFrame(rows, SEARCH_SCHEMA, orient="row")

    def section(self, rows: pl.DataFrame, means: Means) -> dict[str, object] | None:
        """How many searches there were, what they found, and both for each way."""
        if rows.is_empty():
            return None
        by_graph = rows["way"].str.starts_with("graph").sum()
        ways = rows.partition_by("way", as_dict=True)
        return {
            **_told(rows, len(rows)),
            "graph": by_graph,
            "scan": len(rows) - by_graph,
            **{str(name): _told(ways[name,], len(rows)) for (name,) in sorted(ways, key=_narrowest_first)},
        }

    def notes(self, rows: pl.DataFrame, reading: SystemReading) -> list[str]:
        told = self.section(rows, Means())
        if told is None:
            return []
        ways = ", ".join(
            f"{one['searches']:,} by the {name.replace('_', ' of ')} numbers{_of_exact(one['recall'])}"
            for name, one in told.items()
            if isinstance(one, dict)
        )
        notes = [f"the vector index answered {len(rows):,} searches: {ways}"]
        if not told["graph"]:
            notes.append(
                "no graph was asked: vector_index.exact_below, largest_share (and flat_below, tiers_from, "
                "candidates_share of tiers) say from which haystack on, and how few results must be wanted of it"
            )
        return notes


def _may_miss(system: System) -> bool:
    return isinstance(system.vector_index.build(1, incidents=Counter()), Approximate)


def _recall(found: Sequence[str], truth: Ranked, cutoff: int | None = None) -> float | None:
    best = truth[0][:cutoff]
    return len(set(found).intersection(best)) / len(best) if best else None


def _of_exact(recall: float | None) -> str:
    return "" if recall is None else f" (recall {recall:.3f} of exact)"


def _told(rows: pl.DataFrame, total: int) -> dict[str, object]:
    return {
        "searches": len(rows),
        "share": len(rows) / total,
        "recall": rows["recall"].mean(),
        "recall@10": rows["recall@10"].mean(),
    }


def _narrowest_first(key: tuple[object, ...]) -> tuple[int, str]:
    kind, _, width = str(key[0]).partition("_")
    return int(width), kind
