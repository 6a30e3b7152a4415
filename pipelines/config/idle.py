"""Idle parts: what a configuration chooses, beside the defaults, and another of its choices leaves without work."""

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache, cached_property, partial
from typing import Any

from omegaconf import DictConfig, OmegaConf

from lcm.encoding import from_yaml
from lcm.protocols.contract import INDEXES, NOTHING_SAID, Contract, contract_of
from lcm.retrieval.fusion import EVIDENCE_COLUMNS
from lcm.retrieval.source.indexes import DESCRIBED_BY, OF_ANNOTATION, OF_USE, filled
from pipelines.config.building import build
from pipelines.config.conf_folder import EVALUATE, conf_dir, config_name, groups, slots
from pipelines.config.readers import keys_unread, leaves, parts_read, without_effect
from pipelines.config.unused import reached, take_out_idle_stages

_ADDS_CANDIDATES = "this fusion weighs none of its scores: it adds candidates alone"
_FOLDS_NOTHING = "compaction=none makes no summary"
_ON_FLOOR = (
    "a document that was never used stands on floor_working whatever its age: reinforcement=recall, "
    "decay.recency_lifts=true or a lower decay.floor_working lets ages tell"
)
_OF_DOCUMENTS = {*DESCRIBED_BY, "scope_class", "asked_at"}
_OF_WEIGHTS = {"lexical_score", "lexical_rank", "dense_score", "dense_rank"}
_OF_BRANCH = {"dense": "cosine", "lexical": "bm25"}
_ASKED_BY = {"dense": "vector_index", "lexical": "text_index"}


def idle_note(config: DictConfig) -> str | None:
    """One line that names every idle part with its reason; None where every part has work.

    A part that the defaults choose is not told of: nobody asked for it.

    Raises:
        LcmError: if a part refuses its settings.
    """
    reasons: dict[str, list[str]] = {}
    for part, reason in _IdleParts(config).each():
        reasons.setdefault(reason, []).append(part)
    if not reasons:
        return None
    told = "; ".join(f"{', '.join(dict.fromkeys(parts))} ({reason})" for reason, parts in reasons.items())
    return f"parts without work here: {told}"


def alike_notes(configs: Mapping[str, DictConfig], roots: Collection[str]) -> list[str]:
    """A line for each group of configurations of which is known before they run that they will be equal, with what
    they differ in and why that has no effect.

    Args:
        configs: by what each is called.
        roots: what is built of a configuration.
    Raises:
        LcmError: if a part refuses its settings.
    """
    parts = {name: _IdleParts(config) for name, config in configs.items()}
    acting = {name: _acting_settings(one.plain, roots) for name, one in parts.items()}
    told: dict[frozenset[str], str] = {}
    for name, one in parts.items():
        idle = one.settings
        rest = _without(acting[name], idle)
        alike = [
            other
            for other in configs
            if _without(acting[other], idle) == rest and all(map(parts[other].may_lack, idle))
        ]
        unlike = {key for other in alike for key, _ in one.written ^ parts[other].written}
        if len(alike) < 2 or any(set(alike) <= group for group in told):
            continue
        reasons = {reason: None for key, reason in idle.items() if any(_is_below(found, key) for found in unlike)}
        unread = {found.key: found.reason for found in keys_unread(one.plain, roots) if found.key in unlike}
        because = "; ".join(reasons or dict.fromkeys(unread.values()))
        told[frozenset(alike)] = f"equal before they run: {', '.join(alike)}{f' ({because})' if because else ''}"
    return list(told.values())


def _acting_settings(plain: dict[str, Any], roots: Collection[str]) -> dict[str, Any]:
    """Every setting that a part reads, and of which class each part is."""
    parts = parts_read(plain, roots)
    return {f"{part.written}._target_": part.name for part in parts} | {
        key: value for part in parts for key, value in part.keys.items()
    }


def _without(settings: Mapping[str, Any], idle: Collection[str]) -> dict[str, Any]:
    return {key: value for key, value in settings.items() if not any(_is_below(key, place) for place in idle)}


def _is_below(key: str, place: str) -> bool:
    return key == place or key.startswith(f"{place}.")


class _IdleParts:
    """The idle parts of a configuration. What a part reads, asks and makes its class says of itself."""

    def __init__(self, config: DictConfig) -> None:
        self.plain: dict[str, Any] = OmegaConf.to_container(config)  # type: ignore[assignment]
        self.written = {(key, repr(value)) for key, value in leaves(self.plain)}
        take_out_idle_stages(self.plain)
        self.part = cache(partial(build, config))
        """The part of a group, built."""
        self.contract: Callable[[str], Contract] = lambda group: contract_of(self.part(group))
        self.read = reached(self.plain, ["memory"])
        self.chosen = {group for group in groups().keys() & self.plain.keys() if self.plain[group] != _default(group)}
        self.folds = not self.contract("compaction").is_off
        self.finds_summaries = not self.contract("summary_documents").is_off
        ranked_by = getattr(self.part("ranking"), "stages", {})
        written = self.plain["ranking"].get("stages") or {}
        self.asked = set(self.contract("ranking").asks)
        self.stages = {name: stage for name, stage in ranked_by.items() if name in written and stage is not None}

    def each(self) -> Iterator[tuple[str, str]]:
        """Each idle part, and why."""
        for group in sorted(self.chosen & slots() - self.read):
            if group in ("summarizer", "guidance") and not self.folds:
                yield group, _FOLDS_NOTHING
            elif group == "annotation":
                yield group, "this extraction writes its own"
            elif group == "recovery":
                yield group, "neither the ranking nor the assembly asks it"
            else:
                yield group, "nothing that is chosen takes it up"
        if not self.folds and self.finds_summaries:
            yield "summary_documents", _FOLDS_NOTHING
        if not self.folds and not self.contract("scheduling").is_off:
            yield "scheduling", _FOLDS_NOTHING
        if "summary_expansion" in self.chosen & self.read:
            if not self.folds:
                yield "summary_expansion", _FOLDS_NOTHING
            elif not self.finds_summaries:
                yield "summary_expansion", "summary_documents=none lets ranking find no summary"
        if self.part("reinforcement").recalled and not self._reads(OF_USE):
            yield "reinforcement", "neither fusion nor decay reads how often a document was used"
        if not self.folds and getattr(self.part("replay"), "is_per_turn", False):
            yield "replay.per_turn", "compaction=none does nothing after a turn"
        recovers = not self.contract("recovery").is_off
        for index in sorted(self.chosen & set(INDEXES) - self.asked):
            if index == "vector_index" and recovers:
                yield f"the source's {index}", "it does not ask it; a recovery may"
            else:
                yield index, "this source does not ask it"
        if "embedder" in self.chosen and not self._compares_vectors():
            yield "embedder", "nothing here compares its vectors"
        if {"source", "fusion"} <= self.read:
            yield from self._of_retrieval()
        yield from self._of_annotation()
        for group in sorted(self.chosen & self.read):
            if because := self._because(group):
                yield group, because
        for name, stage in self.stages.items() if "ranking" in self.chosen else ():
            for group in contract_of(stage).follows:
                if because := self._because(group):
                    yield f"ranking.stages.{name}", because
        for key, reason in (self._of_floor() | without_effect(self.plain)).items():
            group, _, path = key.partition(".")
            if group == "replay" or (group in self.chosen & self.read and not self._because(group)):
                if self._was_set(group, path):
                    yield key, reason
            elif group == "distractors" and self.plain[group] != {"transcripts": _choice("dataset", "transcripts")}:
                yield group, reason

    @cached_property
    def settings(self) -> dict[str, str]:
        """Each setting without effect, or part by itself, and why."""
        return {key: why for key, why in self.each() if " " not in key} | self._of_floor() | without_effect(self.plain)

    def may_lack(self, key: str) -> bool:
        """Whether a setting has no effect here either; of a part that the defaults choose nothing is known."""
        group = key.partition(".")[0]
        return group not in self.chosen or any(_is_below(key, place) for place in self.settings)

    def _of_floor(self) -> dict[str, str]:
        """The settings of a decay under which nobody's use lifts a document from its floor, but for those that act."""
        acting = getattr(self.part("decay"), "acting_unused", None)
        is_used = bool(self.part("reinforcement").recalled)
        if acting is None or is_used or "decay" not in self.read or self.plain["measures"].get("staleness"):
            return {}
        return {f"decay.{name}": _ON_FLOOR for name in self.plain["decay"] if name not in (*acting, "_target_")}

    def _because(self, group: str) -> str | None:
        """Why a part of a class that says so of itself has no work."""
        return self.contract(group).idle_because

    def _compares_vectors(self) -> bool:
        """Whether the ranking, a control arm, a recovery, what judges documents, or compaction may compare vectors."""
        judges = ("recovery", "admission", "deduplication", "compaction")
        ranking, arms = self.contract("ranking"), map(contract_of, (self.part("arms") or {}).values())
        compares = ranking is NOTHING_SAID or ranking.compares_vectors or any(arm.compares_vectors for arm in arms)
        return compares or not all(self.contract(part).is_off for part in judges)

    def _reads(self, columns: Collection[str]) -> bool:
        """Whether a stage of the ranking, its fusion and decay among them, reads one of some columns."""
        return any(not set(contract_of(stage).reads or ()).isdisjoint(columns) for stage in self.stages.values())

    def _of_annotation(self) -> Iterator[tuple[str, str]]:
        admission = self.contract("admission")
        takes_everything = admission.is_off and self.contract("deduplication").is_off
        if "annotation" in self.chosen & self.read and takes_everything and not self._reads(OF_ANNOTATION):
            yield "annotation", "no decay, stage, admission or deduplication reads what it writes"
        is_unrated = "annotation" in self.read and self.contract("annotation").is_off
        if is_unrated and "category" in (admission.reads or ()):
            yield "admission by category", "nobody sets categories: annotation=rules does"

    def _of_retrieval(self) -> Iterator[tuple[str, str]]:
        """What the fusion does not read of what stages and source make."""
        fusion, source = self.part("fusion"), self.part("source")
        yield from self._weights_without_branch(filled(source))
        if (declared := contract_of(fusion).reads) is None:
            return
        reads = set(declared)
        made: set[str] = set()
        for name, stage in self.stages.items():
            makes = set(contract_of(stage).makes)
            made |= makes
            if makes and makes.isdisjoint(reads):
                yield f"ranking.stages.{name}", "this fusion reads no column that they make"
        if reads - _OF_DOCUMENTS == {"cosine"} and "cosine" not in filled(source):
            yield "fusion by cosine", "this source gives none: it counts 0"
        if reads <= _OF_WEIGHTS and set(filled(source)).isdisjoint(_OF_BRANCH.values()):
            yield "weights of fusion", "this source gives no scores"
        if missing := reads & EVIDENCE_COLUMNS - made:
            yield (
                f"{len(missing)} of the {len(reads)} fusion.weights",
                "no stage of this ranking makes their evidence, which counts 0; ranking=unified does",
            )
        for name, raw in _OF_BRANCH.items():
            scores = {raw, f"{name}_score", f"{name}_rank"}
            blended = {"lexical_score"} if any(hasattr(stage, "blend") for stage in self.stages.values()) else set()
            is_asked = _ASKED_BY[name] in self.chosen & self.asked and raw in filled(source)
            if is_asked and scores.isdisjoint(reads | blended):
                yield f"scores of {_ASKED_BY[name]}", _ADDS_CANDIDATES
        for name, branch in getattr(source, "branches", {}).items():
            is_weighed = contract_of(fusion).weighs_branches or f"{name}_score" in reads
            if branch is not None and name not in _OF_BRANCH and not is_weighed:
                yield f"source.branches.{name}", _ADDS_CANDIDATES

    def _weights_without_branch(self, fills: Collection[str]) -> Iterator[tuple[str, str]]:
        """Weights that were set, of a branch that the source has not, or that stands alone."""
        is_alone = not getattr(self.part("source"), "branches", None)
        is_scale_kept = self.contract("fusion").gives_unit_scores
        for branch, column in _OF_BRANCH.items():
            weight = f"{branch}_weight"
            if weight not in self.plain["fusion"] or not self._was_set("fusion", weight):
                continue
            if column not in fills:
                yield f"fusion.{weight}", f"this source has no {branch} branch"
            elif is_alone and not is_scale_kept and len(fills) == 1:
                yield f"fusion.{weight}", "with no branch beside it, it changes no order"

    def _was_set(self, group: str, path: str) -> bool:
        """Whether a setting differs from what the choices of its class say."""
        choices = (_choice(group, name) for name in groups()[group])
        alike = [one for one in choices if one.get("_target_") == self.plain[group]["_target_"]]
        return bool(alike) and _at(self.plain[group], path) not in [_at(one, path) for one in alike]


def _at(node: Any, path: str) -> Any:
    for name in path.split("."):
        node = node.get(name) if isinstance(node, Mapping) else None
    return node


@cache
def _default(group: str) -> Any:
    """The node that a group has where nothing is chosen."""
    contents = from_yaml((conf_dir() / f"{config_name(EVALUATE)}.yaml").read_text(encoding="utf-8"))
    choice = next((entry[group] for entry in contents["defaults"] if isinstance(entry, dict) and group in entry), None)
    return None if choice is None else _choice(group, choice)


@cache
def _choice(group: str, choice: str) -> Any:
    """The node that a choice gives its group."""
    return OmegaConf.to_container(OmegaConf.load(conf_dir() / group / f"{choice}.yaml"))
