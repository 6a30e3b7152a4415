"""The sources of a batch: which store each goes into, by which settings, and how it is read piece by piece."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from zlib import crc32

import pyarrow as pa  # type: ignore[import-untyped]

from eval.configuration import by_class, config_hash, leaves
from eval.mirror import Origin, origin_of
from lcm import given_parquet
from lcm.derived import sealed, unsealed
from lcm.encoding import well_formed
from lcm.errors import LcmError, TranscriptError
from lcm.faults import is_of_machine
from lcm.files import private, written_whole
from lcm.given import opened_as_is, plain_bytes
from lcm.given_parquet import json_value
from lcm.records.conversation import Transcript
from lcm.transcript.parquet import ParquetReader, column_names, recorded_row
from lcm.transcript.reader import RecordedItem, TranscriptReader
from lcm.transcript.reading import PIECE_BYTES, PIECE_ITEMS, READERS, read_pieces, reader_of
from lcm.transcript.recorded_file import RecordedFile
from lcm.transcript.session_folder import beside

_GROUPS = ("compaction", "token_estimator", "assembly", "session")
_OF_LIVE_SESSIONS = {
    "new_session_retain_depth", "bootstrap_max_tokens", "leaf_chunk_tokens", "prune_heartbeats",
    "prune_heartbeat_turns", "import_cap_share", "import_cap_messages",
}  # fmt: skip
"""Keys of `session` that have no say in a batch."""
_OF_CONNECTIONS = {
    "base_url", "profiles", "profile", "api_key_env", "api_key_file", "timeout_seconds", "retries", "mode", "workers",
    "threads", "batch_size",
}  # fmt: skip
"""Keys of a component that say how it is reached or how fast it works, not what it gives."""
_NAMED, _SHOWN_LENGTH = 3, 60


def deciding_settings(config: Mapping[str, Any], triggers: str) -> dict[str, Any]:
    """Take out of a resolved configuration what decides the summaries, each part under the key that a user sets it by.
    A part that is equal to the group of its name stands as `${group}`, and the group beside it."""
    waiting = [group for group in _GROUPS if group in config]
    settings: dict[str, Any] = {}
    while waiting:
        group = waiting.pop(0)
        if group not in settings:
            settings[group] = _by_name(config[group], config, waiting)
    settings = _without(settings, _OF_CONNECTIONS)
    settings["session"] = {key: value for key, value in settings["session"].items() if key not in _OF_LIVE_SESSIONS}
    return {**settings, "triggers": triggers}


def differences(there: Mapping[str, Any], here: Mapping[str, Any]) -> list[str]:
    """Name the first settings that differ, those of whole components before those of their parts."""
    old, new = (dict(leaves(by_class(side))) for side in (there, json.loads(json.dumps(here, default=str))))
    differing = [key for key in {**new, **old} if key not in old or key not in new or old[key] != new[key]]
    differing.sort(key=lambda key: key.count("."))
    told = [f"{key}: {_shown(old, key)} there, {_shown(new, key)} here" for key in differing[:_NAMED]]
    return told if len(differing) <= _NAMED else [*told, f"and {len(differing) - _NAMED} more"]


def _without(node: Any, keys: set[str]) -> Any:
    if not isinstance(node, dict):
        return node
    return {key: _without(value, keys) for key, value in node.items() if key not in keys}


def _by_name(node: Any, config: Mapping[str, Any], groups: list[str]) -> Any:
    """The node with the names of groups in the places of what they are; those are added to `groups`."""
    if not isinstance(node, dict):
        return node
    named = {key for key, value in node.items() if isinstance(value, dict) and value and value == config.get(key)}
    groups += sorted(named)
    return {key: f"${{{key}}}" if key in named else _by_name(value, config, groups) for key, value in node.items()}


def _shown(settings: Mapping[str, Any], key: str) -> str:
    if key not in settings:
        return "not set"
    text = json.dumps(settings[key], ensure_ascii=False)
    return text if len(text) <= _SHOWN_LENGTH else f"{text[:_SHOWN_LENGTH]}..."


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
        number: of shards; None = as before, or one a worker, of whom so many work at once.
        settings: what the summaries depend on besides the files, as plain data.
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
            digest = digest_of(file.path)
            if newer:  # they say what of it is read
                digest = hashlib.sha256(" ".join((digest, *(one.digest for one in newer))).encode()).hexdigest()
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


@dataclass(frozen=True, slots=True)
class ParquetPart:
    """Reads as `ParquetReader` does, one part of `parts`: the others' rows are passed over before they are decoded."""

    part: int
    parts: int
    name = "parquet"

    def __post_init__(self) -> None:
        if not 0 <= self.part < self.parts:
            raise ValueError(f"part must be from 0 to {self.parts - 1}, got {self.part}")

    def detects(self, file: RecordedFile) -> bool:
        return ParquetReader().detects(file)

    def read(self, file: RecordedFile) -> Iterator[RecordedItem]:
        before = 0
        try:
            for rows in given_parquet.rows(file.path, TranscriptError):
                ids = rows.columns.column("conversation_id").to_pylist()
                places = [place for place, conversation in enumerate(ids) if self._is_ours(conversation)]
                file.bytes_read += rows.n_bytes // self.parts
                ours = rows.columns.take(pa.array(places, pa.int64())).to_pylist()
                for place, row in zip(places, ours, strict=True):
                    number = before + place + 1
                    with file.record(number, f"row {number}: "):
                        yield recorded_row({key: json_value(value) for key, value in row.items()}, file.name)
                before += len(ids)
        except given_parquet.UNREADABLE as error:
            file.put_aside(
                before + 1, f"row {before + 1} and all after it: {' '.join(str(error).split())}", to_end=True
            )

    def _is_ours(self, conversation_id: object) -> bool:
        return crc32(str(conversation_id).encode("utf-8", "surrogatepass")) % self.parts == self.part


@dataclass(slots=True)
class ReadConversation:
    """One conversation of a source, as far as it was read."""

    messages: int = 0
    events: int = 0
    seconds: float = 0.0
    """That its compaction took."""
    reason: str = ""
    """What compaction said of it last, where it made no summary."""
    failure: str = ""
    """Why it is not compacted to its end: a later run goes on with it."""


@dataclass(slots=True)
class SourceReader:
    """Reads one source of a shard piece by piece, and keeps what became of it."""

    source: TranscriptSource
    file: RecordedFile
    pieces: Iterator[Transcript]
    conversations: dict[str, ReadConversation] = field(default_factory=dict)
    is_read: bool = False
    refused: str | None = None

    @property
    def is_over(self) -> bool:
        return self.is_read or self.refused is not None

    def conversation(self, conversation_id: str) -> ReadConversation:
        return self.conversations.setdefault(conversation_id, ReadConversation())

    @property
    def failures(self) -> list[str]:
        """Why conversations are not compacted to their ends, one reason each."""
        return [one.failure for one in self.conversations.values() if one.failure]

    def refuse(self, reason: str) -> None:
        """Note why the source is not taken in, with its path, which a store does not know."""
        path = str(self.source.path)
        self.refused = reason if path in reason else f"{path}: {reason}"

    def take(self) -> list[Transcript]:
        """The next pieces: some `PIECE_ITEMS` messages, or `PIECE_BYTES`."""
        taken: list[Transcript] = []
        items, from_byte = 0, self.file.bytes_read
        try:
            while items < PIECE_ITEMS and self.file.bytes_read - from_byte < PIECE_BYTES:
                piece = next(self.pieces)
                taken.append(piece)
                items += len(piece.messages) + len(piece.events)
        except StopIteration:
            self.is_read = True
        except (OSError, TranscriptError) as error:
            if is_of_machine(error):
                raise
            self.refuse(str(error))
        return taken


def opened(source: TranscriptSource, name: str, readers: Sequence[TranscriptReader] = READERS) -> SourceReader:
    """Begin to read a source in the format of that name, "auto": as it looks."""
    file = RecordedFile(source.path, name=source.name)
    file.newer = tuple(one.path for one in source.newer)
    reading = SourceReader(source, file, iter(()))
    try:
        reader = ParquetPart(source.part, source.parts) if source.parts > 1 else reader_of(file, name, readers)
        reading.pieces = read_pieces(file, reader)
    except (OSError, TranscriptError) as error:
        if is_of_machine(error):
            raise
        reading.refuse(str(error))
    return reading
