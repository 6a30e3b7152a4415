"""Codex sessions (rollouts): JSONL of both generations.

The later one wraps each record in `timestamp`, `type` and `payload`. The items of the conversation, of type
`response_item`, become messages; all others (the session's header, turn contexts, compactions, types unknown to us) are
kept as events. So is `event_msg`: its user and agent messages repeat the items. The early one has the bare items, a
header without a type, and `record_type` marks.

A rollback (`thread_rolled_back`) undoes so many turns: they are a branch of their own. A turn begins with what the user
says; what the program says in the user's name (`<environment_context>`, the text of AGENTS.md) begins none.

Calls, their outputs and reasoning are items of their own, and so messages of their own: a call and reasoning are the
assistant's and have no words, an output is the tool's. A call and its output share their `call_id`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lcm.encoding import to_json, well_formed
from lcm.errors import TranscriptError
from lcm.records.conversation import Event, Message, Part, Role
from lcm.transcript.branches import Stretches, stretches_but
from lcm.transcript.codex_forks import own_from, parent
from lcm.transcript.fields import as_object, json_in, kind, object_in, text_in
from lcm.transcript.identity import native_id, recorded_instant
from lcm.transcript.parts import DecomposedMessage, decompose, enclosed
from lcm.transcript.plain_text import plain_text
from lcm.transcript.reader import RecordedItem
from lcm.transcript.recorded_file import RecordedFile

_WRAPPERS = frozenset({"session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state"})
_TOLD = ("message", "agent_message")
_CALL_ENDING, _OUTPUT_ENDINGS = "_call", ("_output", "_result")
_CALLS_OF_ANY_TOOL = ("function_call", "custom_tool_call", "tool_call", "mcp_tool_call")
"""Other calls name their tool by their type, as `web_search_call` does."""

_ROLLED_BACK = "thread_rolled_back"
_BY_PROGRAM = re.compile(
    r"# AGENTS\.md instructions|<(environment_context|user_instructions|turn_aborted|user_shell_command|skill"
    r"|subagent_notification|permissions instructions|collaboration_mode|personality_spec)>"
)
"""How begins what the program says in the user's name."""

_INPUT_KEYS = ("arguments", "input", "action", "revised_prompt")
_OUTPUT_KEYS = ("output", "result", "tools", "content")


@dataclass(frozen=True, slots=True)
class CodexReader:
    """Reads one conversation a file, named by its first header.

    Headers after it (a session resumed or forked) are events like others. What a fork copies from a session among the
    files that are read together (`file.origins`) is marked as copies.
    """

    name = "codex"

    def detects(self, file: RecordedFile) -> bool:
        first = file.first
        return isinstance(first, list) and any(map(_is_record, first))

    def read(self, file: RecordedFile) -> Iterator[RecordedItem]:
        values = (value for _, value in RecordedFile(file.path).values())
        conversation_id = next(filter(None, map(_session_id, values)), file.name)
        branches = Stretches(_rolled_back(file) if file.mentions(_ROLLED_BACK.encode()) else ())
        own = max((own_from(file, origin) for origin in file.origins.values()), default=0)
        title: str | None = None
        forked_from, has_messages = "", False
        for place, (line, record) in enumerate(file.values()):
            with file.record(line):
                title = _title(as_object(record)) or title
                item = _item(record, conversation_id)
                forked_from, has_messages = forked_from or parent(record), has_messages or isinstance(item, Message)
                suffix = branches.suffix(place, item.message_id) if isinstance(item, Message) else ""
                yield RecordedItem(conversation_id + suffix, item, title, is_copy=place < own)
        if forked_from and not has_messages:
            told = f"a fork that holds no words of its own: read the session {forked_from} instead"
            file.doubts.append(f"{file.path}: {told}")
        elif forked_from and forked_from not in file.origins:
            told = (
                f"forked from the session {forked_from}, which is not among the files: what both say counts as its own"
            )
            file.doubts.append(f"{file.path}: {told}")


def _rolled_back(file: RecordedFile) -> list[list[range]]:
    """The places, from 0, of the turns that each rollback undid, but those that one before it had undone."""
    turns: list[int] = []
    undone: list[list[range]] = []
    for place, (_, record) in enumerate(RecordedFile(file.path).values()):
        if _begins_turn(record):
            turns.append(place)
        elif turns and (count := _undone_turns(record)):
            start = turns[-count:][0]
            del turns[-count:]
            undone.append(stretches_but(range(start, place), undone))
    return undone


def _undone_turns(record: object) -> int:
    payload = object_in(record, "payload") if isinstance(record, dict) and record.get("type") == "event_msg" else {}
    count = payload.get("num_turns") if payload.get("type") == _ROLLED_BACK else 0
    return count if isinstance(count, int) and count > 0 else 0


def _begins_turn(record: object) -> bool:
    if not isinstance(record, dict) or ("payload" in record and record.get("type") != "response_item"):
        return False
    item = object_in(record, "payload") if "payload" in record else record
    if item.get("role") != "user" or item.get("type", "message") != "message":
        return False
    words = plain_text(item if "content" in item else {"content": item.get("message")}).strip()
    return _BY_PROGRAM.match(words) is None


def _item(record: dict[str, Any], session_id: str) -> Message | Event:
    is_wrapped = "payload" in record
    if is_wrapped and record.get("type") != "response_item":
        return Event(kind(record), record)
    item = as_object(record["payload"], "the `payload` of a response_item") if is_wrapped else record
    said = _said(item)
    if said is None:
        return Event(_event_kind(record), record)
    author = item.get("author")
    return Message(
        message_id=native_id(item.get("id")),
        role=said.role,
        content=said.content,
        session_id=session_id,
        created_at=recorded_instant(record, ("timestamp", "created_at")),
        author=well_formed(author) if isinstance(author, str) else None,
        parts=said.parts,
        envelope=enclosed(said.envelope, record, "payload") if is_wrapped else said.envelope,
    )


def _said(item: dict[str, Any]) -> DecomposedMessage | None:
    """What the item is as a message; None where it is none."""
    named = item.get("type", "message" if "role" in item else "")
    if not isinstance(named, str):
        return None
    if named in _TOLD:
        return _told(item, named)
    if named == "reasoning":
        return _whole(item, "assistant", Part("reasoning", text=_reasoning(item)))
    if named.endswith(_CALL_ENDING):
        return _whole(item, "assistant", _call(item, named))
    if named.endswith(_OUTPUT_ENDINGS):
        output = next((item[key] for key in _OUTPUT_KEYS if item.get(key) is not None), None)
        return _whole(item, "tool", _output(item, output), plain_text({"content": output}))
    return None


def _told(item: dict[str, Any], named: str) -> DecomposedMessage:
    role = item.get("role", "assistant" if named == "agent_message" else None)
    if not isinstance(role, str):
        raise TranscriptError("a message item needs a `role`")
    words = item.get("message")
    if "content" not in item and isinstance(words, str):  # as some early files have it
        said = decompose({"content": words}, role)
        return _whole(item, said.role, Part("text", text=well_formed(words)), said.content)
    return decompose(item, role)


def _whole(item: dict[str, Any], role: Role, part: Part, content: str = "") -> DecomposedMessage:
    """A message of one part whose envelope keeps the item whole."""
    return DecomposedMessage(role, content, (part,), {"native": item, "slots": {}})


def _call(item: Mapping[str, Any], named: str) -> Part:
    return Part(
        "tool",
        tool_call_id=text_in(item, "call_id"),
        tool_name=_tool_name(item) or (None if named in _CALLS_OF_ANY_TOOL else named.removesuffix(_CALL_ENDING)),
        tool_input=_input(item),
    )


def _input(item: Mapping[str, Any]) -> str | None:
    if isinstance(item.get("arguments"), str):
        return text_in(item, "arguments")  # JSON already, as the text that a custom tool takes is not
    return json_in(item, *_INPUT_KEYS)


def _output(item: Mapping[str, Any], output: object) -> Part:
    text = well_formed(output) if isinstance(output, str) else None
    return Part(
        "tool",
        text=text,
        tool_call_id=text_in(item, "call_id"),
        tool_name=_tool_name(item),
        tool_output=to_json(output) if text is None and output is not None else None,
    )


def _tool_name(item: Mapping[str, Any]) -> str | None:
    return text_in(item, "name") or text_in(object_in(item, "function"), "name")


def _reasoning(item: Mapping[str, Any]) -> str | None:
    """The summary and, where it is not encrypted, the reasoning itself."""
    return well_formed("\n".join(_texts(item.get("summary"), item.get("content")))) or None


def _texts(*lists: object) -> Iterable[str]:
    for entries in lists:
        for entry in entries if isinstance(entries, list) else [entries]:
            text = entry.get("text") if isinstance(entry, dict) else entry
            if isinstance(text, str) and text.strip():
                yield text


def _session_id(record: object) -> str:
    """The id that a header names."""
    if not isinstance(record, dict):
        return ""
    if record.get("type") == "session_meta":
        return native_id(object_in(record, "payload").get("id"))
    return native_id(record.get("id")) if _is_early_header(record) else ""


def _title(record: Mapping[str, Any]) -> str | None:
    payload = object_in(record, "payload") if record.get("type") == "event_msg" else {}
    return text_in(payload, "thread_name") if payload.get("type") == "thread_name_updated" else None


def _event_kind(record: Mapping[str, Any]) -> str:
    """As the later generation would name it."""
    return "session_meta" if _is_early_header(record) else text_in(record, "record_type") or kind(record)


def _is_early_header(record: Mapping[str, Any]) -> bool:
    return "type" not in record and "id" in record and "timestamp" in record and "instructions" in record


def _is_record(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    named = kind(value)
    return (
        (named in _WRAPPERS and "payload" in value)
        or (named == "function_call" and "arguments" in value)
        or (named == "message" and _is_early_content(value.get("content")))
        or (named == "reasoning" and "encrypted_content" in value)
        or value.get("record_type") == "state"
        or _is_early_header(value)
    )


def _is_early_content(content: object) -> bool:
    blocks = content if isinstance(content, list) else []
    return any(isinstance(block, dict) and block.get("type") in ("input_text", "output_text") for block in blocks)
