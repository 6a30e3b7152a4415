"""Sentences that say something by themselves: what somebody could later want to find again."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from eval.questions.making.talk import Talk, Unit, units
from lcm.text import split_words

_CODE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_END = re.compile(r"(?<=[.!?…])[\"')\]*_]*\s+|(?<=[。！？])|\n+")
_ASKS = re.compile(r"[?？][\"')\]*_\s]*\Z")
_LEANING = frozenset(
    """he she it they him her them his its their this that these those there here then such both neither either one ones
    and but or so because since also too yes yeah yep no nope nah ok okay sure well oh wow hey hi hello thanks thank
    congrats sorry absolutely definitely exactly totally glad great awesome nice cool same which who whose what when
    where how why if as while let""".split()  # noqa: SIM905
)
"""Words that begin a sentence which leans on what was said before it, or says nothing."""
_LEAST_LETTERS = 0.7


@dataclass(frozen=True, slots=True)
class Statement:
    """A self-contained sentence of a turn."""

    place: int
    text: str
    units: tuple[Unit, ...]
    """Of these, those that hold content words, each word once, without names of those who speak."""
    rarity: float


def sentences(text: str) -> list[str]:
    """The sentences and lines of a text, without blocks of code."""
    parts = (part.strip(" \t*#>-•") for part in _END.split(_CODE.sub("\n", text)))
    return [part for part in parts if part]


def asks(sentence: str) -> bool:
    return _ASKS.search(sentence) is not None


def statements(talk: Talk, least_words: int, most_words: int, share: float) -> Iterator[Statement]:
    """The rarest statement of each turn that makes one, as long as it is among the rarest of the workspace.

    Args:
        least_words: content words of a statement.
        most_words: words of it.
        share: of the statements, the rarest first.
    """
    best = [found for place in range(len(talk.turns)) if (found := _best(talk, place, least_words, most_words))]
    rarest = sorted(best, key=lambda one: (-one.rarity, one.place))[: round(share * len(best))]
    yield from sorted(rarest, key=lambda one: one.place)


def content_units(talk: Talk, text: str) -> tuple[Unit, ...]:
    """The words of a text that carry content, each once, without names of those who speak."""
    found: dict[tuple[str, ...], Unit] = {}
    for unit in units(text):
        if unit.words and not talk.names & set(unit.words):
            found.setdefault(unit.words, unit)
    return tuple(found.values())


def _best(talk: Talk, place: int, least_words: int, most_words: int) -> Statement | None:
    if not talk.turns[place].is_spoken:
        return None
    found = None
    for text in sentences(talk.turns[place].text):
        if asks(text) or not _is_prose(text):
            continue
        words, runs = split_words(text)
        if not (words or runs) or len(words) > most_words or (words and words[0] in _LEANING):
            continue
        held = content_units(talk, text)
        if len(held) < least_words or len(held) > most_words:
            continue
        rarity = talk.rarity(word for unit in held for word in unit.words)
        if found is None or rarity > found.rarity:
            found = Statement(place, text, held, rarity)
    return found


def _is_prose(text: str) -> bool:
    letters = sum(character.isalpha() or character.isspace() for character in text)
    return letters >= _LEAST_LETTERS * len(text)
