"""Configurations for tests: each composed once a process, and handed out as copies."""

import pickle
from collections.abc import Sequence
from functools import cache

from omegaconf import DictConfig

from pipelines.config import configuration


def composed(overrides: Sequence[str], pipeline: str = configuration.EVALUATE) -> DictConfig:
    """As `configuration.composed`; whoever gets it may change it."""
    config: DictConfig = pickle.loads(_composed(tuple(overrides), pipeline))  # a quarter of a deep copy's time
    return config


@cache
def _composed(overrides: tuple[str, ...], pipeline: str) -> bytes:
    return pickle.dumps(configuration.composed(overrides, pipeline))
