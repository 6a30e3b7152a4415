"""Claude Code sessions: JSONL, a record a line, with the sessions of its sub-agents beside it or inside it.

Records of type `user` and `assistant` hold a `message` and become messages; so do prompts that were typed while the
agent worked, which stand in an `attachment` of type `queued_command`. All others (summaries, those of compactions too,
attachments, progress, types unknown to us) are kept as events. So are the early `tool_use` and `tool_result` records:
what they tell lies beside no `message` and no role, and the messages around them tell it again.

The order is that of the file. `parentUuid` makes a branch only where a prompt or command goes back behind others:
parallel tool calls fork it where nobody turned back.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from lcm.encoding import well_formed
from lcm.errors import TranscriptError
from lcm.records.conversation import Event, Message, Part
from lcm.transcript.branches import Stretches
from lcm.transcript.claude_prompts import is_summary, is_typed_meanwhile
from lcm.transcript.claude_queue import PromptQueue
from lcm.transcript.claude_rewinds import rewound
from lcm.transcript.fields import as_object, kind, text_in
from lcm.transcript.identity import digest, native_id, recorded_instant
from lcm.transcript.parts import DecomposedMessage, decompose, enclosed
from lcm.transcript.plain_text import RESULT_TYPES, block_type, plain_text
from lcm.transcript.reader import RecordedItem
from lcm.transcript.recorded_file import RecordedFile
from lcm.transcript.session_folder import ToolResults, agents, is_agent, is_beside, journals, notes

_SPOKEN = ("user", "assistant")
_ONLY_HERE = frozenset({"file-history-snapshot", "queue-operation", "permission-mode", "custom-title", "ai-title"})
"""Types of events that no other format knows."""
_COMPACT_SUMMARY = "compact_summary"
"""The kind of event that what a compaction left of the talk is, though it is recorded as the user's words."""

_TITLES = {"custom-title": "customTitle", "ai-title": "aiTitle", "summary": "summary"}
"""Where a title stands, the best first: what the user chose, what was made for the session, what it was about."""


@dataclass(frozen=True, slots=True)
class ClaudeCodeReader:
    """Reads one session a file; its first `sessionId` names the conversation.

    What a sub-agent said (`isSidechain`) is a conversation of its own, named by the session and the agent, or where no
    agent is named by the session and the first record of that chain. Sub-agents recorded in files of their own,
    `agent-*.jsonl` below the folder `<session>` beside `<session>.jsonl`, each plain or packed, are read after it; what
    stands in an agent's `.meta.json` is an event of type `meta`. A result that a message shows the beginning of is read
    whole from `<session>/tool-results`; a file there that no message names is an event of type `tool-results`.
    """

    name = "claude_code"

    def detects(self, file: RecordedFile) -> bool:
        first = file.first
        return isinstance(first, list) and any(map(_is_record, first))

    def read(self, file: RecordedFile) -> Iterator[RecordedItem]:
        results = ToolResults(file)
        yield from _session(file, results)
        for path in agents(file.path):
            agent = file.along(path)
            yield from file.following(agent, _session(agent, results))
        if not is_agent(file.path):
            yield from _events_beside(file, results)
        results.tell()


def _events_beside(file: RecordedFile, results: ToolResults) -> Iterator[RecordedItem]:
    session_id = _first_session_id(file)
    for path in journals(file.path):
        journal = file.along(path)
        for line, record in journal.values():
            with journal.record(line):
                yield RecordedItem(session_id, Event(kind(as_object(record)), record))
    for name, text in results.unnamed():
        yield RecordedItem(session_id, Event("tool-results", {"file": name, "text": text}))


def _session(file: RecordedFile, results: ToolResults) -> Iterator[RecordedItem]:
    session_id = _first_session_id(file)
    chains, titles, queued = _Chains(session_id), dict[str, str](), PromptQueue()
    own_id = ""
    branches = Stretches(() if is_agent(file.path) else rewound(file))
    for line, record in file.values():
        with file.record(line):
            conversation_id = chains.conversation_id(as_object(record), line)
            own_id = own_id or conversation_id
            message = _message(record, session_id, results)
            is_said = not queued.repeats(record, message)
            item = message if message is not None and is_said else Event(_event_kind(record), record)
            titles |= _title(record)
            title = next((titles[where] for where in _TITLES if where in titles), None)
            is_main = conversation_id == session_id
            suffix = branches.suffix(line, item.message_id) if isinstance(item, Message) and is_main else ""
            yield RecordedItem(conversation_id + suffix, item, title if is_main else None)
    if is_beside(file.path, notes(file.path)):
        for _, meta in file.along(notes(file.path)).values():
            yield RecordedItem(own_id or session_id, Event("meta", meta), _agent_title(meta))


def _event_kind(record: dict[str, Any]) -> str:
    return _COMPACT_SUMMARY if is_summary(record) else kind(record)


def _message(record: dict[str, Any], session_id: str, results: ToolResults) -> Message | None:
    """What is said in a record; None where it is an event."""
    if is_typed := is_typed_meanwhile(record):
        said, within = _queued(record["attachment"]), "attachment"
    elif record.get("type") in _SPOKEN and not is_summary(record):
        said, within = _spoken(record, results), "message"
    else:
        return None
    return Message(
        message_id=native_id(record.get("uuid")),
        role=said.role,
        content=said.content,
        session_id=_session_id(record) or session_id,
        created_at=recorded_instant({**(record[within] if is_typed else {}), **record}, ("timestamp",)),
        parts=said.parts,
        envelope=enclosed(said.envelope, record, within),
    )


def _spoken(record: Mapping[str, Any], results: ToolResults) -> DecomposedMessage:
    native = record.get("message")
    if not isinstance(native, dict):
        raise TranscriptError(f"a record of type {record['type']} needs a `message` object")
    if not isinstance(native.get("role", ""), str):
        raise TranscriptError(f"the `role` of a message must be text, got {type(native['role']).__name__}")
    said = decompose(native, None if "role" in native else record["type"])
    parts = tuple(_whole(part, results) for part in said.parts)
    if parts == said.parts:
        return said
    blocks = [part.metadata["raw"] for part in parts if part.metadata["slot"] == "content"]
    return said._replace(parts=parts, content=plain_text({"content": blocks}))


def _whole(part: Part, results: ToolResults) -> Part:
    """The part with the whole result, where the recorded block shows its beginning."""
    block = part.metadata.get("raw")
    if not isinstance(block, dict) or block_type(block) not in RESULT_TYPES:
        return part
    shown = block.get("content")
    if isinstance(shown, list):
        whole: Any = [_whole_text(inner, results) for inner in shown]
    else:
        whole = results.whole(shown) if isinstance(shown, str) else None
    if whole is None or whole == shown:
        return part
    return replace(part, metadata={**part.metadata, "raw": {**block, "content": whole}, "recorded": block})


def _whole_text(block: Any, results: ToolResults) -> Any:
    text = text_in(block, "text") if block_type(block) == "text" else None
    whole = results.whole(text) if text else None
    return block if whole is None else {**block, "text": whole}


def _queued(attachment: Mapping[str, Any]) -> DecomposedMessage:
    said = decompose({"content": attachment["prompt"]}, "user")
    envelope = {"native": {**attachment, "prompt": None}, "slots": {"prompt": said.envelope["slots"]["content"]}}
    parts = tuple(replace(part, metadata={**part.metadata, "slot": "prompt"}) for part in said.parts)
    return said._replace(parts=parts, envelope=envelope)


@dataclass(slots=True)
class _Chains:
    """Which conversation each record belongs to."""

    session_id: str
    _roots: dict[int, str] = field(default_factory=dict)
    """The digest of each sidechain record's id to the id of the first record of its chain."""

    def conversation_id(self, record: Mapping[str, Any], line: int) -> str:
        if record.get("isSidechain") is not True:
            return self.session_id
        if agent_id := native_id(record.get("agentId")):
            return f"{self.session_id}/agent-{agent_id}"
        record_id = native_id(record.get("uuid"))
        root = self._roots.get(digest(native_id(record.get("parentUuid")))) or record_id or str(line)
        if record_id:
            self._roots[digest(record_id)] = root
        return f"{self.session_id}/sidechain-{root}"


def _first_session_id(file: RecordedFile) -> str:
    values = (value for _, value in RecordedFile(file.path).values())
    return next(filter(None, map(_session_id, values)), file.name)


def _session_id(record: object) -> str:
    return native_id(record.get("sessionId")) if isinstance(record, dict) else ""


def _title(record: Mapping[str, Any]) -> dict[str, str]:
    """The title that the record gives, under its type."""
    where = kind(record)
    text = record.get(_TITLES[where]) if where in _TITLES else None
    return {where: well_formed(text)} if isinstance(text, str) and text.strip() else {}


def _agent_title(meta: object) -> str | None:
    texts = (meta.get("description"), meta.get("agentType")) if isinstance(meta, dict) else ()
    return next((well_formed(text) for text in texts if isinstance(text, str) and text.strip()), None)


def _is_record(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    message, named = value.get("message"), kind(value)
    if named in _SPOKEN:
        return isinstance(message, dict) and "parts" not in message
    return "isSidechain" in value or named in _ONLY_HERE or (named == "summary" and "leafUuid" in value)
