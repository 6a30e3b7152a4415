"""Unused settings: what a command asks for and nothing takes up, and what is taken up and not there."""

import json
import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from pipelines.config.composition import settings_of_no_measure
from pipelines.config.conf_folder import REFERENCE, keys_at_the_top

_TAKEN_BY = {"summarizer": "compaction (compaction=lossless)", "guidance": "compaction (compaction=lossless)"}
_NO_MODEL = (
    "{group} asks a language model and there is none: choose language_model=openai_compatible and set "
    "language_model.model.base_url and language_model.model.model"
)


def problems(plain: dict[str, Any], overrides: Sequence[str], slots: Collection[str]) -> Iterator[str]:
    """What overrides set without effect, and parts that lack what they need: a line each.

    A choice that another choice leaves without work is no such problem: `pipelines.config.idle` tells of it.

    Args:
        plain: the configuration, interpolations as they are written; idle stages are taken out of it.
        overrides: what was asked for, as `guidance.stability_threshold=0` with `compaction=none`, which folds nothing
            and so asks no guidance; a number of a stage that stands in no order.
        slots: the groups that choices refer to.
    """
    yield from _of_no_measure(plain)
    idle = take_out_idle_stages(plain)
    text = json.dumps(plain, default=str)
    for override in overrides:
        key = override.lstrip("+").partition("=")[0]
        group, *path = key.split(".")
        is_read = group in keys_at_the_top() or re.search(rf"\$\{{{re.escape(group)}[.}}]", text)
        if override.startswith("+") and not is_read:
            yield f"{override} has no effect: nothing reads {group}; leave it out"
        if group in slots and path and f"${{{group}}}" not in text:
            yield (
                f"{override} has no place in this configuration: nothing in it takes {group} up; choose another "
                f"{_TAKEN_BY.get(group, 'ranking or extraction')} that does, or leave {group} out"
            )
        if group == "ranking" and path[:1] == ["stages"] and len(path) > 2 and path[1] in idle:
            yield (
                f"{override} has no effect: {path[1]} stands in no order of this ranking; name it in an order, or "
                "choose a ranking that runs it"
            )
        if group == "ranking" and (because := _unused_path(plain["ranking"], path)):
            yield f"{override} has no effect: {because}"
    summarizer = plain.get("summarizer") or {}
    if "${summarizer}" in text and str(summarizer.get("_target_", "")).endswith(".T5") and summarizer["model"] is None:
        yield (
            "summarizer=t5 has no model: `lcm models get t5-small` downloads one; set summarizer.model to its name, a "
            "folder or a hub id, or choose summarizer=chain, which goes on without one"
        )
    fusion, source = plain.get("fusion") or {}, plain.get("source") or {}
    weighs_nothing = not any((fusion.get("dense_weight"), fusion.get("lexical_weight"), fusion.get("weights")))
    if "${fusion}" in text and str(fusion.get("_target_", "")).endswith(".ReciprocalRank") and weighs_nothing:
        of_source = str(source.get("_target_", ""))
        if of_source.startswith("lcm.retrieval.source.") and not of_source.endswith(".Branches"):
            yield (
                "fusion.dense_weight and fusion.lexical_weight must not both be 0 where the source has no other "
                "branch: raise one, or choose source=branches"
            )
    model = plain.get("language_model") or {}
    if str(model.get("_target_", "")).endswith(".NoModel"):
        for group in ("extraction", "admission", "deduplication", "summarizer"):
            if "${language_model}" in str(plain.get(group)) and (group != "summarizer" or "${summarizer}" in text):
                yield _NO_MODEL.format(group=group)
        if "${language_model}" in str((plain.get("measures") or {}).get("answers")):
            yield _NO_MODEL.format(group="measures=answers_llm")


def _of_no_measure(plain: dict[str, Any]) -> Iterator[str]:
    for name in settings_of_no_measure(plain):
        yield (
            f"measures.{name} is set and not chosen: add it to the choice, 'measures=[CHOICE,{name}]', or leave its "
            "settings out"
        )


def _unused_path(ranking: dict[str, Any], path: Sequence[str]) -> str | None:
    """Why a ranking of several paths and orders does not take the one that a setting of it is of."""
    mode, order = ranking.get("mode"), ranking.get("order")
    if mode and len(path) > 1 and path[0] in ("hybrid", "vector") and path[0] != mode:
        return f"no query takes the path {path[0]} while ranking.mode={mode}"
    if mode and path[1:2] == ["orders"] and path[2:3] not in ([], [order]):
        return f"ranking.order={order} takes another order; set that, or ranking.order={path[2]}"
    return None


def unread(plain: dict[str, Any], overrides: Sequence[str], pipeline: str, roots: Collection[str]) -> Iterator[str]:
    """Overrides of what a pipeline never reads, as `lcm compact ranking=neighbours`: a line each.

    Args:
        plain: the configuration, interpolations as they are written.
        overrides: what was asked for.
        pipeline: by whom.
        roots: what the pipeline builds; it reads these, and all that they refer to.
    """
    read = reached(plain, roots)
    for override in overrides:
        key = re.split(r"[.=]", override.lstrip("+~"), maxsplit=1)[0]
        if key in plain and key not in read:
            yield (
                f"{override} has no effect on `lcm {pipeline}`, which here works with {', '.join(sorted(read))} alone: "
                "leave it out"
            )


def reached(plain: dict[str, Any], roots: Collection[str]) -> set[str]:
    """The roots, and all keys at the top that they refer to."""
    read: set[str] = set()
    waiting = list(roots)
    while waiting:
        key = waiting.pop()
        if key not in read:
            read.add(key)
            waiting += REFERENCE.findall(json.dumps(plain.get(key), default=str))
    return read


def take_out_idle_stages(plain: dict[str, Any]) -> set[str]:
    """Take out of a configuration's ranking the stages that no order names, and paths that no query takes; returns the
    names of those stages."""
    ranking = plain.get("ranking")
    if not isinstance(ranking, dict) or not isinstance(stages := ranking.get("stages"), dict):
        return set()
    if ranking.get("mode") in ("hybrid", "vector"):
        ranking.pop({"hybrid": "vector", "vector": "hybrid"}[ranking["mode"]], None)
    paths = [path["orders"] for path in ranking.values() if isinstance(path, dict) and "orders" in path]
    orders = [path.get(ranking["order"], ()) for path in paths] or [ranking.get("order") or stages]
    idle = {name for name in stages if not any(name in order for order in orders)}
    for name in idle:
        del stages[name]
    return idle
