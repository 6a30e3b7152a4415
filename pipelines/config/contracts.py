"""Contracts: who reads which key of a configuration, what is set and has no effect, and which parts have no work.

All of it is read from one walk over the configuration, from what a command builds along its references, and from what
components say of themselves in their `Contract`s.
"""

import copy
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from typing import Any, NamedTuple

from omegaconf import DictConfig

from lcm.errors import LcmError
from lcm.protocols.contract import INDEXES, NOTHING_SAID, Contract, contract_of
from lcm.retrieval.fusion import EVIDENCE_COLUMNS
from lcm.retrieval.source.indexes import DESCRIBED_BY, OF_ANNOTATION, OF_USE, filled
from pipelines.config.building import as_written, build, worked_out
from pipelines.config.check import WrongOverridesError
from pipelines.config.composition import CONFIGURATION_ERRORS, composed, settings_of_no_measure
from pipelines.config.conf_folder import EVALUATE, REFERENCE, at, groups, keys_at_the_top, leaves, place, shipped, slots
from pipelines.config.trust import TARGET, component

_TAKEN_BY = {"summarizer": "compaction (compaction=lossless)", "guidance": "compaction (compaction=lossless)"}
_NO_MODEL = (
    "{group} asks a language model and there is none: choose language_model=openai_compatible and set "
    "language_model.model.base_url and language_model.model.model"
)
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
_COMMAND = "lcm evaluate"


def refuse_unused(
    config: DictConfig, overrides: Sequence[str], pipeline: str = EVALUATE, roots: Collection[str] = ()
) -> None:
    """Refuse what was set and what nothing in the configuration takes up, and what is taken up and not there; `roots`
    are what a pipeline builds, where that is not everything."""
    plain = as_written(config)
    read = reached(plain, roots) if roots else plain.keys()
    named = ", ".join(sorted(read))
    keys = {override: re.split(r"[.=@]", override.lstrip("+~"), maxsplit=1)[0] for override in overrides}
    found = [
        f"{override} has no effect on `lcm {pipeline}`, which here works with {named} alone: leave it out"
        for override, key in keys.items()
        if key in plain and key not in read
    ]
    found += problems(plain, overrides)
    if found:
        raise LcmError("; ".join(found))


def with_other_reasons(error: WrongOverridesError, pipeline: str) -> LcmError:
    """The refusal of overrides, with what is wrong with the others: values that a part refuses, settings that nothing
    takes up."""
    try:
        config = composed(error.others, pipeline)
    except (*CONFIGURATION_ERRORS, LcmError):
        return error
    about_unknown = re.compile(rf"\b({'|'.join(error.groups) or '(?!)'})\b")
    told = [one for one in problems(as_written(config), error.others) if not about_unknown.search(one)]
    plain = as_written(config)
    referred = {name for _, name in REFERENCE.findall(str(plain))} | slots()  # which are built with who refers to them
    for key in (key for key, node in plain.items() if isinstance(node, dict) and key not in referred):
        try:
            build(config, key)
        except LcmError as refused:
            told.append(str(refused))
    return LcmError("; ".join(dict.fromkeys([str(error), *told])))


def problems(plain: dict[str, Any], overrides: Sequence[str]) -> Iterator[str]:
    """What overrides set without effect, as `guidance.stability_threshold=0` with `compaction=none`, which asks no
    guidance, and parts that lack what they need: a line each. Idle stages are taken out of the configuration.

    A choice that another choice leaves without work is no such problem: `idle_note` tells of it.
    """
    for name in settings_of_no_measure(plain):
        yield (
            f"measures.{name} is set and not chosen: add it to the choice, 'measures=[CHOICE,{name}]', or leave its "
            "settings out"
        )
    idle = take_out_idle_stages(plain)
    referred = {name.partition(".")[0] for dots, name in REFERENCE.findall(str(plain)) if not dots}
    for override in overrides:
        key = override.lstrip("+").partition("=")[0]
        group, *path = key.rpartition("@")[2].split(".")  # a choice is read where it lies
        if override.startswith("+") and group not in referred | keys_at_the_top():
            yield f"{override} has no effect: nothing reads {group}; leave it out"
        if group in slots() and path and group not in referred:
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

    def is_a(group: str, name: str) -> bool:
        return str((plain.get(group) or {}).get(TARGET, "")).endswith(f".{name}")

    if "summarizer" in referred and is_a("summarizer", "T5") and plain["summarizer"]["model"] is None:
        yield (
            "summarizer=t5 has no model: `lcm models get t5-small` downloads one; set summarizer.model to its name, a "
            "folder or a hub id, or choose summarizer=chain, which goes on without one"
        )
    if "fusion" in referred and is_a("fusion", "ReciprocalRank") and not is_a("source", "Branches"):
        weights = (plain["fusion"].get(name) for name in ("dense_weight", "lexical_weight", "weights"))
        if str(at(plain, f"source.{TARGET}")).startswith("lcm.retrieval.source.") and not any(weights):
            yield (
                "fusion.dense_weight and fusion.lexical_weight must not both be 0 where the source has no other "
                "branch: raise one, or choose source=branches"
            )
    if is_a("language_model", "NoModel"):
        for group in ("extraction", "admission", "deduplication", "summarizer"):
            if "${language_model}" in str(plain.get(group)) and (group != "summarizer" or "summarizer" in referred):
                yield _NO_MODEL.format(group=group)
        if "${language_model}" in str((plain.get("measures") or {}).get("answers")):
            yield _NO_MODEL.format(group="measures=answers_llm")


def _unused_path(ranking: dict[str, Any], path: Sequence[str]) -> str | None:
    """Why a ranking of several paths and orders does not take the one that a setting of it is of."""
    mode, order = ranking.get("mode"), ranking.get("order")
    if mode and len(path) > 1 and path[0] in ("hybrid", "vector") and path[0] != mode:
        return f"no query takes the path {path[0]} while ranking.mode={mode}"
    if mode and path[1:2] == ["orders"] and path[2:3] not in ([], [order]):
        return f"ranking.order={order} takes another order; set that, or ranking.order={path[2]}"
    return None


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


@dataclass(frozen=True, slots=True)
class Part:
    """A component that a configuration describes."""

    written: str
    """The key below which its settings are written."""
    name: str
    """Of its class; of what the command itself reads that of the command."""
    keys: dict[str, Any] = field(default_factory=dict)
    """Its settings, and those of maps among them: key -> value, as they are written."""
    taken_by: list[str] = field(default_factory=list)
    """The keys at which it is taken up, from what the command builds; references between them are followed."""


@dataclass(frozen=True, slots=True)
class UnreadKey:
    """A key that nothing reads."""

    key: str
    value: Any
    reason: str


class _Visit(NamedTuple):
    """A place of a configuration that something reads."""

    written: str
    """Where it is written."""
    taken_by: str
    """Where it is taken up."""
    owner: str
    """The place of the component that reads it; empty = the command itself."""
    node: Any


def _walk(plain: Mapping[str, Any], written: str, taken_by: str, owner: str = "") -> Iterator[_Visit]:
    """Visit what is written at a key and all below it; references are followed."""
    node = at(plain, written)
    if reference := _refers(node):
        yield from _walk(plain, place(reference, written), taken_by, owner)
        return
    owner = written if isinstance(node, dict) and TARGET in node else owner
    yield _Visit(written, taken_by, owner, node)
    for name in node if isinstance(node, dict) else ():
        if name != TARGET:
            yield from _walk(plain, f"{written}.{name}", f"{taken_by}.{name}", owner)
    for reference in REFERENCE.finditer(str(node)) if isinstance(node, (list, str)) else ():
        yield from _walk(plain, place(reference, written), taken_by, owner)


def reached(plain: Mapping[str, Any], roots: Collection[str]) -> set[str]:
    """The roots, and all keys at the top that they refer to."""
    return {visit.written.partition(".")[0] for root in roots for visit in _walk(plain, root, root)}


def parts_read(plain: dict[str, Any], roots: Collection[str]) -> list[Part]:
    """Every component that is built, with the keys that it reads: the roots, which the command builds or reads, and all
    that they refer to."""
    acting, unused = _acting(plain), without_effect(plain)
    found: dict[str, Part] = {}
    for visit in (visit for root in roots for visit in _walk(acting, root, root)):
        name = str(at(acting, visit.owner)[TARGET]).rpartition(".")[2] if visit.owner else _COMMAND
        part = found.setdefault(visit.owner, Part(visit.owner, name))
        if visit.written == visit.owner and visit.taken_by not in part.taken_by:
            part.taken_by.append(visit.taken_by)
        if visit.written not in unused and not (isinstance(visit.node, dict) and visit.node):
            part.keys[visit.written] = visit.node
    whole = {part.written for part in found.values() if not any(_is_below(key, part.written) for key in unused)}
    return [part for part in found.values() if part.keys or (part.name != _COMMAND and part.written in whole)]


def keys_unread(plain: dict[str, Any], roots: Collection[str]) -> list[UnreadKey]:
    """Every key that nothing reads, with the reason; arguments as of `parts_read`."""
    read = {key for part in parts_read(plain, roots) for key in part.keys}
    takers: dict[str, list[str]] = {}  # of each key that is referred to the keys that do
    for key, value in leaves(plain):
        for reference in REFERENCE.finditer(str(value)):
            takers.setdefault(place(reference, key), []).append(key)
    acting, off, unused_by = dict(leaves(_acting(plain))), _off_stages(plain), without_effect(plain)
    found = []
    for key, value in leaves(plain):
        if key in read or _refers(value):
            continue
        stage = key.split(".")[2] if key.startswith("ranking.stages.") else None
        if stage in off:
            reason = f"{off[stage]} leaves {stage} without work"
        elif key in unused_by:
            reason = unused_by[key]
        elif key not in acting:
            reason = "of a stage, a path or an order of the ranking that no query goes through"
        else:
            taken = sorted(taker for taken_at, those in takers.items() if _is_below(key, taken_at) for taker in those)
            reason = f"taken up by {', '.join(taken)} alone, which nothing reads" if taken else "no part takes it up"
        found.append(UnreadKey(key, value, reason))
    return found


def _acting(plain: dict[str, Any]) -> dict[str, Any]:
    """The configuration without the stages, paths and orders of its ranking that no query goes through."""
    acting = copy.deepcopy(plain)
    take_out_idle_stages(acting)
    for name in _off_stages(acting):
        stage = acting["ranking"]["stages"][name]
        for key in [key for key, value in stage.items() if key != "_target_" and not _refers(value)]:
            del stage[key]
    ranking = acting.get("ranking") or {}
    for path in ranking.values():
        if isinstance(path, dict) and isinstance(orders := path.get("orders"), dict):
            path["orders"] = {name: order for name, order in orders.items() if name == ranking["order"]}
    return acting


def _off_stages(plain: dict[str, Any]) -> dict[str, str]:
    """The stages of the ranking that hold a part which is off, as recovery=none is, and that part."""
    stages = (plain.get("ranking") or {}).get("stages") or {}
    held = {
        name: at(plain, place(reference, f"ranking.stages.{name}.{key}"))
        for name, stage in stages.items()
        if isinstance(stage, dict)
        for key, value in stage.items()
        if (reference := _refers(value))
    }
    return {
        name: str(node["_target_"]).rpartition(".")[2]
        for name, node in held.items()
        if isinstance(node, dict) and contract_of(component(str(node.get("_target_")))).is_off
    }


def without_effect(plain: dict[str, Any]) -> dict[str, str]:
    """Keys that a part takes and leaves aside, as its class says in `unused_where`, each with the reason."""
    found: dict[str, str] = {}
    for written, node in _parts(plain, ""):
        made = component(str(node["_target_"]))
        for name, others in getattr(made, "unused_where", {}).items():
            if not others:
                found[f"{written}.{name}"] = "live sessions alone ask it, and an evaluation plays none"
                continue
            meant = {_named(other, written): value for other, value in others.items()}
            given = {other: at(plain, other) for other in meant}
            if all(given[other] in (value if isinstance(value, tuple) else (value,)) for other, value in meant.items()):
                values = {other: "null" if value is None else value for other, value in given.items()}
                because = " and ".join(f"{other}={value}" for other, value in values.items())
                key = _named(name, written)
                found |= {leaf: f"{because} leaves it without effect" for leaf, _ in leaves(at(plain, key), key)}
    return found


def _parts(node: Any, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """What has a class, and where it is written."""
    if isinstance(node, dict):
        if path and "_target_" in node:
            yield path, node
        for name, child in node.items():
            yield from _parts(child, f"{path}.{name}" if path else str(name))


def _named(name: str, written: str) -> str:
    """The key that a part means by the name of a setting of its own, or by `${...}`."""
    reference = _refers(name)
    return reference[2] if reference else f"{written}.{name}"


def _refers(value: Any) -> re.Match[str] | None:
    return REFERENCE.fullmatch(value) if isinstance(value, str) else None


def idle_note(config: DictConfig, whole: Mapping[str, Any] | None = None) -> str | None:
    """One line that names every idle part with its reason; None where every part has work.

    A part that the defaults choose is not told of: nobody asked for it. `whole` is the configuration as `worked_out`
    gives it, where that is known.
    """
    reasons: dict[str, list[str]] = {}
    for part, reason in _IdleParts(config, whole).each():
        reasons.setdefault(reason, []).append(part)
    if not reasons:
        return None
    told = "; ".join(f"{', '.join(dict.fromkeys(parts))} ({reason})" for reason, parts in reasons.items())
    return f"parts without work here: {told}"


def alike_notes(configs: Mapping[str, DictConfig], roots: Collection[str]) -> list[str]:
    """A line for each group of configurations, by what each is called, of which is known before they run that they will
    be equal, with what they differ in and why that has no effect."""
    parts = {name: _IdleParts(config) for name, config in configs.items()}
    acting: dict[str, dict[str, Any]] = {}
    for name, one in parts.items():  # every setting that a part reads, and of which class each part is
        read = parts_read(one.plain, roots)
        classes = {f"{part.written}.{TARGET}": part.name for part in read}
        acting[name] = classes | {key: value for part in read for key, value in part.keys.items()}
    told: dict[frozenset[str], str] = {}

    @cache
    def rest(name: str, idle: frozenset[str]) -> dict[str, Any]:
        return {key: value for key, value in acting[name].items() if not any(_is_below(key, one) for one in idle)}

    for name, one in parts.items():
        idle = one.settings
        places = frozenset(idle)
        own = rest(name, places)
        alike = [one for one in configs if rest(one, places) == own and all(map(parts[one].may_lack, idle))]
        unlike = {key for other in alike for key, _ in one.written ^ parts[other].written}
        if len(alike) < 2 or any(set(alike) <= group for group in told):
            continue
        reasons = {reason: None for key, reason in idle.items() if any(_is_below(found, key) for found in unlike)}
        unread = {found.key: found.reason for found in keys_unread(one.plain, roots) if found.key in unlike}
        because = "; ".join(reasons or dict.fromkeys(unread.values()))
        told[frozenset(alike)] = f"equal before they run: {', '.join(alike)}{f' ({because})' if because else ''}"
    return list(told.values())


def _is_below(key: str, place: str) -> bool:
    return key == place or key.startswith(f"{place}.")


class _IdleParts:
    """The idle parts of a configuration. What a part reads, asks and makes its class says of itself."""

    def __init__(self, config: DictConfig, whole: Mapping[str, Any] | None = None) -> None:
        self.plain: dict[str, Any] = as_written(config)
        self.written = {(key, repr(value)) for key, value in leaves(self.plain)}
        take_out_idle_stages(self.plain)
        self.part = cache(partial(build, config, whole=worked_out(config) if whole is None else whole))
        """The part of a group, built."""
        self.contract: Callable[[str], Contract] = lambda group: contract_of(self.part(group))
        self.read = reached(self.plain, ["memory"])
        usual = _usual()
        self.chosen = {group for group in groups().keys() & self.plain.keys() if self.plain[group] != usual.get(group)}
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
        is_expanding = "summary_expansion" in self.chosen & self.read
        if self.folds and is_expanding and not self.finds_summaries:
            yield "summary_expansion", "summary_documents=none lets ranking find no summary"
        for group, is_there in (
            ("summary_documents", self.finds_summaries),
            ("scheduling", not self.contract("scheduling").is_off),
            ("summary_expansion", is_expanding),
        ):
            if is_there and not self.folds:
                yield group, _FOLDS_NOTHING
        if self.part("reinforcement").recalled and not self._reads(OF_USE):
            yield "reinforcement", "neither fusion nor decay reads how often a document was used"
        if not self.folds and getattr(self.part("replay"), "is_per_turn", False):
            yield "replay.per_turn", "compaction=none does nothing after a turn"
        for index in sorted(self.chosen & set(INDEXES) - self.asked):
            if index == "vector_index" and not self.contract("recovery").is_off:
                yield f"the source's {index}", "it does not ask it; a recovery may"
            else:
                yield index, "this source does not ask it"
        if "embedder" in self.chosen and not self._compares_vectors():
            yield "embedder", "nothing here compares its vectors"
        if {"source", "fusion"} <= self.read:
            yield from self._of_retrieval()
        yield from self._of_annotation()
        for group in sorted(self.chosen & self.read):
            if because := self.contract(group).idle_because:
                yield group, because
        for name, stage in self.stages.items() if "ranking" in self.chosen else ():
            for group in contract_of(stage).follows:
                if because := self.contract(group).idle_because:
                    yield f"ranking.stages.{name}", because
        for key, reason in (self._of_floor() | without_effect(self.plain)).items():
            group, _, path = key.partition(".")
            if group == "replay" or (group in self.chosen & self.read and not self.contract(group).idle_because):
                if self._was_set(group, path):
                    yield key, reason
            elif group == "distractors" and self.plain[group] != _usual()[group]:
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
        choices = (shipped().node(group, name) for name in groups()[group])
        alike = [one for one in choices if one.get(TARGET) == self.plain[group][TARGET]]
        return bool(alike) and at(self.plain[group], path) not in [at(one, path) for one in alike]


@cache
def _usual() -> dict[str, Any]:
    """The configuration where nothing is chosen."""
    return shipped().chosen(EVALUATE).config
