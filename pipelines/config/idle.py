"""Idle parts: what a configuration chooses, beside the defaults, and another of its choices leaves without work."""

import importlib
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import yaml
from omegaconf import DictConfig, OmegaConf

from lcm.retrieval.ranking.evidence.evidence_columns import EVIDENCE_COLUMNS
from pipelines.config.conf_folder import EVALUATE, conf_dir, config_name, slots
from pipelines.config.unused import reached, take_out_idle_stages

_FOLDS_NOTHING = "compaction=none makes no summary"
_READS_USE = ("Weibull", "TimeDecay", "TwoPass")
"""Classes of what reads how often a document was used."""


def idle_note(config: DictConfig) -> str | None:
    """One line that names every idle part with its reason; None where every part has work.

    A part that the defaults choose is not told of: nobody asked for it.
    """
    plain: dict[str, Any] = OmegaConf.to_container(config)  # type: ignore[assignment]
    reasons: dict[str, list[str]] = {}
    for part, reason in _idle_parts(plain):
        reasons.setdefault(reason, []).append(part)
    if not reasons:
        return None
    told = "; ".join(f"{', '.join(dict.fromkeys(parts))} ({reason})" for reason, parts in reasons.items())
    return f"parts without work here: {told}"


def _idle_parts(plain: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Each idle part, and why."""
    take_out_idle_stages(plain)
    read = reached(plain, ["memory"])
    chosen = {group for group in slots() & plain.keys() if plain[group] != _default(group)}
    folds = not _is(plain, "compaction", "NoCompaction")
    for group in sorted(chosen - read):
        if group in ("summarizer", "guidance") and not folds:
            yield group, _FOLDS_NOTHING
        elif group == "annotation":
            yield group, "this extraction writes its own"
        elif group == "recovery":
            yield group, "neither the ranking nor the assembly asks it"
        else:
            yield group, "nothing that is chosen takes it up"
    if not folds and not _is(plain, "summary_documents", "NoSummaryDocuments"):
        yield "summary_documents", _FOLDS_NOTHING
    if "summary_expansion" in chosen & read:
        if not folds:
            yield "summary_expansion", _FOLDS_NOTHING
        elif _is(plain, "summary_documents", "NoSummaryDocuments"):
            yield "summary_expansion", "summary_documents=none lets ranking find no summary"
    if not _is(plain, "reinforcement", "NoReinforcement") and not _any_reads_use(plain, read):
        yield "reinforcement", "neither fusion nor decay reads how often a document was used"
    if _is(plain, "authored", "AuthoredFiles") and not plain["authored"]["paths"]:
        yield "authored", "authored.paths names no file"
    yield from _weights_without_column(plain)
    yield from _branches_without_weight(plain, read)


def _weights_without_column(plain: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Weights of evidence that no stage makes."""
    ranking, fusion = plain["ranking"], plain["fusion"]
    made: set[str] = set()
    for stage in (ranking.get("stages") or {}).values():
        target = str((stage or {}).get("_target_", "")) if isinstance(stage, dict) else ""
        if target.startswith("lcm.retrieval.ranking.evidence."):
            made |= set(importlib.import_module(target.rpartition(".")[0]).COLUMNS)
    weights = fusion.get("weights") or {} if _is(plain, "fusion", "Learnt") else {}
    if missing := [column for column in weights if column in EVIDENCE_COLUMNS - made]:
        yield (
            f"{len(missing)} of the {len(weights)} fusion.weights",
            "no stage of this ranking makes their evidence, which counts 0; ranking=unified does",
        )


def _branches_without_weight(plain: Mapping[str, Any], read: set[str]) -> Iterator[tuple[str, str]]:
    """Further branches whose documents a fusion takes, and whose ranks and scores it does not look at."""
    if not _is(plain, "source", "Branches") or not {"source", "fusion"} <= read:
        return
    weights = plain["fusion"].get("weights")
    looks_at_all = weights is not None and not _is(plain, "fusion", "Learnt")
    for name, branch in plain["source"]["branches"].items():
        is_weighed = looks_at_all or f"{name}_score" in (weights or {})
        if branch is not None and name not in ("dense", "lexical") and not is_weighed:
            yield f"source.branches.{name}", "this fusion weighs none of its scores: it adds candidates alone"


def _any_reads_use(plain: Mapping[str, Any], read: set[str]) -> bool:
    nodes = [plain["decay"]] if "decay" in read else []
    nodes += [plain["fusion"]] if "fusion" in read else []
    nodes += [node for node in plain["ranking"].get("stages", {}).values() if isinstance(node, dict)]
    return any(str(node.get("_target_", "")).endswith(_READS_USE) for node in nodes)


def _is(plain: Mapping[str, Any], group: str, name: str) -> bool:
    return str((plain.get(group) or {}).get("_target_", "")).endswith(f".{name}")


@cache
def _default(group: str) -> Any:
    """The node that a group has where nothing is chosen."""
    contents = yaml.safe_load((conf_dir() / f"{config_name(EVALUATE)}.yaml").read_text(encoding="utf-8"))
    choice = next((entry[group] for entry in contents["defaults"] if isinstance(entry, dict) and group in entry), None)
    if choice is None:
        return None
    return OmegaConf.to_container(OmegaConf.load(conf_dir() / group / f"{choice}.yaml"))
