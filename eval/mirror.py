"""Folders and files at URLs (S3, Google Cloud, Azure): mirrored on this machine, used here, sent back whole.

Nothing else knows of URLs: what is named by one is fetched into a folder of the cache, where every reader and writer
finds files as ever. What was changed here goes back file by file, each whole or not at all, a summary last; another
machine that mirrors the same URL goes on from there.
"""

import filecmp
import hashlib
import importlib
import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple, TypedDict

from filelock import FileLock, Timeout

from lcm import consent
from lcm.errors import LcmError
from lcm.files import cache_dir, private, written_whole

PACKAGES = {"s3": "s3fs", "gs": "gcsfs", "az": "adlfs", "abfs": "adlfs"}
"""Scheme of the URLs that are mirrored -> the package that reaches them."""
_SCHEMES = (*PACKAGES, "memory")  # the last lies within one process, for trying things out
_URL = re.compile(rf"({'|'.join(_SCHEMES)}):/{{1,2}}(?=[^/])")  # a `Path` makes one slash of two
_LAST = ("report.json", "compare.json", "summary.json")
"""A folder is whole once it has these."""
_NOT_SENT = re.compile(r"\..*\.tmp|.*\.lock|.*-(wal|shm|journal)")
_STATE = "state.json"
_STAMPS = ("ETag", "etag", "md5Hash", "content_md5", "LastModified", "last_modified", "updated", "created", "mtime")
"""By what storages tell one content of a file from another; the first that is there counts."""
_CLIENT_ERRORS = {
    "botocore.exceptions": ("BotoCoreError", "ClientError"),
    "aiohttp": ("ClientError",),
    "azure.core.exceptions": ("AzureError",),
    "google.auth.exceptions": ("GoogleAuthError",),
    "gcsfs.retry": ("HttpError",),
}
"""Module -> what the clients of storages raise that is no OSError."""
_LOCK_WAIT_S = 600.0


class _Known(TypedDict):
    """A file when both sides were equal last: told by the storage, and by size and time of change here."""

    stamp: str
    here: list[int]


def is_url(path: str | Path) -> bool:
    """Whether a path is a URL of a storage that is mirrored."""
    return _URL.match(str(path)) is not None


def local(path: str | Path) -> Path:
    """The path itself, `~` worked out; of a URL the place where its mirror has it, fetched now.

    Raises:
        LcmError: if it is a URL where nothing lies, that the user did not name, or that cannot be reached.
    """
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
        return f"{self.root}/{self.name}" if self.name else self.root

    def path(self) -> Path:
        """Where a machine, maybe another one, has the copy: fetched, with what is named alike beside it."""
        mirror = Mirror.of(self.root)
        mirror.fetch(str(PurePosixPath(self.name).with_suffix("")) if self.name else "")
        return mirror.place / self.name if self.name else mirror.place


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
        """The mirror of a URL.

        Raises:
            LcmError: if the user named no such host or bucket, or a part of it is no plain name.
        """
        text = str(named)
        begin = _URL.match(text)
        if begin is None:
            raise LcmError(f"{text} is no URL that lcm mirrors: write {'://..., '.join(PACKAGES)}://...")
        url = f"{begin[1]}://{text[begin.end() :].rstrip('/')}"
        for part in url.partition("://")[2].split("/"):
            if not _is_plain(part) or re.search(r"[*?\[\]]|::", part):
                raise LcmError(f"{url}: {part!r} is no name of a folder or file; patterns and chains are not mirrored")
        if reason := consent.refused_host(url):
            raise LcmError(f"{url}: {reason}")
        return cls(url)

    @property
    def place(self) -> Path:
        """The copy: called as at the URL."""
        return self._home / "files" / self.url.rpartition("/")[2]

    def fetch(self, prefix: str = "") -> bool:
        """Bring here what is new at the URL, and take away what is gone there; what was changed here alone stays.

        Args:
            prefix: of the names below the URL that are looked at.
        Returns:
            Whether any of them lies there.

        Raises:
            LcmError: if a file was changed on both sides, or the storage refuses.
        """
        with self._locked() as known:
            there = {name: file for name, file in self._listed("").items() if name.startswith(prefix)}
            for name in [name for name in known if name.startswith(prefix) and name not in there]:
                if not self._is_changed(name, known):
                    self._file(name).unlink(missing_ok=True)
                del known[name]
            for name, (stamp, size) in there.items():
                if not (name in known and known[name]["stamp"] == stamp and self._file(name).exists()):
                    self._get(name, size, known)
                    known[name] = {"stamp": stamp, "here": _state_of(self._file(name))}
            return bool(there)

    def send(self, prefix: str = "") -> int:
        """Send what was made or changed here, each file whole; returns how many.

        A database that is open, or was left so, is not sent: it is more than one file.

        Args:
            prefix: as of `fetch`.
        """
        with self._locked() as known:
            changed = [name for name in self._here() if name.startswith(prefix) and self._is_changed(name, known)]
            for name in sorted(changed, key=lambda name: (name.rpartition("/")[2] in _LAST, name)):
                before = _state_of(self._file(name))
                self._asked("put_file", str(self._file(name)), self._remote(name))
                known[name] = {"stamp": self._listed(name)[name][0], "here": before}
            return len(changed)

    def _here(self) -> Iterator[str]:
        if self.place.is_file():
            yield ""
        for path in self.place.rglob("*"):
            log = path.with_name(f"{path.name}-wal")
            is_open = log.exists() and log.stat().st_size > 0
            if path.is_file() and not path.is_symlink() and not _NOT_SENT.fullmatch(path.name) and not is_open:
                yield path.relative_to(self.place).as_posix()

    def _listed(self, name: str) -> dict[str, tuple[str, int]]:
        """The files at or below a name: each by its name below the URL ("" = the URL is a file), its stamp and size."""
        root = self._remote(name)
        self._storage.invalidate_cache()
        found: dict[str, tuple[str, int]] = {}
        for path, info in self._asked("find", root, detail=True).items():
            below = path.removeprefix(root).strip("/")
            if info["type"] != "file" or path.endswith("/"):
                continue
            if below and not all(map(_is_plain, below.split("/"))):
                raise LcmError(f"{self.url}: {below!r} there is no plain path of a file: rename it")
            stamp = next((str(info[key]) for key in _STAMPS if info.get(key)), "")
            found["/".join(filter(None, (name, below)))] = (f"{stamp} {info['size']}", int(info["size"]))
        return found

    def _get(self, name: str, size: int, known: dict[str, _Known]) -> None:
        file = self._file(name)
        part = file.with_name(f".{file.name}.tmp")
        with private():
            file.parent.mkdir(parents=True, exist_ok=True)
            self._asked("get_file", self._remote(name), str(part))
        if part.stat().st_size != size:
            part.unlink()
            raise LcmError(f"{self._remote(name)} came in part only: give the same command again")
        if self._is_changed(name, known) and not filecmp.cmp(file, part, shallow=False):
            part.unlink()
            raise LcmError(
                f"{self._remote(name)} was changed there, and its copy {file} here: remove the one that is not wanted"
            )
        part.replace(file)

    def _is_changed(self, name: str, known: dict[str, _Known]) -> bool:
        """Whether the copy of a file is not as it was when both sides were equal last."""
        file = self._file(name)
        return file.exists() and (name not in known or known[name]["here"] != _state_of(file))

    def _file(self, name: str) -> Path:
        return self.place / name if name else self.place

    def _remote(self, name: str) -> str:
        root: str = self._storage._strip_protocol(self.url)
        return f"{root}/{name}" if name else root

    @cached_property
    def _storage(self) -> Any:
        scheme = self.url.partition("://")[0]
        try:
            return importlib.import_module("fsspec").filesystem(scheme, skip_instance_cache=True)
        except ImportError as error:
            needed = " ".join(filter(None, ("fsspec", PACKAGES.get(scheme))))
            raise LcmError(f"{self.url} needs packages that are not installed: pip install {needed}") from error

    def _asked(self, method: str, *arguments: Any, **named: Any) -> Any:
        """What the storage answers; what it complains of is told in one line, by whichever client."""
        complaints: tuple[type[Exception], ...] = (OSError, ValueError, *_client_errors())
        try:
            return getattr(self._storage, method)(*arguments, **named)
        except FileNotFoundError:
            if method == "find":
                return {}
            raise
        except complaints as error:
            told = " ".join(str(error).split()) or type(error).__name__
            raise LcmError(
                f"{self.url}: its storage refuses ({told:.300}): look after address and credentials"
            ) from error

    @property
    def _home(self) -> Path:
        return _mirrors() / hashlib.sha256(self.url.encode()).hexdigest()[:16]

    @contextmanager
    def _locked(self) -> Iterator[dict[str, _Known]]:
        """What is known of the files, to be changed; written at the end, whatever comes between."""
        with private():
            self.place.parent.mkdir(parents=True, exist_ok=True)
        try:
            with FileLock(self._home / "mirror.lock", timeout=_LOCK_WAIT_S):
                known: dict[str, _Known] = _kept(self._home).get("files", {})
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


def _is_plain(part: str) -> bool:
    return part not in ("", ".", "..") and not re.search(r"[\\\0]", part)


def _client_errors() -> tuple[type[Exception], ...]:
    loaded = ((sys.modules.get(module), names) for module, names in _CLIENT_ERRORS.items())
    return tuple(getattr(module, name) for module, names in loaded if module is not None for name in names)
