"""Which questions are about dreams."""

import re

_DREAM = re.compile(r"\b(?:dream|dreams|dreamed|dreaming)\b", re.IGNORECASE | re.ASCII)


def asks_for_dreams(text: str) -> bool:
    """Say whether a question names a dream, as a whole word: then dreams answer it, and nothing else does.

    Source: libravdb memory 1.4.4.
    """
    return _DREAM.search(text) is not None
