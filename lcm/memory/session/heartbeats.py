"""Heartbeats: a host asks now and then whether anything is to be done, an agent acknowledges that nothing is.

Source: lossless-claw 0.6.3, which deletes what is hidden here.
"""

from collections.abc import Sequence

from lcm.javascript import trim
from lcm.records.conversation import Message

_ASKS = "heartbeat.md"
_ANSWER = "heartbeat_ok"


def heartbeat_ids(messages: Sequence[Message]) -> list[str]:
    """The ids of all acknowledged heartbeats of a conversation: from what the user said last to the acknowledgement."""
    found: dict[str, None] = {}
    since_user: int | None = None
    for place, message in enumerate(messages):
        if message.role == "user":
            since_user = place
        elif _answers(message) and since_user is not None:
            span = messages[since_user : place + 1]
            if any(map(_asks, span)):
                found |= dict.fromkeys(said.message_id for said in span)
    return list(found)


def _asks(message: Message) -> bool:
    return _ASKS in message.content.lower()


def _answers(message: Message) -> bool:
    return message.role == "assistant" and trim(message.content).lower() == _ANSWER
