"""Dataset cards: what a dataset consists of, in which forms it was published, and where its files are expected."""

import hashlib
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from lcm.errors import DatasetError

DATASETS_DIR = "LCM_DATASETS_DIR"
_HERE = Path(__file__).parent
_CARDS: Mapping[str, Mapping[str, Any]] = tomllib.loads((_HERE / "cards.toml").read_text("utf-8"))


@dataclass(frozen=True, slots=True)
class PinnedFile:
    """A file of a dataset, known by its digest."""

    path: str
    """Relative to the dataset's folder."""
    sha256: str
    size_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Release:
    """A form in which a dataset was published: files that belong together, known by their digests."""

    name: str
    """A short word, as `lcm datasets get` takes it: `s_cleaned`."""
    title: str
    """Who published what: "snap-research/LoCoMo commit 3eb6f2c, data/locomo10.json"."""
    files: tuple[PinnedFile, ...]
    url: str | None = None
    """The address that the files are published below, with `/` at its end; None: it cannot be downloaded."""
    licence: str | None = None
    """Where it is not that of the card."""
    is_told: bool = True
    """Whether the notes of a run name it; not so the development part, which is meant where nothing is said."""


@dataclass(frozen=True, slots=True)
class Card:
    """The card of a dataset, as `lcm datasets` prints it."""

    name: str
    title: str
    licence: str
    origin: str
    how_to_get: str
    files: tuple[PinnedFile, ...] = ()
    """Of a dataset that consists of certain files and takes no others."""
    bundled: bool = False
    releases: tuple[Release, ...] = ()
    """Of a dataset that is taken as people download it: the forms that are known by name."""


def read_card(dataset: str) -> Card:
    """The card of one of our datasets, from `cards.toml`."""

    def pins(files: Sequence[Sequence[Any]] = (), below: str | None = None, **told: Any) -> dict[str, Any]:
        if below is not None:  # as `sha256sum -c` reads them in a checkout
            sums = (line.split() for line in (_HERE / f"{dataset}.sha256").read_text("ascii").splitlines())
            files = [(path, digest) for digest, path in sums if path.startswith(below)]
        return {**told, "files": tuple(PinnedFile(*file) for file in files)}

    told = pins(**_CARDS[dataset])
    return Card(dataset, **told | {"releases": tuple(Release(**pins(**one)) for one in told.get("releases", ()))})


def address_of(release: Release, pin: PinnedFile, dataset: str, base_url: str | None) -> str | None:
    """The address of a file of a release: where it was published, or at a mirror that is laid out as
    `LCM_DATASETS_DIR`; None where it is at neither."""
    if base_url is not None:
        return f"{base_url.rstrip('/')}/{quote(f'{dataset}/{pin.path}')}"
    return None if release.url is None else f"{release.url}{quote(pin.path)}"


def folder(card: Card, directory: str | None) -> Path:
    """Where the dataset's files are expected: `directory`, else the dataset's folder in `LCM_DATASETS_DIR`.

    Raises:
        DatasetError: where that is no folder.
    """
    if directory is not None:
        path = Path(directory).expanduser()
        asked = f"dataset.directory={directory}"
    elif os.environ.get(DATASETS_DIR):
        path = Path(os.environ[DATASETS_DIR]).expanduser() / card.name
        asked = f"{DATASETS_DIR}={os.environ[DATASETS_DIR]}"
    else:
        raise DatasetError(
            f"dataset {card.name!r} is not bundled: set {DATASETS_DIR} to the folder that holds {card.name}/, or "
            f"dataset.directory to {card.name} itself; `lcm datasets` tells how to get it"
        )
    if not path.is_dir():
        raise DatasetError(
            f"dataset {card.name!r}: {asked} means {path}, which is not a folder; `lcm datasets` tells how to get it"
        )
    return path


def read_pinned(directory: Path, files: Sequence[PinnedFile]) -> dict[str, bytes]:
    """Read the files whole; DatasetError where one is missing or is not the pinned one."""
    contents = {}
    for file in files:
        path = directory / file.path
        if not path.is_file():
            raise DatasetError(f"{path} is missing; `lcm datasets` tells how to get it")
        contents[file.path] = path.read_bytes()
        found = hashlib.sha256(contents[file.path]).hexdigest()
        if found != file.sha256:
            raise DatasetError(
                f"{path} is not the pinned file: sha256 is {found}, expected {file.sha256}; get the file again "
                "(`lcm datasets` tells how)"
            )
    return contents


def dataset_digest(files: Sequence[PinnedFile], protocol: str) -> str:
    """One digest for the files and the way they are used."""
    return text_digest(*(f"{file.path} {file.sha256}" for file in files), protocol)


def text_digest(*lines: str) -> str:
    """The sha256 of some lines."""
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()
