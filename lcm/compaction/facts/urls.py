"""Addresses of pages and services."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from lcm.compaction.facts.statement import ReadText, Statement

_URL = re.compile(
    r"\b(?:https?|ftp|ssh|git|file|postgres(?:ql)?|redis|mongodb)://[^\s<>\"'`\\|{}^\])]{3,500}", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Urls:
    """A scheme, `://`, and what follows up to white space; marks that end a sentence are not part of it."""

    def find(self, read: ReadText) -> Iterator[Statement]:
        for match in _URL.finditer(read.text):
            said = match[0].rstrip(".,;:!?*_)")
            if read.tells(match.start()):
                yield Statement("url", said.rstrip("/"), "", said, match.start(), match.start() + len(said))
