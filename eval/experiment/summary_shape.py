"""What a summary of each kind has to be: of runs, sweeps, comparisons, regressions, studies and presets."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from eval.experiment.shape import ANYTHING, FLAG, MAP, NUMBER, TEXT, Shape, each, keys, list_of, or_null

SUM_NAMES = ("sha256", "timing_sha256")
"""Of a summary without its timing, so that equal runs have the same; and of its timing."""
DATASET = keys({"name": TEXT, "digest": TEXT}, {"protocol": TEXT, "generated": TEXT})
ENTRY = keys({name: or_null(NUMBER) for name in ("value", "n", "low", "high")})
MEASURES = each(ENTRY)
_TIMES = each(NUMBER)
_ALL: Mapping[str, Shape] = {
    "kind": TEXT,
    "title": TEXT,
    "config_hash": TEXT,
    "commit": or_null(TEXT),
    "incidents": each(NUMBER),
    "notes": list_of(TEXT),
    "flags": list_of(TEXT),
    "dataset": DATASET,
}
"""Of whichever kind."""
_RUN = keys(
    {"dataset": DATASET},
    {
        **_ALL,
        "overrides": list_of(TEXT),
        "changed": MAP,
        "definitions": TEXT,
        "counts": each(NUMBER),
        "served": each(each(NUMBER)),
        "decisions": each(NUMBER),
        "interval": keys({"confidence": NUMBER}),
        "measures": MEASURES,
        "arms": each(MEASURES),
        "categories": each(MEASURES),
        "timing": keys({}, {"seconds": _TIMES}, others=each(_TIMES)),
        "sha256": TEXT,
        "timing_sha256": TEXT,
    },
    others=MAP,
)
_OTHER: Mapping[str, Shape] = {
    **_ALL,
    "name": TEXT,
    "metrics": each(or_null(NUMBER)),
    "params": MAP,
    "tags": each(TEXT),
}
_NAMED = {"name": TEXT}
_POINT = keys({"folder": TEXT, "label": TEXT, "error": or_null(TEXT)})
_BEST = keys(
    {"folder": TEXT, "label": TEXT, "measure": TEXT, "value": NUMBER, "baseline": TEXT, "is_default": FLAG},
    {name: or_null(NUMBER) for name in ("difference", "low", "high", "p_holm")} | {"verdict": or_null(TEXT)},
)
_SHAPES: Mapping[str, Shape] = {
    "run": _RUN,
    "sweep": keys({**_NAMED, "points": list_of(_POINT)}, {**_OTHER, "best": or_null(_BEST)}),
    "study": keys(
        {
            **_NAMED,
            "metrics": each(or_null(NUMBER)),
            "params": keys({"dataset": ANYTHING}),
            "tags": keys({"best_trial": TEXT, "objectives": TEXT}, others=TEXT),
        },
        _OTHER,
    ),
}
"""Of kinds that have keys of their own; of the others nothing but what they share is read."""
_ANY = keys(_NAMED, _OTHER)


def check_summary(summary: Any) -> None:
    """Refuse what no reader of summaries could rely on.

    Raises:
        ValueError: naming the key, and what it must be.
    """
    keys({}, {"kind": TEXT})("", summary)
    _SHAPES.get(summary.get("kind", "run"), _ANY)("", summary)


def sums_of(summary: Mapping[str, Any]) -> dict[str, str]:
    """The sums of a summary as it is read, by `SUM_NAMES`."""
    told = [
        {name: value for name, value in summary.items() if name not in (*SUM_NAMES, "timing")},
        summary.get("timing", {}),
    ]
    return {
        name: hashlib.sha256(json.dumps(one, sort_keys=True).encode()).hexdigest()
        for name, one in zip(SUM_NAMES, told, strict=True)
    }
