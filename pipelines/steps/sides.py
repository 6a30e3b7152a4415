"""Where the sides of a comparison come from: folders, sweeps, MLflow, presets, overrides."""

import hashlib
import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from filelock import FileLock
from omegaconf import DictConfig, OmegaConf, open_dict

from eval.comparison.agreement import MEASURES, SETTINGS, require_same_settings
from eval.comparison.side import read_side
from eval.experiment.experiment import Progress
from eval.experiment.run_folder import CONFIG, SUMMARY, read_config, read_summary
from eval.measures.measure import is_timing
from eval.sweep.origin import origin_of, point_name
from eval.sweep.point_folder import PointFolder
from eval.sweep.sweep_folder import numbered_point, point_of
from eval.tuning.study import TRIAL_FOLDERS
from lcm.errors import LcmError
from pipelines.config import building, command_line, composition, conf_folder, contracts
from pipelines.config.check import meant
from pipelines.config.command_line import Command
from pipelines.steps.point import evaluated, parts_of, told_of_external

SHARED = ("dataset", "judgements", *SETTINGS)
"""What decides what is asked and how it is measured: a side that is evaluated here takes it from the other."""
DEFAULT = "default"
"""The word for the configuration that nobody changed."""
EVALUATED = Path("runs") / "compared"
_FILES = ("summary.json", "per_query.parquet", "queries.parquet")


@dataclass(frozen=True, slots=True)
class RegressRequest:
    """What a gate is asked for: its two sides, by name."""

    baseline: str
    candidate: str | None
    """None: what the overrides describe."""
    name: str
    """Under which an alias is registered, where it does not say."""
    uri: str | None
    """Of MLflow."""
    overrides: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SideSource:
    """A side: a run, or a preset that is to be evaluated."""

    name: str
    folder: Path
    preset: Path | None = None
    """The YAML of its `system` choice."""


@dataclass(frozen=True, slots=True)
class CompareRequest:
    """What a comparison is asked for: its sides, by name, the baseline first."""

    sides: tuple[str, ...]
    name: str
    """Under which an alias is registered, where it does not say."""
    uri: str | None
    """Of MLflow."""
    overrides: tuple[str, ...]
    """Of all that is evaluated."""


class BuiltSide(NamedTuple):
    """A side that is to be evaluated, unless it was before."""

    name: str
    config: DictConfig
    overrides: tuple[str, ...]
    parts: Mapping[str, Any]


def two_sides(request: RegressRequest, into: Path, show: Progress) -> tuple[SideSource, SideSource]:
    """Find both sides, and evaluate what is not measured yet.

    Returns:
        baseline and candidate, each with the folder of a run.
    Raises:
        LcmError: if a side cannot be found, or overrides would change nothing.
    """
    ours = [override for override in request.overrides if not _is_of(override, ("regress", "tracking", "report"))]
    named, lookup = request.candidate, (request.name, request.uri, into)
    baseline = _found("baseline", request.baseline, *lookup)
    candidate = None if named is None else _found("candidate", named, *lookup)
    sides = [side for side in (baseline, candidate) if side is not None]
    for side in sides:
        if side.preset is None:  # refused before an evaluation that could not be compared
            read_side(side.folder, side.name, has_config=False)
    measured = next((side for side in sides if side.preset is None), None)
    if candidate is not None:
        settings = SHARED if measured is None else ()
        idle = [override for override in ours if not _is_of(override, settings)]
        if idle:
            raise LcmError(f"{idle[0]} changes nothing: both sides are given; leave it out, or leave the candidate out")
    shared = None if measured is None else _shared(measured)
    if candidate is None:
        config = _composed(ours, shared)
        found = building.resolved(config)
        require_same_settings(shared or {}, found)  # before an evaluation that could not be compared
        shared = found
        what = " ".join(ours) or "the default configuration"
        candidate = _evaluated(SideSource(f"{what} (evaluated now)", into / "candidate"), config, ours, show)
    elif shared is None:
        shared = building.resolved(_composed(ours, None))
    return tuple(  # type: ignore[return-value]  # two
        side if side.preset is None else _evaluated_preset(side, shared, show) for side in (baseline, candidate)
    )


def all_sides(request: CompareRequest, into: Path, show: Progress) -> list[SideSource]:
    """Find every side, each once, and evaluate what is not measured yet.

    What is evaluated is kept below `EVALUATED`, and found there again while its settings, data and code are the same.

    Returns:
        the baseline first, each with the folder of a run.
    Raises:
        LcmError: if a side cannot be found, or there is no second.
    """
    found = [one for i, text in enumerate(request.sides) for one in _asked(text, request, into, f"side{i + 1}")]
    measured = [one for one in found if isinstance(one, SideSource) and one.preset is None]
    shared = _shared(measured[0]) if measured and len(measured) < len(found) else None
    ready = [one if one in measured else _built(one, request.overrides, shared) for one in found]
    sides: dict[Path, SideSource] = {}
    built = sum(isinstance(one, BuiltSide) for one in ready)  # what is measured already takes no time
    evaluated_now = 0
    for one in ready:
        if isinstance(one, BuiltSide):
            show("sides to evaluate", evaluated_now, built)
            evaluated_now += 1
        side = one if isinstance(one, SideSource) else SideSource(one.name, _kept(one, show))
        sides.setdefault(side.folder.resolve(), side)
    if len(sides) < 2:
        raise LcmError(
            f"{' '.join(request.sides)} names {next(iter(sides.values())).name} alone: name another side, or a sweep"
        )
    return list(sides.values())


def evaluated_side(name: str, overrides: Sequence[str], show: Progress) -> tuple[SideSource, Mapping[str, Any]]:
    """A side that overrides describe, found again or evaluated now, as those of `all_sides`; and its parts."""
    config = _composed(overrides, None)
    built = BuiltSide(name, config, tuple(overrides), parts_of(config))
    return SideSource(name, _kept(built, show)), built.parts


def _asked(text: str, request: CompareRequest, into: Path, which: str) -> Sequence[SideSource | tuple[str, ...]]:
    """What a word of the command names: runs, a preset, or the overrides of systems that are to be evaluated."""
    path = Path(text)
    if path.is_dir() and (path / SUMMARY).is_file():
        summary = read_summary(path)
        if summary.get("kind") == "sweep":
            return _points(path, summary)
        if summary.get("kind") == "study":
            return _picked(path, summary)
    if path.exists():
        return [_found(which, text, request.name, request.uri, into)]
    if (numbered := numbered_point(path)) is not None:
        point, label = numbered
        return [SideSource(label, point)]
    if text == DEFAULT:
        return [()]
    if text in conf_folder.groups()["system"]:
        return [(f"system={text}",)]
    if "=" in text:
        return command_line.multirun(Command(tuple(shlex.split(text)))).points
    try:
        return [_found("side", text, request.name, request.uri, into)]
    except LcmError as error:  # an alias may be called like a system
        if hint := meant(text, [DEFAULT, *conf_folder.groups()["system"]]):
            raise LcmError(f"side {text}: no such system{hint} It is no run either: {error}") from error
        raise


def _points(folder: Path, summary: Mapping[str, Any]) -> list[SideSource]:
    """The points of a sweep that finished, behind what they were held against."""
    labels = {one["folder"]: one["label"] for one in summary["points"] if one["error"] is None}
    best = summary.get("best") or {}
    first = best.get("baseline")
    named = {first: labels.get(first, DEFAULT), **labels} if first else labels
    there = {name: label for name, label in named.items() if PointFolder(point_of(folder, name)).is_complete()}
    if not there:
        raise LcmError(f"{folder}: no point of this sweep finished; the same command tries them again")
    return [SideSource(label, folder / name) for name, label in there.items()]


def _picked(folder: Path, summary: Mapping[str, Any]) -> list[SideSource]:
    """What a study picked, behind the default that it was held against."""
    best = summary.get("best")
    if not best:
        raise LcmError(f"{folder}: this study has nothing to hold its pick against; repeat its command")
    trials = folder / TRIAL_FOLDERS
    named = {point_of(trials, best["baseline"]): DEFAULT, point_of(trials, best["folder"]): best["label"]}
    return [SideSource(label, trial) for trial, label in named.items()]


def _built(one: SideSource | tuple[str, ...], of_all: Sequence[str], shared: Mapping[str, Any] | None) -> BuiltSide:
    """What is to be evaluated, checked before anything is."""
    if isinstance(one, SideSource):
        assert one.preset is not None
        given = building.resolved(_composed(of_all, None)) if shared is None else shared
        chosen = _choosing(one.preset, one.folder)
        config = _composed(chosen, given)
        return BuiltSide(one.name, config, chosen, parts_of(config))
    overrides = (*of_all, *one)
    config = _composed(overrides, shared)
    return BuiltSide(" ".join(one) or DEFAULT, config, overrides, parts_of(config))


def _kept(built: BuiltSide, show: Progress) -> Path:
    """The folder of a run of a configuration: found again, or evaluated now."""
    dataset = built.parts["dataset"].load()
    resolved = building.resolved(built.config)
    kept = PointFolder(EVALUATED / point_name(resolved))
    EVALUATED.mkdir(parents=True, exist_ok=True)
    with FileLock(EVALUATED / ".lock"):
        origin = origin_of(resolved, dataset.digest, told_of_external(built.parts))
        if not (kept.is_complete() and kept.is_of(origin) and kept.damaged() is None and kept.without_sum() is None):
            kept.begin(origin, built.overrides, built.name)
            evaluated(built.config, kept.path, show, dataset, built.parts, built.overrides, resolved)
    return kept.path


def _found(which: str, text: str, name: str, uri: str | None, into: Path) -> SideSource:
    path = Path(text)
    if path.is_dir():
        presets = sorted({*path.glob("*.yaml"), *path.glob("**/system/*.yaml")} - {path / CONFIG})
        is_run = (path / SUMMARY).is_file() and read_summary(path).get("kind", "run") == "run"
        if is_run or not presets:
            return SideSource(text, path)
        systems = [preset for preset in presets if preset.parent.name == "system"] or presets
        if len(systems) > 1:
            names = ", ".join(preset.name for preset in systems)
            raise LcmError(f"{which} {text} holds {len(systems)} presets: name one of: {names}")
        return SideSource(text, into / which, systems[0])
    if path.is_file():
        if path.suffix in (".yaml", ".yml") and path.name != CONFIG:
            return SideSource(text, into / which, path)
        if path.name in (*_FILES, CONFIG):
            return SideSource(text, path.parent)
        raise LcmError(f"{which} {text} is neither a preset (.yaml) nor one of {', '.join(_FILES)}: name a run folder")
    from eval.tracking.registry import fetch_named

    run_id, folder = fetch_named(text, uri, into, f"{which} {text}", name)
    return replace(_found(which, str(folder), name, uri, into), name=f"{text} (MLflow run {run_id[:8]})")


def _shared(side: SideSource) -> dict[str, Any] | None:
    """The configuration of a run; None where only its numbers are at hand."""
    path = side.folder / CONFIG
    return building.resolved(OmegaConf.create(read_config(side.folder))) if path.is_file() else None


def _composed(overrides: Sequence[str], shared: Mapping[str, Any] | None) -> DictConfig:
    """The configuration that overrides describe, with what they do not name of `SHARED` taken from another."""
    named = _names(overrides)
    config = composition.composed([*([] if "arms" in named else ["arms=none"]), *overrides])
    contracts.refuse_unused(config, overrides)
    measures = {override.partition("=")[0].split(".")[1] for override in overrides if _is_of_measure(override)}
    with open_dict(config):
        if shared is not None and "experiment" not in named:
            for key in SHARED:
                if key != MEASURES and key in shared and key not in named:
                    config[key] = shared[key]
            others = {} if MEASURES in {one.partition("=")[0] for one in overrides} else shared.get(MEASURES, {})
            for name, node in others.items() if "_target_" not in others else ():  # which is how they were kept once
                if name not in measures:
                    config.measures[name] = node
        for name, node in list(config.measures.items()):  # no comparison asks for times, as for control arms
            if name not in measures and is_timing(node):
                config.measures.pop(name)
    return config


def _choosing(preset: Path, folder: Path) -> tuple[str, ...]:
    """The overrides that choose an exported preset.

    It is copied under a name of its own, for a choice of ours of the same name would be taken instead; what it brings
    along are choices of other groups beside its own.
    """
    name = f"{preset.stem}_{hashlib.sha256(preset.read_bytes()).hexdigest()[:8]}"
    place = folder.with_name(f"{folder.name}-preset").absolute()
    for group in conf_folder.groups() if preset.parent.name == "system" else ():
        for choice in sorted((preset.parent.parent / group).glob("*.yaml")):
            (place / group).mkdir(parents=True, exist_ok=True)
            shutil.copyfile(choice, place / group / choice.name)
    (place / "system").mkdir(parents=True, exist_ok=True)
    shutil.copyfile(preset, place / "system" / f"{name}.yaml")
    return f"hydra.searchpath=['file://{place}']", f"system={name}"


def _evaluated_preset(side: SideSource, shared: Mapping[str, Any] | None, show: Progress) -> SideSource:
    assert side.preset is not None
    chosen = _choosing(side.preset, side.folder)
    return _evaluated(side, _composed(chosen, shared), chosen, show)


def _evaluated(side: SideSource, config: DictConfig, overrides: Sequence[str], show: Progress) -> SideSource:
    evaluated(config, side.folder, show, overrides=overrides)
    return SideSource(side.name, side.folder)


def _names(overrides: Sequence[str]) -> set[str]:
    return {override.lstrip("+~").partition("=")[0].partition(".")[0] for override in overrides}


def _is_of(override: str, groups: Sequence[str]) -> bool:
    return bool(_names([override]) & set(groups))


def _is_of_measure(override: str) -> bool:
    return override.lstrip("+~").startswith(f"{MEASURES}.")
