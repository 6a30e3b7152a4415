"""What a language model finds worth remembering.

Source: memory-lancedb-pro, smart-extractor: categories, three levels, limits and checks are its own, and speaker tags
come from its later versions. The prompts are ours, and so is that each memory names the turns it rests on.
"""

import logging
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from jinja2 import PackageLoader, StrictUndefined, select_autoescape
from jinja2.sandbox import ImmutableSandboxedEnvironment

from lcm.checks import check_choice, check_range
from lcm.encoding import well_formed
from lcm.javascript import utf16_length
from lcm.protocols.models import LanguageModel
from lcm.records.conversation import Message, Role
from lcm.records.document import DEFAULT_RATING, Candidate
from lcm.writing.annotation.temporal import expiry, temporal_type
from lcm.writing.extraction.chunks import Chunk, Turn, chunks, last_units
from lcm.writing.extraction.envelope import strip_envelope
from lcm.writing.extraction.memory_reply import ExtractedMemory, ExtractionRules, read_reply
from lcm.writing.extraction.wording import check_roles, said_at
from lcm.writing.lifecycle.categories import DEFAULT_IMPORTANCE

_TAG = re.compile(r"<(?=/?(?:turn|conversation)\b)", re.IGNORECASE)
_PROMPTS = ImmutableSandboxedEnvironment(
    loader=PackageLoader("lcm.writing.extraction", "prompts"),
    autoescape=select_autoescape(),
    undefined=StrictUndefined,
    trim_blocks=False,
)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Llm:
    """Shows the conversation to a language model in chunks, and makes a document of each memory that it replies.

    `lcm.writing.extraction.chunks` says where a chunk ends and which of them wait. A chunk that grows is shown again
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
        system = _PROMPTS.get_template("system.jinja").render(max_memories=self.max_memories, rules=self.rules)
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
            valid_until=expiry(statement, said_at(sources[-1])) if self.expiry else None,
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
    return _PROMPTS.get_template("prompt.jinja").render(
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
