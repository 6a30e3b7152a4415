"""A T5 from where it was published into a folder: descriptions, tokenizer and safetensors, nothing that is code.

Every file is held to its published digest, where one is known. Any other is trusted as it first comes, and held to that
from then on by the folder's manifest: a server that lies the first time is not found out, one that does later is.
"""

import json
import os
import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Self
from urllib.parse import quote, urlsplit

from eval.download import PARTIAL, MissingFileError, Progress, Remote, download
from lcm.compaction.summarizer.t5_files import Checkpoint, CheckpointFile
from lcm.errors import ModelError
from lcm.files import write_text
from lcm.retrieval.embedder.hub import read_json

HUB_URL = "HF_ENDPOINT"
"""The variable by which users of the hub name a mirror of it."""
_HUB = "https://huggingface.co"
_WEIGHTS = "model.safetensors"
_INDEX = "model.safetensors.index.json"
_SHARD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*\.safetensors")
_NEEDED = ("config.json", "tokenizer.json")
_OPTIONAL = ("generation_config.json", "tokenizer_config.json", "special_tokens_map.json", "spiece.model")
_MIRRORS = f"base_url=URL or {HUB_URL}"

MANIFEST = "download.json"
"""In a folder: what it was got from, by which later downloads are checked."""

Shown = Callable[[str, int | None], AbstractContextManager[Progress]]
"""Shows how far a file of a name and size is."""


@dataclass(frozen=True, slots=True)
class Source:
    """A folder of files on a server."""

    address: str
    """That they lie below, with `/` at its end."""
    origin: str
    """What they are files of, wherever they are had from."""
    files: tuple[CheckpointFile, ...] | None
    """None: those of any T5, as far as they are there."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """The record of fetched files: their origin, and the digest of each."""

    origin: str
    """What they are files of: `google-t5/t5-small at df1b051...`, or the address that they lie below."""
    files: dict[str, str]
    """Name -> SHA-256, of those that came whole."""

    @classmethod
    def read(cls, folder: Path) -> Self | None:
        """That of a folder; None where it has none, ModelError where it is not as `write` leaves it."""
        path = folder / MANIFEST
        try:
            said = json.loads(path.read_text(encoding="utf-8"))
            files = {str(name): str(digest) for name, digest in said["files"].items()}
            return cls(str(said["origin"]), files)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as err:
            raise ModelError(
                f"{path} is damaged ({err}); remove it, and the same command takes files as they come"
            ) from err

    def write(self, folder: Path) -> None:
        told = {"origin": self.origin, "files": dict(sorted(self.files.items()))}
        write_text(folder / MANIFEST, json.dumps(told, indent=2) + "\n")


def source_of(checkpoint: Checkpoint, base_url: str | None) -> Source:
    """A checkpoint's, at the hub or at a mirror that is laid out as the hub is."""
    hub = (base_url or os.environ.get(HUB_URL) or _HUB).rstrip("/")
    return Source(
        f"{hub}/{checkpoint.repository}/resolve/{checkpoint.revision}/",
        f"{checkpoint.repository} at {checkpoint.revision}",
        checkpoint.files,
    )


def source_at(url: str) -> Source:
    """Of a T5 at an address: a folder of files, or the page of a repository of the hub."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ModelError(f"{url!r} is no address of a folder: expected https://HOST/PATH, without ? and #")
    if parts.username or parts.password:
        raise ModelError(f"{parts.hostname}: an address with a user or password is not taken; leave that out")
    address = url.rstrip("/") + "/"
    is_hub = parts.hostname == urlsplit(_HUB).hostname
    if is_hub and len(parts.path.strip("/").split("/")) == 2:
        address += "resolve/main/"
    return Source(address, address, None)


def get(source: Source, folder: Path, shown: Shown) -> Manifest:
    """Bring what a folder lacks; what is there already is checked and left as it is, or refused as another."""
    manifest = Manifest.read(folder) or Manifest(source.origin, {})
    if manifest.origin != source.origin:
        raise ModelError(f"{folder} holds {manifest.origin}, not {source.origin}; name another folder")

    def bring(file: CheckpointFile) -> None:
        path = folder / file.name
        for place in (path, path.with_name(path.name + PARTIAL)):
            if place.is_symlink():
                raise ModelError(f"{place} is a link, which is not written through: remove it, or name another folder")
        first = manifest.files.get(file.name)
        remote = Remote(source.address + quote(file.name), file.sha256 or first, file.size_bytes, _MIRRORS)
        with shown(file.name, file.size_bytes) as progress:
            digest = download(remote, path, progress)
        if first != digest:
            manifest.files[file.name] = digest
            manifest.write(folder)

    def is_brought(name: str) -> bool:
        try:
            bring(CheckpointFile(name))
        except MissingFileError:
            if name in manifest.files:
                raise
            return False
        return True

    for file in source.files or map(CheckpointFile, _NEEDED):
        bring(file)
    if source.files is None:
        for name in _OPTIONAL:
            is_brought(name)
        if not is_brought(_WEIGHTS):
            if not is_brought(_INDEX):
                raise ModelError(
                    f"{source.address} has neither {_WEIGHTS} nor {_INDEX}: weights of another form, as a pickle, are "
                    "not got"
                )
            for name in _shards(folder / _INDEX):
                bring(CheckpointFile(name))
    return manifest


def _shards(index: Path) -> Sequence[str]:
    """The files that an index names, which a server wrote: names, and no paths."""
    named = read_json(index).get("weight_map")
    names = sorted({str(name) for name in named.values()}) if isinstance(named, dict) else []
    if wrong := [name for name in names if not _SHARD.fullmatch(name)]:
        raise ModelError(f"{index} names {wrong[0]!r}, which is no safetensors file beside it; nothing is got of it")
    if not names:
        raise ModelError(f"{index} names no files: its weight_map must")
    return names
