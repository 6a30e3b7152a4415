"""The beginning of a text in the place of its summary, without what reads like an order to a model.

What a summary says is read as the memory's own word: an order that was quoted, pasted or brought by a tool would be
obeyed. Source: lossless-claw 0.15.3.
"""

import re
from collections.abc import Iterator

from lcm.javascript import WHITE_SPACE, first_units, trim, utf16_length
from lcm.protocols.models import TokenEstimator
from lcm.records.summary import DIRECTIVE_MARK, FALLBACK_MARK
from lcm.token_estimator import first_tokens

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
    is_always_marked: bool = False,
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
        is_always_marked: whether the mark stands behind what was not cut, too.
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
    is_cut = has_omitted or is_always_marked or most_tokens is not None
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
