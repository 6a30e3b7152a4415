"""The stage cache: results on disk, each named by the digest of all that it was made from."""

import contextlib
import logging
import os
import re
import shutil
import tempfile
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from lcm.checks import check_range
from lcm.derived import is_sealed_whole, read_derived, seal, write_derived
from lcm.faults import DamagedError, is_of_machine, made_again
from lcm.files import cache_dir, private

_log = logging.getLogger(__name__)
_Value = TypeVar("_Value")
_GIB = 1 << 30
_ABANDONED_S = 86_400
_LOOK_EVERY_BYTES = 256 << 20
_KEY = re.compile(r"[0-9a-f]{32}|\.[0-9a-f]{32}\.\w{8}\.tmp")
"""What entries are called, and those that are being written."""
_GROWN: dict[Path, int] = {}
"""Folder -> bytes that this process has written since it last looked whether they fit."""


class Entry(NamedTuple):
    """One result that is kept."""

    stage: str
    path: Path
    size_bytes: int
    used_at: float
    """Seconds since 1970."""


@dataclass(frozen=True, slots=True)
class StageCache:
    """Results by stage and key. A stale one is not found, for its key is another; a damaged one is made again.

    Any number of processes may use a folder at once: an entry is there whole or not at all, and who comes second finds
    what the first has made, or makes the same.
    """

    directory: str | None = None
    """None = the folder `stages` of the cache."""
    max_gib: float = 10.0
    """What is kept on disk; the entries that were not used for longest go first."""
    memory_gib: float = 1.0
    """What this process keeps at hand besides."""

    def __post_init__(self) -> None:
        check_range(self, "max_gib", ge=0, or_infinite=True)
        check_range(self, "memory_gib", ge=0)

    @property
    def folder(self) -> Path:
        return cache_dir() / "stages" if self.directory is None else Path(self.directory).expanduser()

    def in_memory(self, stage: str, key: str, make: Callable[[], tuple[_Value, int]]) -> _Value:
        """A value that is kept in this process alone; `make` gives it with its size in bytes."""
        return _at_hand(self.folder, int(self.memory_gib * _GIB)).get((stage, key), make)

    def held(self, stage: str, key: str) -> Any:
        """What this process keeps under a key; None where it keeps nothing."""
        return _at_hand(self.folder, int(self.memory_gib * _GIB)).held((stage, key))

    def read(self, stage: str, key: str) -> memoryview | None:
        """What was kept, or None where nothing was, or what is there is damaged."""
        path = self._path(stage, key)
        try:
            content = read_derived(path)
        except FileNotFoundError:
            return None
        except (OSError, DamagedError) as error:
            if is_of_machine(error):
                raise
            content = memoryview(b"")
        if content[: len(key)] != key.encode():
            _remove_damaged(path)
            return None
        _touch(path)
        return content[len(key) :]

    def write(self, stage: str, key: str, content: bytes) -> None:
        """Keep a result; where the disk refuses, it is made again each time, and a warning says so."""
        path = self._path(stage, key)
        try:
            write_derived(path, [key.encode(), content])
            self._grew(len(content))
        except OSError as error:
            _tell_unkept(self.folder, error.strerror)

    def read_folder(self, stage: str, key: str) -> Path | None:
        """The folder of files that was kept, every one as it was written, or None."""
        path = self._path(stage, key)
        if is_sealed_whole(path):
            _touch(path)
            return path
        if path.exists():
            _remove_damaged(path)
        return None

    @contextlib.contextmanager
    def written_folder(self, stage: str, key: str) -> Iterator[Path]:
        """Give a folder whose files are kept at the end, all at once; an error in between keeps nothing."""
        path = self._path(stage, key)
        with private():
            path.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp"))
        try:
            yield made
            if not any(made.iterdir()):
                return
            try:
                seal(made)
            except OSError as error:
                _tell_unkept(self.folder, error.strerror)
                return
            # A folder that has files cannot be renamed onto: another process was first, with the same.
            with contextlib.suppress(OSError):
                made.rename(path)
                self._grew(sum(file.stat().st_size for file in path.iterdir()))
        finally:
            shutil.rmtree(made, ignore_errors=True)

    def entries(self) -> list[Entry]:
        """All that is kept, what was not used for longest first; nothing else that may lie in the folder."""
        found = []
        for stage in sorted(self.folder.iterdir()) if self.folder.is_dir() else ():
            for path in stage.iterdir() if stage.is_dir() else ():
                if not _KEY.fullmatch(path.name):
                    continue
                with contextlib.suppress(OSError):  # another process may take it away meanwhile
                    size = sum(file.stat().st_size for file in (path.iterdir() if path.is_dir() else (path,)))
                    found.append(Entry(stage.name, path, size, path.stat().st_mtime))
        return sorted(found, key=lambda entry: entry.used_at)

    def prune(self, max_gib: float | None = None, stage: str | None = None) -> list[Entry]:
        """Remove what was not used for longest until the rest fits; returns what was removed.

        Args:
            max_gib: that may stay; None = as the cache is set.
            stage: of which to remove; None = of all.
        """
        entries = [entry for entry in self.entries() if stage in (None, entry.stage)]
        room = (self.max_gib if max_gib is None else max_gib) * _GIB
        total = sum(entry.size_bytes for entry in entries)
        removed = []
        for entry in entries:
            is_unfinished = entry.path.name.endswith(".tmp")
            if is_unfinished and time.time() - entry.used_at < _ABANDONED_S:  # another process may be writing it
                continue
            if total <= room and not is_unfinished:
                break
            if entry.path.is_dir():
                shutil.rmtree(entry.path, ignore_errors=True)
            else:
                entry.path.unlink(missing_ok=True)
            total -= entry.size_bytes
            removed.append(entry)
        return removed

    def _grew(self, size_bytes: int) -> None:
        """Looking through the whole folder takes a while: it is done at the first write of a process and then now and
        again."""
        since = _GROWN.get(self.folder)
        _GROWN[self.folder] = (since or 0) + size_bytes
        if since is None or since > _LOOK_EVERY_BYTES:
            _GROWN[self.folder] = 0
            self.prune()

    def _path(self, stage: str, key: str) -> Path:
        return self.folder / stage / key


@lru_cache(1)
def _at_hand(folder: Path, max_bytes: int) -> "_RecentValues":
    """One a process, of the folder used last, for the points of a sweep each have settings of their own."""
    return _RecentValues(max_bytes)


class _RecentValues:
    """The values used last, as many as fit."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._kept: OrderedDict[tuple[str, str], tuple[Any, int]] = OrderedDict()

    def held(self, key: tuple[str, str]) -> Any:
        if key not in self._kept:
            return None
        self._kept.move_to_end(key)
        return self._kept[key][0]

    def get(self, key: tuple[str, str], make: Callable[[], tuple[_Value, int]]) -> _Value:
        if key in self._kept:
            self._kept.move_to_end(key)
            value: _Value = self._kept[key][0]
            return value
        value, size = make()
        if size <= self._max_bytes:
            self._kept[key] = value, size
        while sum(size for _, size in self._kept.values()) > self._max_bytes:
            self._kept.popitem(last=False)
        return value


def _remove_damaged(path: Path) -> None:
    made_again(f"cache entry, {path.parent.name}", f"{path} is damaged: made again")
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)


@cache
def _tell_unkept(folder: Path, reason: str | None) -> None:
    """Once for each reason: what cannot be kept is made again each time."""
    _log.warning("results are not kept in %s: %s; they are made again each time until there is room", folder, reason)


def _touch(path: Path) -> None:
    with contextlib.suppress(OSError):
        os.utime(path)
