"""Codex sessions that were forked: such a rollout begins with a copy of what its parent said until then.

Its header names the parent (`forked_from_id`; a sub-agent's `parent_thread_id`), and the parent's own headers follow.
Most copied items have no id, and all are stamped anew: they are known by content and order.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from lcm.encoding import to_json
from lcm.errors import TranscriptError
from lcm.given import opened
from lcm.transcript.fields import object_in
from lcm.transcript.identity import digest, native_id, recorded_instant
from lcm.transcript.recorded_file import RecordedFile

_HEADER = "session_meta"
_HEAD_BYTES = 2**16


def mark_forks(files: Sequence[RecordedFile]) -> None:
    """Tell each file with a fork which of the files hold sessions that it was forked from (`origins`)."""
    headers = {file.path: found for file in files if (found := _headers(file.path))}
    by_id: dict[str, Path] = {}
    for path, (own, *_) in headers.items():
        by_id.setdefault(native_id(own.get("id")), path)
    origins: dict[Path, dict[str, Path]] = {path: {} for path in headers}
    for path, found in headers.items():
        for name in _named(found):
            origin = by_id.get(name, path)
            if path not in _ancestors(origin, origins):  # sessions that name each other would leave no word of either
                origins[path][name] = origin
    for file in files:
        file.origins = origins.get(file.path, {})


def own_from(file: RecordedFile, origin: Path) -> int:
    """The place of the first record that is no copy of what the origin says, from 0."""
    turns = {turn for _, record in RecordedFile(origin).values() if (turn := _turn(record))}
    originals = filter(None, (_Item.of(record) for _, record in RecordedFile(origin).values()))
    forked_at: datetime | None = None
    own = 0
    for place, (_, record) in enumerate(RecordedFile(file.path).values()):
        forked_at = forked_at or _instant(record)
        if (turn := _turn(record)) and turn not in turns:
            return own
        if (item := _Item.of(record)) is not None:
            if not _is_next(item, originals, forked_at):
                return own
            own = place + 1
    return own


def parent(record: object) -> str:
    """The id of the session that a header says it was forked from."""
    return native_id(_payload(record, _HEADER).get("forked_from_id"))


class _Item(NamedTuple):
    says: int
    """A digest of what it says, but not of its id."""
    at: datetime | None
    may_be_left_out: bool
    """A fork for a sub-agent has what was asked, and of the answers the last."""

    @classmethod
    def of(cls, record: object) -> "_Item | None":
        payload = _payload(record, "response_item")
        if not payload:
            return None
        said = to_json({key: value for key, value in payload.items() if key != "id"})
        is_asked = payload.get("type") == "message" and payload.get("role") != "assistant"
        return cls(digest(said), _instant(record), not is_asked)


def _is_next(item: _Item, originals: Iterator[_Item], forked_at: datetime | None) -> bool:
    """Whether it is the next of the originals, but those that a fork leaves out."""
    for original in originals:
        is_later = original.at is not None and forked_at is not None and original.at > forked_at
        if is_later and original.at != item.at:
            return False
        if original.says == item.says:
            return True
        if not original.may_be_left_out:
            return False
    return False


def _ancestors(path: Path, origins: Mapping[Path, Mapping[str, Path]]) -> set[Path]:
    """The file itself, and all that it was forked from as far as is known."""
    found, waiting = set[Path](), [path]
    while waiting:
        one = waiting.pop()
        if one not in found:
            found.add(one)
            waiting += origins[one].values()
    return found


def _headers(path: Path) -> list[dict[str, Any]]:
    """The headers at the beginning of a rollout, its own first; none of another file."""
    with suppress(TranscriptError, OSError):
        with opened(path, TranscriptError) as stream:
            is_rollout = f'"{_HEADER}"'.encode() in stream.read(_HEAD_BYTES)
        first = RecordedFile(path).first if is_rollout else []
        found = [payload for record in first if (payload := _payload(record, _HEADER))]
        return found if found and native_id(found[0].get("id")) else []
    return []


def _named(headers: Sequence[Mapping[str, Any]]) -> list[str]:
    """The sessions that a rollout may have been forked from, the nearest first."""
    own, *others = headers
    spawned = object_in(object_in(object_in(own, "source"), "subagent"), "thread_spawn")
    holders = ((own, "forked_from_id"), (own, "parent_thread_id"), (spawned, "parent_thread_id"))
    named = [native_id(holder.get(key)) for holder, key in holders] + [native_id(one.get("id")) for one in others]
    return [name for name in dict.fromkeys(named) if name and name != native_id(own.get("id"))]


def _turn(record: object) -> int:
    """A digest of the turn that the record names; 0 = none."""
    payload = _payload(record, "turn_context") or _payload(record, "event_msg")
    turn = native_id(payload.get("turn_id"))
    return digest(turn) if turn else 0


def _payload(record: object, named: str) -> dict[str, Any]:
    return object_in(record, "payload") if isinstance(record, dict) and record.get("type") == named else {}


def _instant(record: object) -> datetime | None:
    with suppress(TranscriptError):
        return recorded_instant(record, ("timestamp", "created_at")) if isinstance(record, dict) else None
    return None
