"""What is kept of a configuration as overrides: a command that chooses the same again."""

from collections.abc import Iterator, Mapping
from typing import Any

from omegaconf import DictConfig

from lcm.plugins.settings.table import ABSENT
from pipelines.config import building, composition
from pipelines.config.preset_config import choices_like


def repeated(config: DictConfig, group: str) -> list[str] | None:
    """The overrides that make a group of a new configuration what it is in a kept one.

    Args:
        config: of a run, which names classes and no choices.
        group: such as dataset.
    Returns:
        The choice and its settings; None where the class is that of no choice here.
    """
    kept = building.resolved(config)[group]
    alike = choices_like(group, kept)
    if not alike:
        return None
    chosen = f"{group}={alike[0]}"
    return [chosen, *_changes(group, building.resolved(composition.composed([chosen]))[group], kept)]


def _changes(path: str, base: Any, value: Any) -> Iterator[str]:
    if isinstance(base, Mapping) and isinstance(value, Mapping):
        for name, child in value.items():
            yield from _changes(f"{path}.{name}", base.get(name, ABSENT), child)
    elif base is ABSENT:
        yield f"+{path}={composition.quoted(value)}"
    elif base != value or isinstance(base, bool) != isinstance(value, bool):
        yield f"{path}={composition.quoted(value)}"
