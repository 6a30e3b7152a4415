"""Whether a gain reappears elsewhere: default and tuned, here and in another memory, over the same questions."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import polars as pl

from eval.comparison.pairing import Pairing, shared_queries
from eval.run import Run, commit, write_json, write_summary
from eval.significance import bootstrap_ratio
from eval.tracking.entry import dataset_tags
from lcm.errors import LcmError
from lcm.files import private

_USUAL = ("recall@10", "nDCG@10")
"""Measures that are told unless others are asked for; where both lack, all that are no cost."""


@dataclass(frozen=True, slots=True)
class Gains:
    """What one measure gains by the tuned settings, in both places."""

    measure: str
    queries: int
    """That all four evaluations have a value of."""
    here: Mapping[str, Any] | None
    """A row of `PAIRED_SCHEMA`, tuned against default; None where no question has all four values."""
    there: Mapping[str, Any] | None
    share: float | None = None
    """Of the gain here, how much reappears there."""
    low: float | None = None
    """None: the interval is open to this side, or there is none."""
    high: float | None = None
    why_untold: str = ""
    """Why there is no share."""


@dataclass(frozen=True, slots=True)
class Transfer:
    """Four evaluations over the same questions."""

    gains: tuple[Gains, ...]
    confidence: float
    alpha: float
    notes: tuple[str, ...] = ()


def transferred(here: tuple[Run, Run], there: tuple[Run, Run], measures: Sequence[str], pairing: Pairing) -> Transfer:
    """How much of each measure's gain reappears.

    Args:
        here: default and tuned in our system.
        there: the same in the other memory.
    Raises:
        LcmError: if there is no question for all four.
    """
    queries = shared_queries([*here, *there])
    if queries.is_empty():
        raise LcmError("no question was put to all four: evaluate them over the same dataset=")
    sides = (*here, *there)
    told = [name for name in measures if all(name in side.measures for side in sides)]
    table = _table(sides, told, queries)
    asked = queries.join(table, on="query_id", how="semi", maintain_order="left")
    if not told or asked.is_empty():
        return Transfer(tuple(_silent(sides, name) for name in measures), pairing.confidence, pairing.alpha)
    rows = [
        {row["measure"]: row for row in pairing.rows(default, [tuned], told, asked).iter_rows(named=True)}
        for default, tuned in (here, there)
    ]
    gains = (
        _gains(rows[0][name], rows[1][name], table, pairing) if name in told else _silent(sides, name)
        for name in measures
    )
    return Transfer(tuple(gains), pairing.confidence, pairing.alpha)


def told_measures(default: Run, tuned: Run, asked: Sequence[str]) -> Sequence[str]:
    """Those that are asked for; else the usual ones.

    Raises:
        LcmError: if our own system does not have one.
    """
    known = [name for name in default.measures if name in tuned.measures]
    if unknown := next((name for name in asked if name not in known), None):
        raise LcmError(f"measures={unknown}: no such measure; both evaluations here have: {', '.join(known)}")
    directions = default.directions
    usual = [name for name in _USUAL if name in known]
    return asked or usual or [name for name in known if directions.get(name) != "lower"] or known


def _table(sides: Sequence[Run], measures: Sequence[str], queries: pl.DataFrame) -> pl.DataFrame:
    """The questions of which every side has every measure's value, with columns `PLACE MEASURE` of the four."""
    table = queries.select("query_id", "workspace_id")
    for place, side in enumerate(sides):
        for name in measures:
            values = side.values.filter(measure=name).select("query_id", pl.col("value").alias(f"{place} {name}"))
            table = table.join(values, on="query_id", how="inner", maintain_order="left")
    return table


def _silent(sides: Sequence[Run], measure: str) -> Gains:
    silent = [side.name for side in sides if measure not in side.measures]
    why = f"no value of it: {', '.join(silent)}" if silent else "no question has a value on all four sides"
    return Gains(measure, 0, None, None, why_untold=why)


def _gains(here: Mapping[str, Any], there: Mapping[str, Any], table: pl.DataFrame, pairing: Pairing) -> Gains:
    measure, n = here["measure"], len(table)
    if here["verdict"] != "better":
        return Gains(measure, n, here, there, why_untold=_why_untold(here, pairing))
    sign = -1.0 if here["lower_is_better"] else 1.0
    columns = [table[f"{place} {measure}"].to_numpy().astype(float) for place in range(4)]
    whole, part = sign * (columns[1] - columns[0]), sign * (columns[3] - columns[2])
    clusters = pairing.clusters(table)
    ends = bootstrap_ratio(part, whole, pairing.resamples, pairing.confidence, pairing.seed, clusters)
    low, high = (end if math.isfinite(end) else None for end in ends)
    return Gains(measure, n, here, there, float(part.mean() / whole.mean()), low, high)


def _why_untold(row: Mapping[str, Any], pairing: Pairing) -> str:
    if row["verdict"] == "same":
        return "nothing changes here"
    if row["verdict"] == "worse":
        return "the tuned settings are worse here"
    if row["p_holm"] is None:
        return f"{row['n']} questions are too few to tell a gain here from chance"
    return f"the gain here is not beyond chance (p = {row['p_holm']:.3f}, alpha = {pairing.alpha:g})"


JSON = "transfer.json"
_OF_A_ROW = ("baseline", "candidate", "difference", "low", "high", "p_holm", "verdict")


@private()
def write_transfer(
    folder: Path,
    name: str,
    found: Transfer,
    told: Mapping[str, Any],
    dataset: Mapping[str, Any],
    began_unix_s: float | None = None,
) -> dict[str, Any]:
    """Write transfer.json and, last, the summary; returns what was found as plain data.

    Args:
        told: where it went and what was lost: further keys of transfer.json.
    """
    both: dict[str, Any] = {"name": name, "dataset": dict(dataset), "notes": list(found.notes)}
    gains = [_record(gains) for gains in found.gains]
    record = {**both, **told, "gains": gains, "confidence": found.confidence, "alpha": found.alpha}
    write_json(folder / JSON, record)
    summary = {
        **both,
        "kind": "transfer",
        "commit": commit(),
        "metrics": dict(_metrics(found.gains)),
        "params": {"target": told["target"], "dataset": dataset["name"]},
        "tags": dataset_tags(dataset),
    }
    write_summary(folder, summary, began_unix_s)
    return record


def _record(gains: Gains) -> dict[str, Any]:
    record = asdict(gains)
    for place in ("here", "there"):
        if record[place] is not None:
            record[place] = {name: record[place][name] for name in _OF_A_ROW}
    return record


def _metrics(found: Sequence[Gains]) -> Iterator[tuple[str, float]]:
    for gains in found:
        told: dict[str, float | None] = {"share": gains.share, "share_low": gains.low, "share_high": gains.high}
        for place, row in (("here", gains.here), ("there", gains.there)):
            told[f"gain_{place}"] = None if row is None else row["difference"]
        yield from ((f"{gains.measure}.{name}", value) for name, value in told.items() if value is not None)
