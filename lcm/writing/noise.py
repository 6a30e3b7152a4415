"""What is not worth keeping: memory-lancedb-pro's patterns for denials, meta-questions, greetings and diagnostics."""

import re
from collections.abc import Mapping
from functools import lru_cache

import numpy as np
import polars as pl

from lcm.javascript import WHITE_SPACE, trim, utf16_length

_SHORTEST_UTF16 = 5
_KEPT = 1024  # texts that were judged last: live queries find the same ones again
_SIEVED_FROM = 100
"""So many texts, since looking for all cues at once takes a while to get ready."""


def _compiled(patterns: Mapping[str, str]) -> list[tuple[str, re.Pattern[str]]]:
    """Cues with their patterns: looking for the cue first is ten times as fast."""
    # ASCII: a letter of any other script is no part of a word, so that \b stands beside it.
    return [(cue, re.compile(_as_javascript(pattern), re.ASCII | re.IGNORECASE)) for cue, pattern in patterns.items()]


def _as_javascript(pattern: str) -> str:
    # There a dot stops at every line terminator, and white space is of Unicode.
    return pattern.replace("<line>", "[^\n\r\u2028\u2029]*").replace("<space>", f"[{WHITE_SPACE}]*")


_DENIALS = _compiled(
    {
        "i don": r"i don'?t (?:recall|remember|have access to|have (?:any )?(?:information|data|memory|record))",
        "m not sure about": r"i'?m not sure about",
        "it looks like i don": r"it looks like i don'?t",
        "t able to find": r"i wasn'?t able to find",
        "memories found": r"no (?:relevant )?memories found",
    }
)
_META_QUESTIONS = _compiled(
    {
        "do you ": r"\bdo you (?:remember|recall|know about)\b",
        "can you ": r"\bcan you (?:remember|recall)\b",
        "did i ": r"\bdid i (?:tell|mention|say|share)\b",
        "have i ": r"\bhave i (?:told|mentioned|said)\b",
        "如果你知道": r"如果你知道<line>只回复",
        "只回复": r"只回复(?:精确代号|<space>none)",
        "记得": r"你还?记得|记不记得|还记得<line>吗",
        "道": r"你[知晓]道<line>吗",
        "我": r"我(?:之前|上次|以前)[说提讲]<line>[吗呢？?]",
    }
)
_COMPLAINTS = _compiled(
    {
        **{
            f" {verb}": rf"\byou (?:never|don'?t|do not|can'?t|cannot) {verb}\b"
            for verb in ("remember", "recall", "get", "understand")
        },
        "why ": r"\bwhy (?:do|can) you (?:keep )?(?:forget|not remember|never remember)\b"
        r"|\bwhy (?:is|are) (?:my|the) (?:memory|memories) (?:wrong|missing|broken|not working)\b",
        "did you ": r"\bdid you (?:get|understand) what i (?:said|told you|meant)\b",
        "changed": r"^what (?:just )?changed\??$",
    }
)
_DIAGNOSTICS = _compiled(
    {
        "query": r"\bquery<space>-><space>(?:none|unknown|not found)\b",
        "user asked for": r"\buser asked for\b<line>\b(?:none|unknown|not found)\b",
        "no explicit solution": r"\bno explicit solution\b",
    }
)
# No word boundary, as in the original: "history" begins with a greeting.
_GREETINGS = "hi|hello|hey|good morning|good evening|greetings|fresh session|new session|heartbeat"
_BOILERPLATE = re.compile(_GREETINGS, re.ASCII | re.IGNORECASE)
_CUES = [cue for cue, _ in (*_DENIALS, *_META_QUESTIONS, *_DIAGNOSTICS)]
_COMPLAINT_CUES = [cue for cue, _ in _COMPLAINTS]
_LED_BY_GREETING = f"^[{WHITE_SPACE}]*(?i:{_GREETINGS})"


@lru_cache(_KEPT)
def is_noise(
    text: str,
    *,
    denials: bool = True,
    meta_questions: bool = True,
    boilerplate: bool = True,
    complaints: bool = False,
) -> bool:
    """Say whether a text tells nothing worth remembering.

    Too short (under 5 UTF-16 code units without white space around), or a diagnostic artefact; and, each unless
    switched off: a denial of knowledge, a question about the memory itself, or session boilerplate. With `complaints`
    the questions include complaints about the memory: "you never remember", "what changed?".

    Source: memory-lancedb-pro, noise filter; the complaints are of 1.1.0-beta.11.
    """
    trimmed = trim(text)
    lowered = trimmed.lower()
    return (
        utf16_length(trimmed) < _SHORTEST_UTF16
        or (denials and _matches(_DENIALS, trimmed, lowered))
        or (meta_questions and _matches(_META_QUESTIONS, trimmed, lowered))
        or (meta_questions and complaints and _matches(_COMPLAINTS, trimmed, lowered))
        or (boilerplate and _BOILERPLATE.match(trimmed) is not None)
        or _matches(_DIAGNOSTICS, trimmed, lowered)
    )


def are_noise(texts: pl.Series, **groups: bool) -> pl.Series:
    """`is_noise` of each text, sooner where there are many: most hold no cue, greeting at their start nor little."""
    if len(texts) < _SIEVED_FROM:
        return pl.Series([is_noise(text, **groups) for text in texts.to_list()], dtype=pl.Boolean)
    cues = [*_CUES, *_COMPLAINT_CUES] if groups.get("complaints") else _CUES
    suspects = (
        texts.str.contains_any(cues, ascii_case_insensitive=True)
        | texts.str.contains(_LED_BY_GREETING)
        | (texts.str.strip_chars(WHITE_SPACE).str.len_chars() < _SHORTEST_UTF16)
    ).arg_true()
    noise = np.zeros(len(texts), dtype=np.bool_)
    noise[suspects.to_numpy()] = [is_noise(text, **groups) for text in texts.gather(suspects).to_list()]
    return pl.Series(noise)


def _matches(patterns: list[tuple[str, re.Pattern[str]]], text: str, lowered: str) -> bool:
    return any(cue in lowered and pattern.search(text) is not None for cue, pattern in patterns)
