"""Refusal: everything that is wrong with a command line, told at once as far as it can be known."""

import re
from collections.abc import Iterator, Sequence

from omegaconf import DictConfig

from lcm.errors import LcmError
from pipelines.config import building, unused
from pipelines.config.composition import CompositionError
from pipelines.config.conf_folder import REFERENCE, slots


def with_other_reasons(error: CompositionError) -> LcmError:
    """The refusal of overrides that cannot be composed, with what is wrong with those that can: values that a part
    refuses, settings that nothing takes up."""
    config = error.cache.composed(error.others)
    about_unknown = re.compile(rf"\b({'|'.join(error.groups)})\b") if error.groups else None
    told = [one for one in _idle(config, error.others) if about_unknown is None or not about_unknown.search(one)]
    return LcmError("; ".join(dict.fromkeys([str(error), *told, *_refused(config)])))


def _idle(config: DictConfig, overrides: Sequence[str]) -> Iterator[str]:
    return unused.problems(building.as_written(config), overrides, slots())


def _refused(config: DictConfig) -> Iterator[str]:
    """What parts refuse of their settings; a part that others refer to is built with them."""
    plain = building.as_written(config)
    referred = set(REFERENCE.findall(str(plain))) | slots()
    for key, node in plain.items():
        if isinstance(node, dict) and key not in referred:
            try:
                building.build(config, key)
            except LcmError as error:
                yield str(error)
