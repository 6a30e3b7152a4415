"""Known items: somebody looks for a statement again, of whose words only some come to mind."""

import math
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, partial

from eval.questions.making.kind import Draft, drawing
from eval.questions.making.statements import Statement, content_units, statements
from eval.questions.making.talk import Talk, Unit
from lcm.checks import check_range

_NEAREST = 10  # rarest words of the surroundings, of which some are drawn


@dataclass(frozen=True, slots=True)
class KnownItem:
    """Asks for rare, self-contained statements by some of their words, and by words of what was said around them.

    The rarest words of a statement are taken away first, for they alone would find it; in their place come rare words
    of the messages before and after, as somebody recalls what the talk was about. Together they tell the message from
    all others: as long as another one holds the words that are kept, and stands beside messages that hold the words
    around, words come back. Who spoke is named where a transcript names its speakers. Evidence: the message and its
    byte-equal copies.

    Source: after Azzopardi and de Rijke 2006, "Automatic construction of known-item finding test beds"; the words
    around are ours.
    """

    n: int = 100
    kept: float = 0.3
    """Share of a statement's content words that the question keeps."""
    around: int = 2
    """Words of the messages before and after that the question holds besides."""
    rarest: float = 0.5
    """Share of the statements of a workspace, those with the rarest words first, that are asked for."""
    least_words: int = 5
    """Content words of a statement."""
    most_words: int = 40
    """Words of a statement."""

    def __post_init__(self) -> None:
        check_range(self, "n", "around", ge=0)
        check_range(self, "kept", "rarest", gt=0, le=1)
        check_range(self, "least_words", "most_words", ge=1)

    def drafts(self, talk: Talk, seed: str) -> Iterator[Draft]:
        fits_another = cache(partial(_fits_another, talk))  # byte-equal messages ask the same again
        for statement in statements(talk, self.least_words, self.most_words, self.rarest):
            turn = talk.turns[statement.place]
            words = self._words(talk, statement, seed, fits_another)
            if words is None:
                continue
            author = turn.message.author
            text = f"What did {author} say about {words}?" if author else words
            yield Draft(statement.place, text, talk.copies[turn.text], talk.end)

    def _words(self, talk: Talk, statement: Statement, seed: str, fits_another: Callable[..., bool]) -> str | None:
        """As few words as tell the statement from all other messages; None where all of them do not."""
        text = talk.turns[statement.place].text
        around = self._around(talk, statement, seed)
        told = frozenset(word for unit in around for word in unit.words)
        by_rarity = sorted(range(len(statement.units)), key=lambda i: (talk.rarity(statement.units[i].words), i))
        for count in range(math.ceil(self.kept * len(by_rarity)), len(by_rarity) + 1):
            kept = [statement.units[number] for number in sorted(by_rarity[:count])]
            if not fits_another(text, frozenset(word for unit in kept for word in unit.words), told):
                return " ".join(unit.surface for unit in (*kept, *around))
        return None

    def _around(self, talk: Talk, statement: Statement, seed: str) -> list[Unit]:
        """Words of the turns beside a statement that it does not hold itself, drawn from the rarest."""
        own = {word for unit in content_units(talk, talk.turns[statement.place].text) for word in unit.words}
        found = [
            unit
            for beside in _beside(talk, statement.place)
            for unit in content_units(talk, talk.turns[beside].text)
            if not own & set(unit.words)
        ]
        rarest = sorted(found, key=lambda unit: -talk.rarity(unit.words))[:_NEAREST]
        return drawing(seed, talk, statement.place).sample(rarest, min(self.around, len(rarest)))


def _beside(talk: Talk, place: int) -> list[int]:
    """The turns before and after, as far as somebody speaks in them."""
    conversation = talk.turns[place].conversation_id
    return [
        other
        for other in (place - 1, place + 1)
        if 0 <= other < len(talk.turns)
        and talk.turns[other].conversation_id == conversation
        and talk.turns[other].is_spoken
    ]


def _fits_another(talk: Talk, text: str, words: frozenset[str], around: frozenset[str]) -> bool:
    """Whether a turn of another text holds all of some words, and all of those around are said beside it."""
    held = sorted((talk.holders.get(word, frozenset()) for word in words), key=len)
    candidates: Iterable[int] = held[0]
    rarest = min((talk.holders.get(word, frozenset()) for word in around), key=len, default=None)
    if rarest is not None and 2 * len(rarest) < len(held[0]):  # in repetitive talk, what is rare stands around
        candidates = (beside for other in rarest for beside in (other - 1, other + 1) if beside in held[0])
    return any(
        talk.turns[other].text != text and all(other in turns for turns in held) and _stands_among(talk, other, around)
        for other in candidates
    )


def _stands_among(talk: Talk, place: int, words: Collection[str]) -> bool:
    """Whether each of some words is said beside a turn."""
    beside = _beside(talk, place)
    return all(any(other in talk.holders.get(word, ()) for other in beside) for word in words)
