"""What a chat platform or an orchestrator wraps around the words of a message.

Source: memory-lancedb-pro, smart-extractor.
"""

import re

from lcm.javascript import trim

_CHANNEL_HEADER = re.compile(r"^System:\s*\[[^\]\n]*\]\s+\S+\[[^\]\n]*\].*$", re.MULTILINE)
"""A line that names the channel in brackets; lines about finished commands name none and stay."""
_LABELLED_JSON = re.compile(
    r"(?:Conversation info|Sender|Replied message)\s*\([^)\n]*\):\s*```json\s.*?```\s*", re.DOTALL
)
_IDENTIFIERS_JSON = re.compile(r'```json\s*\{[^`]*"message_id"[^`]*"sender_id"[^`]*\}\s*```\s*')
_BLANK_LINES = re.compile(r"\n{3,}")

_WRAPPER = re.compile(r"\[Subagent (?:Context|Task)\]\s*", re.IGNORECASE)
_WRAPPER_START = re.compile(r"You are running as a subagent\b.*?(?:\.\s+|$)", re.IGNORECASE)
_ORDERS = "|".join(
    (
        "Results auto-announce to your requester",
        "do not busy-poll for status",
        "Reply with a brief acknowledgment only",
        "Do not use any memory tools",
    )
)
_ORDER = re.compile(rf"(?:{_ORDERS})\.?\s*", re.IGNORECASE)


def strip_envelope(text: str) -> str:
    """The words without their envelope.

    Taken away: leading lines of an orchestrator, channel headers, labelled JSON blocks, JSON blocks that hold message
    and sender ids; what blank lines are left over become one.
    """
    words = _CHANNEL_HEADER.sub("", _without_lead_in(text))
    words = _IDENTIFIERS_JSON.sub("", _LABELLED_JSON.sub("", words))
    return trim(_BLANK_LINES.sub("\n\n", words))


def _without_lead_in(text: str) -> str:
    """Drop an orchestrator's lines at the start, keeping what else stands in a marked line."""
    lines = text.split("\n")
    kept: list[str] = []
    position = 0
    for position, line in enumerate(lines):  # noqa: B007 - where the lead-in ends
        words = trim(line)
        if not words or _ORDER.fullmatch(words):
            continue
        marker = _WRAPPER.match(words)
        if marker is None:
            break
        rest = trim(_ORDER.sub("", _WRAPPER_START.sub("", words[marker.end() :])))
        if rest:
            kept.append(rest)
    else:
        position = len(lines)
    return "\n".join([*kept, *lines[position:]])
