"""What a language model finds worth remembering.

Source: memory-lancedb-pro, smart-extractor: categories, three levels, limits and checks are its own, and speaker tags
come from its later versions; what is real and what constructed is of 1.1.0-beta.11. The prompts are ours, and so is
that each memory names the turns it rests on.
"""

import json
import logging
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib import resources
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from jinja2 import PackageLoader, StrictUndefined, select_autoescape
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jsonschema import Draft202012Validator

from lcm.checks import check_choice, check_range
from lcm.clock import EPOCH
from lcm.encoding import well_formed
from lcm.javascript import last_units, parse, trim, utf16_length
from lcm.language_model.replies import object_in
from lcm.protocols.models import LanguageModel
from lcm.records.conversation import Message, Role
from lcm.records.document import DEFAULT_RATING, Candidate, category_named
from lcm.writing.annotation import expiry, temporal_type
from lcm.writing.extraction.said import check_roles
from lcm.writing.lifecycle import DEFAULT_IMPORTANCE
from lcm.writing.noise import is_noise

ExtractionRules = Literal["beta.10", "beta.11"]
"""Of the plugin's 1.1.0."""

_END_OF_REASONING = "</think>"


class ExtractedMemory(NamedTuple):
    """One memory of a reply, its texts trimmed."""

    category: str
    abstract: str
    overview: str
    content: str
    sources: tuple[int, ...]
    """Numbers of turns, from 1, ascending; empty where the reply names none or no proper ones."""
    grounding: Mapping[str, str] = MappingProxyType({})
    """Since beta.11: `grounding`, and the `conversation_register` of the whole reply."""


class CheckedReply(NamedTuple):
    """The memories of a reply that hold, and what was wrong with the others, each a short name."""

    memories: list[ExtractedMemory]
    refused: list[str]


def read_reply(reply: str, rules: ExtractionRules = "beta.10") -> CheckedReply | None:
    """The memories that a reply names; None where it holds no object with a list of memories.

    Words, fences and reasoning around the object are passed over. A memory is refused as `invalid_memory` (no object,
    no known category, a text that is none) or as `noise_memory` (an abstract too short or of no worth). Since beta.11 a
    category may be singular, a complaint about the memory is noise, and a memory is refused as `constructed_memory`
    where it is not real, or as `fiction_memory` in a conversation that is told as fiction: nobody judges it again.
    """
    found = object_in(reply.rpartition(_END_OF_REASONING)[2], "memories")
    if found is None or not _validator("").is_valid(found):
        return None
    is_later = rules == "beta.11"
    memories, refused = [], []
    for item in [_normalised(item, is_later) for item in found["memories"]]:
        grounding = _grounding(found, item) if is_later and isinstance(item, dict) else {}
        if not _validator("memory").is_valid(item):
            refused.append("invalid_memory")
        elif is_noise(item["abstract"], complaints=is_later):
            refused.append("noise_memory")
        elif grounding.get("conversation_register") == "fiction":
            refused.append("fiction_memory")
        elif grounding.get("grounding") == "constructed":
            refused.append("constructed_memory")
        else:
            texts = (item["category"], item["abstract"], item.get("overview", ""), item.get("content", ""))
            memories.append(ExtractedMemory(*texts, sources=_sources(item), grounding=grounding))
    return CheckedReply(memories, refused)


def _normalised(item: Any, is_later: bool) -> Any:
    """The item with its texts trimmed and its category in lower case; what is null counts as absent."""
    if not isinstance(item, Mapping):
        return item
    texts = {key: trim(value) if isinstance(value, str) else value for key, value in item.items() if value is not None}
    if isinstance(category := texts.get("category"), str):
        texts["category"] = (category_named(category) if is_later else None) or category.lower()
    return texts


def _grounding(reply: Mapping[str, Any], item: Mapping[str, Any]) -> dict[str, str]:
    register = reply.get("conversation_register")
    return {
        "grounding": "constructed" if item.get("grounding") == "constructed" else "real",
        "conversation_register": register if register in ("real", "fiction") else "mixed",
    }


def _sources(item: Mapping[str, Any]) -> tuple[int, ...]:
    named = item.get("sources", [])
    return tuple(sorted({int(number) for number in named})) if _validator("sources").is_valid(named) else ()


@cache
def _validator(part: str) -> Draft202012Validator:
    """Of the whole reply, or of a named part of it."""
    schema = json.loads(
        resources.files("lcm.writing").joinpath("prompts", "memory_reply.schema.json").read_text("utf-8")
    )
    return Draft202012Validator(schema["$defs"][part] if part else schema)


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


@dataclass(frozen=True, slots=True)
class Turn:
    """One message as it is shown."""

    position: int
    """In the conversation, from 0."""
    message: Message
    words: str


@dataclass(frozen=True, slots=True)
class Chunk:
    """Turns that are shown together."""

    turns: tuple[Turn, ...]
    ready_with: Turn | None
    """The turn with whose arrival it may be shown; None = it waits for more."""


def chunks(turns: Sequence[Turn], max_chars: int, min_turns: int) -> Iterator[Chunk]:
    """Cut a conversation from its start, so that what is said later moves no earlier cut.

    A chunk ends where the session does, and where the next turn would take it beyond `max_chars` UTF-16 units of
    words. One of fewer than `min_turns` turns waits: it goes on into the next session, and it is shown as it is once
    a turn comes that it has no room for. No turn may be longer than `max_chars`.
    """
    current: list[Turn] = []
    chars = 0
    for turn in turns:
        length = utf16_length(turn.words)
        is_complete = len(current) >= min_turns
        is_over = is_complete and turn.message.session_id != current[-1].message.session_id
        if current and (is_over or chars + length > max_chars):
            yield Chunk(tuple(current), current[min_turns - 1] if is_complete else turn)
            current, chars = [], 0
        current.append(turn)
        chars += length
    if current:
        yield Chunk(tuple(current), current[min_turns - 1] if len(current) >= min_turns else None)


_TAG = re.compile(r"<(?=/?(?:turn|conversation)\b)", re.IGNORECASE)
_PROMPTS = ImmutableSandboxedEnvironment(
    loader=PackageLoader("lcm.writing", "prompts"),
    autoescape=select_autoescape(),
    undefined=StrictUndefined,
    trim_blocks=False,
)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Llm:
    """Shows the conversation to a language model in chunks, and makes a document of each memory that it replies.

    `lcm.writing.extraction.llm` says where a chunk ends and which of them wait. A chunk that grows is shown again
    whole, the turns that were read before marked as such: a memory that rests on those alone is dropped. A memory that
    rests only on messages that had waited names also the one that ended the wait, for only then was it read.
    A reply without a list of memories counts as one without memories; a model that gives none raises its ModelError.

    Incidents: `unreadable_reply`, `invalid_memory`, `noise_memory`, `surplus_memory`, `repeated_memory` (it rests on
    turns that were read before), `fiction_memory` and `constructed_memory` (since beta.11), `cut_message` (too long to
    be shown whole), `waiting_messages` (at the end of a call).
    """

    language_model: LanguageModel
    roles: Sequence[Role] = ("user", "assistant")
    """Whose messages are shown."""
    max_chars: int = 8000
    """UTF-16 units of words in a chunk; of a longer message only the end is shown."""
    min_messages: int = 4
    """A chunk of fewer waits for more."""
    max_memories: int = 5
    """Of one reply; the first count."""
    expiry: bool = True
    """Let "today", "next week" and the like end a memory's life, as memory-lancedb-pro does."""
    rules: ExtractionRules = "beta.10"
    """beta.11: the model also says what is real and what fiction, and the latter is dropped; complaints about the
    memory are noise; of an envelope less is taken away."""

    def __post_init__(self) -> None:
        check_choice(self, rules=ExtractionRules)
        check_roles(self.roles)
        check_range(self, "max_chars", "min_messages", "max_memories", ge=1)

    def extract(self, messages: Sequence[Message], known: int = 0, *, incidents: Counter[str]) -> list[Candidate]:
        candidates: list[Candidate] = []
        for chunk in chunks(list(self._turns(messages, known, incidents)), self.max_chars, self.min_messages):
            if chunk.ready_with is None:
                incidents["waiting_messages"] += len(chunk.turns)
                _log.info("%d messages wait: a chunk needs %d", len(chunk.turns), self.min_messages)
            elif max(chunk.ready_with.position, chunk.turns[-1].position) >= known:
                candidates += self._candidates(chunk, chunk.ready_with, known, incidents)
        return candidates

    def _turns(self, messages: Sequence[Message], known: int, incidents: Counter[str]) -> Iterator[Turn]:
        for position, message in enumerate(messages):
            words = ""
            if message.role in self.roles:
                words = strip_envelope(well_formed(message.content), is_careful=self.rules == "beta.11")
            if utf16_length(words) > self.max_chars:
                words = last_units(words, self.max_chars)
                if position >= known:
                    incidents["cut_message"] += 1
                    _log.warning("%s: only its last %d units are shown", message.message_id, self.max_chars)
            if words:
                yield Turn(position, message, words)

    def _candidates(self, chunk: Chunk, ready_with: Turn, known: int, incidents: Counter[str]) -> Iterator[Candidate]:
        """The new memories of a chunk."""
        was_read = ready_with.position < known
        seen = sum(turn.position < known for turn in chunk.turns) if was_read else 0
        ids = [turn.message.message_id for turn in chunk.turns]
        batch = f"{ids[0]} to {ids[-1]}"
        for memory in self._memories(chunk, seen, batch, incidents):
            named = memory.sources if memory.sources and memory.sources[-1] <= len(ids) else range(1, len(ids) + 1)
            if max(named) <= seen:
                incidents["repeated_memory"] += 1
                _log.warning("%s: %r rests on what was read before", batch, memory.abstract)
                continue
            sources = [chunk.turns[number - 1] for number in named]
            if sources[-1].position < known:
                sources.append(ready_with)
            yield self._candidate(memory, [turn.message for turn in sources], batch)

    def _memories(self, chunk: Chunk, seen: int, batch: str, incidents: Counter[str]) -> list[ExtractedMemory]:
        system = _PROMPTS.get_template("extraction_system.jinja").render(
            max_memories=self.max_memories, rules=self.rules
        )
        reply = self.language_model.reply(system, _prompt(chunk.turns, seen), _is_readable)
        checked = read_reply(reply, self.rules)
        if checked is None:
            incidents["unreadable_reply"] += 1
            _log.warning("%s: no list of memories in the reply %.200r", batch, reply)
            return []
        surplus = ["surplus_memory"] * (len(checked.memories) - self.max_memories)
        for name, times in Counter([*checked.refused, *surplus]).items():
            incidents[name] += times
            _log.warning("%s: %d dropped, %s", batch, times, name)
        return checked.memories[: self.max_memories]

    def _candidate(self, memory: ExtractedMemory, sources: Sequence[Message], batch: str) -> Candidate:
        statement = memory.content or memory.abstract
        return Candidate(
            text=memory.abstract,
            source_message_ids=tuple(message.message_id for message in sources),
            kind="memory",
            category=memory.category,
            importance=DEFAULT_IMPORTANCE[memory.category],
            confidence=DEFAULT_RATING,
            temporal_type=temporal_type(statement),
            valid_until=expiry(statement, sources[-1].created_at or EPOCH) if self.expiry else None,
            overview=memory.overview,
            content=memory.content,
            metadata=dict(memory.grounding),
            batch=batch,
        )


def _is_readable(reply: str) -> bool:
    return read_reply(reply) is not None


def _prompt(turns: Sequence[Turn], seen: int) -> str:
    users = dict.fromkeys(t.message.author for t in turns if t.message.role == "user" and t.message.author)
    begin = turns[0].message.created_at
    return _PROMPTS.get_template("extraction.jinja").render(
        users=" or ".join(map(_harmless, users)) or 'whoever speaks with the role "user"',
        date=begin and begin.date().isoformat(),
        seen=seen,
        turns=[
            {
                "number": number,
                "role": turn.message.role,
                "speaker": _harmless(turn.message.author or turn.message.role),
                "words": _TAG.sub("&lt;", turn.words),
            }
            for number, turn in enumerate(turns, 1)
        ],
    )


def _harmless(name: str) -> str:
    """A name that cannot end the attribute or the line it stands in."""
    return escape(" ".join(well_formed(name).split()))
