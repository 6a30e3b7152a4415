"""Runs of agents as benchmarks and frameworks record them: tau-bench, SWE-agent and mini-swe-agent, OpenHands."""

import re
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lcm.encoding import to_json, well_formed
from lcm.errors import TranscriptError
from lcm.records.conversation import Event, Message, Part, Role
from lcm.transcript.fields import as_object, id_in, list_in, listed, object_in, recorded_instant, text_in
from lcm.transcript.parts import DecomposedMessage, chat_message, decompose, plain_text, undivided, value_part
from lcm.transcript.reader import ConversationIds, Element, RecordedItem, Session, sessions
from lcm.transcript.recorded_file import RecordedFile


def run_name(run: Mapping[str, Any], file: RecordedFile) -> str:
    """What names a run of an agent: its file, and behind that the `instance_id` that the file is not named by."""
    instance = id_in(run, "instance_id")
    return file.name if instance in ("", file.name) else f"{file.name}/{instance}"


@dataclass(frozen=True, slots=True)
class TauBenchReader:
    """Reads results of tau-bench: JSONL or an array of records `{task_id, trial, reward, info, traj}`.

    One conversation a record, named by the file, the task and the trial: `results/task-3-trial-0`. `traj` is
    OpenAI-style chat; what stands beside it is an event of type `session`, with null in its place.
    """

    name = "tau_bench"

    def detects(self, file: RecordedFile) -> bool:
        return any(map(_is_result, file.heads))

    def read(self, file: RecordedFile) -> Iterator[RecordedItem]:
        ids = ConversationIds()
        for session in sessions(file):
            numbers = {"task": id_in(session.header, "task_id"), "trial": id_in(session.header, "trial")}
            run = "-".join(f"{what}-{number}" for what, number in numbers.items() if number)
            yield from session.items(file, ids.name(f"{file.name}/{run}" if run else file.name), {"traj": chat_message})


def _is_result(value: object) -> bool:
    traj = value.get("traj") if isinstance(value, dict) and "task_id" in value else None
    return isinstance(traj, list) and all(isinstance(said, dict) and "role" in said for said in traj[:1])


_STEP_KEYS = frozenset({"action", "observation", "response", "thought"})
_OBSERVATION = "trajectory, observation"
"""Stands for the key under which what was seen in a step comes behind it."""


@dataclass(frozen=True, slots=True)
class SweAgentReader:
    """Reads trajectories of SWE-agent (`.traj`) and mini-swe-agent: JSON, or JSONL or an array of several.

    SWE-agent writes `{environment, trajectory, history, info, replay_config}`: `history` is what the model saw and
    said, as OpenAI-style chat, `trajectory` the steps `{action, observation, response, thought, state}`. mini-swe-agent
    writes `{messages, info, trajectory_format}`. The messages are those of `history`, else of `messages`, else of the
    steps.

    One conversation a run, named by the file: several runs of an instance are told apart by their files. An
    `instance_id` that is not the file's name stands behind it: `results/instance`. What a run holds beside its messages
    is an event of type `session`, with null in place of its lists; an element of such a list is an event named by the
    list: `trajectory` for a step. Where there are only steps, each becomes a message of the assistant, which keeps the
    step with null for its `observation`, and one of the tool, which keeps that: both together are the step.
    """

    name = "swe_agent"

    def detects(self, file: RecordedFile) -> bool:
        return any(map(_is_trajectory, file.heads))

    def read(self, file: RecordedFile) -> Iterator[RecordedItem]:
        ids = ConversationIds()
        for session in sessions(file):
            name = ids.name(run_name(session.header, file))
            key = next((key for key in ("history", "messages") if key in session.lists), None)
            if key is None:
                stepped = session._replace(elements=_halves(session.elements))
                yield from stepped.items(file, name, {"trajectory": _acted, _OBSERVATION: _seen})
            else:
                yield from session.items(file, name, {key: _said})


def _is_trajectory(value: object) -> bool:
    history, steps = (list_in(value, key)[:1] for key in ("history", "trajectory"))
    has_steps = any(_is_step(step) and "source" not in step for step in steps)  # OpenHands' have one
    is_mini = isinstance(value, dict) and "trajectory_format" in value and isinstance(value.get("messages"), list)
    return any(text_in(said, "role") is not None for said in history) or has_steps or is_mini


def _is_step(value: object) -> bool:
    return isinstance(value, dict) and not _STEP_KEYS.isdisjoint(value)


def _said(native: Any, session_id: str) -> Message:
    """A message; the id of the call that it answers stands in a list."""
    message = chat_message(native, session_id)
    match message.role, native.get("tool_call_ids"):
        case "tool", [str(call_id)]:
            answered = well_formed(call_id)
            parts = (replace(part, tool_call_id=part.tool_call_id or answered) for part in message.parts)
            return replace(message, parts=tuple(parts))
    return message


def _halves(elements: Iterable[Element]) -> Iterator[Element]:
    """The elements of a run, and behind each of its steps what was seen then."""
    for element in elements:
        yield element
        if element.key == "trajectory" and _is_step(element.value) and "observation" in element.value:
            yield element._replace(key=_OBSERVATION, value=element.value["observation"])


def _acted(step: Any, session_id: str) -> Message:
    if not _is_step(step):
        raise TranscriptError("expected a step, an object with `response`, `thought`, `action` or `observation`")
    response, thought, action = (step.get(key) for key in ("response", "thought", "action"))
    parts: list[Part] = []
    if isinstance(response, str):
        parts.append(value_part("response", response))
    if isinstance(action, str):
        parts.append(Part("tool", tool_input=to_json(action), metadata={"slot": "action", "raw": action}))
    slots = {part.metadata["slot"]: "value" for part in parts}
    words = response if isinstance(response, str) and response.strip() else thought
    told = plain_text({"content": words}) if isinstance(words, str) else ""
    native = {key: None if key in (*slots, "observation") else value for key, value in step.items()}
    return DecomposedMessage("assistant", told, tuple(parts), {"native": native, "slots": slots}).message(
        "", session_id
    )


def _seen(seen: Any, session_id: str) -> Message:
    envelope = {"native": {"observation": None}, "slots": {"observation": "value"}}
    parts = (value_part("observation", seen),)
    return DecomposedMessage("tool", plain_text({"content": seen}), parts, envelope).message("", session_id)


_LISTS = ("history", "trajectory")
_EVENT_FILE = re.compile(r"(?:event-)?(\d+)[\w-]*\.json")
_SILENT = frozenset(
    {"null", "recall", "change_agent_state", "agent_state_changed", "condensation", "condensation_request"}
)
"""What version 0 does or sees for itself."""
_SPOKEN = ("message", "finish", "think", "system")
"""Actions of version 0 that call no tool."""


@dataclass(frozen=True, slots=True)
class OpenHandsReader:
    """Reads events of OpenHands: JSONL, an array (`trajectory.json`), or a file each in a conversation's folder
    `events`; and runs.

    One conversation a file, or of a folder `events` that of all its files, named by the folder around it. A run is an
    object with its events under `history` (a line of an evaluation's `output.jsonl`) or `trajectory` (what the server
    exports); early ones have pairs there, an action and what was seen then. It is a conversation named as those of
    SWE-agent are, with an event of type `session` as theirs.

    Version 0 names what it does (`action` with `args`) and what it sees (`observation` with `content`); version 1 has a
    `kind`, and says its messages in an `llm_message`. A message is what was said, a call of a tool, or its result, in
    both events of their own. Other events (states, condensations) are events named by their kinds.
    """

    name = "openhands"

    def detects(self, file: RecordedFile) -> bool:
        return any(_is_event(value) or _holds_events(value) for value in file.heads)

    def read(self, file: RecordedFile) -> Iterator[RecordedItem]:
        known = next((value for value in file.heads if _is_event(value) or _holds_events(value)), None)
        if known is not None and not _is_event(known):
            ids = ConversationIds()
            for run in sessions(file):
                said = dict.fromkeys([key for key in _LISTS if key in run.lists][:1], _event)
                single = run._replace(elements=_one_by_one(run, said))
                yield from single.items(file, ids.name(run_name(run.header, file)), said)
            return
        is_first = _number(file.path) is not None
        name = file.path.parent.parent.name if is_first else file.name
        yield from _events(file, name)
        yield from file.reading_along(beside_openhands(file.path), lambda other: _events(other, name))


def beside_openhands(first: Path) -> list[Path]:
    """The files of the events behind the first, in order; none of a file that is not the first of its folder."""
    if _number(first) is None:
        return []
    numbered = ((_number(path), path.name, path) for path in first.parent.iterdir() if path.is_file())
    found = [path for *_, path in sorted(one for one in numbered if one[0] is not None)]
    return found[1:] if found and found[0] == first else []


def _number(path: Path) -> int | None:
    """The event's, by the name of its file."""
    named = _EVENT_FILE.fullmatch(path.name) if path.parent.name == "events" else None
    return int(named[1]) if named else None


def _events(file: RecordedFile, conversation_id: str) -> Iterator[RecordedItem]:
    for line, value in file.values():
        with file.record(line):
            yield RecordedItem(conversation_id, _event(value, conversation_id))


def _one_by_one(run: Session, said: Container[str]) -> Iterator[Element]:
    """The elements of a run, its pairs taken apart."""
    for element in run.elements:
        pair = element.value if element.key in said and isinstance(element.value, list) else [element.value]
        yield from (element._replace(value=value) for value in pair)


def _event(value: object, session_id: str) -> Message | Event:
    event = as_object(value, "an event")
    said = _told(event) if "kind" in event else _done(event)
    if said is None:
        named = text_in(event, "kind") if "kind" in event else _named(event)
        return Event(named or "unknown", event)
    return said.message(id_in(event, "id"), session_id, recorded_instant(event, "timestamp"))


def _done(event: dict[str, Any]) -> DecomposedMessage | None:
    """What is said in an event of version 0."""
    action, args = text_in(event, "action"), object_in(event, "args")
    named = _named(event)
    if not named or named in _SILENT:
        return None
    tool = object_in(event, "tool_call_metadata")
    call_id = text_in(tool, "tool_call_id") or id_in(event, "cause" if action is None else "id") or None
    tool_name = text_in(tool, "function_name") or named
    if action is None:
        words = plain_text({"content": event.get("content")})
        return undivided(event, "tool", [Part("text", words, call_id, tool_name)], words)
    role: Role = "system" if action == "system" else _speaker(event)
    if action in _SPOKEN:
        words = text_in(args, "content", "final_thought", "thought") or text_in(event, "message") or ""
        return undivided(event, role, [Part("reasoning" if action == "think" else "text", words)], words)
    thought = text_in(args, "thought") or ""
    given = {key: value for key, value in args.items() if key != "thought"}
    return undivided(
        event, role, [*_texts(thought), Part("tool", None, call_id or named, tool_name, to_json(given))], thought
    )


def _named(event: dict[str, Any]) -> str:
    """What an event of version 0 does or sees."""
    return text_in(event, "action") or text_in(event, "observation") or ""


def _told(event: dict[str, Any]) -> DecomposedMessage | None:
    """What is said in an event of version 1."""
    named, call_id, tool_name = (text_in(event, key) for key in ("kind", "tool_call_id", "tool_name"))
    native = event.get("llm_message")
    if isinstance(native, dict):
        said = decompose(native, text_in(native, "role") or _speaker(event))
        return said.within(event, "llm_message")
    if named == "SystemPromptEvent":
        words = plain_text({"content": event.get("system_prompt")})
        return undivided(event, "system", _texts(words), words)
    if named == "ActionEvent":
        action, call = object_in(event, "action"), object_in(event, "tool_call")
        words = "\n".join(filter(None, (plain_text({"content": event.get("thought")}), text_in(action, "message"))))
        given = text_in(call, "arguments") or to_json(action)
        parts = (
            *(Part("reasoning", text) for text in listed(text_in(event, "reasoning_content"))),
            *_texts(words),
            Part("tool", None, call_id or id_in(event, "id"), tool_name or "unknown", given),
        )
        return undivided(event, "assistant", parts, words)
    seen = next((event[key] for key in ("observation", "error", "rejection_reason") if event.get(key)), None)
    if call_id is None or seen is None:
        return None
    words = plain_text({"content": seen.get("content", seen) if isinstance(seen, dict) else seen})
    return undivided(event, "tool", [Part("text", words, call_id, tool_name)], words)


def _texts(words: str) -> list[Part]:
    return [Part("text", words)] if words else []


def _speaker(event: Mapping[str, Any]) -> Role:
    return "user" if event.get("source") == "user" else "assistant"


def _holds_events(run: object) -> bool:
    """Say whether this is a run with its events."""
    firsts = (held[0] for key in _LISTS if (held := list_in(run, key)))
    return any(_is_event(first[0] if isinstance(first, list) and first else first) for first in firsts)


def _is_event(value: object) -> bool:
    if not isinstance(value, dict) or "source" not in value:
        return False
    is_done = isinstance(value.get("action"), str) and isinstance(value.get("args"), dict)
    is_seen = isinstance(value.get("observation"), str) and "content" in value
    return is_done or is_seen or (text_in(value, "kind") or "").endswith(("Event", "Observation"))
