"""What was asked."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from lcm.compaction.facts.statement import ReadText, Statement
from lcm.compaction.facts.wording import content_words, gist

_ASKS = re.compile(r"[?？][\"')\]*_`\s]*\Z")
_LEAST_WORDS = 1
_MOST_CHARACTERS = 500


@dataclass(frozen=True, slots=True)
class Questions:
    """Sentences with a content word that end in a question mark.

    Whether one is still open is for `lcm.compaction.facts.ledger` to say.
    """

    def find(self, read: ReadText) -> Iterator[Statement]:
        for start, end in read.sentences:
            said = read.text[start:end]
            if len(said) <= _MOST_CHARACTERS and _ASKS.search(said) and len(set(content_words(said))) >= _LEAST_WORDS:
                yield Statement("question", gist(said), "", said, start, end)
