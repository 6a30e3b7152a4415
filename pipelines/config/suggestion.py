"""What a misspelt word may have meant."""

import difflib
from collections.abc import Collection

ALIKE = 0.7
"""So alike, by difflib, a word is to one that is suggested."""


def meant(word: str, known: Collection[str]) -> str:
    """The end of a refusal that names the nearest of what is known; empty where nothing is like the word."""
    near = difflib.get_close_matches(word, known, n=1, cutoff=ALIKE)
    return f"; did you mean {near[0]}?" if near else ""
