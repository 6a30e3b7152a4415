"""Where the two sides of a comparison come from: folders, MLflow, presets, overrides."""

import hashlib
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf, open_dict

from eval.experiment.experiment import Progress
from eval.experiment.run_folder import CONFIG, SUMMARY, read_config, read_summary
from eval.measures.measure import is_timing
from eval.regression.agreement import MEASURES, SETTINGS, require_same_settings
from lcm.errors import LcmError
from pipelines.config import building, composition, conf_folder
from pipelines.steps.point import evaluated

SHARED = ("dataset", "judgements", *SETTINGS)
"""What decides what is asked and how it is measured: a side that is evaluated here takes it from the other."""
_FILES = ("summary.json", "per_query.parquet", "queries.parquet")


@dataclass(frozen=True, slots=True)
class CompareRequest:
    """What a comparison is asked for: its two sides, by name."""

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


def compared_sides(request: CompareRequest, into: Path, show: Progress) -> tuple[SideSource, SideSource]:
    """Find both sides, and evaluate what is not measured yet.

    Returns:
        baseline and candidate, each with the folder of a run.
    Raises:
        LcmError: if a side cannot be found, or overrides would change nothing.
    """
    ours = [override for override in request.overrides if not _is_of(override, ("regress", "tracking"))]
    baseline = _found("baseline", request.baseline, request, into)
    candidate = None if request.candidate is None else _found("candidate", request.candidate, request, into)
    sides = [side for side in (baseline, candidate) if side is not None]
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
        candidate = _evaluated(SideSource(f"{what} (evaluated now)", into / "candidate"), config, show)
    elif shared is None:
        shared = building.resolved(_composed(ours, None))
    return tuple(  # type: ignore[return-value]  # two
        side if side.preset is None else _evaluated(side, _preset(side.preset, side.folder, shared), show)
        for side in (baseline, candidate)
    )


def _found(which: str, text: str, request: CompareRequest, into: Path) -> SideSource:
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

    run_id, folder = fetch_named(text, request.uri, into, f"{which} {text}", request.name)
    return replace(_found(which, str(folder), request, into), name=f"{text} (MLflow run {run_id[:8]})")


def _shared(side: SideSource) -> dict[str, Any] | None:
    """The configuration of a run; None where only its numbers are at hand."""
    path = side.folder / CONFIG
    return building.resolved(OmegaConf.create(read_config(side.folder))) if path.is_file() else None


def _composed(overrides: Sequence[str], shared: Mapping[str, Any] | None) -> DictConfig:
    """The configuration that overrides describe, with what they do not name of `SHARED` taken from another."""
    named = _names(overrides)
    config = composition.composed([*([] if "arms" in named else ["arms=none"]), *overrides])
    building.refuse_unused(config, overrides)
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


def _preset(preset: Path, folder: Path, shared: Mapping[str, Any]) -> DictConfig:
    """The configuration of an exported preset.

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
    return _composed([f"hydra.searchpath=['file://{place}']", f"system={name}"], shared)


def _evaluated(side: SideSource, config: DictConfig, show: Progress) -> SideSource:
    evaluated(config, side.folder, show)
    return SideSource(side.name, side.folder)


def _names(overrides: Sequence[str]) -> set[str]:
    return {override.lstrip("+~").partition("=")[0].partition(".")[0] for override in overrides}


def _is_of(override: str, groups: Sequence[str]) -> bool:
    return bool(_names([override]) & set(groups))


def _is_of_measure(override: str) -> bool:
    return override.lstrip("+~").startswith(f"{MEASURES}.")
