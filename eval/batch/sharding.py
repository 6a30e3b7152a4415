"""Which part of a batch's input goes into which store."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from eval.batch.settings import differences
from eval.mirror import Origin, origin_of
from eval.run import by_class, config_hash
from lcm.derived import sealed, unsealed
from lcm.encoding import well_formed
from lcm.errors import LcmError
from lcm.files import private, written_whole
from lcm.given import opened_as_is, plain_bytes
from lcm.transcript.parquet import column_names
from lcm.transcript.recorded_file import RecordedFile
from lcm.transcript.session_folder import beside

PLAN = "plan.json"
_PLAN_KEYS = ("shards", "identity", "settings", "files")
_CHUNK_BYTES = 2**20


@dataclass(frozen=True, slots=True)
class TranscriptSource:
    """A file of transcripts, or the part of a Parquet file's conversations that one shard takes."""

    path: Path
    name: str
    """What names a conversation whose record does not."""
    digest: str
    """Of what is in it, and of which part is meant."""
    size_bytes: int
    part: int = 0
    parts: int = 1
    origin: Origin | None = None
    """Where it comes from, if that is no place on this machine."""
    newer: tuple["TranscriptSource", ...] = ()
    """Newer states of the session in it."""

    def here(self) -> "TranscriptSource":
        """The source where it is worked on: on another machine it is fetched there."""
        newer = tuple(one.here() for one in self.newer)
        path = self.path if self.origin is None or self.path.exists() else self.origin.path()
        return replace(self, path=path, newer=newer)


@dataclass(frozen=True, slots=True)
class Shard:
    """The sources that one store of a batch takes in, in order."""

    number: int
    sources: tuple[TranscriptSource, ...]

    @property
    def name(self) -> str:
        return f"shard-{self.number:03}"


@private()
def shards_of(
    files: Sequence[RecordedFile], into: Path, number: int | None, settings: Mapping[str, Any], workers: int
) -> list[Shard]:
    """Deal files out, the largest first, each to the shard that has least; Parquet by conversation to all of them.

    What was dealt out before stays where it is: `into` holds the plan, and a file that has grown goes to the store
    that knows it.

    Args:
        files: in any order.
        into: the folder of the stores.
        number: of shards; None = as before, or one a worker.
        settings: what the summaries depend on besides the files, as plain data.
        workers: how many shards are worked on at once.

    Raises:
        LcmError: if `into` was made with another number of shards or other settings, with some of those.
    """
    plan = _plan(into)
    if plan and number not in (None, plan["shards"]):
        raise LcmError(
            f"shards={number}: {into} was made with {plan['shards']}; leave shards out, or name another folder"
        )
    identity = config_hash(by_class(settings))
    if plan and identity != config_hash(by_class(plan["settings"])):
        named = "; ".join(differences(plan["settings"], settings))
        raise LcmError(f"{into} was made with another configuration ({named}); name another folder")
    number = plan.get("shards") or number or workers
    dealt: dict[str, int] = plan.get("files", {})
    loads = [0] * number
    sources: list[list[TranscriptSource]] = [[] for _ in range(number)]
    sized = sorted(((file.path.stat().st_size, file) for file in files), key=lambda pair: -pair[0])
    for is_known in (True, False):
        for size, file in sized:
            origin = origin_of(file.path)
            key = well_formed(origin.url if origin else str(file.path.resolve()))
            if (key in dealt) is not is_known:
                continue
            newer = tuple(TranscriptSource(path, "", digest_of(path), 0, origin=origin_of(path)) for path in file.newer)
            digest = _digest(digest_of(file.path), *(one.digest for one in newer))
            if number > 1 and {"conversation_id", "role"}.issubset(column_names(file) or ()):
                dealt.setdefault(key, -1)
                for part in range(number):
                    own = hashlib.sha256(f"{digest} {part}/{number}".encode()).hexdigest()
                    sources[part].append(
                        TranscriptSource(file.path, file.name, own, size // number, part, number, origin)
                    )
                    loads[part] += size // number
                continue
            shard = dealt.setdefault(key, min(range(number), key=loads.__getitem__))
            sources[shard].append(TranscriptSource(file.path, file.name, digest, size, origin=origin, newer=newer))
            loads[shard] += size
    into.mkdir(parents=True, exist_ok=True)
    with written_whole(into / PLAN) as stream:
        written = sealed({"shards": number, "identity": identity, "settings": settings, "files": dealt})
        stream.write(json.dumps(written, indent=1).encode())
    return [Shard(i, tuple(found)) for i, found in enumerate(sources)]


def digest_of(path: Path) -> str:
    """The sha256 of a file and of those that are read along with it."""
    whole = hashlib.sha256()
    for one in (path, *beside(path)):
        with opened_as_is(one) as stream:
            while chunk := stream.read(_CHUNK_BYTES):
                whole.update(chunk)
    return whole.hexdigest()


def _digest(own: str, *newer: str) -> str:
    """The digest of a source, with those of the newer states of its session: they say what of it is read."""
    return hashlib.sha256(" ".join((own, *newer)).encode()).hexdigest() if newer else own


def _plan(into: Path) -> dict[str, Any]:
    path = into / PLAN
    if not path.exists():
        return {}
    try:
        plan = unsealed(json.loads(plain_bytes(path)), _PLAN_KEYS)
    except ValueError:
        plan = None
    if plan is None:
        raise LcmError(f"{path} is damaged: it is not as it was written; name another folder")
    return plan
