"""The check of overrides: they are held against the tree of all YAMLs, before Hydra composes and before it is imported.

Group, choice and key are known here; type and range are the components' own, told where they are built.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from lcm import consent
from lcm.errors import LcmError
from pipelines.config import conf_folder
from pipelines.config.conf_folder import EVALUATE, PRESETS, Choosing, Chosen, Tree, at, groups, paths, written_as
from pipelines.config.overrides import Asked, asked

SEARCH_PATH = "hydra.searchpath"
ALIKE = 70
"""So alike, of 100, a word is to one that is suggested."""
_ELSEWHERE = {
    "answerer": "`lcm expand-query` and `mcp`",
    "space": "`lcm tune`",
    "recall": "`lcm grep`, `describe`, `expand`, `expand-query` and `mcp`",
}
"""Group -> the commands that it belongs to, where that is not all."""
_IN_PLACE_OF_A_CHOICE = {
    "system": "; a memory of others is measured by system=external external.command=[PROGRAM] (docs/external.md)",
    "measures": "; one measure alone is named in a list, measures.retrieval.names=[{measure}]",
}
"""Group -> what may be meant by a word that is like none of its choices."""
_NAMES_ELSEWHERE = {
    **dict.fromkeys(("k", "limit", "max_results", "n_results", "top_k"), "ranking.stages.limit.n"),
    **dict.fromkeys(("embedding", "embedding_model", "embeddings"), "embedder"),
    **dict.fromkeys(("llm", "model"), "language_model"),
    **dict.fromkeys(("metric", "metrics"), "measures"),
    **dict.fromkeys(("data", "corpus"), "dataset"),
    "memory_system": "system",
}
"""What other programs call a key -> the key."""
_MOST = 3
"""So many that are near, or that have a key, are named."""


class WrongOverridesError(LcmError):
    """Overrides that cannot be meant: the text has a reason for each of them."""

    def __init__(self, reasons: Collection[str], others: Sequence[str], groups_refused: Collection[str]) -> None:
        super().__init__("; ".join(dict.fromkeys(reasons)))
        self.others = tuple(others)
        """The overrides that can be composed."""
        self.groups = frozenset(groups_refused)
        """Of which no choice is known: what is said of their settings is said of another choice."""


def checked(overrides: Sequence[str], pipeline: str = EVALUATE) -> "Check":
    """Hold overrides against the tree; whatever is wrong is told at once, its value and the remedy."""
    check = Check(overrides, pipeline)
    if check.reasons and (more := folders_of_plugins()):
        check = Check(overrides, pipeline, more)
    if check.reasons:
        in_order = sorted(check.reasons, key=lambda one: overrides.index(one) if one in overrides else -1)
        told = [check.reasons[one] for one in in_order]
        raise WrongOverridesError(told, check.others, check.groups_refused)
    return check


class Check:
    """Overrides held against the tree; those that are wrong are passed over, and the reasons noted."""

    def __init__(self, overrides: Sequence[str], pipeline: str, more: Sequence[Path] = ()) -> None:
        self.pipeline = pipeline
        self.reasons: dict[str, str] = {}
        self.groups_refused: set[str] = set()
        self.is_known = True
        """Whether the choices could be made, so that it is known what settings there are."""
        self.asked = list(self._read(overrides))
        self.folders = list(self._searched())
        """That choices are looked for in, beside `conf`."""
        self.tree = Tree([*self.folders, *more]) if self.folders or more else conf_folder.shipped()
        settable = [one for one in self.asked if not isinstance(one.value, dict) and not one.is_hydras]
        self.choosing = [one for one in settable if self.tree.is_group(one.key)]
        """What chooses of a group."""
        self.chosen = self._choose(self.choosing)
        config = self.chosen.config
        settings = [one for one in self.asked if one not in self.choosing and one.group not in self.groups_refused]
        for one in settings if self.is_known else ():
            if not one.is_hydras:
                self._set(config, one)
        kept = [one for one in self.asked if one in self.choosing or one in settings] if self.is_known else []
        self.others = [one.text for one in kept if one.text not in self.reasons]

    def _read(self, overrides: Sequence[str]) -> Iterator[Asked]:
        for text in overrides:
            try:
                one = asked(text)
            except LcmError as error:
                self.reasons[text] = str(error)
                continue
            if one.swept is not None or not one.key:
                self.reasons[text] = one.swept or f"{text!r} is not an override: write KEY=VALUE or GROUP=CHOICE"
            else:
                yield one

    def _searched(self) -> Iterator[Path]:
        for one in self.asked:
            if one.key == SEARCH_PATH:
                try:
                    yield from searched_folders(one.value)
                except LcmError as error:
                    self.reasons[one.text] = str(error)

    def _choose(self, asked_for: Sequence[Asked]) -> Chosen:
        """Make the choices that can be made; note why others cannot."""
        choosing: dict[str, Choosing] = {}
        for one in asked_for:
            try:
                reason = self._no_choice(one)
            except LcmError as error:  # of a YAML that cannot be read
                reason = str(error)
            if reason is not None:
                self._refuse(one, reason)
                continue
            choice = tuple(one.value) if isinstance(one.value, list) else one.value
            key = one.key if one.package is None else f"{one.key}@{one.package or '_global_'}"
            choosing[one.text] = Choosing(key, choice, one.sign)
        try:
            made = self.tree.chosen(self.pipeline, list(choosing.values()))
        except LcmError as error:  # of a YAML that is chosen: nothing is known of settings then
            self.reasons[next(iter(choosing), "")] = str(error)
            self.is_known = False
            return Chosen({})
        before = None
        for one in asked_for:
            if one.text not in choosing:
                continue
            key = choosing[one.text].key
            if key in made.unmatched and one.sign == "~":
                self._refuse(one, f"{one.text}: there is no such choice here to take out")
            elif key in made.unmatched and one.package is None:
                self._refuse(one, self._unknown(one.key, made.config))
            elif key in made.unmatched:
                self._refuse(one, f"{one.text}: there is no choice of {one.key} at {one.package}; +{one.text} adds one")
            elif one.sign == "+":
                others = [choice for choice in choosing.values() if choice.sign != "+"]
                before = before or self.tree.chosen(self.pipeline, others)
                if key in before.choices:
                    self._refuse(one, f"{one.text}: {key} has a choice already: change it with {one.text[1:]}")
        for group, reason in self._no_components(made):
            culprit = next((one for one in asked_for if one.key == group), asked_for[0] if asked_for else None)
            self.reasons[culprit.text if culprit else group] = reason
        return made

    def _refuse(self, one: Asked, reason: str) -> None:
        self.reasons[one.text] = reason
        self.groups_refused.update(groups() if one.key in PRESETS else (one.key,))

    def _no_choice(self, one: Asked) -> str | None:
        """Why a choice cannot be made, whatever else is chosen."""
        group = one.key
        if one.sign == "++":
            return f"{one.text}: a choice is made by {one.text[2:]}, and one is added by {one.text[1:]}"
        options = self.tree.choices(group)
        if one.sign == "~":
            is_named = one.value is None or isinstance(one.value, str)
            return None if is_named else f"{one.text}: no such choice; choose one of: {', '.join(options)}"
        if not (isinstance(one.value, list) or (isinstance(one.value, str) and one.value)):
            end = _IN_PLACE_OF_A_CHOICE.get(group, "") if group in PRESETS else ""
            return f"{one.text}: no such choice; choose one of: {', '.join(options)}{end}"
        for choice in one.value if isinstance(one.value, list) else [one.value]:
            if not isinstance(choice, str) or self.tree.file(f"{group}/{choice}") is None:
                hint = meant(str(choice), options)
                hint = hint or _IN_PLACE_OF_A_CHOICE.get(group, "").format(measure=_measure(str(choice)))
                return f"{group}={choice}: no such choice; choose one of: {', '.join(options)}{hint}"
        return None

    def _no_components(self, made: Chosen) -> Iterator[tuple[str, str]]:
        """Choices whose YAML is not what its group takes: a component, settings of all groups, or a map."""
        for group, choice in made.choices.items():
            if group not in groups() or group not in made.config or choice is None:
                continue
            node = made.config[group]
            if isinstance(node, str) and "${" in node:
                continue
            lacking, remedy = "no map", "write NAME: and its settings there"
            if group in PRESETS:
                lacking, remedy = "without effect", "write KEY: VALUE there, below a first line # @package _global_"
            elif "_target_" in (self.tree.node(group, groups()[group][-1]) or {}):
                if isinstance(node, dict) and "_target_" in node:
                    continue
                lacking = "no component"
                remedy = f"write _target_: CLASS and its settings there, as in conf/{group}/{groups()[group][-1]}.yaml"
            elif isinstance(node, dict):
                continue
            wrong = "is a list" if isinstance(node, list) else "sets nothing" if not node else f"is {lacking}"
            file = self.tree.file(f"{group}/{choice}")
            options = ", ".join(groups()[group])
            path = file.path if file else "it"
            yield group, f"{group}={choice}: {path} {wrong}: {remedy}, or choose one of: {options}"

    def _set(self, config: dict[str, Any], one: Asked) -> None:
        """Set what an override sets, or note why it cannot; whether a list is as long, Hydra tells."""
        if one.package is not None:
            self.reasons[one.text] = f"{one.text}: there is no group {one.key}; choose one of: {', '.join(groups())}"
            return
        node: Any = config
        names = one.key.split(".")
        for i, name in enumerate(names):
            if isinstance(node, list):
                return
            if name not in node and not one.sign.startswith("+"):
                self.reasons[one.text] = self._unknown(".".join(names[: i + 1]), config)
                return
            if i < len(names) - 1:
                is_held = isinstance(node.get(name), (dict, list))
                if not is_held and one.sign.startswith("+"):
                    node[name] = {}
                node = node[name] if is_held or one.sign.startswith("+") else {}
        if reason := self._set_in(node, names[-1], one, config):
            self.reasons[one.text] = reason

    def _set_in(self, node: dict[str, Any], name: str, one: Asked, config: Mapping[str, Any]) -> str | None:
        held = node.get(name)
        if one.sign == "~":
            if held is None:
                return self._unknown(one.key, config)
            del node[name]
        elif one.sign == "+" and held is not None and not isinstance(one.value, (dict, list)):
            return f"{one.text}: the key is there already: change it with {one.text[1:]}"
        elif {type(held), type(one.value)} == {dict, list}:
            kind = "a map, written {NAME:VALUE}" if isinstance(held, dict) else "a list, written [VALUE]"
            return f"{one.key} must be {kind}, got {one.text.partition('=')[2]}"
        elif isinstance(held, dict) and isinstance(one.value, dict):
            if not one.sign and (new := next(_new(one.key, held, one.value), None)):
                return self._unknown(new, config)
            _merge(held, one.value)
        else:
            node[name] = one.value
        return None

    def _unknown(self, key: str, config: Mapping[str, Any]) -> str:
        """One line for a misspelt key or group, with the nearest that exist."""
        known = list(paths({name: node for name, node in config.items() if name != "hydra"}))
        written = written_as(config, key)
        if written != key:
            node = written.rpartition(".")[0]
            settings = ", ".join(path for path in known if path.rpartition(".")[0] == node)
            keys_of_it = f", with the keys {settings}" if settings else ", which has no keys"
            return f"{key}: no such key; what stands there is configured as {node}{keys_of_it}"
        above = key.rpartition(".")[0]
        if key == "trust":
            return "trust=[PACKAGE] is a word of its own on the command line: take it out of this one, and of with="
        if key in _ELSEWHERE and key not in config:
            return f"{key} is nothing that `lcm {self.pipeline}` uses: it belongs to {_ELSEWHERE[key]}"
        if (others := self._in_other_choices(key, config)) is not None:
            return f"{key}: no such key; {others}"
        if above in groups() and set(config.get(above) or {}) == {"_target_"}:
            options = ", ".join(self.tree.choices(above))
            another = f"Choose another with {above}=CHOICE: {options}"
            return f"{key}: no such key; the {above} that is chosen has none. {another}"
        if above and at(config, above) == {}:
            return f"{key}: no such key yet; add an entry to {above} with +{key}=VALUE"
        near = self._near(key, sorted({*groups(), *known} - {key}), config)
        remedy = f"did you mean {' or '.join(near)}?" if near else f"`lcm {self.pipeline} --cfg job` shows every key"
        return f"{key}: no such key; {remedy}"

    def _near(self, key: str, known: Sequence[str], config: Mapping[str, Any]) -> list[str]:
        """What may have been meant: a key of this configuration, or of another choice, with that choice."""
        from rapidfuzz import fuzz, process

        if near := [path for path in known if path.endswith(f".{key}")][:_MOST]:
            return near
        if (name := _NAMES_ELSEWHERE.get(key)) in known:
            return [str(name)]
        here = process.extract(key, known, scorer=fuzz.ratio, score_cutoff=ALIKE, limit=_MOST)
        group, dot, _ = key.partition(".")
        of_others = [group] if dot and group in groups() else [] if here else groups().keys() & config.keys()
        others = {
            f"{one}.{path}": one
            for one in of_others
            for choice in self.tree.choices(one)
            for path in paths(self.tree.node(one, choice))
        }
        new = sorted(others.keys() - set(known))
        least = here[0][1] if here else ALIKE
        best = process.extractOne(key, new, scorer=fuzz.ratio, score_cutoff=least)
        nearest = best[0] if best else next((path for path in new if path.endswith(f".{key}") and not here), None)
        if nearest is not None and not (best and here and best[1] == least):
            having = self._choices_with(others[nearest], nearest.partition(".")[2])
            return [f"{nearest} of {others[nearest]}={having[0]}"]
        return [path for path, _, _ in here]

    def _choices_with(self, group: str, path: str) -> list[str]:
        """The choices of a group that have a setting, those of the systems first."""
        absent = object()
        having = [one for one in self.tree.choices(group) if at(self.tree.node(group, one), path, absent) is not absent]
        usual = [conf_folder.chosen_by(name).get(group) for name in groups()["system"]]
        return list(dict.fromkeys([*(str(choice) for choice in usual if choice in having), *having]))

    def _in_other_choices(self, key: str, config: Mapping[str, Any]) -> str | None:
        """Which choices of a key's group have it, where the one that is chosen has not."""
        group, _, path = key.partition(".")
        if not (path and group in groups() and isinstance(config.get(group), dict)):
            return None
        having = self._choices_with(group, path)
        if not having:
            return None
        choice = self.chosen.choices.get(group)
        here = f" ({choice})" if choice else ""
        systems = [name for name in groups()["system"] if conf_folder.chosen_by(name).get(group) in having]
        told = " or ".join(f"{group}={one}" for one in having[:_MOST])
        beside = f" ({', '.join(f'system={name}' for name in systems[:_MOST])})" if systems else ""
        return f"the {group} that is chosen{here} has none; {told} has it{beside}"


def searched_folders(places: Any) -> list[Path]:
    """The folders that a search path names; no place whose mere reading would import a module."""
    found: list[Path] = []
    for named in map(str, places if isinstance(places, list) else [places]):
        scheme, separator, path = named.partition("://")
        if separator and scheme == "pkg" and consent.is_trusted(f"{re.split(r'[./]', path)[0]}."):
            found += _folders_of(path.replace("/", "."))
        elif separator and scheme != "file":
            raise LcmError(f"{SEARCH_PATH}: {named!r} would be imported: name a folder, file://FOLDER")
        elif not (folder := Path(named.removeprefix("file://"))).is_dir():
            raise LcmError(f"{SEARCH_PATH}: no such folder {str(folder)!r}; name one that holds groups of choices")
        else:
            found.append(folder)
    return found


def folders_of_plugins() -> list[Path]:
    """The folders that plugins of Hydra's add to its search path; they are asked where one says that it does."""
    files = (file for folder in _folders_of("hydra_plugins") for file in folder.glob("**/*.py"))
    if not any(b"SearchPathPlugin" in file.read_bytes() for file in files):
        return []
    from hydra.core.config_search_path import ConfigSearchPath
    from hydra.core.plugins import Plugins
    from hydra.plugins.search_path_plugin import SearchPathPlugin

    places: list[str] = []

    class Places(ConfigSearchPath):
        def get_path(self) -> Any:
            return places

        def append(self, provider: str, path: str, anchor: Any = None) -> None:
            places.append(path)

        prepend = append

    for plugin in Plugins.instance().discover(SearchPathPlugin):
        made: Any = plugin()
        made.manipulate_search_path(Places())
    named = [place.partition("://") for place in places]
    found = [
        _folders_of(rest.replace("/", ".")) if scheme == "pkg" else [Path(rest or scheme)] for scheme, _, rest in named
    ]
    return [folder for folders in found for folder in folders if folder.is_dir()]


def _folders_of(package: str) -> list[Path]:
    try:
        spec = find_spec(package)
    except ModuleNotFoundError:
        return []
    return [Path(place) for place in (spec.submodule_search_locations if spec else None) or ()]


def meant(word: str, known: Collection[str]) -> str:
    """The end of a refusal that names the nearest of what is known; empty where nothing is like the word."""
    from rapidfuzz import fuzz, process

    near = process.extractOne(word, list(known), scorer=fuzz.ratio, score_cutoff=ALIKE)
    return f"; did you mean {near[0]}?" if near else ""


def _measure(word: str) -> str:
    """The measure of rankings that a word is nearest to, with its own cutoff; one of them where it is like none."""
    from rapidfuzz import fuzz, process

    from eval.measures.names import HEADLINE, RANKING_MEASURES

    kind, sign, cutoff = word.partition("@")
    kinds = {name.lower(): name for name in RANKING_MEASURES if name != "judged"}  # which is measured beside them
    near = process.extractOne(kind.lower(), list(kinds), scorer=fuzz.ratio, score_cutoff=ALIKE)
    return f"{kinds[near[0]]}{sign}{cutoff}" if near else HEADLINE[0]


def _new(key: str, held: Mapping[str, Any], value: Mapping[str, Any]) -> Iterator[str]:
    """The keys of a map that is laid over another that the other has not."""
    for name, inner in value.items():
        if name not in held:
            yield f"{key}.{name}"
        elif isinstance(inner, dict) and isinstance(held[name], dict):
            yield from _new(f"{key}.{name}", held[name], inner)


def _merge(held: dict[str, Any], value: Mapping[str, Any]) -> None:
    for name, inner in value.items():
        if isinstance(inner, dict) and isinstance(held.get(name), dict):
            _merge(held[name], inner)
        else:
            held[name] = inner
