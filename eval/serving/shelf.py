"""What lies below a folder: runs, sweeps, comparisons, regressions, studies, presets and stores."""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from eval.configuration import leaves
from eval.run import SUMMARY, Run, point_record, read_summary
from eval.tracking.entry import run_name
from lcm.errors import LcmError
from lcm.given import opened_as_is
from lcm.redaction import redacted

KINDS = ("run", "sweep", "comparison", "regression", "transfer", "study", "preset", "store")
"""In the order in which they are shown."""
HEADLINE = ("recall@10", "nDCG@10", "recall@2000t", "tokens@10")
_STORE = b"SQLite format 3\x00"
_TABLE_OF_A_STORE = b"schema_migrations"
_OWNERS = ("sweep", "comparison", "regression", "transfer", "study")
_FIRST_PAGE = 1 << 16
_KEY_DIGITS = 16
_LAST_S = datetime(9999, 12, 31, tzinfo=UTC).timestamp()
"""A file may say that it was changed later than a date can."""


@dataclass(frozen=True, slots=True)
class Shelved:
    """One thing that can be looked at."""

    kind: str
    """One of `KINDS`."""
    name: str
    """Its path below the shelf."""
    path: Path
    changed_at: datetime
    summary: Mapping[str, Any] = field(default_factory=dict)
    """Of a folder; empty of a store."""
    words: str = ""
    """What a search finds it by, in lower case: its name, dataset and settings."""
    label: str = ""
    """Of a point of a sweep: what was swept there."""
    asked: str = ""
    """Of a sweep: the datasets of its points."""
    damage: str | None = None
    """Why it cannot be read."""

    @property
    def key(self) -> str:
        """Names it in an address."""
        return hashlib.sha256(self.name.encode("utf-8", "surrogateescape")).hexdigest()[:_KEY_DIGITS]

    @property
    def title(self) -> str:
        """What it is, as MLflow lists it; its path where nothing says so."""
        if self.kind == "run" and self.damage is None and "dataset" in self.summary:
            return run_name(self.summary, self.path, is_nested=False)
        return redacted(str(self.summary.get("title") or self.summary.get("name") or self.name))

    @property
    def dataset(self) -> str:
        told = self.summary.get("dataset")
        if isinstance(told, Mapping):
            return str(told.get("name", ""))
        return str((self.summary.get("params") or {}).get("dataset") or self.asked)

    @property
    def is_ranked(self) -> bool:
        """Whether it is a run that answered questions."""
        return self.kind == "run" and self.damage is None and (self.path / "run.parquet").is_file()

    def measure(self, name: str) -> float | None:
        """The mean of a measure of the system's own arm."""
        told = self.summary.get("measures", {}).get(name)
        return told["value"] if isinstance(told, Mapping) else None


class Shelf:
    """What lies below a folder, read again as it changes."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._known: dict[tuple[Path, int], Shelved] = {}
        """By path and time of the last change."""

    def all(self) -> list[Shelved]:
        """Newest first within each kind; points of sweeps, trials and what comparisons evaluated stand in those."""
        found = {one: self._known.get(one) or _shelved(self.root, *one) for one in _files(self.root)}
        self._known = found
        newest = sorted(_told([*found.values()]), key=lambda one: one.changed_at, reverse=True)
        return sorted(newest, key=lambda one: KINDS.index(one.kind))

    def matching(self, words: str) -> list[Shelved]:
        """Those that hold every word."""
        wanted = words.lower().split()
        return [one for one in self.all() if all(word in one.words for word in wanted)]

    def named(self, key: str) -> Shelved:
        """The one of a key.

        Raises:
            LcmError: if nothing of that key lies here any more.
        """
        found = next((one for one in self.all() if one.key == key), None)
        if found is None:
            raise LcmError(f"nothing of that address lies in {self.root} any more: go back to the list")
        return found


def _told(shelved: Sequence[Shelved]) -> Iterator[Shelved]:
    """Let the points of sweeps say what was swept there, and sweeps what their points were asked."""
    labels, asked = dict[Path, str](), dict[Path, dict[str, None]]()
    for one in shelved:
        for point in one.summary.get("points", ()) if one.kind == "sweep" else ():
            labels[one.path / str(point["folder"])] = str(point["label"])
        if one.kind == "run" and one.dataset:
            asked.setdefault(one.path.parent, {})[one.dataset] = None
    for one in shelved:
        if (label := labels.get(one.path)) and not one.label:
            one = replace(one, label=label, words=f"{one.words} {label.lower()}")
        yield replace(one, asked=", ".join(asked.get(one.path, ()))) if one.kind == "sweep" else one


def grouped(shelved: Sequence[Shelved]) -> tuple[list[Shelved], dict[str, list[Shelved]]]:
    """What stands by itself, and by its key what each has below it: the runs in its folder, and those that lie among
    others only because it evaluated them."""
    owners = {one.path: one for one in shelved if one.kind in _OWNERS and one.damage is None}
    sides = {side: one for one in owners.values() for side in _sides(one)}
    alone: list[Shelved] = []
    below: dict[str, list[Shelved]] = {}
    for one in shelved:
        owner = next((owners[folder] for folder in one.path.parents if folder in owners), None)
        if owner is None and point_record(one.path):
            owner = sides.get(one.path.resolve())
        if owner is None or one.kind != "run":
            alone.append(one)
        else:
            below.setdefault(owner.key, []).append(one)
    return alone, below


def _sides(one: Shelved) -> list[Path]:
    """The folders that a comparison is of."""
    path = one.path / "compare.json"
    if one.kind != "comparison" or not path.is_file():
        return []
    try:
        return [Path(side["folder"]) for side in json.loads(path.read_bytes())["sides"]]
    except (OSError, RecursionError, ValueError, KeyError, TypeError):  # its page says that it is damaged
        return []


def _files(root: Path) -> Iterator[tuple[Path, int]]:
    """The summary of each complete folder, and each store, with the time of its last change; no link is followed."""
    for folder, below, names in os.walk(root):
        below.sort()
        here = Path(folder)
        for name in names:
            path = here / name
            if path.is_symlink() or not (name == SUMMARY or (path.suffix == ".db" and _is_store(path))):
                continue
            with suppress(FileNotFoundError):  # it may be taken away meanwhile
                yield path, path.stat().st_mtime_ns


def _is_store(path: Path) -> bool:
    try:
        with opened_as_is(path) as file:
            start = file.read(_FIRST_PAGE)
    except OSError:
        return False
    return start.startswith(_STORE) and _TABLE_OF_A_STORE in start


def _shelved(root: Path, path: Path, changed_ns: int) -> Shelved:
    changed_at = datetime.fromtimestamp(min(max(changed_ns / 1e9, 0), _LAST_S), UTC)
    if path.name != SUMMARY:
        name = str(path.relative_to(root))
        return Shelved("store", name, path, changed_at, words=name.lower())
    folder = path.parent
    name = str(folder.relative_to(root))
    try:
        summary = read_summary(folder)
        kind = str(summary.get("kind", "run"))
        settings = Run(folder).config if kind == "run" else {}
        set_to = [f"{key}={value}" for key, value in leaves(settings)]
    except (LcmError, RecursionError) as error:  # a YAML may hold itself
        return Shelved("run", name, folder, changed_at, words=name.lower(), damage=str(error))
    if kind not in KINDS:
        damage = f"of a kind that this lcm does not know: {kind}"
        return Shelved("run", name, folder, changed_at, words=name.lower(), damage=damage)
    told = summary.get("dataset")
    words = [name, str(told.get("name", "")) if isinstance(told, Mapping) else ""]
    return Shelved(kind, name, folder, changed_at, summary, " ".join([*words, *set_to]).lower())
