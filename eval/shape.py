"""Shapes: what JSON on disk has to be, so that whoever reads it may rely on it, and what a summary of each kind is."""

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from lcm.encoding import is_well_formed
from lcm.errors import LcmError
from lcm.given import plain_bytes

Shape = Callable[[str, Any], None]
"""Takes the dotted key of a value, and the value; raises ValueError where it is not what it must be."""
_LONGEST = 60
_LARGEST = 1e300
"""Of a number: any that is counted, measured or timed is smaller, and what is worked out from it is finite."""


def one_of(what: str, fits: Callable[[Any], bool]) -> Shape:
    """A value that fits, and what it is in words."""

    def check(key: str, value: Any) -> None:
        if not fits(value):
            raise ValueError(f"{_plain(key)} must be {what}, got {_plain(repr(value))}")

    return check


ANYTHING = one_of("anything", lambda _: True)
TEXT = one_of("text", lambda value: isinstance(value, str) and is_well_formed(value))
FLAG = one_of("true or false", lambda value: isinstance(value, bool))
NUMBER = one_of(
    "a finite number",
    lambda value: isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < _LARGEST,
)
MAP = one_of("a map", lambda value: isinstance(value, dict))
_LIST = one_of("a list", lambda value: isinstance(value, list))


def or_null(shape: Shape) -> Shape:
    return lambda key, value: None if value is None else shape(key, value)


def each(shape: Shape) -> Shape:
    """A map, whose values are all of a shape."""

    def check(key: str, value: Any) -> None:
        MAP(key, value)
        for name, one in value.items():
            shape(f"{key}.{name}", one)

    return check


def list_of(shape: Shape) -> Shape:
    def check(key: str, value: Any) -> None:
        _LIST(key, value)
        for number, one in enumerate(value):
            shape(f"{key}[{number}]", one)

    return check


def keys(must: Mapping[str, Shape], may: Mapping[str, Shape] = MappingProxyType({}), others: Shape = ANYTHING) -> Shape:
    """A map that must have some keys and may have more, and what every other key is of."""

    def check(key: str, value: Any) -> None:
        MAP(key, value)
        above = f"{key}." if key else ""
        for name in must:
            if name not in value:
                raise ValueError(f"{above}{name} is missing")
        for name, one in value.items():
            shape = must.get(name) or may.get(name) or others
            shape(f"{above}{name}", one)

    return check


def read_json(path: Path, shape: Shape, again: str) -> dict[str, Any]:
    """A file of JSON that is a map of a shape; LcmError names the key that is not, and how the file is made again."""
    try:
        told = json.loads(plain_bytes(path))
        keys({})("its content", told)
        shape("", told)
    except (ValueError, OSError, RecursionError) as error:
        raise LcmError(f"{path} is damaged ({error}); {again}") from error
    found: dict[str, Any] = told
    return found


def _plain(text: str) -> str:
    """On one line, and no longer than a line may be."""
    shown = text if text.isprintable() else repr(text)
    return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}…"


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
_OF_A_RUN: Mapping[str, Shape] = {
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
    "timing": keys({}, {"seconds": _TIMES, "embedding": _TIMES}, others=each(_TIMES)),
    "sha256": TEXT,
    "timing_sha256": TEXT,
    "tags": MAP,
}
"""Of its summary; its other keys are names of measures."""
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
    "run": keys({"dataset": DATASET}, _OF_A_RUN, others=MAP),
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
    """Refuse what no reader of summaries could rely on; ValueError names the key, and what it must be."""
    keys({}, {"kind": TEXT})("", summary)
    _SHAPES.get(summary.get("kind", "run"), _ANY)("", summary)


def sums_of(summary: Mapping[str, Any]) -> dict[str, str]:
    """The sums of a summary as it is read, by `SUM_NAMES`."""
    told = {name: value for name, value in summary.items() if name not in (*SUM_NAMES, "timing")}
    texts = (json.dumps(one, sort_keys=True) for one in (told, summary.get("timing", {})))
    return {name: hashlib.sha256(text.encode()).hexdigest() for name, text in zip(SUM_NAMES, texts, strict=True)}


def sections(summary: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """What a run's summary tells of measures of something else than queries, by the measure's name."""
    is_run = summary.get("kind", "run") == "run"
    return {name: section for name, section in summary.items() if name not in _OF_A_RUN} if is_run else {}
