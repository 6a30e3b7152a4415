"""Claude Code sessions: JSONL, a record a line, with the sessions of its sub-agents beside it or inside it.

Records of type `user` and `assistant` hold a `message` and become messages; so do prompts that were typed while the
agent worked, which stand in an `attachment` of type `queued_command`. All others (summaries, those of compactions too,
attachments, progress, types unknown to us) are kept as events. So are the early `tool_use` and `tool_result` records:
what they tell lies beside no `message` and no role, and the messages around them tell it again.

The order is that of the file. `parentUuid` makes a branch only where a prompt or command goes back behind others:
parallel tool calls fork it where nobody turned back. A prompt that waited in the queue is delivered once, but may be
recorded twice.
"""

import re
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lcm.errors import TranscriptError
from lcm.records.conversation import Event, Message, Part
from lcm.transcript.branches import Stretches, stretches_but
from lcm.transcript.fields import (
    as_object,
    digest,
    id_in,
    kind,
    known_instant,
    list_in,
    object_in,
    place_of,
    recorded_instant,
    text_in,
)  # fmt: skip
from lcm.transcript.json_scanner import JsonError, parse
from lcm.transcript.parts import (
    MEDIA_TYPES,
    RESULT_TYPES,
    DecomposedMessage,
    block_type,
    decompose,
    plain_text,
)  # fmt: skip
from lcm.transcript.reader import RecordedItem
from lcm.transcript.recorded_file import RecordedFile
from lcm.transcript.session_folder import ToolResults, agents, is_agent, is_beside, journals, notes

_NOT_TYPED = ("isSidechain", "isMeta")
_BY_PROGRAM = re.compile(r"\s*(<(?!command-|bash-input>)[a-z-]+[\s>]|\[Request interrupted)")
"""How a record of type `user` begins that nobody typed: what a command printed, a task that is done."""

_CLEARED = re.compile(r"<command-name>/?(clear|new)</command-name>")
_NOTIFICATION = "<task-notification"


def is_typed(record: Mapping[str, Any]) -> bool:
    """Whether it is a prompt, or a command, that began a turn or could have."""
    if record.get("type") != "user" or is_summary(record) or any(record.get(key) is True for key in _NOT_TYPED):
        return False
    message = {"content": object_in(record, "message").get("content")}
    has_result = any(block_type(block) in RESULT_TYPES for block in list_in(message, "content"))
    return not has_result and _says_something(message) and _BY_PROGRAM.match(plain_text(message)) is None


def is_summary(record: Mapping[str, Any]) -> bool:
    """Whether a compaction left it in the place of the talk before."""
    return record.get("isCompactSummary") is True


def is_typed_meanwhile(record: Mapping[str, Any]) -> bool:
    """Whether somebody typed it while the agent worked: what a program queued (a task that is done) has the same shape.

    To a sub-agent its coordinator speaks as to the agent its user.
    """
    queued = object_in(record, "attachment") if record.get("type") == "attachment" else {}
    message = {"content": queued.get("prompt")}
    if queued.get("type") != "queued_command" or not isinstance(message["content"], str | list):
        return False
    by = object_in(queued, "origin").get("kind", "human")
    if by == "coordinator" and record.get("isSidechain") is True:
        return True
    is_meta = queued.get("isMeta") is True or record.get("isMeta") is True
    is_prompt = queued.get("commandMode", "prompt") == "prompt" and by == "human" and not is_meta
    return is_prompt and _says_something(message) and not plain_text(message).strip().startswith(_NOTIFICATION)


def clears(record: Mapping[str, Any]) -> bool:
    """Whether it is the command after which the talk begins anew."""
    return _CLEARED.search(plain_text(object_in(record, "message"))) is not None


def _says_something(message: Mapping[str, Any]) -> bool:
    has_media = any(block_type(block) in MEDIA_TYPES for block in list_in(message, "content"))
    return has_media or bool(plain_text(message).strip())


_ID = re.compile(rb'"uuid"\s*:\s*"([^"\\]+)"')
_PARENT = re.compile(rb'"parentUuid"\s*:\s*(?:null|"([^"\\]*)")')
_SIDECHAIN = re.compile(rb'"isSidechain"\s*:\s*true')

_Numbers = npt.NDArray[np.uint64]


class _Prompt(NamedTuple):
    line: int
    uuid: int
    """A digest, as the parent is."""
    parent: int | None
    """None = the prompt begins a talk; 0 = nothing is said of it."""
    session_id: str
    is_queued: bool
    """Typed while the agent worked: it went back behind nothing."""


@dataclass(slots=True)
class _Survey:
    """What is known of a file's records: ids and parents as digests, and the prompts among them."""

    ids: "array[int]" = field(default_factory=lambda: array("Q"))
    lines: "array[int]" = field(default_factory=lambda: array("Q"))
    """Of each id."""
    parents: "array[int]" = field(default_factory=lambda: array("Q"))
    prompts: dict[int, _Prompt] = field(default_factory=dict)
    """By their ids: a copy of a prompt is no other."""
    begun_anew: int | None = None
    """The first line, behind a prompt, from which on the talk may have another beginning: a summary, a `/clear`."""

    def add(self, number: int, line: bytes) -> None:
        for found in _ID.findall(line):
            self.ids.append(digest(found.decode(errors="replace")))
            self.lines.append(number)
        parents = _PARENT.findall(line)
        self.parents.extend(digest(found.decode(errors="replace")) for found in parents if found)
        record = _typed(line)
        if named := id_in(record, "uuid"):
            uuid, is_queued = digest(named), record.get("type") == "attachment"
            prompt = _Prompt(number, uuid, _parent(record), id_in(record, "sessionId"), is_queued)
            self.prompts.setdefault(uuid, prompt)
        begins = clears(record) if record else b"" in parents and not _SIDECHAIN.search(line)
        if begins and self.prompts and self.begun_anew is None:
            self.begun_anew = number


def rewound(file: RecordedFile) -> list[list[range]]:
    """The lines that were undone each time, but those that had been undone before.

    Only prompts are parsed, of the other records the ids are looked for. Other forks say nothing: records of a message
    that calls two tools have two children too. Nor do prompts where one goes on from what another went back behind: the
    file's order is that of the conversation then.
    """
    if file.shape != "lines":
        return []
    survey = _Survey()
    for number, line in RecordedFile(file.path).lines():
        survey.add(number, line)
    return _stretches(survey) if len(survey.prompts) > 1 else []


def _stretches(survey: _Survey) -> list[list[range]]:
    places = _Places(np.array(survey.ids, np.uint64), np.array(survey.lines, np.uint64))
    followed = np.unique(np.array(survey.parents, np.uint64))
    live: list[_Prompt] = []
    undone: list[list[range]] = []
    for prompt in survey.prompts.values():
        if prompt.is_queued:
            if place_of(prompt.uuid, followed) is not None:  # else it may stand beside the talk
                live.append(prompt)
            continue
        parent = places.first(prompt.parent or 0)
        if any(parent in stretch for each in undone for stretch in each):
            return []  # two windows wrote, or the user went back to what was undone: nothing of it is left for good
        if parent:
            left = live[bisect_right(live, parent, key=lambda one: one.line) :]
        else:
            # It stands in the place of the first, which somebody answered, and which has no parent either.
            is_anew = survey.begun_anew is not None and survey.begun_anew <= prompt.line
            first = live[0] if live and prompt.parent is None and not is_anew else None
            is_first_again = first is not None and first.parent is None and first.session_id == prompt.session_id
            left = live if is_first_again and first and place_of(first.uuid, followed) is not None else []
        if left:
            start = left[0].line
            undone.append(stretches_but(range(start, places.written_again(start, prompt.line)), undone))
            live = live[: -len(left)]
        live.append(prompt)
    return undone


class _Places:
    """On which lines the records stand, by the digests of their ids; some are written more than once."""

    def __init__(self, ids: _Numbers, lines: _Numbers) -> None:
        self._ids, first, which = np.unique(ids, return_index=True, return_inverse=True)
        self._firsts = lines[first]
        self._lines, self._first_of_each = lines, self._firsts[which]

    def first(self, record: int) -> int:
        """The line on which it stands first; 0 where it does on none."""
        at = place_of(record, self._ids)
        return 0 if at is None else int(self._firsts[at])

    def written_again(self, start: int, stop: int) -> int:
        """The first of these lines on which a record stands that stood before them all; `stop` where there is none."""
        within = slice(*(int(self._lines.searchsorted(np.uint64(line))) for line in (start, stop)))
        again = self._lines[within][self._first_of_each[within] < start]
        return int(again[0]) if len(again) else stop


def _parent(record: dict[str, Any]) -> int | None:
    if "parentUuid" in record and record["parentUuid"] is None:
        return None
    parent = id_in(record, "parentUuid")
    return digest(parent) if parent else 0


def _typed(line: bytes) -> dict[str, Any]:
    """The record of a line that somebody typed; empty for any other."""
    if b'"queued_command"' not in line and (b'"user"' not in line or b'"tool_result"' in line):
        return {}
    try:
        record = parse(line.decode("utf-8-sig"))
    except (JsonError, UnicodeDecodeError):
        return {}
    is_main = isinstance(record, dict) and record.get("isSidechain") is not True
    is_one = isinstance(record, dict) and (is_typed(record) or (is_main and is_typed_meanwhile(record)))
    return record if is_one else {}


_INTERRUPTED = "[Request interrupted"
_FROM_QUEUE = "queued"
"""The `promptSource` of a prompt that waited until the agent was done; early records name none."""

_AT_ONCE = timedelta(seconds=2)
"""Within which the queue gives a prompt once the agent is done; nobody reads an answer and types the next so fast."""


@dataclass(slots=True)
class PromptQueue:
    """The prompts that were typed while the agent worked, until the user says something else.

    A queue that is emptied when the agent is done gives a prompt as a record of type `user` too. It does not where the
    prompt was taken out for the agent meanwhile (`remove`), nor is it that prompt where one of the same words was typed
    since (`enqueue`), or the record follows the one before it after longer than a queue needs.
    """

    _waiting: dict[int, None] = field(default_factory=dict)
    """Digests of the words of prompts that may be recorded again."""
    _taken: Counter[int] = field(default_factory=Counter)
    """Of those that were taken out before they were recorded; 0 = of unknown words."""
    _ids: set[int] = field(default_factory=set)
    _last: datetime | None = None
    """The instant of the record before."""

    def repeats(self, record: Mapping[str, Any], message: Message | None) -> bool:
        """Take in the next record; whether it says again what stands in a queued prompt.

        Args:
            record: any of the session, in their order.
            message: what is said in it.
        """
        before, self._last = self._last, known_instant(record, "timestamp") or self._last
        if message is None:
            self._operate(record)
            return False
        words = digest(message.content.strip())
        if record.get("type") == "attachment":
            self._deliver(words, record)
            return False
        if message.role != "user" or any(part.part_type == "tool" for part in message.parts):
            return False
        if digest(message.message_id) in self._ids:
            return True
        if words in self._waiting and _is_from_queue(record, before, message.created_at):
            del self._waiting[words]
            return True
        if not message.content.startswith(_INTERRUPTED):
            self._waiting.clear()
        return False

    def _operate(self, record: Mapping[str, Any]) -> None:
        if record.get("type") != "queue-operation":
            return
        content, operation = record.get("content"), record.get("operation")
        words = digest(content.strip()) if isinstance(content, str) else 0
        if operation == "enqueue":
            for known in (words, 0):
                self._taken.pop(known, None)  # taken back by the user, if not recorded by now
            self._waiting.pop(words, None)
        elif operation == "remove":
            if not words and self._waiting:
                self._waiting.popitem()
            elif words in self._waiting:
                del self._waiting[words]
            else:
                self._taken[words] += 1

    def _deliver(self, words: int, record: Mapping[str, Any]) -> None:
        if source := id_in(object_in(record, "attachment"), "source_uuid"):
            self._ids.add(digest(source))
        taken = next((known for known in (words, 0) if self._taken[known]), None)
        if taken is None:
            self._waiting[words] = None
        else:
            self._taken[taken] -= 1


def _is_from_queue(record: Mapping[str, Any], before: datetime | None, at: datetime | None) -> bool:
    if source := record.get("promptSource"):
        return bool(source == _FROM_QUEUE)
    return before is None or at is None or at - before <= _AT_ONCE


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
        return isinstance(file.first, list) and any(map(_is_record, file.first))

    def read(self, file: RecordedFile) -> Iterator[RecordedItem]:
        results = ToolResults(file)
        yield from _session(file, results)
        yield from file.reading_along(agents(file.path), lambda agent: _session(agent, results))
        if not is_agent(file.path):
            yield from _events_beside(file, results)
        results.tell()


def _events_beside(file: RecordedFile, results: ToolResults) -> Iterator[RecordedItem]:
    session_id = _first_session_id(file)
    for journal in map(file.along, journals(file.path)):
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
            named = _COMPACT_SUMMARY if is_summary(record) else kind(record)
            item = message if message is not None and is_said else Event(named, record)
            if (text := text_in(record, _TITLES.get(named, ""))) and text.strip():
                titles[named] = text
            title = next((titles[where] for where in _TITLES if where in titles), None)
            is_main = conversation_id == session_id
            suffix = branches.suffix(line, item.message_id) if isinstance(item, Message) and is_main else ""
            yield RecordedItem(conversation_id + suffix, item, title if is_main else None)
    if is_beside(file.path, notes(file.path)):
        for _, meta in file.along(notes(file.path)).values():
            told = (text_in(meta, key) for key in ("description", "agentType"))
            title = next((text for text in told if text and text.strip()), None)
            yield RecordedItem(own_id or session_id, Event("meta", meta), title)


def _message(record: dict[str, Any], session_id: str, results: ToolResults) -> Message | None:
    """What is said in a record; None where it is an event."""
    if is_meanwhile := is_typed_meanwhile(record):
        said, within = _queued(record["attachment"]), "attachment"
    elif record.get("type") in _SPOKEN and not is_summary(record):
        said, within = _spoken(record, results), "message"
    else:
        return None
    instant = recorded_instant({**(record[within] if is_meanwhile else {}), **record}, "timestamp")
    return said.within(record, within).message(id_in(record, "uuid"), id_in(record, "sessionId") or session_id, instant)


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
        if agent_id := id_in(record, "agentId"):
            return f"{self.session_id}/agent-{agent_id}"
        record_id = id_in(record, "uuid")
        root = self._roots.get(digest(id_in(record, "parentUuid"))) or record_id or str(line)
        if record_id:
            self._roots[digest(record_id)] = root
        return f"{self.session_id}/sidechain-{root}"


def _first_session_id(file: RecordedFile) -> str:
    ids = (id_in(value, "sessionId") for _, value in RecordedFile(file.path).values())
    return next(filter(None, ids), file.name)


def _is_record(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    message, named = value.get("message"), kind(value)
    if named in _SPOKEN:
        return isinstance(message, dict) and "parts" not in message
    return "isSidechain" in value or named in _ONLY_HERE or (named == "summary" and "leafUuid" in value)
