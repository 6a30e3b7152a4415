"""Self-retrieval: a piece of a message finds the message."""

from collections.abc import Iterator
from dataclasses import dataclass

from eval.questions.making.kind import Draft, drawing
from eval.questions.making.talk import Talk, Unit, units
from lcm.checks import check_range


@dataclass(frozen=True, slots=True)
class SelfRetrieval:
    """Asks with neighbouring words of a message, as they stand there. Evidence: every message that holds them so."""

    n: int = 100
    words: int = 8
    """Of the piece."""
    least_content: int = 4
    """Of them, words that carry content."""

    def __post_init__(self) -> None:
        check_range(self, "n", ge=0)
        check_range(self, "words", "least_content", ge=1)
        if self.least_content > self.words:
            raise ValueError(f"least_content must be <= words, got {self.least_content} and {self.words}")

    def drafts(self, talk: Talk, seed: str) -> Iterator[Draft]:
        asked: set[str] = set()
        for place, turn in enumerate(talk.turns):
            if not turn.is_spoken:
                continue
            whole = units(turn.text)
            pieces = [
                piece for start in range(len(whole)) if self._is_piece(piece := whole[start : start + self.words])
            ]
            if len(whole) <= self.words or not pieces:
                continue
            piece = drawing(seed, talk, place).choice(pieces)
            text = " ".join(turn.text[piece[0].start : piece[-1].end].split())
            if text in asked:  # its evidence would be the same, and costs a look at every message that holds it
                continue
            asked.add(text)
            found = talk.holding(word for unit in piece for word in unit.words)
            holders = {other for other in found if text in " ".join(talk.turns[other].text.split())}
            yield Draft(place, text, tuple(sorted(holders | {*talk.copies[turn.text]})), talk.end)

    def _is_piece(self, piece: list[Unit]) -> bool:
        return len(piece) == self.words and sum(bool(unit.words) for unit in piece) >= self.least_content
