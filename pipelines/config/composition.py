"""Composition: overrides become configurations, by Hydra's Compose API; what many have in common is composed once."""

import json
import pickle
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, OverrideType
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf, open_dict

from lcm.errors import LcmError
from pipelines.config import explanation, hydra_speed, trust
from pipelines.config.conf_folder import EVALUATE, conf_dir, config_name, groups
from pipelines.config.explanation import CONFIGURATION_ERRORS

_PRESETS = frozenset({"system", "experiment", "sweep"})
"""Groups of which nothing need be chosen."""
_SPECIAL, _MARKED = re.compile(r"""([\\()\[\]{}:=,\s"'])"""), r"\\\1"


class CompositionError(LcmError):
    """Overrides that cannot be composed: the text has a reason for each of them."""

    def __init__(
        self, reasons: Sequence[str], others: Sequence[str], groups: Collection[str], cache: "CompositionCache"
    ) -> None:
        super().__init__("; ".join(dict.fromkeys(reasons)))
        self.others = tuple(others)
        """The overrides that can be composed."""
        self.cache = cache
        """Composes them without reading their files again."""
        self.groups = frozenset(groups)
        """Of which no choice is known: what is said of their settings is said of another choice."""


def composed(overrides: Sequence[str], pipeline: str = EVALUATE) -> DictConfig:
    """Compose the configuration of a pipeline.

    Raises:
        CompositionError: naming every key that is wrong, its value and the remedy.
    """
    return without_hydra(composed_whole(overrides, pipeline))


def composed_whole(overrides: Sequence[str], pipeline: str = EVALUATE) -> DictConfig:
    """As `composed`, Hydra's own settings included, below `hydra`."""
    return _composed_or_refused(overrides, CompositionCache(pipeline))


def _composed_or_refused(overrides: Sequence[str], cache: "CompositionCache") -> DictConfig:
    try:
        return _composed_plainly(overrides, cache.pipeline)
    except (*CONFIGURATION_ERRORS, LcmError) as error:
        raise _all_refused(overrides, cache, error) from error


def _all_refused(overrides: Sequence[str], cache: "CompositionCache", first: Exception) -> CompositionError:
    """Overrides are composed on top of those that could be, in two parts until one alone is refused: first where
    choices are searched for, then choices, which decide what settings there are; settings of a group whose choice is
    refused, or that a refused preset may choose of, are passed over."""
    groups_refused, reasons = set[str](), dict[str, str]()

    def both(others: list[str], more: Sequence[str], error: Exception | None = None) -> list[str]:
        for part in _parted(more, error):
            others = added(others, part)
        return others

    def added(others: list[str], more: Sequence[str]) -> list[str]:
        more = [one for one in more if _is_choosing(one) or _group(one) not in groups_refused]
        asked = [*others, *more]
        try:
            if any(map(_is_choosing, more)):
                cache.compose_choices([one for one in asked if _is_choosing(one)])
            if more and not cache.laid_over(asked):
                if len(more) > 1 and not any(map(_is_choosing, more)):
                    return both(others, more)  # which costs less than to compose what is likely refused
                _composed_plainly(asked, cache.pipeline)
        except (*CONFIGURATION_ERRORS, LcmError) as error:
            if len(more) > 1:
                return both(others, more, error)
            reasons[more[0]] = _reason(error, asked, cache.pipeline)
            if _is_choosing(more[0]):
                groups_refused.update(groups() if _group(more[0]) in _PRESETS else (_group(more[0]),))
            return others
        return asked

    in_order = sorted(overrides, key=lambda one: (not one.startswith("hydra."), not _is_choosing(one)))
    others = both([], in_order, first) if len(overrides) > 1 else []
    told = [reasons[override] for override in overrides if override in reasons]
    return CompositionError(told or [_reason(first, overrides, cache.pipeline)], others, groups_refused, cache)


def _parted(overrides: Sequence[str], error: Exception | None) -> tuple[Sequence[str], Sequence[str]]:
    """Those that an error does not speak of, which are then likely composed at once, and the others; or two halves."""
    text = getattr(error, "missing_cfg_file", None) or f"{error} {error and error.__cause__}"
    words = set(re.split(r"[^\w-]+", text))
    said = {one for one in overrides if words & set(re.split(r"[.=@/]", one.lstrip("+~")))}
    said -= {one for one in overrides if one.startswith(trust.SEARCH_PATH)}  # without it no choice there is known
    of_groups = {_group(one) for one in said if _is_choosing(one)}
    if of_groups & {*_PRESETS, "hydra"}:
        of_groups.update(groups())
    said.update(one for one in overrides if not _is_choosing(one) and _group(one) in of_groups)
    if 0 < len(said) < len(set(overrides)):  # one that stands twice is one
        return [one for one in overrides if one not in said], [one for one in overrides if one in said]
    return overrides[: len(overrides) // 2], overrides[len(overrides) // 2 :]


def _reason(error: Exception, overrides: Sequence[str], pipeline: str) -> str:
    try:
        with explained(overrides, pipeline):
            raise error
    except LcmError as told:
        return str(told)


def _group(override: str) -> str:
    """The group that an override chooses of, or whose choice it sets something in."""
    return re.split(r"[.=@]", override.lstrip("+~"), maxsplit=1)[0]


def _is_choosing(override: str) -> bool:
    """Whether it decides which settings there are."""
    key = override.lstrip("+~").partition("=")[0].partition("@")[0]
    return key in groups() or key.startswith("hydra")


def _composed_plainly(overrides: Sequence[str], pipeline: str) -> DictConfig:
    """Compose, Hydra's own settings included.

    Raises:
        HydraException or OmegaConfBaseException: as Hydra has it.
        LcmError: if a group is left without a choice.
    """
    for override in overrides:
        place, _, choice = override.partition("=")
        group = place.partition("@")[0]
        if choice in ("", "null") and group in groups() and group not in _PRESETS:
            raise LcmError(f"{override}: no such choice; choose one of: {', '.join(groups()[group])}")
    named = [_parsed_once(override) for override in overrides]
    searched = [override.value() for override in named if override.key_or_group == trust.SEARCH_PATH]
    folders = [folder for places in searched for folder in trust.searched_folders(places)]
    for folder in folders:
        if not folder.is_dir():
            raise LcmError(
                f"{trust.SEARCH_PATH}: no such folder {str(folder)!r}; name one that holds groups of choices"
            )
    whole = _composed_whole(overrides, pipeline, folders)
    usual = None
    if searched:
        usual = _hydra_alone(tuple(str(one.input_line) for one in named if _is_hydras(one)), pipeline)
    trust.check_whole(whole, usual, [override.key_or_group for override in named])
    _check_choices(whole, [conf_dir(), *folders])
    return whole


def _check_choices(whole: DictConfig, folders: Sequence[Path]) -> None:
    """Refuse a choice whose YAML is not what its group takes: a component, settings of the whole configuration, or a
    map.

    Args:
        folders: that choices are looked for in, the first where it is found being the one.
    Raises:
        LcmError: naming the choice and its file.
    """
    for group, choice in whole.hydra.runtime.choices.items():
        if group not in groups() or group not in whole:
            continue
        node = whole[group]
        lacking, remedy = "no map", "write NAME: and its settings there"
        if group in _PRESETS:
            lacking, remedy = "without effect", "write KEY: VALUE there, below a first line # @package _global_"
        elif trust.offered()[group]:
            if OmegaConf.is_dict(node) and trust.TARGET in node:
                continue
            lacking = "no component"
            remedy = f"write _target_: CLASS and its settings there, as in conf/{group}/{groups()[group][-1]}.yaml"
        elif OmegaConf.is_dict(node):
            continue
        wrong = "is a list" if OmegaConf.is_list(node) else "sets nothing" if not node else f"is {lacking}"
        path = next((path for path in (folder / group / f"{choice}.yaml" for folder in folders) if path.is_file()), "")
        choices = ", ".join(groups()[group])
        raise LcmError(f"{group}={choice}: {path or 'it'} {wrong}: {remedy}, or choose one of: {choices}")


@contextmanager
def _apart() -> Iterator[None]:
    """Let nothing of a composition be left, and one that goes on around this, as in a launcher's worker, go on."""
    around = GlobalHydra.instance().hydra
    GlobalHydra.instance().clear()
    try:
        yield
    finally:
        GlobalHydra.instance().hydra = around


def _composed_whole(overrides: Sequence[str], pipeline: str, folders: Sequence[Path] = ()) -> DictConfig:
    trust.guard_resolvers()
    with _apart(), hydra_speed.sped_up(), initialize_config_dir(version_base="1.3", config_dir=str(conf_dir())):
        if folders:
            loader = GlobalHydra.instance().config_loader()
            found = loader.compute_defaults_list(config_name(pipeline), list(overrides), RunMode.RUN).defaults
            trust.check_inside(folders, [str(one.config_path) for one in found])
        try:
            whole = compose(config_name(pipeline), list(overrides), return_hydra_config=True)
        except AssertionError as error:  # OmegaConf's, where a key is added below one that is null
            added = next((one for one in reversed(overrides) if one.startswith("+")), overrides[-1])
            raise LcmError(
                f"{added}: what stands above that key holds no settings: set it first, or leave this out"
            ) from error
    return _without_settings_of_no_measure(whole, overrides)


def _without_settings_of_no_measure(whole: DictConfig, overrides: Sequence[str]) -> DictConfig:
    """Take out what a preset sets of a measure that is not chosen; what a command itself sets stays, to be refused."""
    named = {override.lstrip("+~").partition("=")[0] for override in overrides}
    with open_dict(whole):
        for name in settings_of_no_measure(OmegaConf.to_container(whole)):  # type: ignore[arg-type]
            if not any(key.startswith(f"measures.{name}") for key in named):
                del whole.measures[name]
    return whole


def settings_of_no_measure(plain: Mapping[str, Any]) -> list[str]:
    """The names of measures of which there are settings and no more, for the choice of `measures` leaves them out."""
    measures = plain.get("measures") or {}
    return [name for name, node in measures.items() if isinstance(node, dict) and "_target_" not in node]


@lru_cache(maxsize=16)
def _hydra_alone(overrides: tuple[str, ...], pipeline: str) -> DictConfig:
    """Hydra's own settings as the package and the command have them."""
    whole: DictConfig = _composed_whole(overrides, pipeline).hydra
    return whole


def _is_hydras(override: Override) -> bool:
    """Whether it sets one of Hydra's own, but no place to search."""
    key = override.key_or_group
    return key.startswith(("hydra.", "hydra/")) and key != trust.SEARCH_PATH


def without_hydra(whole: DictConfig) -> DictConfig:
    """A configuration without Hydra's own settings."""
    with open_dict(whole):
        del whole["hydra"]
    return whole


@contextmanager
def explained(overrides: Sequence[str] = (), pipeline: str = EVALUATE) -> Iterator[None]:
    """What goes wrong inside with these overrides becomes an LcmError."""

    def without(key: str) -> DictConfig:
        return chosen([override for override in overrides if override.partition("=")[0] != key], pipeline)

    with explanation.explained(without, pipeline):
        yield


def chosen(overrides: Sequence[str], pipeline: str) -> DictConfig:
    """The configuration with the choices that the overrides make, and nothing else of them.

    Raises:
        HydraException or OmegaConfBaseException: as Hydra has it, if they cannot be made.
        LcmError: if one is no choice.
    """
    choosing = {"hydra.searchpath", *groups()}
    said = (override.partition("=") for override in overrides)
    chosen_by = tuple(f"{key}={value}" for key, _, value in said if key in choosing and not value.startswith("{"))
    return _composed_of(chosen_by, pipeline)


@lru_cache(maxsize=16)
def _composed_of(choosing: tuple[str, ...], pipeline: str) -> DictConfig:
    """Once for all points of a sweep that have the same mistake."""
    asked = [str(one.input_line) for one in parsed(choosing) if not one.is_sweep_override()]
    return without_hydra(_composed_plainly(asked, pipeline))


def parsed(overrides: Sequence[str]) -> list[Override]:
    """Overrides as Hydra reads them."""
    return OverridesParser.create().parse_overrides(list(overrides))


def quoted(value: Any) -> str:
    """A value as Hydra reads it back, letter by letter."""
    if isinstance(value, list):
        return f"[{','.join(map(quoted, value))}]"
    if isinstance(value, Mapping):
        marked = (f"{_SPECIAL.sub(_MARKED, str(name))}:{quoted(child)}" for name, child in value.items())
        return f"{{{','.join(marked)}}}"
    if not isinstance(value, str):
        return json.dumps(value)
    text = re.sub(r"(\\*)\$\{", lambda found: found[1] * 2 + r"\${", value)
    return '"' + re.sub(r'(\\*)("|$)', lambda found: found[1] * 2 + (r"\"" if found[2] else ""), text) + '"'


class CompositionCache:
    """The configurations of one command's points: what they choose is composed once, their settings laid over copies.

    Equal to composing each; whatever is out of the ordinary is composed from the files, so that errors are the usual
    ones too.
    """

    def __init__(self, pipeline: str = EVALUATE) -> None:
        self.pipeline = pipeline
        self._chosen: dict[tuple[str, ...], bytes] = {}

    def composed(self, overrides: Sequence[str]) -> DictConfig:
        """Raises as `composed`, the module's own."""
        return self.laid_over(overrides) or without_hydra(_composed_or_refused(overrides, self))

    def compose_choices(self, choosing: Sequence[str]) -> None:
        """Compose choices, so that settings can be laid over them.

        Raises:
            HydraException, OmegaConfBaseException or LcmError: if they cannot be composed.
        """
        self._choice(tuple(str(_parsed_once(override).input_line) for override in choosing))

    def laid_over(self, overrides: Sequence[str]) -> DictConfig | None:
        """None where a configuration cannot be made this way."""
        try:
            read = [_parsed_once(override) for override in overrides]
            choosing = tuple(str(override.input_line) for override in read if _is_choice(override))
            settings = [override for override in read if not _is_choice(override)]
            if not all(map(_is_setting, settings)):
                return None
            config = self._choice(choosing)
            if any(not _is_scalar_of(config, override.key_or_group) for override in settings):
                return None
            for override in settings:
                OmegaConf.update(config, override.key_or_group, override.value(), merge=True)
        except (*CONFIGURATION_ERRORS, LcmError):
            return None
        return config

    def _choice(self, choosing: tuple[str, ...]) -> DictConfig:
        if choosing not in self._chosen:
            whole = _composed_plainly(choosing, self.pipeline)
            self._chosen[choosing] = pickle.dumps(without_hydra(whole))
        config: DictConfig = pickle.loads(self._chosen[choosing])  # noqa: S301  # our own; a quarter of a deep copy's time
        return config


@lru_cache(maxsize=4096)
def _parsed_once(override: str) -> Override:
    return parsed([override])[0]


def _is_choice(override: Override) -> bool:
    """Whether it decides which files are taken, and for Hydra's own settings: they change nothing of ours."""
    key = override.key_or_group
    return key in groups() or "/" in key or key.startswith("hydra.")


def _is_setting(override: Override) -> bool:
    return override.type == OverrideType.CHANGE and override.package is None and not override.is_sweep_override()


def _is_scalar_of(config: DictConfig, key: str) -> bool:
    """Whether a key has a dot, or is no group of the user's own that is merely unknown here."""
    return "." in key or (not OmegaConf.is_config(config._get_node(key)) and config._get_node(key) is not None)
