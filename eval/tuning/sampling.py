"""Samplers and pruners of a study, by Optuna."""

import hashlib
import warnings
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.pruners import BasePruner, NopPruner, SuccessiveHalvingPruner
from optuna.samplers import BaseSampler, NSGAIISampler, RandomSampler, TPESampler
from optuna.study import Study as OptunaStudy
from optuna.trial import FrozenTrial

from eval.tuning.rungs import FACTOR
from eval.tuning.study import Study


class NumberedSampler(BaseSampler):
    """Draws a trial's values by the seed, its number, the key, and the trials that are finished.

    A sampler that keeps its own generator starts again from the seed in each process, so that a study which goes on
    would propose what it has, and two processes the same. Here a study of one process that was stopped and goes on
    makes the very trials that it would have made.
    """

    def __init__(self, settings: Study) -> None:
        self._settings = settings
        self._at: tuple[int, BaseSampler] | None = None

    def infer_relative_search_space(self, study: OptunaStudy, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        return self._of(trial).infer_relative_search_space(study, trial)

    def sample_relative(
        self, study: OptunaStudy, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        return self._of(trial).sample_relative(study, trial, search_space)

    def sample_independent(
        self, study: OptunaStudy, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        own = self._seeded(trial.number, param_name)
        return own.sample_independent(study, trial, param_name, param_distribution)

    def _of(self, trial: FrozenTrial) -> BaseSampler:
        if self._at is None or self._at[0] != trial.number:
            self._at = (trial.number, self._seeded(trial.number, ""))
        return self._at[1]

    def _seeded(self, number: int, key: str) -> BaseSampler:
        settings = self._settings
        digest = hashlib.sha256(f"{settings.seed} {number} {key}".encode()).digest()
        seed = int.from_bytes(digest[:4], "big")
        match settings.sampler:
            case "tpe":
                return TPESampler(seed=seed, n_startup_trials=settings.startup_trials)
            case "random":
                return RandomSampler(seed=seed)
            case _:
                return NSGAIISampler(seed=seed, population_size=max(2, settings.startup_trials))


def pruner(settings: Study) -> BasePruner:
    """Stops a trial at a rung unless it is among the best one in `FACTOR` of those that have reached it."""
    if settings.pruner == "none":
        return NopPruner()
    return SuccessiveHalvingPruner(min_resource=1, reduction_factor=FACTOR)


def quieten() -> None:
    """Optuna tells of each trial and of each experimental part; the progress of a study is told by others."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
    warnings.filterwarnings("ignore", message="The reported value is ignored")  # of a trial that is made again
    warnings.filterwarnings("ignore", message="Heartbeat of storage is supposed to be used")
