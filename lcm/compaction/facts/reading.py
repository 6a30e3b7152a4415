"""A message or a text as finders read it: what was said, apart from what tools brought."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from lcm.compaction.facts.statement import Call, ReadText
from lcm.compaction.sentences import sentences
from lcm.encoding import well_formed
from lcm.records.conversation import Message
from lcm.transcript.parts import RESULT_TYPES, block_type
from lcm.transcript.passages import passages

_FENCE = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[^\n]*$|\Z)", re.DOTALL | re.MULTILINE)
_VIEWED = re.compile(r"^[ \t]*(?:\S{1,200}:)?\d+[:|](?!\d)[^\n]*$", re.MULTILINE)
"""A line of a file, as viewers and searches number them."""
_LEAD = re.compile(
    r"(?:\s+|[-*•>#]+\s+|\d{1,3}[.)]\s+|\[[^\]\n]{1,40}\]\s*|(?:user|assistant|system|tool)(?: \([^)\n]{1,40}\))?:\s*)+"
)
_LONGEST_SENTENCE = 1000


class ReadMessage(NamedTuple):
    """A message in its two halves."""

    said: ReadText
    """Its words and the calls that it makes."""
    brought: ReadText
    """What tools gave back."""


def read_text(text: str) -> ReadText:
    """A text of which no more is known than its words, as a summary."""
    return ReadText(text, sentences=tuple(_sentences(text)))


def read_message(message: Message) -> ReadMessage:
    """A message; who uses tools and who is asked by them lay down no rules."""
    told = passages(message)
    words = [passage.text for passage in told if passage.kind == "words"]
    printed = shell_output(message)
    if printed:
        words = [message.content.removesuffix(printed).rstrip()]
    calls = [passage.text for passage in told if passage.kind == "calls"]
    results = [passage.text for passage in told if passage.kind == "results"]
    if printed:
        results = [printed, *results]
    if is_result(message):
        words, results = [], words + results
    spoken = "\n".join(words)
    text = "\n".join((*words, *calls))
    return ReadMessage(
        ReadText(
            text,
            calls=tuple(_calls(message, text, len(spoken))),
            states_rules=message.role in ("user", "system") or message.author is not None,
            sentences=tuple(_sentences(spoken)),
        ),
        ReadText("\n".join(results)),
    )


def is_result(message: Message) -> bool:
    """Whether a message brings what tools gave back, and nothing that somebody said."""
    kinds = [block_type(part.metadata.get("raw")) in RESULT_TYPES for part in message.parts]
    return message.role == "tool" or (bool(kinds) and all(kinds))


def shell_output(message: Message) -> str:
    """What a shell printed, of a message that is one command with its output; else empty."""
    native = message.envelope.get("native")
    if not isinstance(native, Mapping) or "content" in native or not isinstance(native.get("command"), str):
        return ""
    command = well_formed(f"$ {native['command']}\n")
    return message.content.removeprefix(command) if message.content.startswith(command) else ""


def _calls(message: Message, text: str, start: int) -> Iterator[Call]:
    parts = [part for part in message.parts if part.part_type == "tool" and part.tool_input is not None]
    places = []
    for part in parts:
        start = max(text.find(f"[tool {part.tool_name}]", start), start)
        places.append(start)
        start += 1
    for part, begin, end in zip(parts, places, [*places[1:], len(text)], strict=False):
        yield Call(part.tool_name or "", _arguments(part.tool_input or ""), begin, end, part.tool_call_id or "")


def _arguments(given: str) -> Mapping[str, Any]:
    try:
        found = json.loads(given)
    except (ValueError, RecursionError):
        found = None
    return found if isinstance(found, dict) else {"input": given}


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    """Where sentences stand, without marks of lists, speakers and times before them."""
    masked = _VIEWED.sub(_blank, _FENCE.sub(_blank, text))
    place = 0
    for piece in sentences(masked):
        lead = _LEAD.match(piece)
        start, end = place + (lead.end() if lead else 0), place + len(piece.rstrip())
        if start < end and end - start <= _LONGEST_SENTENCE:
            yield start, end
        place += len(piece)


def _blank(found: re.Match[str]) -> str:
    return "\n" * len(found[0])
