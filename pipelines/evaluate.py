"""Evaluate a memory system: compose, replay, measure, keep, log, show."""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from lcm.embedder.cache import CachedEmbedder
from omegaconf import DictConfig

from eval.datasets.dataset import Dataset, DatasetLoader
from eval.experiment import Experiment
from eval.measures.latency import Latency
from eval.run_folder import write_run
from eval.tracking import TrackingError
from lcm.memory import System
from lcm.paths import cache_dir
from pipelines import configuration
from pipelines.terminal import console, progress, show_run, warn


def main(arguments: Sequence[str]) -> int:
    """`lcm evaluate [GROUP=CHOICE ...] [KEY=VALUE ...] [-m]`."""
    configuration.command_line("lcm evaluate", arguments)
    overrides = [argument for argument in arguments if not argument.startswith("-") and "=" in argument]
    if {"-m", "--multirun"} & set(arguments):
        validate(overrides)
    configuration.run_task(evaluate)
    return 0


def validate(overrides: Sequence[str]) -> None:
    """Compose and build every point of a multirun, so that a typo in the last one stops the first."""
    for point in configuration.points(overrides):
        config = configuration.composed(point)
        for key in ("dataset", "replay", "measures", "memory", "latency", "arms", "tracking"):
            configuration.build(config, key)


def evaluate(config: DictConfig) -> None:
    """One run: the story of the whole project."""
    started = time.perf_counter()
    loader: DatasetLoader = configuration.build(config, "dataset")
    system: System = configuration.build(config, "memory")
    tracking = configuration.build(config, "tracking")
    experiment = _experiment(config, loader.load(), system)
    folder = configuration.run_dir()

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
        where = tracking.log(folder)
    except TrackingError as error:
        warn(str(error))
    else:
        if where:
            console().print(f"Logged: {where}", highlight=False)


def identity(config: DictConfig) -> dict[str, Any]:
    """The part of the configuration that the numbers depend on."""
    whole = configuration.resolved(config)
    return {key: value for key, value in whole.items() if key not in ("tracking", "latency", "cache")}


def _experiment(config: DictConfig, dataset: Dataset, system: System) -> Experiment:
    live_embedder = system.embedder
    if config.cache:
        system = replace(system, embedder=CachedEmbedder(live_embedder, cache_dir() / "embeddings"))
    latency: Latency = configuration.build(config, "latency")
    return Experiment(
        dataset=dataset,
        system=system,
        replay=configuration.build(config, "replay"),
        retrieval=configuration.build(config, "measures"),
        latency=latency,
        live_embedder=live_embedder,
        arms=configuration.build(config, "arms") or {},
    )
