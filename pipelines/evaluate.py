"""Evaluate a memory system: compose, replay, measure, keep, log, show."""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from eval.datasets.dataset import Dataset, DatasetLoader
from eval.experiment import Experiment
from eval.measures.latency import Latency
from eval.run_folder import SUMMARY, begin_run, read_summary, write_run
from eval.tracking import Tracking, TrackingError
from lcm.embedder.cache import CachedEmbedder
from lcm.errors import LcmError
from lcm.memory import System
from lcm.paths import cache_dir
from pipelines import configuration
from pipelines.terminal import console, progress, show_points, show_run, warn

PARTS = ("dataset", "replay", "measures", "retention", "summary_quality", "memory", "latency", "arms", "tracking")
"""What the configuration builds."""


def main(arguments: Sequence[str]) -> int:
    """`lcm evaluate [GROUP=CHOICE ...] [KEY=VALUE ...] [-m]`."""
    command = configuration.command(arguments)
    if not command.is_run:
        configuration.run_task(evaluate, command)
        return 0

    def checked(config: DictConfig) -> None:
        configuration.refuse_unused(config, command.overrides)
        evaluate(config)

    points = checked_points(command) if command.is_multirun else []
    folder = configuration.claimed_folder(command)
    try:
        configuration.run_task(evaluate if command.is_multirun else checked, command, folder)
    finally:
        if command.is_multirun:
            show_points([(label, _measures(folder / below)) for label, below in points], folder)
        elif not any(folder.iterdir()):
            folder.rmdir()
    return 0


def checked_points(command: configuration.Command) -> list[tuple[str, Path]]:
    """Compose and build every run of a command, so that a typo in the last one stops the first.

    Returns:
        What tells each run from the others, and its folder below the folder of the command.
    Raises:
        LcmError: naming every run that cannot be built.
    """
    wanted = configuration.overrides_of_points(command)
    common = set(wanted[0]).intersection(*wanted)
    points: list[tuple[str, Path]] = []
    wrong: dict[str, list[str]] = {}
    errors: list[LcmError] = []
    for number, overrides in enumerate(wanted):
        label = " ".join(override for override in overrides if override not in common) or " ".join(overrides)
        try:
            point = configuration.point(command, overrides, number)
            for part in PARTS:
                configuration.build(point.config, part)
            configuration.flag(point.config, "cache")
            configuration.refuse_unused(point.config, overrides)
        except LcmError as error:
            errors.append(error)
            wrong.setdefault(str(error), []).append(label)
        else:
            points.append((label, point.folder))
    if errors:
        told = (_blamed(message, labels, len(wanted)) for message, labels in wrong.items())
        raise LcmError("; ".join(told)) from errors[0]
    return points


def _blamed(message: str, labels: Sequence[str], points: int) -> str:
    """The message, with the runs that it is about unless it is about all."""
    return message if len(labels) == points else f"{message} (in {', '.join(labels)})"


def evaluate(config: DictConfig) -> None:
    """One run: the story of the whole project."""
    started = time.perf_counter()
    folder = configuration.run_dir()
    begin_run(folder)
    loader: DatasetLoader = configuration.build(config, "dataset")
    system: System = configuration.build(config, "memory")
    tracking: Tracking = configuration.build(config, "tracking")
    experiment = _experiment(config, loader.load(), system)

    with tracking.logger() as log:
        with progress() as show:
            outcome = experiment.run(show)
        seconds = {"total": time.perf_counter() - started}
        summary = write_run(
            folder,
            outcome,
            experiment.dataset,
            identity(config),
            configuration.resolved_text(config),
            seconds,
        )
        show_run(summary, folder)
        try:
            where = log(folder)
        except TrackingError as error:
            warn(str(error))
        else:
            if where:
                console().print(f"Logged: {where}", highlight=False, markup=False)


def _measures(folder: Path) -> dict[str, Any] | None:
    """A run's measures, or None where it did not finish."""
    return read_summary(folder)["measures"] if (folder / SUMMARY).is_file() else None


def identity(config: DictConfig) -> dict[str, Any]:
    """The part of the configuration that the numbers depend on."""
    whole = configuration.resolved(config)
    return {key: value for key, value in whole.items() if key not in ("tracking", "latency", "cache")}


def _experiment(config: DictConfig, dataset: Dataset, system: System) -> Experiment:
    live_embedder = system.embedder
    if configuration.flag(config, "cache"):
        system = replace(system, embedder=CachedEmbedder(live_embedder, cache_dir() / "embeddings"))
    latency: Latency = configuration.build(config, "latency")
    return Experiment(
        dataset=dataset,
        system=system,
        replay=configuration.build(config, "replay"),
        retrieval=configuration.build(config, "measures"),
        retention=configuration.build(config, "retention"),
        summary_quality=configuration.build(config, "summary_quality"),
        latency=latency,
        live_embedder=live_embedder,
        arms=configuration.build(config, "arms") or {},
    )
