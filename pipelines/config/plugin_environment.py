"""The `LCM_*` variables of lossless-claw, as overrides of ours."""

import logging
import os
from collections.abc import Sequence

from omegaconf import OmegaConf

from lcm.plugins.settings.environment import unusable, variable_of, yaml_overrides
from pipelines.config.composition import chosen, quoted
from pipelines.config.conf_folder import EVALUATE, groups
from pipelines.config.explanation import paths

_log = logging.getLogger(__name__)


def environment_overrides(overrides: Sequence[str], pipeline: str = EVALUATE) -> tuple[str, ...]:
    """What the `LCM_*` variables of lossless-claw ask for, as overrides: above every preset, below the command line.

    What cannot be read, what nobody knows, and what the chosen configuration has no key for is told as a warning,
    unless it is another command's.
    """
    for problem in unusable(os.environ):
        _log.warning("%s", problem)
    wanted = yaml_overrides(os.environ)
    if not wanted:
        return ()
    known = set(paths("", OmegaConf.to_container(chosen(overrides, pipeline))))
    for key in sorted(wanted.keys() - known):
        group = key.partition(".")[0]
        if group in known:
            choices = ", ".join(groups()[group])
            _log.warning("%s has no key %s here: choose another %s of: %s", variable_of(key), key, group, choices)
    return tuple(f"{key}={quoted(value)}" for key, value in wanted.items() if key in known)
