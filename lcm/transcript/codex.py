"""Codex sessions (rollouts): JSONL of both generations, and what forks copy.

The later one wraps each record in `timestamp`, `type` and `payload`. The items of the conversation, of type
`response_item`, become messages; all others (the session's header, turn contexts, compactions, types unknown to us) are
kept as events. So is `event_msg`: its user and agent messages repeat the items. The early one has the bare items, a
header without a type, and `record_type` marks.

A rollback (`thread_rolled_back`) undoes so many turns: they are a branch of their own. A turn begins with what the user
says; what the program says in the user's name (`<environment_context>`, the text of AGENTS.md) begins none.

Calls, their outputs and reasoning are items of their own, and so messages of their own: a call and reasoning are the
assistant's and have no words, an output is the tool's. A call and its output share their `call_id`.

A fork begins with a copy of what its parent said until then. Its header names the parent (`forked_from_id`; a
sub-agent's `parent_thread_id`), and the parent's own headers follow. Most copied items have no id, and all are stamped
anew: they are known by content and order.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from lcm.encoding import to_json, well_formed
from lcm.errors import TranscriptError
from lcm.given import opened
from lcm.records.conversation import Event, Message, Part
from lcm.transcript.branches import Stretches, stretches_but
from lcm.transcript.fields import (
    as_object,
    digest,
    id_in,
    json_in,
    kind,
    known_instant,
    object_in,
    recorded_instant,
    text_in,
)  # fmt: skip
from lcm.transcript.parts import DecomposedMessage, decompose, plain_text, texts_of, undivided
from lcm.transcript.reader import RecordedItem
from lcm.transcript.recorded_file import RecordedFile

_HEADER, _ITEM, _REPORT = "session_meta", "response_item", "event_msg"
_WRAPPERS = frozenset({_HEADER, _ITEM, _REPORT, "turn_context", "compacted", "world_state"})
_INSTANTS = ("timestamp", "created_at")
_CALL_ENDING, _OUTPUT_ENDINGS = "_call", ("_output", "_result")
_CALLS_OF_ANY_TOOL = ("function_call", "custom_tool_call", "tool_call", "mcp_tool_call")
"""Other calls name their tool by their type, as `web_search_call` does."""

_ROLLED_BACK = "thread_rolled_back"
_BY_PROGRAM = re.compile(
    r"# AGENTS\.md instructions|<(environment_context|user_instructions|turn_aborted|user_shell_command|skill"
    r"|subagent_notification|permissions instructions|collaboration_mode|personality_spec)>"
)
"""How begins what the program says in the user's name."""

_OUTPUT_KEYS = ("output", "result", "tools", "content")
_HEAD_BYTES = 2**16


@dataclass(frozen=True, slots=True)
class CodexReader:
    """Reads one conversation a file, named by its first header.

    Headers after it (a session resumed or forked) are events like others. What a fork copies from a session among the
    files that are read together (`file.origins`) is marked as copies.
    """

    name = "codex"

    def detects(self, file: RecordedFile) -> bool:
        return isinstance(file.first, list) and any(map(_is_record, file.first))

    def read(self, file: RecordedFile) -> Iterator[RecordedItem]:
        values = (value for _, value in RecordedFile(file.path).values())
        conversation_id = next(filter(None, map(_session_id, values)), file.name)
        branches = Stretches(_rolled_back(file) if file.mentions(_ROLLED_BACK.encode()) else ())
        own = max((own_from(file, origin) for origin in file.origins.values()), default=0)
        title: str | None = None
        forked_from, has_messages = "", False
        for place, (line, record) in enumerate(file.values()):
            with file.record(line):
                title = text_in(_reported(as_object(record), "thread_name_updated"), "thread_name") or title
                item = _item(record, conversation_id)
                forked_from = forked_from or id_in(_payload(record, _HEADER), "forked_from_id")
                has_messages = has_messages or isinstance(item, Message)
                suffix = branches.suffix(place, item.message_id) if isinstance(item, Message) else ""
                yield RecordedItem(conversation_id + suffix, item, title, is_copy=place < own)
        if forked_from and not has_messages:
            told = f"a fork that holds no words of its own: read the session {forked_from} instead"
            file.doubts.append(f"{file.path}: {told}")
        elif forked_from and forked_from not in file.origins:
            told = "which is not among the files: what both say counts as its own"
            file.doubts.append(f"{file.path}: forked from the session {forked_from}, {told}")


def _payload(record: object, named: str) -> dict[str, Any]:
    """What a record of this type wraps; empty for any other."""
    return object_in(record, "payload") if kind(record) == named else {}


def _reported(record: object, named: str) -> dict[str, Any]:
    """What is reported of a session, where that is of this type."""
    payload = _payload(record, _REPORT)
    return payload if payload.get("type") == named else {}


def _rolled_back(file: RecordedFile) -> list[list[range]]:
    """The places, from 0, of the turns that each rollback undid, but those that one before it had undone."""
    turns: list[int] = []
    undone: list[list[range]] = []
    for place, (_, record) in enumerate(RecordedFile(file.path).values()):
        if _begins_turn(record):
            turns.append(place)
            continue
        count = _reported(record, _ROLLED_BACK).get("num_turns")
        if turns and isinstance(count, int) and count > 0:
            start = turns[-count:][0]
            del turns[-count:]
            undone.append(stretches_but(range(start, place), undone))
    return undone


def _begins_turn(record: object) -> bool:
    if not isinstance(record, dict) or ("payload" in record and record.get("type") != _ITEM):
        return False
    item = object_in(record, "payload") if "payload" in record else record
    if item.get("role") != "user" or item.get("type", "message") != "message":
        return False
    words = plain_text(item if "content" in item else {"content": item.get("message")}).strip()
    return _BY_PROGRAM.match(words) is None


def _item(record: dict[str, Any], session_id: str) -> Message | Event:
    is_wrapped = "payload" in record
    if is_wrapped and record.get("type") != _ITEM:
        return Event(kind(record), record)
    item = as_object(record["payload"], "the `payload` of a response_item") if is_wrapped else record
    said = _said(item)
    if said is None:  # named as the later generation would
        named = _HEADER if _is_early_header(record) else text_in(record, "record_type") or kind(record)
        return Event(named, record)
    if is_wrapped:
        said = said.within(record, "payload")
    return said.message(id_in(item, "id"), session_id, recorded_instant(record, *_INSTANTS), text_in(item, "author"))


def _said(item: dict[str, Any]) -> DecomposedMessage | None:
    """What the item is as a message; None where it is none."""
    named = item.get("type", "message" if "role" in item else "")
    if not isinstance(named, str):
        return None
    if named in ("message", "agent_message"):
        return _told(item, named)
    if named == "reasoning":  # the summary and, where it is not encrypted, the reasoning itself
        texts = [*texts_of(item.get("summary")), *texts_of(item.get("content"))]
        return undivided(item, "assistant", [Part("reasoning", well_formed("\n".join(texts)) or None)])
    call_id, tool = text_in(item, "call_id"), text_in(item, "name") or text_in(object_in(item, "function"), "name")
    if named.endswith(_CALL_ENDING):
        tool = tool or (None if named in _CALLS_OF_ANY_TOOL else named.removesuffix(_CALL_ENDING))
        # `arguments` are JSON already, as the text that a custom tool takes is not.
        is_json = isinstance(item.get("arguments"), str)
        given = (
            text_in(item, "arguments") if is_json else json_in(item, "arguments", "input", "action", "revised_prompt")
        )
        return undivided(item, "assistant", [Part("tool", None, call_id, tool, given)])
    if named.endswith(_OUTPUT_ENDINGS):
        output = next((item[key] for key in _OUTPUT_KEYS if item.get(key) is not None), None)
        text = well_formed(output) if isinstance(output, str) else None
        part = Part(
            "tool", text, call_id, tool, tool_output=None if text is not None or output is None else to_json(output)
        )
        return undivided(item, "tool", [part], plain_text({"content": output}))
    return None


def _told(item: dict[str, Any], named: str) -> DecomposedMessage:
    role = item.get("role", "assistant" if named == "agent_message" else None)
    if not isinstance(role, str):
        raise TranscriptError("a message item needs a `role`")
    words = text_in(item, "message")
    if "content" in item or words is None:
        return decompose(item, role)
    said = decompose({"content": words}, role)  # as some early files have it
    return undivided(item, said.role, [Part("text", words)], said.content)


def _session_id(record: object) -> str:
    """The id that a header names."""
    if kind(record) == _HEADER:
        return id_in(object_in(record, "payload"), "id")
    return id_in(record, "id") if _is_early_header(record) else ""


def _is_early_header(record: object) -> bool:
    return isinstance(record, dict) and "type" not in record and record.keys() >= {"id", "timestamp", "instructions"}


def _is_record(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    named, content = kind(value), value.get("content")
    blocks = content if isinstance(content, list) else []
    return (
        (named in _WRAPPERS and "payload" in value)
        or (named == "function_call" and "arguments" in value)
        or (named == "message" and any(kind(block) in ("input_text", "output_text") for block in blocks))
        or (named == "reasoning" and "encrypted_content" in value)
        or value.get("record_type") == "state"
        or _is_early_header(value)
    )


def mark_forks(files: Sequence[RecordedFile]) -> None:
    """Tell each file with a fork which of the files hold sessions that it was forked from (`origins`)."""
    headers = {file.path: found for file in files if (found := _headers(file.path))}
    by_id: dict[str, Path] = {}
    for path, (own, *_) in headers.items():
        by_id.setdefault(id_in(own, "id"), path)
    origins: dict[Path, dict[str, Path]] = {path: {} for path in headers}
    for path, found in headers.items():
        for name in _named(found):
            origin = by_id.get(name, path)
            if path not in _ancestors(origin, origins):  # sessions that name each other would leave no word of either
                origins[path][name] = origin
    for file in files:
        file.origins = origins.get(file.path, {})


def _headers(path: Path) -> list[dict[str, Any]]:
    """The headers at the beginning of a rollout, its own first; none of another file."""
    with suppress(TranscriptError, OSError):
        with opened(path, TranscriptError) as stream:
            is_rollout = f'"{_HEADER}"'.encode() in stream.read(_HEAD_BYTES)
        first = RecordedFile(path).first if is_rollout else []
        found = [payload for record in first if (payload := _payload(record, _HEADER))]
        return found if found and id_in(found[0], "id") else []
    return []


def _named(headers: Sequence[Mapping[str, Any]]) -> list[str]:
    """The sessions that a rollout may have been forked from, the nearest first."""
    own, *others = headers
    spawned = object_in(own, "source", "subagent", "thread_spawn")
    parents = (id_in(own, "forked_from_id"), id_in(own, "parent_thread_id"), id_in(spawned, "parent_thread_id"))
    named = dict.fromkeys([*parents, *(id_in(one, "id") for one in others)])
    return [name for name in named if name and name != id_in(own, "id")]


def _ancestors(path: Path, origins: Mapping[Path, Mapping[str, Path]]) -> set[Path]:
    """The file itself, and all that it was forked from as far as is known."""
    found, waiting = set[Path](), [path]
    while waiting:
        one = waiting.pop()
        if one not in found:
            found.add(one)
            waiting += origins[one].values()
    return found


class _Copied(NamedTuple):
    says: int
    """A digest of what it says, but not of its id."""
    at: datetime | None
    may_be_left_out: bool
    """A fork for a sub-agent has what was asked, and of the answers the last."""

    @classmethod
    def of(cls, record: object) -> "_Copied | None":
        payload = _payload(record, _ITEM)
        if not payload:
            return None
        said = to_json({key: value for key, value in payload.items() if key != "id"})
        is_asked = payload.get("type") == "message" and payload.get("role") != "assistant"
        return cls(digest(said), known_instant(record, *_INSTANTS), not is_asked)


def own_from(file: RecordedFile, origin: Path) -> int:
    """The place of the first record that is no copy of what the origin says, from 0."""
    turns = {turn for _, record in RecordedFile(origin).values() if (turn := _turn(record))}
    originals = filter(None, (_Copied.of(record) for _, record in RecordedFile(origin).values()))
    forked_at: datetime | None = None
    own = 0
    for place, (_, record) in enumerate(RecordedFile(file.path).values()):
        forked_at = forked_at or known_instant(record, *_INSTANTS)
        if (turn := _turn(record)) and turn not in turns:
            return own
        if (item := _Copied.of(record)) is not None:
            if not _is_next(item, originals, forked_at):
                return own
            own = place + 1
    return own


def _turn(record: object) -> int:
    """A digest of the turn that the record names; 0 = none."""
    turn = id_in(_payload(record, "turn_context") or _payload(record, _REPORT), "turn_id")
    return digest(turn) if turn else 0


def _is_next(item: _Copied, originals: Iterator[_Copied], forked_at: datetime | None) -> bool:
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
