"""The tree of all YAMLs: groups, their choices, and what a configuration holds where some of them are chosen.

Hydra composes what runs. The tree says the same in a hundredth of the time, before Hydra is imported: what is asked for
is held against it, and what choices alone hold is read from it.
"""

import copy
import pickle
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from lcm.errors import LcmError

EVALUATE = "evaluate"
PRESETS = frozenset({"system", "experiment", "sweep"})
"""Groups of which nothing need be chosen, and whose choices are made of others."""
REFERENCE = re.compile(r"\$\{(\.*)([\w.]+)\}")
_CONFIG_NAMES = {EVALUATE: "config", "questions make": "questions"}
"""Pipeline -> its file in `conf`, where that is not named like it."""
_SELF = "_self_"
_HEADER_LETTERS = 512
"""Hydra looks no further for a header."""


@cache
def conf_dir() -> Path:
    """The `conf` folder: at the top of a checkout, inside the package `pipelines` once installed."""
    here = Path(__file__).resolve().parents[1]
    for path in (here / "conf", here.parent / "conf"):
        if (path / "config.yaml").is_file():
            return path
    raise LcmError(f"no conf/config.yaml beside {here}: install lcm again")


@cache
def groups() -> dict[str, list[str]]:
    """Every group and its choices."""
    folders = (folder for folder in sorted(conf_dir().iterdir()) if folder.is_dir())
    return {folder.name: sorted(path.stem for path in folder.glob("*.yaml")) for folder in folders}


@cache
def keys_at_the_top() -> frozenset[str]:
    """Every group, and every other key at the top of a pipeline's configuration."""
    written = (_of_conf(path.stem) for path in conf_dir().glob("*.yaml"))
    return frozenset(groups()).union(*(file.content for file in written if file))


@cache
def slots() -> frozenset[str]:
    """The groups that choices of others refer to."""
    texts = (path.read_text(encoding="utf-8") for path in conf_dir().glob("*/*.yaml"))
    return frozenset(name for text in texts for _, name in REFERENCE.findall(text)) & groups().keys()


@cache
def chosen_by(system: str) -> dict[str, str]:
    """Group -> the choice that a preset of the system makes."""
    file = _of_conf(f"system/{system}")
    return {one.group.removeprefix("/"): one.choice for one in file.defaults if one.is_override} if file else {}


def config_name(pipeline: str) -> str:
    return _CONFIG_NAMES.get(pipeline, pipeline)


def at(node: Any, key: str, absent: Any = None) -> Any:
    """What stands at a dotted key of plain data."""
    for name in key.split("."):
        if not isinstance(node, Mapping) or name not in node:
            return absent
        node = node[name]
    return node


def nodes(node: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """A node of plain data and all below it, in maps and lists, each with its dotted key."""
    yield key, node
    inner = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for name, child in inner:
        yield from nodes(child, f"{key}.{name}" if key else str(name))


def leaves(node: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every setting of a node and its value, but for the classes of parts."""
    if isinstance(node, dict) and node:
        for name, child in node.items():
            if name != "_target_":
                yield from leaves(child, f"{path}.{name}" if path else str(name))
    elif path:
        yield path, node


def paths(node: Any, path: str = "") -> Iterator[str]:
    """Every key of a node, of maps and of settings, but for the classes of parts."""
    for name, child in node.items() if isinstance(node, dict) else ():
        if name != "_target_":
            below = f"{path}.{name}" if path else str(name)
            yield below
            yield from paths(child, below)


def place(reference: re.Match[str], written: str) -> str:
    """The key that a reference written at a key means."""
    dots, name = reference.groups()
    return ".".join([*written.split(".")[: -len(dots)], name]) if dots else name


def written_as(config: Mapping[str, Any], key: str) -> str:
    """The key at which a setting is written: `memory.ranking.order` is there because `ranking.order` is."""
    node: Any = config
    names = key.split(".")
    for i, name in enumerate(names):
        node = node.get(name) if isinstance(node, Mapping) else None
        if isinstance(node, str) and (reference := REFERENCE.fullmatch(node)):
            return written_as(config, ".".join([place(reference, ".".join(names[: i + 1])), *names[i + 1 :]]))
    return key


class Default(NamedTuple):
    """An entry of a defaults list, or what a command adds to one."""

    group: str
    """Of a file that is named without a group, the folders before its name."""
    choice: Any
    """A name, several names, or none."""
    package: str | None = None
    is_override: bool = False
    is_optional: bool = False
    is_file: bool = False


class Yaml(NamedTuple):
    """A file of the tree."""

    path: Path
    package: str | None
    """As its header says; None = it does not."""
    defaults: tuple[Default, ...]
    content: Any


class Choosing(NamedTuple):
    """What a command chooses of a group."""

    key: str
    """A group, or `GROUP@PLACE`."""
    choice: Any
    """A name, or a tuple of several; None where one is taken out."""
    sign: str = ""
    """Nothing, `+` to add a choice, or `~` to take one out."""


@dataclass(slots=True)
class Chosen:
    """What choices make of a configuration, before anything is set by name."""

    config: dict[str, Any]
    """Plain data, references as they are written, with what the YAMLs say of Hydra's own below `hydra`."""
    choices: dict[str, str | None] = field(default_factory=dict)
    """Group, with its place where that is another -> choice; none of a group of which several are chosen."""
    unmatched: list[str] = field(default_factory=list)
    """Keys of choices that a command makes where there is none."""


class Tree:
    """The YAMLs that choices are looked for in: those of `conf`, then those of searched folders."""

    def __init__(self, folders: Sequence[Path] = ()) -> None:
        self.folders = tuple(folders)
        self._kept: dict[tuple[str, tuple[Choosing, ...]], bytes] = {}

    def is_group(self, key: str) -> bool:
        return key in groups() or any((folder / key).is_dir() for folder in self.folders)

    def choices(self, group: str) -> list[str]:
        """The names of a group's choices, in order."""
        searched = {path.stem for folder in self.folders for path in (folder / group).glob("*.yaml")}
        return sorted(searched.union(groups().get(group, ())))

    def file(self, path: str) -> Yaml | None:
        """The YAML at a path, `GROUP/CHOICE`, in a folder that is searched: `../name` and links lead out; None where
        there is none."""
        if ".." in path.split("/"):
            raise LcmError(f"defaults: {path} lies outside of the folders that are searched: copy its YAML in there")
        for folder in () if _of_conf(path) else self.folders:
            file = _read(folder, path)
            if file is not None and not file.path.resolve().is_relative_to(folder.resolve()):
                raise LcmError(f"defaults: {path} lies outside of {folder}: copy its YAML in there")
            if file is not None:
                return file
        return _of_conf(path)

    def node(self, group: str, choice: str) -> Any:
        """What a choice gives its group, references as they are written."""
        key = group.replace("/", ".")
        return at(_Composing(self).whole(f"{group}/{choice}", group, key).config, key, {})

    def chosen(self, pipeline: str, choosing: Sequence[Choosing] = ()) -> Chosen:
        """What choices make of a pipeline's configuration; whoever gets it may change it."""
        wanted = pipeline, tuple(choosing)
        if wanted not in self._kept:
            self._kept[wanted] = pickle.dumps(_Composing(self, choosing).whole(config_name(pipeline)))
        made: Chosen = pickle.loads(self._kept[wanted])  # noqa: S301 - our own; a tenth of a deep copy's time
        return made


@cache
def shipped() -> Tree:
    """The tree of `conf` alone, which does not change while a command runs."""
    return Tree()


class _Composing:
    """Which files are taken, as Hydra 1.3 has it: later ones in a list are asked first, so that their overrides win."""

    def __init__(self, tree: Tree, choosing: Sequence[Choosing] = ()) -> None:
        self.tree = tree
        self.asked = {one.key: one.choice for one in choosing if not one.sign}
        added = ((*one.key.partition("@"), one.choice) for one in choosing if one.sign == "+")
        self.added = [Default(group, choice, package or None) for group, _, package, choice in added]
        self.dropped = {one.key: one.choice for one in choosing if one.sign == "~"}
        self.unmatched = list(self.asked)
        self.kept = set(self.dropped)
        self.choices: dict[str, str | None] = {}

    def whole(self, path: str, group: str = "", package: str = "") -> Chosen:
        config: dict[str, Any] = {}
        for name, place_of in self._files(path, group, package, self.added):
            file = self.tree.file(name)
            content = file.content if file else {}
            for part in reversed(place_of.split(".") if place_of else []):
                content = {part: content}
            if isinstance(content, dict):
                _lay(config, content, config)
        return Chosen(config, self.choices, [*self.unmatched, *sorted(self.kept)])

    def _files(self, path: str, group: str, package: str, added: Sequence[Default] = ()) -> list[tuple[str, str]]:
        """The files that one stands for, in the order in which they are laid over each other."""
        file = self.tree.file(path)
        assert file is not None
        defaults = list(file.defaults)
        if (defaults or added) and not any(one.choice == _SELF for one in defaults):
            defaults.append(Default("", _SELF, is_file=True))
        for one in (defaults := [*defaults, *added]):
            if one.is_override:
                self.asked.setdefault(_key(one, group, package), one.choice)
        found: list[list[tuple[str, str]]] = []
        for one in reversed(defaults):
            if one.choice == _SELF:
                found.append([(path, package)])
            elif not one.is_override:
                found.append(list(self._of(one, file, group, package)))
        return [one for part in reversed(found) for one in part] if defaults else [(path, package)]

    def _of(self, one: Default, parent: Yaml, group: str, package: str) -> Iterator[tuple[str, str]]:
        """The files of an entry of a defaults list."""
        own, choice = _group(one, group), one.choice
        if own == "hydra" or own.startswith("hydra/"):
            return
        if not one.is_file:
            key = _key(one, group, package)
            if key in self.asked:
                choice = self.asked[key]
            if key in self.unmatched:
                self.unmatched.remove(key)
            if key in self.dropped and self.dropped[key] in (None, choice):
                self.kept.discard(key)
                return
            if choice is None or isinstance(choice, str):  # which may be written as that of other groups
                made = re.sub(r"\$\{([^}]*)\}", lambda name: str(self.choices.get(name[1], name[0])), choice or "")
                choice = self.choices[key] = made or choice
        for name in choice if isinstance(choice, (list, tuple)) else () if choice is None else (choice,):
            path = f"{own}/{name}" if own else name
            file = self.tree.file(path)
            if file is not None:
                header = one.package if one.package is not None else file.package
                yield from self._files(path, own, _package(one, package, header))
            elif not one.is_optional:
                choices = ", ".join(self.tree.choices(own))
                raise LcmError(f"{parent.path}: {own}={name}: no such choice; choose one of: {choices}")


def _group(one: Default, group: str) -> str:
    """The group of an entry that stands in a YAML of another."""
    if one.group.startswith("/") or not group:
        return one.group.removeprefix("/")
    return f"{group}/{one.group}" if one.group else group


def _key(one: Default, group: str, package: str) -> str:
    """How a command names an entry."""
    own = _group(one, group)
    place_of = _package(one, package, one.package)
    return own if place_of == own.replace("/", ".") else f"{own}@{place_of or '_global_'}"


def _package(one: Default, parent: str, package: str | None) -> str:
    """The key where an entry lies whose YAML says so, in a YAML that lies at another."""
    if package is None:
        package = one.group.removeprefix("/").replace("/", ".")
    whole = f"{parent}.{package}" if parent and package else parent or package
    _, is_absolute, rest = whole.rpartition("_global_")
    return rest.removeprefix(".") if is_absolute else whole


def _lay(below: dict[str, Any], over: Mapping[str, Any], whole: Mapping[str, Any]) -> None:
    """Lay settings over others, as OmegaConf does: over a reference over a copy of what it means."""
    for name, value in over.items():
        under = below.get(name)
        if isinstance(under, str) and (reference := REFERENCE.fullmatch(under)):
            meant = at(whole, reference[2])
            under = below[name] = copy.deepcopy(meant) if isinstance(meant, dict) else under
        if isinstance(value, dict) and isinstance(under, dict):
            _lay(under, value, whole)
        elif value != "???" or under is None:
            below[name] = copy.deepcopy(value)


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """The safe loader, in C where there is one, with OmegaConf's rules for what is a number and no date."""


_Loader.yaml_implicit_resolvers = {
    letter: [one for one in rules if one[0] not in ("tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:float")]
    for letter, rules in _Loader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(
        r"""[-+]?[0-9]+(_[0-9]+)*\.[0-9_]*([eE][-+]?[0-9]+)?$|[-+]?[0-9]+(_[0-9]+)*[eE][-+]?[0-9]+$
        |\.[0-9]+(_[0-9]+)*([eE][-+][0-9]+)?$|[-+]?[0-9]+(_[0-9]+)*(:[0-5]?[0-9])+\.[0-9_]*$
        |[-+]?\.(inf|Inf|INF)$|\.(nan|NaN|NAN)$""",
        re.VERBOSE,
    ),
    list("-+0123456789."),
)


@cache
def _of_conf(path: str) -> Yaml | None:
    return _read(conf_dir(), path)


def _read(folder: Path, path: str) -> Yaml | None:
    file = folder / f"{path.removesuffix('.yaml')}.yaml"
    if not file.is_file():
        return None
    try:
        text = file.read_text(encoding="utf-8")
        content = yaml.load(text, _Loader)  # noqa: S506 - a safe one
    except UnicodeDecodeError as error:
        raise LcmError(f"{file} is no UTF-8 text at byte {error.start}: save it as UTF-8") from error
    except yaml.YAMLError as error:
        raise LcmError(f"{file}: {' '.join(str(error).split())}; write it as plain YAML, without tags") from error
    defaults = content.pop("defaults", None) or [] if isinstance(content, dict) else []
    try:
        entries = map(_default, defaults if isinstance(defaults, list) else [None])
        return Yaml(file, _header(text), tuple(entries), {} if content is None else content)
    except (TypeError, ValueError, AttributeError) as error:
        raise LcmError(f"{file}: defaults are a list of GROUP: CHOICE and of names, got {defaults!r}") from error


def _header(text: str) -> str | None:
    """The package that the first lines of a YAML say."""
    found = None
    for line in text[:_HEADER_LETTERS].splitlines():
        if line.strip() and not re.match(r"\s*#\s*@", line):
            break
        if header := re.fullmatch(r"\s*#+\s*@package\s+(\S+)\s*", line):
            found = header[1] if header[1].startswith("_global_") else f"_global_.{header[1]}"
    return found


def _default(entry: Any) -> Default:
    ((key, choice),) = [(entry, None)] if isinstance(entry, str) else entry.items()
    words, has_package, package = key.partition("@")
    placed = ("" if package == "_here_" else package.partition(":")[0]) if has_package else None
    if isinstance(entry, str):
        group, slash, name = words.rpartition("/")
        return Default(group or slash, name, placed, is_file=True)
    *signs, group = words.split(" ")
    return Default(group, choice, placed, "override" in signs, "optional" in signs)
