"""Summarizers in the order in which they are asked, how long a summary is asked to be, and what stands in for it: the
beginning of its text, without what reads like an order to a model.

What a summary says is read as the memory's own word: an order that was quoted, pasted or brought by a tool would be
obeyed. Source: lossless-claw 0.6.3 and 0.15.3.
"""

import logging
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from lcm.checks import check_range
from lcm.errors import AuthError, LcmError, ModelError, UnrecordedReplyError
from lcm.javascript import WHITE_SPACE, first_units, trim, utf16_length
from lcm.protocols.compaction import Summarizer
from lcm.protocols.models import TokenEstimator
from lcm.records.summary import DIRECTIVE_MARK, FALLBACK_MARK, SummaryRequest, SummaryResult
from lcm.token_estimator import ScriptAware, first_tokens

_LEAF_FLOOR_TOKENS = 192
_AGGRESSIVE_FLOOR_TOKENS = 96
_CONDENSED_FLOOR_TOKENS = 512
LEAF_SHARE = 0.35
"""Of the tokens of a text that a leaf is asked to have."""
_AGGRESSIVE_SHARE_OF_TEXT = 0.2
_AGGRESSIVE_SHARE_OF_TARGET = 0.55


def requested_tokens(
    text_tokens: int,
    depth: int,
    is_aggressive: bool,
    leaf_target_tokens: int,
    condensed_target_tokens: int,
    leaf_share: float = LEAF_SHARE,
) -> int:
    """The length to ask for; an aim, no bound.

    A condensed summary: the condensed target, at least 512. A leaf, with the target L of at least 192 and a text of n
    tokens: min(L, 0.35 n), at least 192; aggressive min(0.55 L, 0.2 n), at least 96. Fractions are rounded down.

    Args:
        text_tokens: of the text to be summarised.
        depth: of the summary to be made; 0 is a leaf.
        is_aggressive: the first answer was too long.
        leaf_target_tokens: wished for a leaf.
        condensed_target_tokens: wished for a condensed summary.
        leaf_share: in the place of 0.35.
    Source: lossless-claw 0.6.3.
    """
    if depth > 0:
        return max(_CONDENSED_FLOOR_TOKENS, condensed_target_tokens)
    target = max(_LEAF_FLOOR_TOKENS, leaf_target_tokens)
    if not is_aggressive:
        return max(_LEAF_FLOOR_TOKENS, min(target, math.floor(leaf_share * text_tokens)))
    tight = math.floor(_AGGRESSIVE_SHARE_OF_TARGET * target)
    return max(_AGGRESSIVE_FLOOR_TOKENS, min(tight, math.floor(_AGGRESSIVE_SHARE_OF_TEXT * text_tokens)))


_PADDING = re.compile(r"</?s>|<(?:pad|unk|mask)>|<extra_id_\d+>|\[(?:PAD|UNK|CLS|SEP|MASK)\]", re.IGNORECASE)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Chain:
    """Asks each summarizer for the summaries that those before it did not give; a batch stays a batch.

    No summary is one that failed, is blank, or holds nothing but a model's padding and marks without a letter or digit.
    Where no summarizer gives one, the failure of the last is the result.
    """

    summarizers: Mapping[str, Summarizer]
    order: Sequence[str]
    """Names of them; those that are not named are never asked."""

    def __post_init__(self) -> None:
        if not self.order or len(set(self.order)) < len(self.order):
            raise ValueError(f"order must name each summarizer once, and at least one, got {list(self.order)}")
        if unknown := [name for name in self.order if name not in self.summarizers]:
            raise ValueError(f"order names {unknown[0]!r}; choose from: {', '.join(sorted(self.summarizers))}")

    def summarize(self, requests: Sequence[SummaryRequest], *, incidents: Counter[str]) -> list[SummaryResult]:
        """One result a request.

        Raises:
            UnrecordedReplyError: if a replay lacks a reply, in whose place nothing may stand.
        """
        results: dict[int, SummaryResult] = {}
        passed_on: dict[int, list[str]] = {}
        waiting = list(range(len(requests)))
        for name in self.order:
            if not waiting:
                break
            found = summaries_of(self.summarizers[name], name, [requests[i] for i in waiting], incidents)
            results.update(zip(waiting, found, strict=True))
            waiting = [i for i in waiting if results[i].failure is not None]
            if waiting:
                told = name, len(waiting), len(found), results[waiting[0]].failure
                _log.warning("%s gave no summary of %d of %d texts: %s", *told)
            for i in waiting:
                problem = "was refused" if isinstance(results[i].failure, AuthError) else "gave no summary"
                passed_on.setdefault(i, []).append(f"{name} {problem}")
            for i in passed_on.keys() - set(waiting):
                incidents.update(f"{problem}: {name} stood in" for problem in passed_on.pop(i))
        for problems in passed_on.values():
            incidents.update(f"{problem}: nothing stood in" for problem in problems)
        return [results[i] for i in range(len(requests))]


def summaries_of(
    summarizer: Summarizer, name: str, requests: Sequence[SummaryRequest], incidents: Counter[str]
) -> list[SummaryResult]:
    """One result a request; a text without words is the failure that it is.

    Raises:
        UnrecordedReplyError: if a replay lacks a reply, in whose place nothing may stand.
    """
    try:
        results = summarizer.summarize(requests, incidents=incidents)
    except UnrecordedReplyError:
        raise
    except ModelError as error:
        return [SummaryResult("", 0.0, name, failure=error)] * len(requests)
    return [
        result
        if result.failure is not None or has_words(result.text)
        else replace(result, text="", confidence=0.0, failure=LcmError(f"{name} wrote no words: {result.text[:80]!r}"))
        for result in results
    ]


def has_words(text: str) -> bool:
    """Say whether a letter or digit is left of a text without the tokens that pad a model's output."""
    return any(character.isalnum() for character in _PADDING.sub(" ", text))


OMITTED = "[LCM fallback summary omitted directive-shaped untrusted content]."
"""Stands where neighbouring orders stood."""

_UNIT = re.compile(r"\n+|[^\n.!?]+[.!?]*[^\S\n]*|[.!?]+[^\S\n]*")
_BLANKS_BEFORE_LINE_END = re.compile(r"[ \t]+\n")
_OVERRIDE = r"\b(?:ignore|disregard|forget|override)\s+"
_WHOSE = r"(?:(?:all|any|every|each)\s+)?(?:of\s+)?(?:(?:the|your|my|our|any|these|those|this|that)\s+)?"
_RULES = r"(?:instructions?|prompts?|rules?)\b"
_EARLIER = r"(?:(?:previous|prior|above|earlier)(?:\s+(?:system|developer))?|system|developer)"
_GOES_ON = r"(?=\s*(?:$|[^\w\s]|(?:and|then|now|before|after|instead|to|with|from)\b))"
_TELLING = "reveal|print|show|dump|exfiltrate|provide|give|send"
_DIRECTIVE = re.compile(
    "|".join(
        [
            rf"{_OVERRIDE}{_WHOSE}{_EARLIER}\s+{_RULES}",
            rf"{_OVERRIDE}{_WHOSE}(?:(?:current|existing|original)\s+)?{_RULES}{_GOES_ON}",
            r"\byou\s+are\s+now\b|\bfrom\s+now\s+on\b|\breply\s+only\s+with\b",
            rf"\b(?:{_TELLING})\s+(?:me\s+)?(?:(?:the|your|my|any)\s+)?(?:system|developer)\s+prompt\b",
            r"\bjailbreak\s+(?:(?:mode|prompt|instructions?)\b|the\s+(?:model|assistant)\b)",
            r"\bdan\s+mode\b|\byou\s+are\s+dan\b|\banswer(?:\s+[\w']+){1,6}\s+as\s+dan\b",
            r"(?:^\s*|\b\w+:\s*)(?:act\s+as|pretend\s+to\s+be)\s+dan\b",
            r"\b(?:act\s+as|pretend\s+to\s+be|enable|activate|unlock|enter|start|use)\s+(?!(?-i:Dan)\b)dan\b",
        ]
    ),
    re.IGNORECASE,
)
_CONTINUATION = re.compile(
    rf"\s*(?:answer|reply|respond|say|output|return|{_TELLING})\b[^.!?\n]{{0,160}}[.!?]*\s*", re.IGNORECASE
)


def harmless_beginning(
    text: str,
    token_estimator: TokenEstimator,
    *,
    most_tokens: int | None = None,
    most_units: int | None = None,
    mark: str = FALLBACK_MARK,
    directive_mark: str = DIRECTIVE_MARK,
) -> str:
    """As much of a text as there is room for, a newline and a mark; a blank text stays empty.

    Args:
        text: to be cut.
        token_estimator: counts the tokens.
        most_tokens: that the result has with its mark, which then stands behind a text that is not cut, too; a mark
            that is longer stands alone. None = no bound.
        most_units: UTF-16 code units of the text, the mark not counted; None = no bound.
        mark: behind what was cut.
        directive_mark: in its place where something was left out.
    """
    text = trim(text)
    if not text:
        return ""
    units = "".join(_units(text))
    has_omitted = units != text
    note = directive_mark if has_omitted else mark
    kept = trim(_BLANKS_BEFORE_LINE_END.sub("\n", units))
    if not trim(kept.replace(OMITTED, "")):
        return note
    is_cut = has_omitted or most_tokens is not None
    if most_units is not None and utf16_length(kept) > most_units:
        kept, is_cut = first_units(kept, most_units, "dropped"), True
    if most_tokens is not None:
        room = max(0, most_tokens - token_estimator.count([f"\n{note}"])[0])
        kept = first_tokens(kept, room, token_estimator)
    if not is_cut:
        return kept
    kept = kept.rstrip(WHITE_SPACE)
    return f"{kept}\n{note}" if kept else note


def _units(text: str) -> Iterator[str]:
    """Sentences and line breaks; in the place of a series of orders, and of what goes on with them, one mark."""
    is_series = False
    for unit in _UNIT.findall(text):
        if unit.startswith("\n"):
            yield unit
        elif _DIRECTIVE.search(unit) or (is_series and _CONTINUATION.fullmatch(unit)):
            yield "" if is_series else f"{OMITTED} "
            is_series = True
        else:
            yield unit
            is_series = False


NOTHING_TO_SUMMARISE = "there is nothing to summarise: the text is blank"


@dataclass(frozen=True, slots=True)
class Truncate:
    """The first units of the text, a newline and the marker; a text that is no longer stays as it is.

    With `max_tokens` the marker is counted and always there, and what reads like an order to a model is left out.
    Its confidence is 0: nothing says that what matters stands at the beginning.

    Source: lossless-claw 0.6.3, the summarizer for emergencies, which may cut a character in two; with `max_tokens`
    0.15.3.
    """

    max_units: int | None = 3600
    """UTF-16 code units, the marker not counted; None = no bound of units."""
    aggressive_max_units: int | None = 2400
    """Of a request that is pressed for less; None = no bound of units."""
    max_tokens: int | None = None
    """Of the words and the marker; None = no bound of tokens."""
    marker: str = "[Truncated for context management]"
    """The last line of what was cut."""
    token_estimator: TokenEstimator = field(default_factory=ScriptAware)
    unused_where: ClassVar[Mapping[str, Mapping[str, object]]] = {"token_estimator": {"max_tokens": None}}

    def __post_init__(self) -> None:
        check_range(self, "max_units", "aggressive_max_units", ge=2, or_null=True)  # room for one character
        check_range(self, "max_tokens", ge=64, or_null=True, is_whole=True)  # room for either marker
        if self.max_tokens is None and None in (self.max_units, self.aggressive_max_units):
            raise ValueError("max_units and aggressive_max_units may be null beside max_tokens alone")

    def summarize(self, requests: Sequence[SummaryRequest], *, incidents: Counter[str]) -> list[SummaryResult]:
        return [self._result(request) for request in requests]

    def _result(self, request: SummaryRequest) -> SummaryResult:
        if not trim(request.text):
            return SummaryResult("", 0.0, "truncate", failure=LcmError(NOTHING_TO_SUMMARISE))
        units = self.aggressive_max_units if request.is_aggressive else self.max_units
        if self.max_tokens is None and units is not None:
            return SummaryResult(cut(request.text, units, self.marker), 0.0, "truncate")
        text = harmless_beginning(
            request.text, self.token_estimator, most_tokens=self.max_tokens, most_units=units, mark=self.marker
        )
        return SummaryResult(text, 0.0, "truncate")


def cut(text: str, units: int, marker: str) -> str:
    """The text if it has no more units, else its first ones, a newline and the marker."""
    return text if utf16_length(text) <= units else f"{first_units(text, units, 'dropped')}\n{marker}"
