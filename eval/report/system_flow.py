"""A system as it was run, drawn from its resolved configuration: what is off is absent."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from eval.configuration import by_class, leaves
from eval.report.page import Flow, Step

_WRITING = ("extraction", "annotation", "admission", "deduplication")
_INDEXES = ("embedder", "vector_index", "text_index")
_FOLDING = ("compaction", "scheduling", "summarizer", "guidance", "summary_documents")
_SHOWING = ("assembly", "authored", "recovery")
_TARGET = "_target_"
_TRANSPORT = "transport"
"""Of a ranking that is an external memory: how that is reached, which `external` says too."""
_OFF = re.compile(r"\.(none\.\w+|No[A-Z]\w+|NothingAuthored|AdmitAll|KeepAll)$")
"""The classes of the choices `none`; those of older runs stand in modules of this name."""
_SETTINGS_SHOWN = 5
_ABSENT = "—"
"""Of a key that one of two configurations lacks."""
_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z][a-z])")
"""Where a word of a class name begins; an abbreviation at its end (`MiniLM`) is part of the word before it."""


def system_flow(config: Mapping[str, Any], *, is_asked: bool = True) -> Flow:
    """Lanes of components: from messages to documents, to a ranking, to summaries, to a context. Of an external memory
    how it is reached, and what it is asked for: the parts beside it serve control arms alone.

    Args:
        is_asked: whether any question was; else no ranking is drawn.
    """
    ranking = config.get("ranking") or {}
    if is_on(transport := ranking.get(_TRANSPORT) or {}):
        return Flow({"a memory of others is told and asked": [_step("external", transport), _step("ranking", ranking)]})
    lanes: dict[str, list[Step]] = {
        "messages become documents": _steps(config, _WRITING),
        "documents are indexed": _steps(config, _INDEXES),
        "a question is ranked": _ranking(ranking, config.get("reinforcement")) if is_asked else [],
        "old messages are folded": _steps(config, _FOLDING) if is_on(config.get("compaction")) else [],
        "a context is packed": _steps(config, _SHOWING),
    }
    return Flow({name: steps for name, steps in lanes.items() if steps})


def is_on(node: Any) -> bool:
    """Whether a component does anything: not one of the choices `none`, which stand for nothing."""
    return isinstance(node, Mapping) and _TARGET in node and not _OFF.search(node[_TARGET])


def differing(
    before: Mapping[str, Any], after: Mapping[str, Any], left_out: Sequence[str]
) -> list[tuple[str, str, str]]:
    """What two configurations differ in: key, before, after.

    A component that another takes the place of is one row, whatever it was set to; and what a ranking repeats of a
    component is told of the component alone.

    Args:
        left_out: the keys at the top that decide no number.
    """
    sides = [
        dict(leaves(by_class({name: node for name, node in one.items() if name not in left_out})))
        for one in (before, after)
    ]
    found: dict[str, tuple[str, str]] = {}
    replaced = [f"ranking.{_TRANSPORT}."]
    keys = sorted(dict.fromkeys([*sides[0], *sides[1]]), key=lambda key: (key.count("."), not key.endswith(_TARGET)))
    for key in keys:
        values = [side.get(key, _ABSENT) for side in sides]
        is_off = all(one in (None, _ABSENT) for one in values)
        if values[0] == values[1] or is_off or key.startswith(tuple(replaced)):
            continue
        if key.endswith(f".{_TARGET}"):
            replaced.append(key.removesuffix(_TARGET))
            key = key.removesuffix(f".{_TARGET}")
            values = [value if value == _ABSENT else _name({_TARGET: value}) for value in values]
        told = _written(values[0]), _written(values[1])
        own = ".".join(key.split(".")[-2:])
        alike = (known for known, as_told in found.items() if as_told == told)
        if not any(f".{known}".endswith(f".{own}") or own.endswith(f".{known}") for known in alike):
            found[key] = told
    return [(key, *told) for key, told in found.items()]


def _steps(config: Mapping[str, Any], roles: Sequence[str]) -> list[Step]:
    return [_step(role, config[role]) for role in roles if is_on(config.get(role))]


def _ranking(ranking: Mapping[str, Any], reinforcement: Any) -> list[Step]:
    stages = ranking.get("stages") or {}
    working = [  # a stage that only carries a component that is off does not
        slot
        for slot in ranking.get("order") or stages
        if is_on(stages.get(slot)) and is_on(stages[slot].get(slot, stages[slot]))
    ]
    beside = {"reinforcement": reinforcement}
    return _steps(ranking, ("source",)) + _steps(stages, working) + _steps(beside, [*beside])


def _step(role: str, node: Mapping[str, Any]) -> Step:
    settings = list(_settings(node))
    shown = settings[:_SETTINGS_SHOWN]
    return Step(role.replace("_", " "), _name(node), shown, len(settings) - len(shown))


def _name(node: Mapping[str, Any]) -> str:
    return _WORD.sub(" ", str(node[_TARGET]).rpartition(".")[2]).lower()


def _settings(node: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Plain settings as they are; a component within by its name; a map of numbers by its length."""
    for key, value in node.items():
        if key == _TARGET or value is None or value == "":
            continue
        if isinstance(value, Mapping):
            if is_on(value):
                yield key, _name(value)
            elif _TARGET not in value and value:
                yield key, f"{len(value)} values"
        else:
            yield key, _written(value)


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(str, value)) or "none"
    return "none" if value is None else str(value)
