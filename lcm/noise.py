"""What is not worth keeping: memory-lancedb-pro's patterns for denials, meta-questions, greetings and diagnostics."""

import re

from lcm.lifecycle.coercion import WHITE_SPACE, trim
from lcm.tokens import utf16_length

_SHORTEST_UTF16 = 5

# A dot of JavaScript: it stops at every line terminator, not at the newline alone.
_REST_OF_LINE = "[^\n\r\u2028\u2029]*"


def _any_of(*patterns: str) -> re.Pattern[str]:
    # ASCII: a letter of any other script is no part of a word, so that \b stands beside it.
    joined = "|".join(f"(?:{pattern})" for pattern in patterns)
    return re.compile(joined.replace("<line>", _REST_OF_LINE).replace("<space>", f"[{WHITE_SPACE}]*"), re.ASCII | re.I)


_DENIAL = _any_of(
    r"i don'?t (?:recall|remember|have access to|have (?:any )?(?:information|data|memory|record))",
    r"i'?m not sure about",
    r"it looks like i don'?t",
    r"i wasn'?t able to find",
    r"no (?:relevant )?memories found",
)
_META_QUESTION = _any_of(
    r"\bdo you (?:remember|recall|know about)\b",
    r"\bcan you (?:remember|recall)\b",
    r"\bdid i (?:tell|mention|say|share)\b",
    r"\bhave i (?:told|mentioned|said)\b",
    r"如果你知道<line>只回复",
    r"只回复(?:精确代号|<space>none)",
    r"你还?记得",
    r"记不记得",
    r"还记得<line>吗",
    r"你[知晓]道<line>吗",
    r"我(?:之前|上次|以前)[说提讲]<line>[吗呢？?]",
)
_BOILERPLATE = _any_of(
    # No word boundary, as in the original: "history" begins with a greeting.
    r"\A(?:hi|hello|hey|good morning|good evening|greetings|fresh session|new session|heartbeat)",
)
_DIAGNOSTIC = _any_of(
    r"\bquery<space>-><space>(?:none|unknown|not found)\b",
    r"\buser asked for\b<line>\b(?:none|unknown|not found)\b",
    r"\bno explicit solution\b",
)


def is_noise(text: str, *, denials: bool = True, meta_questions: bool = True, boilerplate: bool = True) -> bool:
    """Say whether a text tells nothing worth remembering.

    Too short (under 5 UTF-16 code units without white space around), or a diagnostic artefact; and, each unless
    switched off: a denial of knowledge, a question about the memory itself, or session boilerplate.

    Source: memory-lancedb-pro, noise filter.
    """
    trimmed = trim(text)
    return (
        utf16_length(trimmed) < _SHORTEST_UTF16
        or (denials and _DENIAL.search(trimmed) is not None)
        or (meta_questions and _META_QUESTION.search(trimmed) is not None)
        or (boilerplate and _BOILERPLATE.search(trimmed) is not None)
        or _DIAGNOSTIC.search(trimmed) is not None
    )
