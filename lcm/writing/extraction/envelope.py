"""What a chat platform or an orchestrator wraps around the words of a message.

Source: memory-lancedb-pro, smart-extractor.
"""

import re

from lcm.javascript import parse, trim

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
_LEADING_ORDERS = re.compile(rf"^(?:{_WRAPPER_START.pattern}|{_ORDER.pattern})+", re.IGNORECASE)
_JSON_BLOCK = re.compile(
    r"(?P<label>(?:Conversation info|Sender|Replied message)\s*\(untrusted[^)\n]*\):\s*)?```json\s*(?P<body>.*?)\s*```",
    re.DOTALL,
)
_IDENTIFIERS = {"message_id", "sender_id"}


def strip_envelope(text: str, *, is_careful: bool = False) -> str:
    """The words without their envelope.

    Taken away: leading lines of an orchestrator, channel headers, labelled JSON blocks, JSON blocks that hold message
    and sender ids; what blank lines are left over become one.

    Args:
        text: what was said, as the platform hands it on.
        is_careful: as 1.1.0-beta.11 strips. Orders at the start stay where no line marked by the orchestrator stands
            before them, and within a marked line behind its first other words; a JSON block goes if it is an object.
    """
    if is_careful:
        words = _JSON_BLOCK.sub(_careful_block, _CHANNEL_HEADER.sub("", _without_marked_lead_in(text)))
    else:
        words = _CHANNEL_HEADER.sub("", _without_lead_in(text))
        words = _IDENTIFIERS_JSON.sub("", _LABELLED_JSON.sub("", words))
    return trim(_BLANK_LINES.sub("\n\n", words))


def _careful_block(block: re.Match[str]) -> str:
    """What is left of a block: nothing, where it is one object that has a label or both ids."""
    try:
        found = parse(block["body"])
    except ValueError:
        return block[0]
    is_envelope = isinstance(found, dict) and (block["label"] is not None or found.keys() >= _IDENTIFIERS)
    return "" if is_envelope else block[0]


def _without_marked_lead_in(text: str) -> str:
    """Drop a lead-in from its first marked line on, keeping what else stands in such a line."""
    lines = text.split("\n")
    is_marked = False
    for place, line in enumerate(lines):
        words = trim(line)
        if marker := _WRAPPER.match(words):
            is_marked = True
            lines[place] = trim(re.sub(r"\s{2,}", " ", _LEADING_ORDERS.sub("", words[marker.end() :])))
        elif is_marked and (_ORDER.fullmatch(words) or _WRAPPER_START.match(words)):
            lines[place] = ""
        elif words and not _ORDER.fullmatch(words):
            break
    return "\n".join(lines)


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
