"""Published T5s that are known by name: what they are, which files they consist of, and where they are kept here."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path

import yaml

from lcm.files import cache_dir


@dataclass(frozen=True, slots=True)
class CheckpointFile:
    """A file of a checkpoint."""

    name: str
    sha256: str | None = None
    """None: not known for certain; it is taken as it first comes, and held to that from then on."""
    size_bytes: int | None = None
    """None: not known."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Weights of a T5 as somebody published them."""

    name: str
    """A short word, as `summarizer.model` and `lcm models get` take it: `t5-small`."""
    repository: str
    """On the hub: `google-t5/t5-small`."""
    revision: str
    """The commit whose files are meant."""
    licence: str
    parameters: int
    megabytes: int
    """Of all files together, about."""
    trained_on: str
    languages: str
    prefix: str
    """What stands before a text that it is to summarise: `summarizer.prefix`."""
    window_tokens: int
    """That it was trained to read at once."""
    files: tuple[CheckpointFile, ...]


@cache
def checkpoints() -> Mapping[str, Checkpoint]:
    """All that are known, by name."""
    text = resources.files("lcm.compaction.summarizer").joinpath("checkpoints.yaml").read_text("utf-8")
    return {name: _read(name, fields) for name, fields in yaml.safe_load(text).items()}


def _read(name: str, fields: dict) -> Checkpoint:  # type: ignore[type-arg]
    files = tuple(CheckpointFile(file, **known) for file, known in fields["files"].items())
    return Checkpoint(name=name, **fields | {"files": files})


def checkpoint_folder(name: str) -> Path:
    """Where the files of a checkpoint are kept unless somebody names another folder."""
    return cache_dir() / "checkpoints" / name


def missing_files(checkpoint: Checkpoint, folder: Path) -> list[str]:
    """The names of those that a folder lacks."""
    return [file.name for file in checkpoint.files if not (folder / file.name).is_file()]
