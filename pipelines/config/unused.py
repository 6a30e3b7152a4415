"""Unused settings: what a command asks for and nothing takes up, and what is taken up and not there."""

import json
import re
from collections.abc import Collection, Sequence
from typing import Any

from lcm.errors import LcmError
from pipelines.config.conf_folder import REFERENCE

_TAKEN_BY = {"summarizer": "compaction (compaction=lossless)"}
_NO_MODEL = (
    "{group} asks a language model and there is none: choose language_model=openai_compatible and set "
    "language_model.model.base_url and language_model.model.model"
)


def refuse(plain: dict[str, Any], overrides: Sequence[str], slots: Collection[str]) -> None:
    """Refuse overrides without effect, and parts without what they need.

    Args:
        plain: the configuration, interpolations as they are written; idle stages are taken out of it.
        slots: the groups that choices refer to.
    Raises:
        LcmError: as with `decay=weibull ranking=neighbours`, for that ranking has no place for a decay; with a number
            of a stage that stands in no order; with a part that asks a language model where there is none.
    """
    idle = _idle_stages(plain.get("ranking"))
    text = json.dumps(plain, default=str)
    for override in overrides:
        key, _, choice = override.lstrip("+").partition("=")
        group, *path = key.split(".")
        if group in slots and (path or choice != "none") and f"${{{group}}}" not in text:
            raise LcmError(
                f"{override} has no place in this configuration: nothing in it takes {group} up; choose another "
                f"{_TAKEN_BY.get(group, 'ranking or extraction')} that does, or leave {group} out"
            )
        if group == "ranking" and path[:1] == ["stages"] and len(path) > 2 and path[1] in idle:
            raise LcmError(
                f"{override} has no effect: {path[1]} stands in no order of this ranking; name it in an order, or "
                "choose a ranking that runs it"
            )
    summarizer = plain.get("summarizer") or {}
    if "${summarizer}" in text and str(summarizer.get("_target_", "")).endswith(".T5") and summarizer["model"] is None:
        raise LcmError(
            "summarizer=t5 has no model: set summarizer.model to a folder or a hub id, or choose summarizer=chain, "
            "which goes on without one"
        )
    model = plain.get("language_model") or {}
    if str(model.get("_target_", "")).endswith(".NoModel"):
        for group in ("extraction", "admission", "deduplication", "summarizer"):
            if "${language_model}" in str(plain.get(group)) and (group != "summarizer" or "${summarizer}" in text):
                raise LcmError(_NO_MODEL.format(group=group))


def refuse_unread(plain: dict[str, Any], overrides: Sequence[str], pipeline: str, roots: Collection[str]) -> None:
    """Refuse overrides of what a pipeline never reads.

    Args:
        plain: the configuration, interpolations as they are written.
        roots: what the pipeline builds; it reads these, and all that they refer to.
    Raises:
        LcmError: as with `lcm compact ranking=neighbours`.
    """
    read: set[str] = set()
    waiting = list(roots)
    while waiting:
        key = waiting.pop()
        if key not in read:
            read.add(key)
            waiting += REFERENCE.findall(json.dumps(plain.get(key), default=str))
    for override in overrides:
        key = re.split(r"[.=]", override.lstrip("+~"), maxsplit=1)[0]
        if key in plain and key not in read:
            raise LcmError(
                f"{override} has no effect on `lcm {pipeline}`, which here works with {', '.join(sorted(read))} alone: "
                "leave it out"
            )


def _idle_stages(ranking: Any) -> set[str]:
    """The stages of a ranking that no order names; they are taken out of it, and so are paths that no query takes."""
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
