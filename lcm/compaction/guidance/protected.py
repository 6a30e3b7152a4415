"""Messages that outlive compaction word for word: their words state a rule, and their speaker vouches for it."""

import logging
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib import resources
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from lcm.checks import check_range
from lcm.encoding import from_yaml
from lcm.errors import LcmError, UnrecordedReplyError
from lcm.protocols.contract import Contract
from lcm.protocols.models import Embedder, Vectors
from lcm.records.conversation import Message
from lcm.records.summary import GuidanceShard
from lcm.transcript.parts import recorded

Modality = Literal["obligation", "forbidden", "permitted"]

MASK_BITS: dict[Modality, int] = {"obligation": 2, "forbidden": 4, "permitted": 8}

_CHARACTERS_PER_TOKEN = 4
_LOG = logging.getLogger(__name__)


class RuleMatch(NamedTuple):
    """A stretch of a text in which one rule of guidance matched."""

    start: int
    """Byte offset in the UTF-8 text."""
    end: int
    """Of the byte behind it."""
    modality: Modality
    rule: str
    """The name of what fired."""


@dataclass(frozen=True, slots=True)
class GuidanceMatches:
    """All rule matches in one text, in the order of finding."""

    findings: tuple[RuleMatch, ...] = ()

    @property
    def mask(self) -> int:
        """The bits of `MASK_BITS` of all that was found."""
        return sum({MASK_BITS[finding.modality] for finding in self.findings})

    @property
    def is_guidance(self) -> bool:
        return bool(self.findings)

    @property
    def label(self) -> Modality | None:
        """What the text says first; None = no rule."""
        return self.findings[0].modality if self.findings else None


class PhraseRules(Protocol):
    """A set of rules that finds guidance in words alone: who or what must, must not, or may do something.

    Laws: deterministic; the offsets lie within the text; nothing is found in the empty text.
    """

    def read(self, text: str) -> GuidanceMatches: ...


@dataclass(frozen=True, slots=True)
class NoGuidance:
    """No message is protected: compaction folds whatever was said."""

    contract = Contract(is_off=True)

    def shards(
        self, messages: Sequence[Message], conversation_id: str, now: datetime, *, incidents: Counter[str]
    ) -> list[GuidanceShard | None]:
        return [None] * len(messages)


class ProtectionVerdict(NamedTuple):
    """Why a message is protected, or not."""

    stability: float
    is_stable: bool
    """And not empty."""
    by_words: bool = False
    has_hint: bool = False
    """Asked only where the words say nothing."""
    similarity: float = 0.0
    """To the nearest prototype; asked only of what has a hint."""
    is_boosted: bool = False

    @property
    def protected_by(self) -> Literal["words", "embedding"] | None:
        return "words" if self.by_words else "embedding" if self.is_boosted else None


@dataclass(frozen=True, slots=True)
class ProtectedGuidance:
    """A message is protected if its stability is at least `stability_threshold` and its words state a rule; or, where
    they state none but hold a surface hint, if an embedder puts it at `booster_threshold` or nearer to a prototype
    (`protection.yaml`). A model can therefore only add protection; where it fails it adds none.

    Stability is what the recorded message says itself (`stability_weight` in its record, or in `metadata` there; a
    number or a decimal text, clamped to [0, 1]; anything else counts as 0), or else goes by role.

    Source: libravdb memory 1.3.17; numbers, roles, prototypes and failure rules 1.4.4.
    """

    frame: PhraseRules
    stability_threshold: float = 0.35
    user_stability: float = 0.5
    assistant_stability: float = 0.25
    other_stability: float = 0.2
    booster_embedder: Embedder | None = None
    booster_threshold: float = 0.78

    def __post_init__(self) -> None:
        shares = ("stability_threshold", "user_stability", "assistant_stability", "other_stability")
        check_range(self, *shares, "booster_threshold", ge=0, le=1)

    def shards(
        self, messages: Sequence[Message], conversation_id: str, now: datetime, *, incidents: Counter[str]
    ) -> list[GuidanceShard | None]:
        return [
            None
            if verdict.protected_by is None
            else GuidanceShard(
                message_id=message.message_id,
                conversation_id=conversation_id,
                text=message.content.strip(),
                created_at=now,
                protected_by=verdict.protected_by,
                stability=verdict.stability,
                provenance=str(recorded(message, "provenance_class", "session_turn")),
                tokens=max(1, len(message.content.strip()) // _CHARACTERS_PER_TOKEN),
            )
            for message, verdict in zip(messages, self.verdicts(messages, incidents=incidents), strict=True)
        ]

    def verdicts(self, messages: Sequence[Message], *, incidents: Counter[str]) -> list[ProtectionVerdict]:
        """Judge messages; those that need the embedder are embedded in one call."""
        verdicts = [self._by_words(message) for message in messages]
        doubtful = [i for i, verdict in enumerate(verdicts) if verdict.has_hint]
        if self.booster_embedder is None or not doubtful:
            return verdicts
        texts = [messages[i].content.strip() for i in doubtful]
        for i, similarity in zip(doubtful, _similarities(self.booster_embedder, texts, incidents), strict=True):
            boosted = similarity >= self.booster_threshold
            verdicts[i] = verdicts[i]._replace(similarity=similarity, is_boosted=boosted)
        return verdicts

    def _by_words(self, message: Message) -> ProtectionVerdict:
        text = message.content.strip()
        by_role = {"user": self.user_stability, "assistant": self.assistant_stability}
        stability = _in_unit(recorded(message, "stability_weight", by_role.get(message.role, self.other_stability)))
        if not text or stability < self.stability_threshold:
            return ProtectionVerdict(stability, is_stable=False)
        by_words = self.frame.read(text).is_guidance
        return ProtectionVerdict(stability, True, by_words, not by_words and _hints().search(text) is not None)


def _in_unit(value: Any) -> float:
    """A number or a decimal text clamped to [0, 1]; 0 for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return 0.0
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return 0.0
    return 0.0 if math.isnan(number) else min(1.0, max(0.0, number))


@cache
def _words() -> dict[str, list[str]]:
    text = resources.files("lcm.compaction.guidance").joinpath("protection.yaml").read_text("utf-8")
    words: dict[str, list[str]] = from_yaml(text)
    return words


@cache
def _hints() -> re.Pattern[str]:
    """Words that rules often hold ("prefer", "should", "don't"), in either case."""
    alternatives = "|".join(re.escape(hint) for hint in _words()["surface_hints"])
    return re.compile(rf"\b(?:{alternatives})\b".replace("'", "['’]"), re.IGNORECASE)


def _similarities(embedder: Embedder, texts: Sequence[str], incidents: Counter[str]) -> list[float]:
    """The best cosine of any window of each text to any prototype, clamped to [0, 1].

    A text that cannot be embedded gets 0 and a prototype that cannot is left out; each is counted in `incidents`.
    """
    prototypes = _windows_of(embedder, _words()["prototypes"], "guidance prototype not embedded", incidents)
    known = [vectors for vectors in prototypes if vectors is not None]
    if not known:
        return [0.0] * len(texts)
    goal = np.concatenate(known)
    return [
        0.0 if vectors is None else float(np.clip(np.max(vectors @ goal.T), 0.0, 1.0))
        for vectors in _windows_of(embedder, texts, "guidance text not embedded", incidents)
    ]


def _windows_of(
    embedder: Embedder, texts: Sequence[str], incident: str, incidents: Counter[str]
) -> list[Vectors | None]:
    """The vectors of the windows of each text; None where there are none.

    One call, or one a text if that call fails.
    """
    try:
        windows = embedder.windows(texts)
        rows = embedder.embed([window for pieces in windows for window in pieces], "document")
    except UnrecordedReplyError:
        raise
    except LcmError as err:
        if len(texts) > 1:
            return [row for text in texts for row in _windows_of(embedder, [text], incident, incidents)]
        _LOG.warning("%s: %s", incident, err)
        incidents[incident] += 1
        return [None]
    ends = np.cumsum([len(pieces) for pieces in windows])
    return [part if len(part) else None for part in np.split(rows, ends[:-1])]
