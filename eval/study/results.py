"""The results of a sweep: a row for each point, what the swept keys changed, and why it may be that they changed
nothing."""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import polars as pl

from eval.dataset.dataset import generated_label
from eval.measures.means import Entry, conversation_direction, conversation_means, is_by_product
from eval.measures.names import SYSTEM_ARM, Direction, kind_of, telling
from eval.run import read_table
from eval.shape import sections
from eval.table import Table, means_table
from lcm.derived import sum_of

_QUANTILES = ("p50_ms", "p95_ms")

RATIO, CONFIDENCE = "ratio", "confidence"
"""How much smaller all contexts are, and how sure the makers of their summaries."""
DECIDED = ("admitted", "created")
"""Shares of the candidates that were judged: not refused by admission; stored as documents of their own."""
_REFUSED = ("reject", "fail")

HAYSTACK = "replay.distractors"
"""The swept key that makes haystacks larger."""


@dataclass(frozen=True, slots=True)
class PointResult:
    """What became of one point of a sweep: its summary, or why there is none."""

    name: str
    """Of its folder."""
    label: str
    """The overrides that tell it from the others."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Swept key -> value, as the command line has it."""
    summary: Mapping[str, Any] | None = None
    """None where it did not finish."""
    error: str | None = None
    """Why it did not, in a line; None where it was not tried."""
    directions: Mapping[str, Direction] = field(default_factory=dict)
    """Measure -> which way it is better."""

    @property
    def measures(self) -> Mapping[str, Mapping[str, float | None]] | None:
        """Measure -> value, n, low, high: of queries, or where none was judged of conversations."""
        return None if self.summary is None else self.summary["measures"] or conversation_means(self.summary)

    @property
    def messages_a_query(self) -> float | None:
        """How large a haystack is: the messages that stood when a query was asked, on average, or lie in a workspace
        where each is by itself."""
        if self.summary is None:
            return None
        counts = self.summary["counts"]
        return float(counts.get("messages_a_query", counts["messages"] / counts["workspaces"]))

    @property
    def parts(self) -> Mapping[str, Entry]:
        """What became of contexts and candidates, in the form of measures, none of them better or worse; empty where
        nothing was folded or judged."""
        summary = self.summary or {}
        done, decided = summary.get("compression") or {}, summary.get("decisions") or {}
        found: dict[str, float | None] = {}
        if done.get("summaries"):
            depths = (name for name in done if name.startswith("depth_"))
            found = {name: done[name] for name in (RATIO, CONFIDENCE, *depths)}
        elif done and summary["counts"].get("contexts"):
            found = {RATIO: done[RATIO]}
        if total := sum(decided.values()):
            refused = sum(decided.get(action, 0) for action in _REFUSED)
            found |= dict(zip(DECIDED, (1 - refused / total, decided.get("create", 0) / total), strict=True))
        return {name: {"value": value, "n": None, "low": None, "high": None} for name, value in found.items()}

    @property
    def searches(self) -> Mapping[str, Entry]:
        """What a vector index that may miss documents found of what exact search finds, and the share of the searches
        that each width answered, by a graph or by looking at all; empty of an exact index."""
        found = (self.summary or {}).get("index_search") or {}
        told = {"index_recall": found.get("recall")} if found else {}
        told |= {name: one["share"] for name, one in found.items() if isinstance(one, Mapping)}
        return {name: {"value": value, "n": None, "low": None, "high": None} for name, value in told.items()}

    @property
    def told(self) -> Mapping[str, Entry]:
        """Measures of queries, and those of parts."""
        return {**self.parts, **self.searches, **(self.measures or {})}

    def value(self, measure: str) -> float | None:
        entry = self.told.get(measure)
        return None if entry is None else entry["value"]


def marked(results: Sequence[PointResult], measure: str) -> float | None:
    """The best value, where it tells points apart; None of a measure by which all are equal, or none is better."""
    if not any(measure in (result.measures or {}) for result in results) or is_by_product(measure):
        return None
    values = [result.value(measure) for result in results if result.summary is not None]
    if len(values) > 1 and len(set(values)) == 1:
        return None
    known = [value for value in values if value is not None]
    return None if not known else min(known) if is_cost(results, measure) else max(known)


def drawn(results: Sequence[PointResult]) -> str:
    """What means are taken over: queries, or conversations where no query was judged."""
    told = any(result.summary["measures"] for result in results if result.summary is not None)
    return "query" if told else "conversation"


def is_cost(results: Sequence[PointResult], measure: str) -> bool:
    """Whether less of it is better."""
    if any(result.directions.get(measure) == "lower" for result in results):
        return True
    is_of_conversations = any(measure in conversation_means(result.summary or {}) for result in results)
    return is_of_conversations and conversation_direction(measure) == "lower"


def generated_labels(results: Sequence[PointResult]) -> str:
    """What stands beside the numbers where the questions of points were generated: of which, unless of all."""
    points: dict[str, list[int]] = {}
    for i, result in enumerate(results):
        if result.summary is not None:
            points.setdefault(generated_label(result.summary.get("dataset", {})), []).append(i)
    if len(points) == 1:
        return next(iter(points))
    return "; ".join(f"{label} (points {', '.join(map(str, own))})" for label, own in points.items() if label)


def frame(results: Sequence[PointResult]) -> pl.DataFrame:
    """One row a point, in order: point, folder, state, error, a column for each swept key and each measure.

    A measure has its interval beside it, `recall@10.low` and `recall@10.high`; a measure of time has the median and the
    95th percentile of its whole, `latency.total_p50_ms` and `latency.total_p95_ms`, where it timed anything.
    """
    swept = list(dict.fromkeys(key for result in results for key in result.settings))
    measured = list(dict.fromkeys(name for result in results for name in result.measures or {}))
    columns: dict[str, list[Any]] = {
        "point": list(range(len(results))),
        "folder": [result.name for result in results],
        "state": ["finished" if r.summary else "failed" if r.error else "not run" for r in results],
        "error": [result.error for result in results],
    }
    for key in swept:
        texts = [result.settings.get(key) for result in results]
        columns[key] = numbers(texts) or texts
    for name in measured:
        for part, column in (("value", name), ("low", f"{name}.low"), ("high", f"{name}.high")):
            columns[column] = [((result.measures or {}).get(name) or {}).get(part) for result in results]
    for name in dict.fromkeys(name for result in results for name in (*result.parts, *result.searches)):
        columns.setdefault(name, [result.value(name) for result in results])
    if HAYSTACK in swept:
        columns["messages_a_query"] = [result.messages_a_query for result in results]
    times = [_times(result) for result in results]
    for name in dict.fromkeys(name for one in times for name in one):
        columns[name] = [one.get(name) for one in times]
    return pl.DataFrame(columns, schema_overrides={"error": pl.String()}, strict=False)


def numbers(texts: Sequence[str | None]) -> list[float] | None:
    """The values of a swept key as numbers; None unless all are."""
    try:
        found = [float(text) for text in texts if text is not None]
    except ValueError:
        return None
    return found if len(found) == len(texts) and all(map(math.isfinite, found)) else None


def points_table(
    results: Sequence[PointResult],
    measures: Sequence[str],
    stars: Mapping[str, Collection[int]] = MappingProxyType({}),
) -> Table:
    """A row a point, in order; one that did not finish has no number.

    Args:
        stars: measure -> the points that are best by it, and significantly better.
    """
    rows = {f"{i} {result.label}": result.told if result.summary else {} for i, result in enumerate(results)}
    costs = [name for name in measures if is_cost(results, name)]
    return means_table("point", rows, measures, costs, kind="key", stars=stars)


def markdown(
    results: Sequence[PointResult],
    measures: Sequence[str],
    title: str,
    notes: Sequence[str] = (),
    stars: Mapping[str, Collection[int]] = MappingProxyType({}),
) -> str:
    """The table of a sweep, what is starred in bold; `notes` stand below it, and what failed."""
    label = generated_labels(results)
    failed = [f"point {i} failed: {one.error}" for i, one in enumerate(results) if one.error is not None]
    table = replace(points_table(results, measures, stars), notes=[*notes, *failed])
    return "\n".join([f"# {title}", "", *((f"**{label}**", "") if label else ()), table.markdown()]) + "\n"


def _times(result: PointResult) -> dict[str, float]:
    """Column -> number, of the first part of each measure of time."""
    timing = (result.summary or {}).get("timing", {})
    wholes = {
        f"{name.removesuffix('_ms')}.{part}": numbers
        for name, section in timing.items()
        if name != "seconds"
        for part, numbers in list(section.items())[:1]
    }
    return {f"{whole}_{one}": numbers[one] for one in _QUANTILES for whole, numbers in wholes.items() if one in numbers}


FOLDING = ("compaction", "scheduling", "summarizer", "guidance", "summary_documents")
SHOWING = ("assembly", "authored")
WRITING = ("extraction", "annotation", "admission", "deduplication")
SEARCHING = ("vector_index", "source", "embedder", "replay")
PRESETS = ("system", "experiment", "replay")
"""Of many parts at once: what they change is told by what became of the points."""

_VALUES = "per_query.parquet"
_RETAINED, _EXPANSIONS = "retained", "expansions"


def changed_measures(results: Sequence[PointResult]) -> list[str]:
    """The measures that show what was swept, most telling first, of those that a table has not got by itself: of what
    folds, the ratio, the summaries' confidence, how many there are of each depth, what contexts retain and how deep one
    must expand; of what is written, the share of candidates that was stored; of a vector index that
    may miss documents, what it found and which width answered. Rankings are in every table."""
    swept = {key.partition(".")[0] for result in results for key in result.settings}
    parts = list(dict.fromkeys(name for result in results for name in result.parts))
    measured = list(dict.fromkeys(name for result in results for name in result.measures or {}))
    folded = [name for name in parts if name not in DECIDED]
    shown = [
        name
        for kind in (_RETAINED, _EXPANSIONS)
        for name in sorted((name for name in measured if kind_of(name) == kind), key=_budget)
    ]
    found: list[str] = []
    if swept.intersection(WRITING):
        found += [name for name in parts if name in DECIDED]
    is_folding = bool(swept.intersection(FOLDING))
    finished = [result for result in results if result.summary is not None]
    if swept.intersection(PRESETS) and all(CONFIDENCE in result.parts for result in finished):
        is_folding = True
    if is_folding:
        found += folded
    if is_folding or swept.intersection(SHOWING):
        found += shown
    if swept.intersection(SEARCHING):
        found += sorted({name for result in results for name in result.searches}, key=_narrowest_first)
    return found


_MOST_EQUAL = 5
"""Groups of equal points that are named."""
_MAKES_ACT = {
    "decay": "no document is old or used enough here for decay to tell: reinforcement=recall, "
    "decay.recency_lifts=true, a lower floor, or a dataset over more time makes it act",
    "reinforcement": "use acts where fusion or decay reads it, as fusion=two_pass or decay=weibull, and queries come "
    "after each other",
    "deduplication": "no two candidates are alike enough here: a lower threshold makes it act",
}
"""Group -> what makes it act."""


def why_equal(results: Sequence[PointResult], *, is_default_apart: bool = False) -> list[str]:
    """That all finished points are equal by everything that was measured, and why that may be; empty where they are
    not, or fewer than two finished.

    Args:
        is_default_apart: whether the default, which is none of them, is not equal to them.
    """
    finished = [result for result in results if result.summary is not None]
    if len(finished) < 2 or any(_found(one) != _found(finished[0]) for one in finished[1:]):
        return []
    swept = list(dict.fromkeys(key for result in results for key in result.settings))
    told = f"all {len(finished)} points are equal by every mean"
    keys = ", ".join(swept)
    alone = f"{told}, so none is best: {keys} changed nothing here"
    return [
        f"{told}, and the default is not: {keys} changed nothing between them" if is_default_apart else alone,
        *_reasons(swept, [result.summary or {} for result in finished]),
    ]


def equal_points(folder: Path, results: Sequence[PointResult]) -> list[str]:
    """Which finished points are equal query by query, though others are not, and what would make their settings act.

    Args:
        folder: of the sweep; a point whose folder is not in it is left out.
    """
    alike: dict[bytes, list[PointResult]] = {}
    first: dict[str, Path] = {}
    for result in results:
        path = folder / result.name / _VALUES
        if result.summary is not None and path.is_file():
            known = sum_of(path)
            alike.setdefault(_values(known, first.setdefault(known, path)), []).append(result)
    groups = [group for group in alike.values() if len(group) > 1]
    if len(alike) < 2:
        return []
    told = []
    for group in groups[:_MOST_EQUAL]:
        swept = dict.fromkeys(key for one in group for key in one.settings)
        between = [key for key in swept if len({one.settings.get(key) for one in group}) > 1]
        reasons = "; ".join(_reasons(between, [one.summary or {} for one in group]))
        labels = ", ".join(one.label for one in group)
        told.append(f"equal for every query: {labels}: {', '.join(between)} changed nothing between them ({reasons})")
    if (more := len(groups) - _MOST_EQUAL) > 0:
        told.append(f"{more} more groups of points are equal for every query")
    return told


@lru_cache(maxsize=4096)
def _values(known: str, path: Path) -> bytes:
    """What tells the values that the system has in a run from those of another, in whatever order.

    Args:
        known: the sum of the file, by which it is read once.
    """
    rows = read_table(path, ["arm", "query_id", "measure", "value"]).filter(arm=SYSTEM_ARM).drop("arm")
    hashes = [rows.hash_rows(seed).to_numpy().sum(dtype=np.uint64) for seed in range(2)]
    return len(rows).to_bytes(8) + b"".join(one.tobytes() for one in hashes)


def repeated_notes(results: Sequence[PointResult]) -> list[str]:
    """What several points note, each once, with how many; what one notes alone its own folder holds."""
    finished = [result.summary for result in results if result.summary is not None]
    counted = Counter(note for one in finished for note in {*(one.get("notes") or ()), *(one.get("flags") or ())})
    ordered = dict.fromkeys(note for one in finished for note in (*(one.get("notes") or ()), *(one.get("flags") or ())))
    return [f"{note} ({counted[note]} of {len(results)} points)" for note in ordered if counted[note] > 1]


def _reasons(swept: Iterable[str], summaries: Sequence[Any]) -> list[str]:
    groups = {key.partition(".")[0] for key in swept}
    counts = [summary.get("counts") or {} for summary in summaries]
    reasons = []
    if groups.intersection(FOLDING) and not any(map(conversation_means, summaries)):  # these play sessions themselves
        if not any(one.get("contexts") for one in counts):
            reasons.append("nothing is compacted in any point: choose compaction=lossless or another")
        elif not any(one.get("contexts_compacted") for one in counts):
            told = next(
                (f"; point 0: {flag}" for flag in summaries[0].get("flags") or [] if "contexts compacted" in flag), ""
            )
            reasons.append(f"no context reached what triggers compaction, in any point{told}")
    if groups.intersection(WRITING) and not any(summary.get("decisions") for summary in summaries):
        reasons.append("no candidate was judged in any point: choose an admission or a deduplication")
    flags = [summary.get("flags") or [] for summary in summaries]
    of_all = [flag for flag in flags[0] if all(flag in other for other in flags[1:])]
    reasons += [f"each point notes: {flag}" for flag in of_all if any(group in flag for group in groups)]
    reasons += [told for group, told in _MAKES_ACT.items() if group in groups]
    return reasons or ["no run notes why; `lcm evaluate --explain` with these settings shows which part reads them"]


def _budget(measure: str) -> int:
    return int(measure.partition("@")[2])


def _narrowest_first(name: str) -> tuple[int, str]:
    """Of `graph_64`, `scan_384` and what is no way."""
    width = name.rpartition("_")[2]
    return (int(width) if width.isdecimal() else 0), name


def _found(result: PointResult) -> Any:
    summary = result.summary or {}
    return summary.get("measures"), sections(summary), summary.get("decisions")


def compared_by(results: Sequence[PointResult]) -> list[str]:
    """The measures that points are compared by: those that the swept part changes, then those of a run's table that all
    have, and what contexts retain."""
    points = [result.measures for result in results if result.measures]
    if not points:
        return []
    names = [*telling(points[0]), *(name for name in points[0] if name.startswith("retained@"))]
    usual = [name for name in names if all(name in measures for measures in points)]
    return list(dict.fromkeys([*changed_measures(results), *usual]))
