"""How useful a candidate will be in later sessions, in [0, 1].

Source: memory-lancedb-pro, admission-control; the prompt is ours.
"""

import json
import logging
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import NamedTuple, Protocol

from lcm.checks import check_range
from lcm.encoding import well_formed
from lcm.errors import LcmError, UnrecordedReplyError
from lcm.javascript import clamp01, to_number, trim, utf16_length
from lcm.language_model.json_reply import names, object_in
from lcm.protocols.models import LanguageModel
from lcm.records.conversation import Message
from lcm.records.document import Candidate

UNKNOWN_UTILITY = 0.5
"""Where nobody could say."""

_SYSTEM = resources.files("lcm.writing.admission").joinpath("utility_prompt.txt").read_text("utf-8")
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
        try:
            reply = self.language_model.reply(_SYSTEM, self._prompt(candidate, messages), names("utility"))
        except UnrecordedReplyError:
            raise
        except LcmError as error:
            _log.warning("utility taken as %s: %s", UNKNOWN_UTILITY, error)
            incidents["utility_no_reply"] += 1
            return Rating(UNKNOWN_UTILITY, f"no reply: {error}")
        found = object_in(reply, "utility")
        if found is None:
            _log.warning("utility taken as %s: no JSON object in the reply %.200r", UNKNOWN_UTILITY, reply)
            incidents["utility_no_reply"] += 1
            return Rating(UNKNOWN_UTILITY, "no JSON object in the reply")
        said = found.get("reason")
        reason = trim(said) or None if isinstance(said, str) else None
        value = to_number(found["utility"]) if "utility" in found else math.nan
        if not math.isfinite(value):
            _log.warning("utility taken as %s: no number in the reply %.200r", UNKNOWN_UTILITY, reply)
            incidents["utility_no_number"] += 1
            return Rating(UNKNOWN_UTILITY, reason)
        return Rating(clamp01(value, UNKNOWN_UTILITY), reason)

    def _prompt(self, candidate: Candidate, messages: Sequence[Message]) -> str:
        shown = {
            "conversation": last_lines(messages, self.conversation_chars),
            "candidate": {
                "category": candidate.category,
                "abstract": well_formed(candidate.text),
                "overview": well_formed(candidate.overview),
                "content": well_formed(candidate.content),
            },
        }
        return json.dumps(shown, ensure_ascii=False, indent=1)


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
