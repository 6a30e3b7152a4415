"""Trajectories of SWE-agent (`.traj`) and mini-swe-agent: JSON, or JSONL or an array of several.

SWE-agent writes `{environment, trajectory, history, info, replay_config}`: `history` is what the model saw and said,
as OpenAI-style chat, `trajectory` the steps `{action, observation, response, thought, state}`. mini-swe-agent writes
`{messages, info, trajectory_format}`. The messages are those of `history`, else of `messages`, else of the steps.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from lcm.encoding import to_json, well_formed
from lcm.errors import TranscriptError
from lcm.records.conversation import Event, Message, Part
from lcm.transcript.plain_text import plain_text
from lcm.transcript.reader import RecordedItem
from lcm.transcript.recorded_file import RecordedFile
from lcm.transcript.sessions import ConversationIds, Element, chat_message, run_name, sessions, value_part

_MESSAGE_KEYS = ("history", "messages", "trajectory")
_STEP_KEYS = frozenset({"action", "observation", "response", "thought"})


@dataclass(frozen=True, slots=True)
class SweAgentReader:
    """Reads one conversation a run, named by the file: several runs of an instance are told apart by their files.

    An `instance_id` that is not the file's name stands behind it: `results/instance`. What a run holds beside its
    messages is an event of type `session`, with null in place of its lists; an element of such a list is an event
    named by the list: `trajectory` for a step.

    Where there are only steps, each becomes a message of the assistant, which keeps the step with null for its
    `observation`, and one of the tool, which keeps that: both together are the step.
    """

    name = "swe_agent"

    def detects(self, file: RecordedFile) -> bool:
        values = [file.first] if isinstance(file.first, dict) else file.first
        return any(map(_is_run, values))

    def read(self, file: RecordedFile) -> Iterator[RecordedItem]:
        ids = ConversationIds()
        for session in sessions(file):
            conversation_id = ids.name(run_name(session.header, file))
            yield RecordedItem(conversation_id, Event("session", session.header))
            message_key = next((key for key in _MESSAGE_KEYS if key in session.lists), None)
            for element in session.elements:
                with file.record(element.line, element.place):
                    if element.key == message_key:
                        for message in _messages(element, conversation_id):
                            yield RecordedItem(conversation_id, message)
                    else:
                        yield RecordedItem(conversation_id, Event(well_formed(element.key), element.value))


def _is_run(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    history, steps = value.get("history"), value.get("trajectory")
    has_history = isinstance(history, list) and bool(history) and _is_message(history[0])
    has_steps = (
        isinstance(steps, list) and bool(steps) and _is_step(steps[0]) and "source" not in steps[0]
    )  # OpenHands'
    return has_history or has_steps or ("trajectory_format" in value and isinstance(value.get("messages"), list))


def _is_message(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("role"), str)


def _is_step(value: object) -> bool:
    return isinstance(value, dict) and not _STEP_KEYS.isdisjoint(value)


def _messages(element: Element, session_id: str) -> tuple[Message, ...]:
    if element.key == "trajectory":
        return _said_and_seen(element.value, session_id)
    return (_message(element.value, session_id),)


def _message(native: object, session_id: str) -> Message:
    """Read a message; the id of the call that it answers stands in a list."""
    message = chat_message(native, session_id)
    call_ids = native.get("tool_call_ids") if isinstance(native, dict) else None
    match message.role, call_ids:
        case "tool", [str(call_id)]:
            answered = well_formed(call_id)
            parts = (replace(part, tool_call_id=part.tool_call_id or answered) for part in message.parts)
            return replace(message, parts=tuple(parts))
    return message


def _said_and_seen(step: object, session_id: str) -> tuple[Message, ...]:
    if not isinstance(step, dict) or not _is_step(step):
        raise TranscriptError("expected a step, an object with `response`, `thought`, `action` or `observation`")
    response, thought, action = (step.get(key) for key in ("response", "thought", "action"))
    parts: tuple[Part, ...] = ()
    if isinstance(response, str):
        parts += (value_part("response", response),)
    if isinstance(action, str):
        parts += (Part("tool", tool_input=to_json(action), metadata={"slot": "action", "raw": action}),)
    slots = {part.metadata["slot"]: "value" for part in parts}
    words = response if isinstance(response, str) and response.strip() else thought
    said = Message(
        message_id="",
        role="assistant",
        content=plain_text({"content": words}) if isinstance(words, str) else "",
        session_id=session_id,
        parts=parts,
        envelope={"native": {k: None if k in (*slots, "observation") else v for k, v in step.items()}, "slots": slots},
    )
    if "observation" not in step:
        return (said,)
    seen = Message(
        message_id="",
        role="tool",
        content=plain_text({"content": step["observation"]}),
        session_id=session_id,
        parts=(value_part("observation", step["observation"]),),
        envelope={"native": {"observation": None}, "slots": {"observation": "value"}},
    )
    return said, seen
