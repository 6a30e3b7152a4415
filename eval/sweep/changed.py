"""What the swept keys of a sweep change: the measures that show it, and why it may be that none does."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from eval.measures.conversations import conversation_means
from eval.measures.names import SYSTEM_ARM, kind_of
from eval.run import read_table
from eval.shape import sections
from eval.sweep.results import CONFIDENCE, DECIDED, PointResult

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
    alike: dict[str, list[PointResult]] = {}
    for result in results:
        if result.summary is not None and (folder / result.name / _VALUES).is_file():
            alike.setdefault(_values(folder / result.name / _VALUES), []).append(result)
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


def _values(path: Path) -> str:
    """What tells the values that the system has in a run from those of another."""
    rows = read_table(path).filter(arm=SYSTEM_ARM).select("query_id", "measure", "value").sort("query_id", "measure")
    return hashlib.sha256(rows.write_csv().encode()).hexdigest()


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
