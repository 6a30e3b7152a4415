"""What a result depends on, as text: the settings of components, the files they read, and their source."""

import enum
import glob
import hashlib
import importlib.util
import json
import re
import sqlite3
import sys
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import datetime, timedelta
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from itertools import islice
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import polars as pl

from eval.mirror import local
from lcm.errors import ModelError
from lcm.protocols.models import CallsServer, ReadsModel

_ROOT = Path(__file__).resolve().parents[2]
_OURS = ("lcm", "eval")
_IMPORT = re.compile(r"^\s*(?:from ((?:lcm|eval)[\w.]*) import (\([^)]*\)|[^\n]*)|import ((?:lcm|eval)[\w.]*))", re.M)
_PACKAGES = (
    "bm25s", "hnswlib", "markdown-it-py", "numpy", "onnxruntime", "optimum", "polars", "PyStemmer",
    "rapidfuzz", "regex", "rouge-score", "tokenizers", "torch", "transformers",
)  # fmt: skip
"""Libraries that numbers depend on."""
_READ_AT_ONCE = 1 << 20
_LONGEST_PATH = 4096
_MOST_FILES = 20_000


class Unidentified(Exception):  # noqa: N818  # no error: what it is about is worked out anew each time
    """A part whose results depend on more than its settings."""


@dataclass(slots=True)
class Fingerprint:
    """Collects what a result depends on."""

    modules: set[str] = field(default_factory=set)

    def of(self, part: Any) -> Any:
        """The part as plain data that tells it from every other, its modules noted.

        Raises:
            Unidentified: if it asks a server, or is of a kind that cannot be told apart.
        """
        match part:
            case None | bool() | int() | float():
                return repr(part)
            case str() | Path():
                return [str(part), *content_of(str(part))]
            case enum.Enum() | datetime() | timedelta():
                return repr(part)
            case Mapping():
                return {"map": [[self.of(key), self.of(value)] for key, value in part.items()]}
            case Set():
                return {"set": sorted(json.dumps(self.of(item)) for item in part)}
            case Sequence():
                return [self.of(item) for item in part]
            case pl.DataFrame():
                return hashlib.sha256(part.write_ipc(None).getvalue()).hexdigest()
            case np.ndarray():
                return [part.dtype.str, part.shape, hashlib.sha256(np.ascontiguousarray(part).tobytes()).hexdigest()]
            case type() | FunctionType():
                return self._named(part)
        return self._component(part)

    def _component(self, part: Any) -> Any:
        if isinstance(part, CallsServer):
            raise Unidentified(f"{type(part).__name__} asks a server")
        if callable(getattr(part, "embed", None)):
            inner = getattr(part, "embedder", None)
            return (
                self.of(inner)
                if inner is not None and inner.name == part.name
                else [self._named(type(part)), part.name]
            )
        model = {"model_folder": _model_of(part)} if isinstance(part, ReadsModel) else {}
        if not is_dataclass(part):
            raise Unidentified(f"{type(part).__name__} does not say what it depends on")
        settings = {one.name: self.of(getattr(part, one.name)) for one in fields(part) if one.init}
        return [self._named(type(part)), settings | model]

    def _named(self, made_by: Any) -> str:
        if "<" in made_by.__qualname__:
            raise Unidentified(f"{made_by.__qualname__} is made anew each time, and no name tells it from others")
        self.modules.add(made_by.__module__)
        return f"{made_by.__module__}.{made_by.__qualname__}"


def digest(inputs: Any, modules: Iterable[str]) -> str:
    """The key of a result: 32 hex digits of its inputs, the source of the modules that make it with everything that
    they import from here, and the libraries that numbers depend on."""
    told = [inputs, source_digest(frozenset(modules)), libraries()]
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()[:32]


@cache
def source_digest(modules: frozenset[str]) -> str:
    """The digest of the source of modules, and of all that they import of this project; of a module from elsewhere that
    of its whole package, or of the files beside it where it is in none."""
    wanted, seen = list(modules), set[str]()
    while wanted:
        name = wanted.pop()
        if name in seen:
            continue
        seen.add(name)
        if name.partition(".")[0] in _OURS:
            wanted += _imported(name)
    return hashlib.sha256("".join(_source(name) for name in sorted(seen)).encode()).hexdigest()


@cache
def libraries() -> dict[str, str]:
    found = {"python": f"{sys.version_info[0]}.{sys.version_info[1]}", "sqlite": sqlite3.sqlite_version}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


@cache
def _source(module: str) -> str:
    """What a module says, and the data of its package."""
    if module.partition(".")[0] not in _OURS:
        return _foreign_source(module.partition(".")[0])
    path = _path(module)
    return "" if path is None else path.read_text() + _data_of(path.parent)


@cache
def _data_of(folder: Path) -> str:
    """What a package reads: files beside its modules, and in folders below that are no packages."""
    found = []
    for one in sorted(folder.iterdir()):
        if one.is_dir() and not (one / "__init__.py").exists() and one.name != "__pycache__":
            found.append(_data_of(one))
        elif one.is_file() and one.suffix not in (".py", ".pyc", ".so"):
            found.append(f"{one.name}\n{one.read_bytes().hex()}")
    return "".join(found)


@cache
def _foreign_source(package: str) -> str:
    try:
        found = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        found = None
    if found is None or found.origin is None or not Path(found.origin).is_file():
        return ""
    file = Path(found.origin)
    if file.parent.name in ("site-packages", "dist-packages"):
        return file.read_text(errors="replace")
    files = file.parent.rglob("*.py") if file.name == "__init__.py" else file.parent.glob("*.py")
    return "".join(one.read_text(errors="replace") for one in sorted(files))


def _path(module: str) -> Path | None:
    path = _ROOT.joinpath(*module.split("."))
    return next((one for one in (path.with_suffix(".py"), path / "__init__.py") if one.is_file()), None)


@cache
def _imported(module: str) -> list[str]:
    found = []
    for package, names, plain in _IMPORT.findall(_source(module)):
        found.append(package or plain)
        found += [f"{package}.{name}" for name in re.findall(r"\w+", names) if package and _path(f"{package}.{name}")]
    return found


def content_of(text: str) -> list[str]:
    """What lies where a text points to: a setting that names a file, a folder or a pattern stands for what is in it.

    Returns:
        Empty where it names nothing that is there.
    Raises:
        Unidentified: if it names a folder of so many files that it must mean something else.
        LcmError: if it is a URL where nothing lies, or that cannot be reached.
    """
    if not text or len(text) > _LONGEST_PATH or "\n" in text or "\x00" in text:
        return []
    path = local(text)
    try:
        if path.is_file():
            return [_file_digest(path, *_state(path))]
        if path.is_dir():
            return [] if set(path.parts) <= {".", ""} else _states(path.rglob("*"), path)
        if any(letter in text for letter in "*?["):
            found = (Path(one) for one in glob.iglob(str(path), recursive=True))  # noqa: PTH207  # any path
            return _states(found, None)
    except OSError:
        return []
    return []


def _model_of(part: ReadsModel) -> list[str]:
    """The model that a component reads; empty as long as it is not there."""
    try:
        return content_of(str(part.model_folder()))
    except ModelError:
        return []


def _states(paths: Iterable[Path], below: Path | None) -> list[str]:
    files = [one for one in islice(paths, _MOST_FILES + 1) if one.is_file()]
    if len(files) > _MOST_FILES:
        raise Unidentified(f"{below} holds more than {_MOST_FILES} files")
    return [f"{one.relative_to(below) if below else one} {_state(one)}" for one in sorted(files)]


def _state(path: Path) -> tuple[int, int]:
    told = path.stat()
    return told.st_size, told.st_mtime_ns


@cache
def _file_digest(path: Path, size: int, modified_ns: int) -> str:
    content = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(_READ_AT_ONCE):
            content.update(piece)
    return content.hexdigest()
