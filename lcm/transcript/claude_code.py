"""Claude Code sessions: JSONL, a record a line, with the sessions of its sub-agents beside it or inside it.

Records of type `user` and `assistant` hold a `message` and become messages; all others (summaries, attachments,
progress, types unknown to us) are kept as events. So are the early `tool_use` and `tool_result` records: what they
tell lies beside no `message` and no role, and the messages around them tell it again.

The order is that of the file. `parentUuid` makes no branches: parallel tool calls fork it where nobody turned back.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lcm.encoding import well_formed
from lcm.errors import TranscriptError
from lcm.files import is_below
from lcm.given import PACKED_ENDINGS
from lcm.records.conversation import Event, Message
from lcm.transcript.fields import as_object, kind
from lcm.transcript.identity import digest, native_id, recorded_instant
from lcm.transcript.parts import decompose, enclosed
from lcm.transcript.reader import RecordedItem
from lcm.transcript.recorded_file import RecordedFile, without_ending

_SPOKEN = ("user", "assistant")
_ONLY_HERE = frozenset({"file-history-snapshot", "queue-operation", "permission-mode", "custom-title", "ai-title"})
"""Types of events that no other format knows."""

_TITLES = {"custom-title": "customTitle", "ai-title": "aiTitle", "summary": "summary"}
"""Where a title stands, the best first: what the user chose, what was made for the session, what it was about."""


@dataclass(frozen=True, slots=True)
class ClaudeCodeReader:
    """Reads one session a file; its first `sessionId` names the conversation.

    What a sub-agent said (`isSidechain`) is a conversation of its own, named by the session and the agent, or where no
    agent is named by the session and the first record of that chain. Sub-agents recorded in files of their own,
    `<session>/subagents/agent-*.jsonl` beside `<session>.jsonl`, each plain or packed, are read after it; what stands
    in an agent's `.meta.json` is an event of type `meta`.
    """

    name = "claude_code"

    def detects(self, file: RecordedFile) -> bool:
        first = file.first
        return isinstance(first, list) and any(map(_is_record, first))

    def read(self, file: RecordedFile) -> Iterator[RecordedItem]:
        yield from _session(file)
        for path in _agents(file.path):
            agent = RecordedFile(path, strict=file.strict)
            agent.quarantine, agent.read_along = file.quarantine, file.read_along
            file.read_along.append(path)
            counted = 0
            for recorded in _session(agent):
                file.bytes_read += agent.bytes_read - counted  # a reader of pieces watches this file alone
                counted, file.place = agent.bytes_read, agent.place
                yield recorded


def beside(session: Path) -> list[Path]:
    """The files that are read along with a session's: those of its sub-agents, and the notes on each."""
    agents = _agents(session)
    return [*agents, *(notes for told in (session, *agents) if _is_beside(session, notes := _notes(told)))]


def _agents(session: Path) -> list[Path]:
    """The files of its sub-agents in order; of one that is there plain and packed, the plain one."""
    folder = session.parent / without_ending(session) / "subagents"
    found = [path for ending in (*PACKED_ENDINGS, "") for path in folder.glob(f"agent-*.jsonl{ending}")]
    return sorted({without_ending(path): path for path in found if _is_beside(session, path)}.values())


def _is_beside(session: Path, path: Path) -> bool:
    """Whether there is such a file, and neither a link nor the session's own name leads out of the session's folder."""
    return path.is_file() and is_below(path.resolve(), [session.resolve().parent])


def _notes(told: Path) -> Path:
    """What Claude Code notes beside a sub-agent's file."""
    return told.with_name(f"{without_ending(told)}.meta.json")


def _session(file: RecordedFile) -> Iterator[RecordedItem]:
    session_id = next(filter(None, map(_session_id, _values(file))), file.name)
    chains, titles = _Chains(session_id), dict[str, str]()
    own_id = ""
    for line, record in file.values():
        with file.record(line):
            conversation_id = chains.conversation_id(as_object(record), line)
            own_id = own_id or conversation_id
            item = _message(record, session_id) if record.get("type") in _SPOKEN else Event(kind(record), record)
            titles |= _title(record)
            title = next((titles[where] for where in _TITLES if where in titles), None)
            yield RecordedItem(conversation_id, item, title if conversation_id == session_id else None)
    about = RecordedFile(_notes(file.path), strict=file.strict)
    if _is_beside(file.path, about.path):
        about.quarantine = file.quarantine
        file.read_along.append(about.path)
        for _, meta in about.values():
            yield RecordedItem(own_id or session_id, Event("meta", meta), _agent_title(meta))


def _message(record: dict[str, Any], session_id: str) -> Message:
    native = record.get("message")
    if not isinstance(native, dict):
        raise TranscriptError(f"a record of type {record['type']} needs a `message` object")
    if not isinstance(native.get("role", ""), str):
        raise TranscriptError(f"the `role` of a message must be text, got {type(native['role']).__name__}")
    said = decompose(native, None if "role" in native else record["type"])
    return Message(
        message_id=native_id(record.get("uuid")),
        role=said.role,
        content=said.content,
        session_id=_session_id(record) or session_id,
        created_at=recorded_instant(record, ("timestamp",)),
        parts=said.parts,
        envelope=enclosed(said.envelope, record, "message"),
    )


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


def _values(file: RecordedFile) -> Iterator[Any]:
    return (value for _, value in RecordedFile(file.path).values())


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
