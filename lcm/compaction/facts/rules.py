"""What must, must not or may be done, as guidance reads it."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from lcm.compaction.facts.statement import ReadText, Statement
from lcm.compaction.facts.wording import gist, is_negative
from lcm.compaction.guidance.clauses import ClauseRules
from lcm.compaction.guidance.reading import Modality

_FRAME = ClauseRules()


@dataclass(frozen=True, slots=True)
class Rules:
    """Sentences in which guidance reads a rule, of whoever can lay one down."""

    frame: ClauseRules = field(default=_FRAME)

    def find(self, read: ReadText) -> Iterator[Statement]:
        if not read.states_rules:
            return
        for start, end in read.sentences:
            said = read.text[start:end]
            modality = _modality(self.frame, said)
            if modality is not None and (about := gist(said)):
                yield Statement("rule", about, f"{modality}{' not' if is_negative(said) else ''}", said, start, end)


@lru_cache(maxsize=100_000)
def _modality(frame: ClauseRules, sentence: str) -> Modality | None:
    return frame.read(sentence).label
