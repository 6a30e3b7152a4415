"""What a transfer found, on disk: for a person's program, and for MLflow."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from eval.comparison.transfer import Gains, Transfer
from eval.run import commit, write_json, write_summary
from eval.tracking.entry import dataset_tags
from lcm.files import private

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
        dataset: its identity.
        began_unix_s: when the command began; None: nobody needs to know.
    """
    record = {
        "name": name,
        **told,
        "dataset": dict(dataset),
        "gains": [_record(gains) for gains in found.gains],
        "confidence": found.confidence,
        "alpha": found.alpha,
        "notes": list(found.notes),
    }
    write_json(folder / JSON, record)
    summary = {
        "kind": "transfer",
        "name": name,
        "dataset": dict(dataset),
        "commit": commit(),
        "metrics": dict(_metrics(found.gains)),
        "params": {"target": told["target"], "dataset": dataset["name"]},
        "tags": dataset_tags(dataset),
        "notes": list(found.notes),
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
