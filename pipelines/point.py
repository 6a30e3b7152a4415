"""A point: one composed configuration, run and kept. What evaluate, sweep, tune and regress have in common."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from eval.datasets.dataset import Dataset, DatasetLoader
from eval.experiment import Experiment, Progress
from eval.measures.latency import Latency
from eval.run_folder import begin_run, write_run
from lcm.embedder.cache import CachedEmbedder
from lcm.memory import System
from lcm.paths import cache_dir
from pipelines import configuration

PARTS = ("dataset", "replay", "measures", "retention", "summary_quality", "memory", "latency", "arms", "tracking")
"""What the configuration builds."""


def evaluated(config: DictConfig, folder: Path, show: Progress) -> dict[str, Any]:
    """Run what a configuration describes and write its folder; returns the summary, as `read_summary` gives it.

    Raises:
        LcmError: if the folder holds a complete run already, or something in the configuration cannot be built.
    """
    started = time.perf_counter()
    begin_run(folder)
    experiment = experiment_of(config)
    outcome = experiment.run(show)
    seconds = {"total": time.perf_counter() - started}
    text = configuration.resolved_text(config)
    return write_run(folder, outcome, experiment.dataset, identity(config), text, seconds)


def identity(config: DictConfig) -> dict[str, Any]:
    """The part of the configuration that the numbers depend on."""
    whole = configuration.resolved(config)
    return {key: value for key, value in whole.items() if key not in ("tracking", "latency", "cache", "stages")}


def experiment_of(config: DictConfig, dataset: Dataset | None = None) -> Experiment:
    """The experiment that a configuration describes.

    Args:
        config: composed.
        dataset: loaded before; None = as the configuration says.
    """
    if dataset is None:
        loader: DatasetLoader = configuration.build(config, "dataset")
        dataset = loader.load()
    system: System = configuration.build(config, "memory")
    live_embedder = system.embedder
    stages = None
    if configuration.flag(config, "cache"):
        stages = configuration.build(config, "stages")
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
        cache=stages,
    )
