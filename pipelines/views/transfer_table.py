"""What became of a preset elsewhere, on the terminal."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eval.table import Column, number, signed
from pipelines.views.terminal import kept, say, show_table


def show_transfer(record: Mapping[str, Any], page: Path) -> None:
    """Gains in both places and the share that reappears; then each setting that was lost."""
    where = record["memory"] or "the external memory"
    say(f"{record['preset']} against {record['from']}: here, and in {where} as {record['plugin']}")
    titles = ("here", "gain here", "there", "gain there", "share that reappears")
    show_table(("measure", Column("n", "number"), *titles), map(_row, record["gains"]))
    say(f"gains and the share with {record['confidence']:.0%} intervals")
    for one in record["gains"]:
        if one["share"] is None:
            say(f"{one['measure']}: no share is told: {one['why_untold']}")
    settings = record["settings"]
    lost = [one for one in settings if one["lost"]]
    say(f"of {len(settings)} tuned settings {len(settings) - len(lost)} went along, {len(lost)} were lost")
    if lost:
        rows = ((one["key"], _brief(one["default"]), _brief(one["tuned"]), one["lost"]) for one in lost)
        show_table(("lost", "default", "tuned", "why"), rows)
    for note in record["notes"]:
        say(f"note: {note}")
    kept(page)


def _row(gains: Mapping[str, Any]) -> tuple[Any, ...]:
    places = [cell for place in ("here", "there") for cell in _cells(gains[place])]
    share = "-" if gains["share"] is None else f"{gains['share']:.0%} {_interval(gains)}"
    return gains["measure"], gains["queries"], *places, share


def _cells(row: Mapping[str, Any] | None) -> tuple[str, str]:
    if row is None:
        return "n/a", "n/a"
    ends = "" if row["low"] is None else f" [{signed(row['low'], False)}, {signed(row['high'], False)}]"
    means = f"{number(row['baseline'], False)} -> {number(row['candidate'], False)}"
    return means, f"{signed(row['difference'], False)}{ends}"


def _interval(gains: Mapping[str, Any]) -> str:
    low, high = ("open" if end is None else f"{end:.0%}" for end in (gains["low"], gains["high"]))
    return f"[{low}, {high}]"


def _brief(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
