"""A point: one composed configuration, run and kept. What evaluate, sweep, tune and regress have in common."""

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from eval.cache.loaded import loaded
from eval.cache.stage_cache import StageCache
from eval.dataset.dataset import Dataset
from eval.executor.executor import Executor
from eval.executor.none import NoExecutor
from eval.experiment.elsewhere import Apart
from eval.experiment.experiment import Experiment, Progress, rankings_of
from eval.experiment.run_folder import begin_run, write_run
from eval.experiment.workspace import WorkspaceEvaluator
from lcm.files import cache_dir
from lcm.memory.system import System
from lcm.retrieval.embedder.cache import CachedEmbedder
from pipelines.config import building

PARTS = (
    "dataset", "replay", "measures", "retention", "summary_quality", "memory", "latency", "arms", "executor",
    "tracking",
)  # fmt: skip
"""What the configuration builds."""
_BESIDE = ("tracking", "latency", "cache", "stages", "executor")
"""What changes no number."""


def evaluated(config: DictConfig, folder: Path, show: Progress) -> dict[str, Any]:
    """Run what a configuration describes and write its folder; returns the summary, as `read_summary` gives it.

    Raises:
        LcmError: if the folder holds a complete run already, or something in the configuration cannot be built.
    """
    begin_run(folder)
    return measured(config, experiment_of(config), folder, show)


def measured(config: DictConfig, experiment: Experiment, folder: Path, show: Progress) -> dict[str, Any]:
    """Run the experiment that a configuration describes and write its folder, which was begun."""
    started = time.perf_counter()
    outcome = experiment.run(show)
    seconds = {"total": time.perf_counter() - started}
    text = building.resolved_text(config)
    return write_run(folder, outcome, experiment.dataset, identity(config), text, seconds)


def identity(config: DictConfig) -> dict[str, Any]:
    """The part of the configuration that the numbers depend on."""
    return {key: value for key, value in building.resolved(config).items() if key not in _BESIDE}


def experiment_of(config: DictConfig, dataset: Dataset | None = None) -> Experiment:
    """The experiment that a configuration describes.

    Args:
        config: composed.
        dataset: loaded before; None = as the configuration says.
    """
    executor: Executor = building.build(config, "executor")
    is_apart = not isinstance(executor, NoExecutor)
    system, stages = _system(config)
    if dataset is None:
        dataset = loaded(building.build(config, "dataset"), stages)
    embedder = system.embedder
    return Experiment(
        dataset=dataset,
        system=system,
        replay=building.build(config, "replay"),
        retrieval=building.build(config, "measures"),
        retention=building.build(config, "retention"),
        summary_quality=building.build(config, "summary_quality"),
        latency=building.build(config, "latency"),
        live_embedder=embedder.embedder if isinstance(embedder, CachedEmbedder) else embedder,
        arms=building.build(config, "arms") or {},
        cache=stages,
        apart=Apart(executor, ComposedEvaluator(building.resolved(config))) if is_apart else None,
    )


@dataclass(frozen=True, slots=True)
class ComposedEvaluator:
    """Builds what asks workspaces from a configuration, wherever it is sent."""

    config: dict[str, Any]
    """Resolved."""

    def __call__(self, dataset: Dataset) -> WorkspaceEvaluator:
        config: DictConfig = OmegaConf.create(self.config)
        system, stages = _system(config)
        return WorkspaceEvaluator(
            dataset=dataset,
            system=system,
            replay=building.build(config, "replay"),
            rankings=rankings_of(system, building.build(config, "arms") or {}, dataset),
            retention=building.build(config, "retention"),
            latency=building.build(config, "latency"),
            live_embedder=system.embedder,
            cache=stages,
        )


def _system(config: DictConfig) -> tuple[System, StageCache | None]:
    """The memory system, and where its stages are kept: its embeddings then are too."""
    system: System = building.build(config, "memory")
    if not building.flag(config, "cache"):
        return system, None
    embedder = CachedEmbedder(system.embedder, cache_dir() / "embeddings")
    return replace(system, embedder=embedder), building.build(config, "stages")
