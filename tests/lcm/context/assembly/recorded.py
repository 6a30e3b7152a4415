"""Messages as transcript readers make them, and summaries."""

from datetime import UTC, datetime
from typing import Any

from lcm.records.conversation import Message
from lcm.records.summary import Summary
from lcm.transcript.parts import decompose

NOW = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)


def message(native: dict[str, Any], message_id: str = "m") -> Message:
    said = decompose(native)
    return Message(message_id, said.role, said.content, "s", parts=said.parts, envelope=said.envelope)


def user(text: str, message_id: str = "m") -> Message:
    return message({"role": "user", "content": text}, message_id)


def assistant(text: str, message_id: str = "m") -> Message:
    return message({"role": "assistant", "content": [{"type": "text", "text": text}]}, message_id)


def call(*call_ids: str, message_id: str = "m") -> Message:
    blocks = [{"type": "toolCall", "id": call_id, "name": "read", "arguments": {"p": 1}} for call_id in call_ids]
    return message({"role": "assistant", "content": blocks}, message_id)


def result(call_id: str, text: str = "ok", message_id: str = "m") -> Message:
    block = {"type": "text", "text": text}
    said = {"role": "toolResult", "toolCallId": call_id, "toolName": "read", "content": [block], "isError": False}
    return message(said, message_id)


def summary(text: str, summary_id: str = "sum_1", depth: int = 0, **fields: Any) -> Summary:
    told = {"earliest_at": NOW, "latest_at": NOW} | fields
    kind = "condensed" if depth else "leaf"
    return Summary(summary_id, "c", kind, depth, text, 1, NOW, **told)
