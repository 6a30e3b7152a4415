"""Known items: somebody looks for a statement again, of whose words only some come to mind."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from eval.questions.making.kind import Draft, drawing
from eval.questions.making.statements import Statement, statements
from eval.questions.making.talk import Talk
from lcm.checks import check_range


@dataclass(frozen=True, slots=True)
class KnownItem:
    """Asks for rare, self-contained statements by some of their content words, in order.

    Which words are kept is drawn; if other messages hold all of them, words come back until none does. Who spoke is
    named where a transcript names its speakers. Evidence: the message and its byte-equal copies.

    Source: after Azzopardi and de Rijke 2006, "Automatic construction of known-item finding test beds".
    """

    n: int = 100
    kept: float = 0.5
    """Share of a statement's content words that the question keeps."""
    rarest: float = 0.5
    """Share of the statements of a workspace, those with the rarest words first, that are asked for."""
    least_words: int = 5
    """Content words of a statement."""
    most_words: int = 40
    """Words of a statement."""

    def __post_init__(self) -> None:
        check_range(self, "n", ge=0)
        check_range(self, "kept", "rarest", gt=0, le=1)
        check_range(self, "least_words", "most_words", ge=1)

    def drafts(self, talk: Talk, seed: str) -> Iterator[Draft]:
        for statement in statements(talk, self.least_words, self.most_words, self.rarest):
            turn = talk.turns[statement.place]
            words = self._words(talk, statement, seed)
            if words is None:
                continue
            author = turn.message.author
            text = f"What did {author} say about {words}?" if author else words
            yield Draft(statement.place, text, talk.copies[turn.text], talk.end)

    def _words(self, talk: Talk, statement: Statement, seed: str) -> str | None:
        """As few of the statement's words as tell it from all other messages; None where all of them do not."""
        copies = set(talk.copies[talk.turns[statement.place].text])
        order = list(range(len(statement.units)))
        drawing(seed, talk, statement.place).shuffle(order)
        for count in range(math.ceil(self.kept * len(order)), len(order) + 1):
            told = [statement.units[number] for number in sorted(order[:count])]
            if talk.holding(word for unit in told for word in unit.words) <= copies:
                return " ".join(unit.surface for unit in told)
        return None
