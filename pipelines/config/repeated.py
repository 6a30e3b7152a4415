"""What is kept of a configuration as overrides: a command that chooses the same again."""

from collections.abc import Iterator, Mapping
from typing import Any

from omegaconf import DictConfig

from lcm.plugins.settings.tables import ABSENT
from pipelines.config import building, composition
from pipelines.config.preset_config import choices_like


def repeated_dataset(config: DictConfig) -> list[str] | None:
    """The overrides by which a new configuration loads and lays out the dataset of a kept one.

    Args:
        config: of a run, which names classes and no choices.
    Returns:
        Choices and their settings; None where a class is that of no choice here.
    """
    parts = [_repeated(config, "dataset")]
    if "replay" in config:
        parts.append(_repeated(config, "replay"))
        names = config.get("distractors", {}) if config.replay.get("distractors") else {}
        parts += [_repeated(config, "dataset", str(name)) for name in names]
    return None if None in parts else [one for part in parts for one in part or []]


def _repeated(config: DictConfig, group: str, distractors: str | None = None) -> list[str] | None:
    """What chooses a group again, or distractors from that group; nothing where every configuration begins so."""
    path = group if distractors is None else f"distractors.{distractors}"
    kept = _at(building.resolved(config), path)
    alike = choices_like(group, kept)
    if not alike:
        return None
    begin = _at(building.resolved(composition.composed([])), path)
    if kept == begin and path != "dataset":
        return []
    chosen = f"{group}={alike[0]}"
    if distractors is not None:
        chosen = f"{'+' if begin is ABSENT else ''}{group}@{path}={alike[0]}"
    return [chosen, *_changes(path, _at(building.resolved(composition.composed([chosen])), path), kept)]


def _at(config: Any, path: str) -> Any:
    for name in path.split("."):
        config = config.get(name, ABSENT) if config is not ABSENT else ABSENT
    return config


def _changes(path: str, base: Any, value: Any) -> Iterator[str]:
    if isinstance(base, Mapping) and isinstance(value, Mapping):
        for name, child in value.items():
            yield from _changes(f"{path}.{name}", base.get(name, ABSENT), child)
    elif base is ABSENT:
        yield f"+{path}={composition.quoted(value)}"
    elif base != value or isinstance(base, bool) != isinstance(value, bool):
        yield f"{path}={composition.quoted(value)}"
