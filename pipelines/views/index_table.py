"""How the vector index of a run, or of each point of a sweep, found what was asked of it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

HEADINGS = ("vector index", "searches", "share", "recall of exact", "recall@10", "p50, ms", "exact p50, ms")
"""Of its table; times are those of live queries, where any were timed."""


def index_rows(summary: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """All searches, then those of each way; none of an exact index."""
    found = summary.get("index_search") or {}
    times = summary.get("timing", {}).get("latency_ms") or {}
    for name, told in {"all": found, **found}.items():
        if isinstance(told, Mapping) and told:
            part = times.get("dense" if name == "all" else f"dense_{name}", {})
            exact = times.get("dense_exact", {}) if name == "all" else {}
            yield (
                name.replace("_", " of "),
                f"{told['searches']:,}",
                f"{told['share']:.0%}",
                *("-" if told[one] is None else f"{told[one]:.3f}" for one in ("recall", "recall@10")),
                *(f"{one['p50_ms']:.2f}" if "p50_ms" in one else "-" for one in (part, exact)),
            )


def point_rows(summaries: Sequence[Mapping[str, Any] | None]) -> list[tuple[str, ...]]:
    """The same of every point that finished, its number first."""
    return [(str(i), *row) for i, one in enumerate(summaries) if one is not None for row in index_rows(one)]
