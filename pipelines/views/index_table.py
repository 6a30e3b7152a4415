"""How the vector index of a run, or of each point of a sweep, found what was asked of it."""

from collections.abc import Mapping, Sequence
from typing import Any

Table = tuple[tuple[str, ...], list[tuple[str, ...]]]
"""Headings, and rows of cells; no row of an exact index."""

_HEADINGS = ("vector index", "searches", "share", "recall of exact", "recall@10")
_TIMES = ("p50, ms", "exact p50, ms", "faster")
"""Of live queries, where any were timed: each search beside the same by exact search, and how many were faster."""


def index_table(summary: Mapping[str, Any]) -> Table:
    """All searches of a run, then those of each way."""
    found = summary.get("index_search") or {}
    told = {name: one for name, one in {"all": found, **found}.items() if isinstance(one, Mapping) and one}
    times = {name: _times(summary, name) for name in told}
    is_timed = any(map(any, times.values()))
    rows = [
        (
            _worded(name),
            f"{one['searches']:,}",
            f"{one['share']:.0%}",
            _share(one["recall"]),
            _share(one["recall@10"]),
            *(cell or "-" for cell in times[name] if is_timed),
        )
        for name, one in told.items()
    ]
    return (*_HEADINGS, *(_TIMES if is_timed else ())), rows


def points_table(summaries: Sequence[Mapping[str, Any] | None]) -> Table:
    """A row a point that finished, a column a way: the share of the searches that it answered, and their recall."""
    searched = {i: one for i, one in enumerate(summaries) if one is not None and one.get("index_search")}
    found = {i: one["index_search"] for i, one in searched.items()}
    ways = {name for one in found.values() for name, told in one.items() if isinstance(told, Mapping)}
    ordered = sorted(ways, key=lambda name: (int(name.partition("_")[2]), name))
    times = {i: _times(one, "all") for i, one in searched.items()}
    columns = [column for column in range(len(_TIMES)) if any(one[column] for one in times.values())]
    rows = [
        (
            str(i),
            f"{one['searches']:,}",
            _share(one["recall"]),
            _share(one["recall@10"]),
            *(f"{one[way]['share']:.0%} at {_share(one[way]['recall'])}" if way in one else "-" for way in ordered),
            *(times[i][column] or "-" for column in columns),
        )
        for i, one in found.items()
    ]
    return ("point", *_HEADINGS[1:2], *_HEADINGS[3:], *map(_worded, ordered), *(_TIMES[i] for i in columns)), rows


def _times(summary: Mapping[str, Any], way: str) -> tuple[str, str, str]:
    """Cells, empty where nothing was timed."""
    times = summary.get("timing", {}).get("latency_ms") or {}
    suffix = "" if way == "all" else f"_{way}"
    own, exact = times.get(f"dense{suffix}", {}), times.get(f"dense_exact{suffix}", {})
    own_ms, exact_ms = (f"{one['p50_ms']:.2f}" if "p50_ms" in one else "" for one in (own, exact))
    return own_ms, exact_ms, f"{exact['slower']} of {exact['n']}" if "slower" in exact else ""


def _worded(way: str) -> str:
    return way.replace("_", " of ")


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
