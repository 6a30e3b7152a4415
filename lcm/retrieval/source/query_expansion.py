"""More words for the lexical branch: what an engineer's report of a fault also calls itself."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from lcm.retrieval.source.synonyms import GROUPS

_SHORTEST = 2


@dataclass(frozen=True, slots=True)
class QueryExpansion:
    """Append the synonyms of each group that the query triggers, in order, until `most` are added.

    A group is triggered by one of its Chinese words anywhere in the query, or by one of its English words between
    word boundaries. What the query says already is not added.

    Source: memory-lancedb-pro, query-expander.
    """

    callers: Sequence[str] = ("manual", "cli")
    """Whose queries are expanded."""
    most: int = 5
    """Synonyms added to one query."""

    def __post_init__(self) -> None:
        if self.most < 1:
            raise ValueError(f"most must be >= 1, got {self.most}: leave expansion out with expansion=null")

    def expand(self, text: str, caller: str) -> str:
        if caller not in self.callers or len(text.strip()) < _SHORTEST:
            return text
        lowered = text.lower()
        added: list[str] = []
        for chinese, english, synonyms in GROUPS:
            if any(word in lowered for word in chinese) or any(_says(text, word) for word in english):
                for synonym in synonyms:
                    if synonym.lower() not in lowered and synonym not in added:
                        added.append(synonym)
                        if len(added) == self.most:
                            return f"{text} {' '.join(added)}"
        return f"{text} {' '.join(added)}" if added else text


def _says(text: str, word: str) -> bool:
    return re.search(rf"\b{re.escape(word)}\b", text, re.ASCII | re.IGNORECASE) is not None
