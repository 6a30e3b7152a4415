"""Where the sides of a comparison come from: folders, sweeps, MLflow, presets, overrides."""

import hashlib
import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from filelock import FileLock
from omegaconf import DictConfig, OmegaConf, open_dict

from eval.comparison.pairing import MEASURES, SETTINGS, comparable, require_same_settings
from eval.experiment.experiment import Progress
from eval.measures.measure import is_timing
from eval.run import CONFIG, SUMMARY, Run, folder_kind, read_summary
from eval.study.point import PointFolder, origin_of, point_name
from eval.study.settings import TRIAL_FOLDERS
from eval.study.sweep import numbered_point, point_of
from eval.tracking.registry import fetch_named
from lcm.errors import LcmError
from pipelines.config import building, command_line, composition, conf_folder, contracts
from pipelines.config.check import meant
from pipelines.config.command_line import Command
from pipelines.config.overrides import group_of, key_of
from pipelines.steps.point import evaluated, parts_of, told_of_external

SHARED = ("dataset", "judgements", *SETTINGS)
"""What decides what is asked and how it is measured: a side that is evaluated here takes it from the other."""
NAME = "unified"
"""Under which an alias is registered, where none is said."""
DEFAULT = "default"
"""The word for the configuration that nobody changed."""
EVALUATED = Path("runs") / "compared"
_FILES = ("summary.json", "per_query.parquet", "queries.parquet")


@dataclass(frozen=True, slots=True)
class SidesAsked:
    """What a comparison or a gate is asked for."""

    sides: tuple[str, ...]
    """By name, the baseline first."""
    name: str
    """Under which an alias is registered, where it does not say."""
    uri: str | None
    """Of MLflow."""
    overrides: tuple[str, ...]
    """Of all that is evaluated; of a gate of one side the candidate."""
    into: Path
    """The folder of the comparison."""


class Wanted(NamedTuple):
    """A side that is to be evaluated: what its overrides describe, or a preset."""

    name: str
    overrides: tuple[str, ...] = ()
    preset: Path | None = None
    """The YAML of its `system` choice."""
    place: Path = Path()
    """Beside which the preset is copied, and in which a gate evaluates it."""

    def chosen(self) -> tuple[str, ...]:
        """The overrides that describe it.

        A preset is copied under a name of its own, for a choice of ours of the same name would be taken instead; what
        it brings along are choices of other groups beside its own.
        """
        if self.preset is None:
            return self.overrides
        name = f"{self.preset.stem}_{hashlib.sha256(self.preset.read_bytes()).hexdigest()[:8]}"
        place = self.place.with_name(f"{self.place.name}-preset").absolute()
        for group in conf_folder.groups() if self.preset.parent.name == "system" else ():
            for choice in sorted((self.preset.parent.parent / group).glob("*.yaml")):
                (place / group).mkdir(parents=True, exist_ok=True)
                shutil.copyfile(choice, place / group / choice.name)
        (place / "system").mkdir(parents=True, exist_ok=True)
        shutil.copyfile(self.preset, place / "system" / f"{name}.yaml")
        return f"hydra.searchpath=['file://{place}']", f"system={name}"


class _Built(NamedTuple):
    """A side that is to be evaluated, unless it was before; checked before any is."""

    name: str
    config: DictConfig
    overrides: tuple[str, ...]
    parts: Mapping[str, Any]

    def run(self, show: Progress) -> Run:
        """The run of it: found again, or evaluated now."""
        dataset, resolved = self.parts["dataset"].load(), building.resolved(self.config)
        kept = PointFolder(EVALUATED / point_name(resolved))
        EVALUATED.mkdir(parents=True, exist_ok=True)
        with FileLock(EVALUATED / ".lock"):
            origin = origin_of(resolved, dataset.digest, told_of_external(self.parts))
            if not (
                kept.is_complete() and kept.is_of(origin) and kept.damaged() is None and kept.without_sum() is None
            ):
                kept.begin(origin, self.overrides, self.name)
                evaluated(self.config, kept.path, show, dataset, self.parts, self.overrides, resolved)
        return Run(kept.path, self.name)


def two_sides(asked: SidesAsked, show: Progress) -> tuple[Run, Run]:
    """Find both sides of a gate, the baseline first, and evaluate what is not measured yet; without a second, what the
    overrides describe."""
    ours = tuple(one for one in asked.overrides if group_of(one) not in ("regress", "tracking", "report"))
    found = [_found(which, text, asked) for which, text in zip(("baseline", "candidate"), asked.sides, strict=False)]
    runs = [comparable(one.folder, one.name) for one in found if isinstance(one, Run)]  # before any is evaluated
    shared = _config(runs[0]) if runs else None
    configs: dict[int, DictConfig] = {}
    if len(found) == 2:
        if idle := next((one for one in ours if runs or group_of(one) not in SHARED), None):
            raise LcmError(f"{idle} changes nothing: both sides are given; leave it out, or leave the candidate out")
        shared = building.resolved(_composed(ours, None)) if shared is None else shared
    else:
        named = " ".join(ours) or "the default configuration"
        found.append(Wanted(f"{named} (evaluated now)", ours, place=asked.into / "candidate"))
        configs[1] = _composed(ours, shared)
        described = building.resolved(configs[1])
        require_same_settings(shared or {}, described)
        shared = described
    for i, one in enumerate(found):
        if isinstance(one, Wanted):
            overrides = one.chosen()
            evaluated(configs.get(i) or _composed(overrides, shared), one.place, show, overrides=overrides)
            found[i] = Run(one.place, one.name)
    baseline, candidate = (comparable(one.folder, one.name) for one in found if isinstance(one, Run))
    return baseline, candidate


def all_sides(asked: SidesAsked, show: Progress) -> list[Run]:
    """Find every side, each once, and evaluate what is not measured yet.

    What is evaluated is kept below `EVALUATED`, and found there again while its settings, data and code are the same.
    """
    found = [one for i, text in enumerate(asked.sides) for one in _asked(text, asked, f"side{i + 1}")]
    runs = [one for one in found if isinstance(one, Run)]
    shared = _config(runs[0]) if runs and len(runs) < len(found) else None
    ready = [one if isinstance(one, Run) else _built(one, asked.overrides, shared) for one in found]
    sides: dict[Path, Run] = {}
    evaluated_now, built = 0, len(ready) - len(runs)  # what is measured already takes no time
    for one in ready:
        if isinstance(one, _Built):
            show("sides to evaluate", evaluated_now, built)
            evaluated_now += 1
        side = one if isinstance(one, Run) else one.run(show)
        sides.setdefault(side.folder.resolve(), side)
    if len(sides) < 2:
        alone = next(iter(sides.values())).name
        raise LcmError(f"{' '.join(asked.sides)} names {alone} alone: name another side, or a sweep")
    return [comparable(one.folder, one.name) for one in sides.values()]


def evaluated_side(name: str, overrides: Sequence[str], show: Progress) -> tuple[Run, Mapping[str, Any]]:
    """A side that overrides describe, found again or evaluated now, as those of `all_sides`; and its parts."""
    built = _built(Wanted(name, tuple(overrides)), (), None)
    return comparable(built.run(show).folder, name), built.parts


def _asked(text: str, asked: SidesAsked, which: str) -> Sequence[Run | Wanted]:
    """What a word of the command names: runs, a preset, or systems that are to be evaluated."""
    path = Path(text)
    if (kind := folder_kind(path)) in ("sweep", "study"):
        return (_points if kind == "sweep" else _picked)(path, read_summary(path))
    if path.exists():
        return [_found(which, text, asked)]
    if (numbered := numbered_point(path)) is not None:
        return [Run(*numbered)]
    if text == DEFAULT:
        return [Wanted(DEFAULT)]
    if text in conf_folder.groups()["system"]:
        return [Wanted(f"system={text}", (f"system={text}",))]
    if "=" in text:
        points = command_line.multirun(Command(tuple(shlex.split(text)))).points
        return [Wanted(" ".join(point) or DEFAULT, point) for point in points]
    try:
        return [_found("side", text, asked)]
    except LcmError as error:  # an alias may be called like a system
        if hint := meant(text, [DEFAULT, *conf_folder.groups()["system"]]):
            raise LcmError(f"side {text}: no such system{hint} It is no run either: {error}") from error
        raise


def _points(folder: Path, summary: Mapping[str, Any]) -> list[Run]:
    """The points of a sweep that finished, behind what they were held against."""
    labels = {one["folder"]: one["label"] for one in summary["points"] if one["error"] is None}
    first = (summary.get("best") or {}).get("baseline")
    named = {first: labels.get(first, DEFAULT), **labels} if first else labels
    runs = [Run(point_of(folder, name), label) for name, label in named.items()]
    if not (there := [run for run in runs if (run.folder / SUMMARY).exists()]):
        raise LcmError(f"{folder}: no point of this sweep finished; the same command tries them again")
    return there


def _picked(folder: Path, summary: Mapping[str, Any]) -> list[Run]:
    """What a study picked, behind the default that it was held against."""
    best, trials = summary.get("best"), folder / TRIAL_FOLDERS
    if not best:
        raise LcmError(f"{folder}: this study has nothing to hold its pick against; repeat its command")
    named = {point_of(trials, best["baseline"]): DEFAULT, point_of(trials, best["folder"]): best["label"]}
    return [Run(trial, label) for trial, label in named.items()]


def _built(one: Wanted, of_all: Sequence[str], shared: Mapping[str, Any] | None) -> _Built:
    if one.preset is None:
        overrides = (*of_all, *one.overrides)
    else:
        overrides = one.chosen()
        shared = building.resolved(_composed(of_all, None)) if shared is None else shared
    config = _composed(overrides, shared)
    return _Built(one.name, config, overrides, parts_of(config))


def _found(which: str, text: str, asked: SidesAsked) -> Run | Wanted:
    """What a path or a name of MLflow's names: a run, or a preset that is to be evaluated."""
    path = Path(text)
    if path.is_dir():
        presets = sorted({*path.glob("*.yaml"), *path.glob("**/system/*.yaml")} - {path / CONFIG})
        if folder_kind(path) == "run" or not presets:
            return Run(path, text)
        systems = [preset for preset in presets if preset.parent.name == "system"] or presets
        if len(systems) > 1:
            names = ", ".join(preset.name for preset in systems)
            raise LcmError(f"{which} {text} holds {len(systems)} presets: name one of: {names}")
        return Wanted(text, preset=systems[0], place=asked.into / which)
    if path.is_file():
        if path.suffix in (".yaml", ".yml") and path.name != CONFIG:
            return Wanted(text, preset=path, place=asked.into / which)
        if path.name in (*_FILES, CONFIG):
            return Run(path.parent, text)
        raise LcmError(f"{which} {text} is neither a preset (.yaml) nor one of {', '.join(_FILES)}: name a run folder")
    run_id, folder = fetch_named(text, asked.uri, asked.into, f"{which} {text}", asked.name)
    found, named = _found(which, str(folder), asked), f"{text} (MLflow run {run_id[:8]})"
    return found.having(named) if isinstance(found, Run) else found._replace(name=named)


def _config(run: Run) -> dict[str, Any] | None:
    """The configuration of a run; None where only its numbers are at hand."""
    return building.resolved(OmegaConf.create(run.config)) if run.config else None


def _composed(overrides: Sequence[str], shared: Mapping[str, Any] | None) -> DictConfig:
    """The configuration that overrides describe, with what they do not name of `SHARED` taken from another."""
    named = set(map(group_of, overrides))
    config = composition.composed([*([] if "arms" in named else ["arms=none"]), *overrides])
    contracts.refuse_unused(config, overrides)
    keys = list(map(key_of, overrides))
    measures = {key.split(".")[1] for key in keys if key.startswith(f"{MEASURES}.")}
    with open_dict(config):
        if shared is not None and "experiment" not in named:
            for key in SHARED:
                if key != MEASURES and key in shared and key not in named:
                    config[key] = shared[key]
            others = {} if MEASURES in keys else shared.get(MEASURES, {})
            for name, node in others.items() if "_target_" not in others else ():  # which is how they were kept once
                if name not in measures:
                    config.measures[name] = node
        for name, node in list(config.measures.items()):  # no comparison asks for times, as for control arms
            if name not in measures and is_timing(node):
                config.measures.pop(name)
    return config
