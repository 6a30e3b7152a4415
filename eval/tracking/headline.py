"""Which numbers of a run are metrics in MLflow: those that it is told by, and all that somebody asked for by name.

The others stand in the tables that are logged beside them, and in the run's files.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from eval.measures.names import CONTEXT_MEASURES, HEADLINE, RANKING_MEASURES, REPAIRED, SYSTEM_ARM, WHOLE, kind_of
from eval.measures.retrieval import DEFAULT_NAMES
from eval.shape import sections

_SESSION = "session."
_REPAIRED = tuple(f"{REPAIRED}{name}" for name in ("recall@10", "nDCG@10"))
_CONTEXT = ("retained", "expansions")
"""Of contexts under each budget."""
_TIMES = {"latency_ms": ("total", ("p50_ms", "p95_ms"))}
"""Section of times -> the part that is told, and its numbers."""


def headline_measures(measured: Iterable[str], objectives: Collection[str] = ()) -> list[str]:
    """Of the measures of queries those that are headlines.

    That is what a run is told by, and every measure that nobody gets who has not asked for it: one from outside, or one
    at another cutoff than by default.

    Args:
        objectives: measures that the run is chosen by, which always are.
    """
    there = list(measured)
    stand_ins = {name for name in there if name.startswith(_SESSION) and name.removeprefix(_SESSION) not in there}
    told = {*HEADLINE, *WHOLE, *_REPAIRED, *objectives}
    return [
        name
        for name in there
        if name in told
        or (name in stand_ins and name.removeprefix(_SESSION) in told)
        or kind_of(name) in _CONTEXT
        or _is_asked_for(name)
    ]


def headline_sections(summary: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """What a run tells of other things than queries: its counts, how concentrated the system's answers are, what became
    of candidates, contexts and searches, how often something was survived, and the times of a query and of the whole
    run."""
    yield "count", summary.get("counts", {})
    yield "served", summary.get("served", {}).get(SYSTEM_ARM, {})
    yield "decision", summary.get("decisions", {})
    for name, section in sections(summary).items():
        yield ("summary" if name == "summary_quality" else name), section
    yield "", {"incidents": sum(summary.get("incidents", {}).values())}
    timing = summary.get("timing", {})
    for name, (part, numbers) in _TIMES.items():
        times = timing.get(name, {}).get(part, {})
        told = {f"{part}_{number}": times[number] for number in numbers if number in times}
        yield name.removesuffix("_ms"), told
    yield "seconds", {"total": timing.get("seconds", {}).get("total")}


def _is_asked_for(name: str) -> bool:
    kind = kind_of(name)
    if kind in CONTEXT_MEASURES:
        return False
    usual = {*DEFAULT_NAMES, *(f"judged@{cutoff}" for cutoff in (5, 10))}
    return kind not in RANKING_MEASURES or name.removeprefix(REPAIRED).removeprefix(_SESSION) not in usual
