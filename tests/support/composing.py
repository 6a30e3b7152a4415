"""Configurations for tests: each composed once a process, and handed out as copies."""

import pickle
from collections.abc import Sequence
from functools import cache

from omegaconf import DictConfig

from pipelines.config import composition, conf_folder


def composed(overrides: Sequence[str], pipeline: str = conf_folder.EVALUATE) -> DictConfig:
    """As `composition.composed`; whoever gets it may change it."""
    config: DictConfig = pickle.loads(_composed(tuple(overrides), pipeline))  # a quarter of a deep copy's time
    return config


@cache
def _composed(overrides: tuple[str, ...], pipeline: str) -> bytes:
    return pickle.dumps(composition.composed(overrides, pipeline))
