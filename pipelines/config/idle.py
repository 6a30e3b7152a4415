"""Idle parts: what a configuration chooses, beside the defaults, and another of its choices leaves without work."""

import importlib
from collections.abc import Iterator, Mapping
from functools import cache, partial
from typing import Any, Literal

import yaml
from omegaconf import DictConfig, OmegaConf

from lcm.retrieval.ranking.evidence.evidence_columns import EVIDENCE_COLUMNS
from pipelines.config.conf_folder import EVALUATE, conf_dir, config_name, groups, slots
from pipelines.config.unused import reached, take_out_idle_stages

_FOLDS_NOTHING = "compaction=none makes no summary"
_READS_USE = ("Weibull", "TimeDecay", "TwoPass")
"""Classes of what reads how often a document was used."""
_READS_ANNOTATION = ("Weibull", "TimeDecay", "ImportanceWeight", "NotExpired")
"""Classes of what reads categories, importance, temporal types or expiry."""
_READS_COSINE = ("TwoPass", "HybridScore")
"""Fusions that rank by the raw cosine."""
_ASKS_NO_VECTORS = ("Lexical", "Tagged", "Recent", "Shuffled")
_ASKS_NO_WORDS = ("Dense", "Recent", "Shuffled")


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
    chosen = {group for group in groups().keys() & plain.keys() if plain[group] != _default(group)}
    folds = not _is(plain, "compaction", "NoCompaction")
    for group in sorted(chosen & slots() - read):
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
    if not _is(plain, "reinforcement", "NoReinforcement") and not _any_of(plain, read, _READS_USE):
        yield "reinforcement", "neither fusion nor decay reads how often a document was used"
    if not folds and _is(plain, "replay", "PerTurn"):
        yield "replay.per_turn", "compaction=none does nothing after a turn"
    yield from _idle_of_retrieval(plain, chosen & read)
    if {"source", "fusion"} <= read:
        yield from _weights_without_branch(plain)
    if "annotation" in chosen & read and not _any_of(plain, read, _READS_ANNOTATION) and _takes_everything(plain):
        yield "annotation", "no decay, stage, admission or deduplication reads what it writes"
    if _is(plain, "admission", "Amac") and "annotation" in read and _is(plain, "annotation", "NoAnnotation"):
        yield "admission.type_priors", "admission weighs categories and nobody sets them: annotation=rules does"
    if _is(plain, "authored", "AuthoredFiles") and not plain["authored"]["paths"]:
        yield "authored", "authored.paths names no file"
    yield from _weights_without_column(plain)
    yield from _branches_without_weight(plain, read)


def _idle_of_retrieval(plain: Mapping[str, Any], chosen: set[str]) -> Iterator[tuple[str, str]]:
    """What the fusion does not read of what stages and source make, and indexes that the source does not ask."""
    stages = plain["ranking"].get("stages") or {}
    asked = list(_asked(plain["source"]))
    reads_cosine = str(plain["fusion"].get("_target_", "")).endswith(_READS_COSINE)
    if "neighbours" in stages and (reads_cosine or _is(plain, "fusion", "ReciprocalRank")):
        yield "ranking.stages.neighbours", "this fusion reads ranks or the raw cosine, not the scores that they lend"
    if not _is(plain, "fusion", "Learnt") and any(map(_columns_of, stages.values())):
        yield "ranking.stages of evidence", "this fusion reads no evidence; fusion=unified does"
    if reads_cosine and not _gives(plain["source"], "dense"):
        yield "ranking, fusion, decay, reinforcement", "this source gives no cosine, and the fusion ranks by it"
    if "vector_index" in chosen and all(_class(one) in _ASKS_NO_VECTORS or one.get("embedder") for one in asked):
        yield "vector_index", "this source does not ask it; a recovery may"
    if "text_index" in chosen and all(_class(one) in _ASKS_NO_WORDS or one.get("text_index") for one in asked):
        yield "text_index", "this source does not ask it"


def _asked(source: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The sources that a source is made of: its branches, and the branch that a branch has; else itself."""
    inner = [one for one in (*(source.get("branches") or {}).values(), source.get("branch")) if one is not None]
    if not inner:
        yield source
    for one in inner:
        yield from _asked(one)


def _gives(source: Mapping[str, Any], branch: Literal["dense", "lexical"]) -> bool:
    """Whether a source fills the columns of a branch that every frame has."""
    if _class(source) == "Branches":
        return source["branches"].get(branch) is not None
    return _class(source) not in {"dense": _ASKS_NO_VECTORS, "lexical": _ASKS_NO_WORDS}[branch]


def _weights_without_branch(plain: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Weights that were set, of a branch that the source has not."""
    fusion = plain["fusion"]
    alike = [one for one in map(partial(_choice, "fusion"), groups()["fusion"]) if _class(one) == _class(fusion)]
    branches: tuple[Literal["dense", "lexical"], ...] = ("dense", "lexical")
    for branch in branches:
        weight = f"{branch}_weight"
        was_set = weight in fusion and alike and fusion[weight] not in [one.get(weight) for one in alike]
        if was_set and not _gives(plain["source"], branch):
            yield f"fusion.{weight}", f"this source has no {branch} branch"


def _columns_of(stage: Any) -> tuple[str, ...]:
    """The columns of evidence that a stage makes."""
    target = str(stage.get("_target_", "")) if isinstance(stage, dict) else ""
    if not target.startswith("lcm.retrieval.ranking.evidence."):
        return ()
    return tuple(importlib.import_module(target.rpartition(".")[0]).COLUMNS)


def _weights_without_column(plain: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Weights of evidence that no stage makes."""
    ranking, fusion = plain["ranking"], plain["fusion"]
    made = {column for stage in (ranking.get("stages") or {}).values() for column in _columns_of(stage)}
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


def _takes_everything(plain: Mapping[str, Any]) -> bool:
    return _is(plain, "admission", "AdmitAll") and _is(plain, "deduplication", "KeepAll")


def _any_of(plain: Mapping[str, Any], read: set[str], names: tuple[str, ...]) -> bool:
    """Whether decay, fusion or a stage of the ranking is of a class of these names."""
    nodes = [plain["decay"]] if "decay" in read else []
    nodes += [plain["fusion"]] if "fusion" in read else []
    nodes += [node for node in plain["ranking"].get("stages", {}).values() if isinstance(node, dict)]
    return any(str(node.get("_target_", "")).endswith(names) for node in nodes)


def _class(node: Mapping[str, Any]) -> str:
    return str(node.get("_target_", "")).rpartition(".")[2]


def _is(plain: Mapping[str, Any], group: str, name: str) -> bool:
    return str((plain.get(group) or {}).get("_target_", "")).endswith(f".{name}")


@cache
def _default(group: str) -> Any:
    """The node that a group has where nothing is chosen."""
    contents = yaml.safe_load((conf_dir() / f"{config_name(EVALUATE)}.yaml").read_text(encoding="utf-8"))
    choice = next((entry[group] for entry in contents["defaults"] if isinstance(entry, dict) and group in entry), None)
    return None if choice is None else _choice(group, choice)


@cache
def _choice(group: str, choice: str) -> Any:
    """The node that a choice gives its group."""
    return OmegaConf.to_container(OmegaConf.load(conf_dir() / group / f"{choice}.yaml"))
