"""Folders and files at URLs, by fsspec: mirrored on this machine, used here, sent back whole.

Nothing else knows of URLs: what is named by one is fetched into a folder of the cache, where every reader and writer
finds files as ever. What was changed here goes back file by file, each whole or not at all, a summary last; another
machine that mirrors the same URL goes on from there.
"""

import filecmp
import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from filelock import FileLock, Timeout

from lcm import consent
from lcm.errors import LcmError
from lcm.files import cache_dir, private, written_whole

_URL = re.compile(r"(s3|gs|az|abfs|memory):/{1,2}(?=[^/])")  # a `Path` makes one slash of two
_NO_NAME = re.compile(r"|\.\.?|.*(?:[\\\0*?\[\]]|::).*", re.DOTALL)
_LAST = ("report.json", "compare.json", "summary.json")
"""A folder is whole once it has these."""
_NOT_SENT = re.compile(r"\..*\.tmp|.*\.lock|.*-(wal|shm|journal)")
_STATE = "state.json"
_LOCK_WAIT_S = 600.0

_Known = dict[str, Any]
"""Name of a file -> when both sides were equal last: its `stamp` there, and size and time of change `here`."""


def is_url(path: str | Path) -> bool:
    """Whether a path is a URL of a storage that is mirrored."""
    return _URL.match(str(path)) is not None


def local(path: str | Path) -> Path:
    """The path itself, `~` worked out; of a URL the place where its mirror has it, fetched now."""
    if not is_url(path):
        return Path(path).expanduser()
    mirror = Mirror.of(path)
    if not mirror.fetch():
        raise LcmError(f"{mirror.url}: no such file or folder")
    return mirror.place


class Origin(NamedTuple):
    """What a path here is the copy of."""

    root: str
    """The URL that was mirrored."""
    name: str
    """Of the file below it; "" = itself."""

    @property
    def url(self) -> str:
        return f"{self.root}/{self.name}".rstrip("/")

    def path(self) -> Path:
        """Where a machine, maybe another one, has the copy: fetched, with what is named alike beside it."""
        mirror = Mirror.of(self.root)
        mirror.fetch(str(PurePosixPath(self.name).with_suffix("")) if self.name else "")
        return mirror.place / self.name


def origin_of(path: Path) -> Origin | None:
    """The origin of a path that is a copy; None of any other path."""
    if not path.absolute().is_relative_to(_mirrors()):
        return None
    digest, _, _, *below = (*path.absolute().relative_to(_mirrors()).parts, "", "")
    url = _kept(_mirrors() / digest).get("url")
    return None if url is None else Origin(url, "/".join(filter(None, below)))


@dataclass(frozen=True)
class Mirror:
    """A file, or a folder with all that lies below it, at a URL, and its copy here."""

    url: str

    @classmethod
    def of(cls, named: str | Path) -> "Mirror":
        """The mirror of a URL whose host or bucket the user has named, and of which every part is a plain name."""
        begin = _URL.match(str(named))
        if begin is None:
            raise LcmError(f"{named} is no URL that lcm mirrors: write s3://BUCKET/FOLDER")
        path = str(named)[begin.end() :].rstrip("/")
        url = f"{begin[1]}://{path}"
        if wrong := [part for part in path.split("/") if _NO_NAME.fullmatch(part)]:
            raise LcmError(f"{url}: {wrong[0]!r} is no name of a folder or file; patterns and chains are not mirrored")
        if reason := consent.refused_host(url):
            raise LcmError(f"{url}: {reason}")
        return cls(url)

    @property
    def place(self) -> Path:
        """The copy: called as at the URL."""
        return self._home / "files" / self.url.rpartition("/")[2]

    def fetch(self, prefix: str = "") -> bool:
        """Bring here what is new at the URL, and take away what is gone there; what was changed here alone stays, and
        what was changed on both sides is refused. Tell whether any name of that prefix lies there."""
        with self._locked() as known:
            there = self._there(prefix)
            for name in [name for name in known if name.startswith(prefix) and name not in there]:
                if not self._is_changed(name, known):
                    (self.place / name).unlink(missing_ok=True)
                del known[name]
            for name, info in there.items():
                file = self.place / name
                if name not in known or known[name]["stamp"] != _stamp(info) or not file.exists():
                    self._get(name, info["size"], known)
                    known[name] = {"stamp": _stamp(info), "here": _state_of(file)}
            return bool(there)

    def send(self, prefix: str = "") -> int:
        """Send what was made or changed here, each file whole; returns how many.

        A database that is open, or was left so, is not sent: it is more than one file.
        """
        with self._locked() as known:
            changed = [name for name in self._here() if name.startswith(prefix) and self._is_changed(name, known)]
            for name in sorted(changed, key=lambda name: (name.rpartition("/")[2] in _LAST, name)):
                before = _state_of(self.place / name)
                self._asked("put_file", str(self.place / name), self._remote(name))
                known[name] = {"stamp": _stamp(self._asked("info", self._remote(name))), "here": before}
            return len(changed)

    def _here(self) -> Iterator[str]:
        for path in (self.place, *self.place.rglob("*")):
            log = path.with_name(f"{path.name}-wal")
            is_open = log.exists() and log.stat().st_size > 0
            if path.is_file() and not path.is_symlink() and not _NOT_SENT.fullmatch(path.name) and not is_open:
                yield path.relative_to(self.place).as_posix().removeprefix(".")

    def _there(self, prefix: str) -> dict[str, Any]:
        """What the storage tells of each file, by its name below the URL; "" = the URL is a file."""
        root, found = self._remote(""), {}
        for path, info in self._asked("find", root, detail=True).items():
            name = path.removeprefix(root).removeprefix("/")
            if info["type"] != "file" or name.endswith("/") or not name.startswith(prefix):
                continue
            if name and any(part in ("", ".", "..") or re.search(r"[\\\0]", part) for part in name.split("/")):
                raise LcmError(f"{self.url}: {name!r} there is no plain path of a file: rename it")
            found[name] = info
        return found

    def _get(self, name: str, size: int, known: _Known) -> None:
        file, remote = self.place / name, self._remote(name)
        with written_whole(file) as part:
            self._asked("get_file", remote, part.name)
            if Path(part.name).stat().st_size != size:
                raise LcmError(f"{remote} came in part only: give the same command again")
            if self._is_changed(name, known) and not filecmp.cmp(file, part.name, shallow=False):
                raise LcmError(
                    f"{remote} was changed there, and its copy {file} here: remove the one that is not wanted"
                )

    def _is_changed(self, name: str, known: _Known) -> bool:
        """Whether the copy of a file is not as it was when both sides were equal last."""
        file = self.place / name
        return file.exists() and (name not in known or known[name]["here"] != _state_of(file))

    def _remote(self, name: str) -> str:
        return f"{self._storage[1]}/{name}".rstrip("/")

    @cached_property
    def _storage(self) -> tuple[Any, str]:
        """The client, and what it calls this URL."""
        try:
            import fsspec

            return fsspec.url_to_fs(self.url, use_listings_cache=False, skip_instance_cache=True)  # type: ignore[no-any-return]
        except ImportError as error:
            raise LcmError(f"{self.url}: {error} (s3:// needs pip install 'lcm-harness[s3]')") from error

    def _asked(self, method: str, *arguments: Any, **named: Any) -> Any:
        """What the storage answers; what its client complains of, whichever it is, is told in one line."""
        storage, _ = self._storage
        try:
            return getattr(storage, method)(*arguments, **named)
        except Exception as error:
            if method == "find" and isinstance(error, FileNotFoundError):
                return {}
            told = " ".join(str(error).split()) or type(error).__name__
            raise LcmError(
                f"{self.url}: its storage refuses ({told:.300}): look after address and credentials"
            ) from error

    @property
    def _home(self) -> Path:
        return _mirrors() / hashlib.sha256(self.url.encode()).hexdigest()[:16]

    @contextmanager
    def _locked(self) -> Iterator[_Known]:
        """What is known of the files, to be changed; written at the end, whatever comes between."""
        with private():
            self.place.parent.mkdir(parents=True, exist_ok=True)
        try:
            with FileLock(self._home / "mirror.lock", timeout=_LOCK_WAIT_S):
                known: _Known = _kept(self._home).get("files", {})
                try:
                    yield known
                finally:
                    with written_whole(self._home / _STATE) as stream:
                        stream.write(json.dumps({"url": self.url, "files": known}).encode())
        except Timeout as error:
            raise LcmError(f"{self.url} is mirrored into {self._home} by another command: wait for it") from error


def _mirrors() -> Path:
    return cache_dir().absolute() / "mirrors"


def _kept(home: Path) -> dict[str, Any]:
    """What is known of a mirror; nothing where that is damaged: each file is then held against its copy's absence."""
    try:
        kept = json.loads((home / _STATE).read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return kept if isinstance(kept, dict) and isinstance(kept.get("files"), dict) else {}


def _state_of(file: Path) -> list[int]:
    status = file.stat()
    return [status.st_size, status.st_mtime_ns]


def _stamp(info: dict[str, Any]) -> str:
    """What tells one content of a file at a storage from another."""
    return f"{info.get('ETag') or info.get('etag') or info.get('created')} {info['size']}"
