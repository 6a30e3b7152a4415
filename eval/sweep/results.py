"""The results of a sweep: a row for each point, and for each measure the point that is best by it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from eval.dataset.dataset import generated_label
from eval.regression.limit import is_lower_better


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

    @property
    def measures(self) -> Mapping[str, Mapping[str, float | None]] | None:
        """Measure -> value, n, low, high."""
        return None if self.summary is None else self.summary["measures"]

    def value(self, measure: str) -> float | None:
        entry = (self.measures or {}).get(measure)
        return None if entry is None else entry["value"]


def best(results: Sequence[PointResult], measure: str) -> float | None:
    """The best value that any point reached."""
    values = [value for value in (result.value(measure) for result in results) if value is not None]
    return None if not values else min(values) if is_lower_better(measure) else max(values)


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

    A measure has its interval beside it, `recall@10.low` and `recall@10.high`; live queries have
    `latency.total_p50_ms` and `latency.total_p95_ms`, where they were timed.
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
    for quantile in ("p50_ms", "p95_ms"):
        times = [_total_latency(result).get(quantile) for result in results]
        if any(time is not None for time in times):
            columns[f"latency.total_{quantile}"] = times
    return pl.DataFrame(columns, schema_overrides={"error": pl.String()}, strict=False)


def numbers(texts: Sequence[str | None]) -> list[float] | None:
    """The values of a swept key as numbers; None unless all are."""
    try:
        found = [float(text) for text in texts if text is not None]
    except ValueError:
        return None
    return found if len(found) == len(texts) and all(map(math.isfinite, found)) else None


def markdown(results: Sequence[PointResult], measures: Sequence[str], title: str) -> str:
    """The table of a sweep; the best of each measure in bold."""
    label = generated_labels(results)
    lines = [
        f"# {title}",
        "",
        *((f"**{label}**", "") if label else ()),
        f"| | point | {' | '.join(measures)} |",
        f"|--:|---|{'--:|' * len(measures)}",
    ]
    tops = {name: best(results, name) for name in measures}
    for i, result in enumerate(results):
        if result.measures is None:
            cells = ["-"] * len(measures)
        else:
            cells = [_cell(result.value(name), tops[name]) for name in measures]
        lines.append(f"| {i} | `{_in_a_cell(result.label)}` | {' | '.join(cells)} |")
    failed = [(i, result) for i, result in enumerate(results) if result.error is not None]
    lines += ["", *(f"- point {i} failed: {_in_a_cell(str(result.error))}" for i, result in failed)]
    return "\n".join(lines).rstrip() + "\n"


def _cell(value: float | None, top: float | None) -> str:
    if value is None:
        return "-"
    text = f"{value:.0f}" if value > 5 else f"{value:.3f}"  # tokens, not a share
    return f"**{text}**" if value == top else text


def _in_a_cell(text: str) -> str:
    return text.replace("|", "\\|")


def _total_latency(result: PointResult) -> Mapping[str, float]:
    timing = (result.summary or {}).get("timing", {})
    found: Mapping[str, float] = timing.get("latency_ms", {}).get("total", {})
    return found
