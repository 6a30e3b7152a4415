"""Text as a page may show it: what would steer a display is made visible, and a count agrees with its noun."""

import re

_STEERING = re.compile(
    "[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2028\u2029\u2066-\u2069]"
)
"""Control characters but tab and line break, line and paragraph separators, and what turns the direction of writing."""


def shown(text: object) -> str:
    """Steering characters as their code points: `[U+202E]`."""
    return _STEERING.sub(lambda found: f"[U+{ord(found[0]):04X}]", str(text))


def counted(n: int, one: str, more: str = "") -> str:
    """A count with its noun: `1 workspace`, `1,200 workspaces`.

    Args:
        more: the noun of several, where it is not `one` with an s.
    """
    return f"{n:,} {one if n == 1 else more or f'{one}s'}"


def sentence(words: str) -> str:
    """Words that begin as a sentence does."""
    return words[:1].upper() + words[1:]
