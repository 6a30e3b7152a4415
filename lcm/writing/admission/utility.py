"""How useful a candidate will be in later sessions, in [0, 1].

Source: memory-lancedb-pro, admission-control; the prompt is ours.
"""

import logging
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from string import Template
from typing import Any, NamedTuple, Protocol, TypeGuard

from lcm.checks import check_range
from lcm.encoding import well_formed
from lcm.javascript import clamp01, is_finite_number, to_number, trim, utf16_length
from lcm.language_model.replies import Answer, asked
from lcm.protocols.models import LanguageModel
from lcm.records.conversation import Message
from lcm.records.document import Candidate
from lcm.writing.new_document import shown_words

UNKNOWN_UTILITY = 0.5
"""Where nobody could say."""

_PROMPT = Template(resources.files("lcm.writing.admission").joinpath("utility_prompt.txt").read_text("utf-8"))
_SYSTEM = _PROMPT.substitute(
    shown="`conversation`, the last part of what was said, oldest first, and `candidate`, a note that was\n"
    "drawn from it. The note has",
    reply='{"utility": <number from 0 to 1>, "reason": "<one short sentence>"}',
)
_SYSTEM_OF_BATCH = _PROMPT.substitute(
    shown="`candidates`, notes that were drawn from one conversation, each with an `index`. A note has",
    reply='{"results": [{"index": 1, "utility": <number from 0 to 1>, "reason": "<one short sentence>"}, ...]},\n'
    "with one entry for each note",
)
_log = logging.getLogger(__name__)


class Rating(NamedTuple):
    """A utility, and why."""

    value: float
    reason: str | None = None


class Utility(Protocol):
    """Laws: the value is in [0, 1]; nothing is raised but that a replay lacks a reply."""

    def rate(self, candidate: Candidate, messages: Sequence[Message], *, incidents: Counter[str]) -> Rating: ...


@dataclass(frozen=True, slots=True)
class FixedUtility:
    """Rates every candidate with the same utility, `value`."""

    value: float = UNKNOWN_UTILITY

    def __post_init__(self) -> None:
        check_range(self, "value", ge=0, le=1)

    def rate(self, candidate: Candidate, messages: Sequence[Message], *, incidents: Counter[str]) -> Rating:
        return Rating(self.value, "fixed")


@dataclass(frozen=True, slots=True)
class ModelUtility:
    """Rates a candidate by a language model that reads it and the end of the conversation; 0.5 without a number.

    Incidents: `utility_no_reply`, `utility_no_number`.
    """

    language_model: LanguageModel
    conversation_chars: int = 3000
    """UTF-16 units from the end of the conversation that the model is shown."""

    def __post_init__(self) -> None:
        check_range(self, "conversation_chars", ge=0)

    def rate(self, candidate: Candidate, messages: Sequence[Message], *, incidents: Counter[str]) -> Rating:
        shown = {"conversation": last_lines(messages, self.conversation_chars), "candidate": _shown(candidate)}
        found, _, problem = _asked(self.language_model, _SYSTEM, shown, "utility", incidents)
        return Rating(UNKNOWN_UTILITY, problem) if found is None else _rating(found, incidents)


@dataclass(frozen=True, slots=True)
class BatchUtility:
    """Rates the candidates of one extraction by a language model that reads several at once, and no conversation.

    One call for each `size` candidates, without those that extraction found constructed. A candidate that the reply
    leaves out is taken as 0.5; where a call has no reply, each of its candidates is asked for alone.

    Incidents: `utility_no_reply`, `utility_no_number`.
    """

    language_model: LanguageModel
    size: int = 10
    """Candidates a call at most."""

    def __post_init__(self) -> None:
        check_range(self, "size", ge=1)

    def rate(self, candidate: Candidate, messages: Sequence[Message], *, incidents: Counter[str]) -> Rating:
        return ModelUtility(self.language_model, conversation_chars=0).rate(candidate, (), incidents=incidents)

    def looked_at(self, candidates: Sequence[Candidate], *, incidents: Counter[str]) -> Utility:
        """What rates each of these candidates, having seen all of them."""
        rated: list[tuple[Candidate, Rating]] = []
        for start in range(0, len(candidates), self.size):
            chunk = candidates[start : start + self.size]
            sent = [one for one in chunk if one.metadata.get("grounding") != "constructed"]
            rated += zip(sent, self._rated(sent, incidents), strict=True)
        return _Rated(tuple(rated))

    def _rated(self, sent: Sequence[Candidate], incidents: Counter[str]) -> list[Rating]:
        if not sent:
            return []
        shown = {"candidates": [{"index": i, **_shown(candidate)} for i, candidate in enumerate(sent, 1)]}
        found = _asked(self.language_model, _SYSTEM_OF_BATCH, shown, "results", incidents).found
        if found is None:
            return [self.rate(candidate, (), incidents=incidents) for candidate in sent]
        listed = found.get("results")
        rows = {row["index"]: row for row in listed if _is_row(row)} if isinstance(listed, list) else {}
        missing = Rating(UNKNOWN_UTILITY, "the reply leaves it out")
        incidents["utility_no_number"] += sum(i not in rows for i in range(1, len(sent) + 1))
        return [_rating(rows[i], incidents) if i in rows else missing for i in range(1, len(sent) + 1)]


@dataclass(frozen=True, slots=True)
class _Rated:
    """Ratings of candidates that were all looked at."""

    ratings: tuple[tuple[Candidate, Rating], ...]

    def rate(self, candidate: Candidate, messages: Sequence[Message], *, incidents: Counter[str]) -> Rating:
        return next(rating for known, rating in self.ratings if known is candidate)


def _asked(
    language_model: LanguageModel, system: str, shown: Mapping[str, Any], key: str, incidents: Counter[str]
) -> Answer:
    answer = asked(language_model, system, shown, key, otherwise="no utility")
    if answer.found is None:
        incidents["utility_no_reply"] += 1
    return answer


def _rating(found: Mapping[str, Any], incidents: Counter[str]) -> Rating:
    said = found.get("reason")
    reason = trim(said) or None if isinstance(said, str) else None
    value = to_number(found["utility"]) if "utility" in found else math.nan
    if not math.isfinite(value):
        _log.warning("utility taken as %s: no number in %.200r", UNKNOWN_UTILITY, found)
        incidents["utility_no_number"] += 1
        return Rating(UNKNOWN_UTILITY, reason)
    return Rating(clamp01(value, UNKNOWN_UTILITY), reason)


def _is_row(row: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(row, dict) and is_finite_number(row.get("index"))


def _shown(candidate: Candidate) -> dict[str, str]:
    return {"category": candidate.category, **shown_words(candidate)}


def last_texts(messages: Sequence[Message], max_chars: int) -> list[str]:
    """What was said in the last `max_chars` UTF-16 units, a message a text, in order; the first may lack its begin."""
    texts: list[str] = []
    room = max_chars
    for message in reversed(messages):
        if room <= 0:
            break
        texts.append(last_chars(message.content, room))
        room -= utf16_length(message.content) + 1  # one for the line break between two messages
    return texts[::-1]


def last_lines(messages: Sequence[Message], max_chars: int) -> str:
    """The same for a prompt: `speaker: words`, a message a paragraph."""
    texts = last_texts(messages, max_chars)
    tail = messages[len(messages) - len(texts) :]
    return "\n".join(
        f"{message.author or message.role}: {well_formed(text)}" for message, text in zip(tail, texts, strict=True)
    )


def last_chars(text: str, count: int) -> str:
    """The last `count` UTF-16 units; a character that would be cut in two is left out."""
    if utf16_length(text) <= count:
        return text
    return text.encode("utf-16-le", "surrogatepass")[-2 * count :].decode("utf-16-le", "ignore")
