"""Later mentions: a message that comes back to something rare asks for what was said of it before."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice, takewhile

from eval.questions.making.kind import Draft
from eval.questions.making.statements import sentences
from eval.questions.making.talk import Talk, units
from lcm.checks import check_range
from lcm.clock import EPOCH
from lcm.retrieval.ranking.evidence.text_facts import content_words
from lcm.text import split_words

_INSTANT = timedelta(milliseconds=1)
_PATH = re.compile(r"(?:[\w.~-]+/)+[\w.-]*\w|\b\w[\w-]*\.[a-z]{1,5}\b(?=[\s`'\",;:)]|$)")
_IDENTIFIER = re.compile(r"\b(?:[A-Za-z]\w*_\w+|[a-z]+[A-Z]\w*)\b")
_NUMBER = re.compile(r"(?<![\w.])\d[\d.,:-]*\d\b")
_NAME = re.compile(r"(?<=[a-z0-9,;] )[A-Z][\w'’-]*\w(?: [A-Z][\w'’-]*\w)*")


@dataclass(frozen=True, slots=True)
class LaterMention:
    """Asks, with a sentence that names something rare, for the earlier messages that name it too.

    Rare things are names (capitals within a sentence), numbers, paths and identifiers. It is asked an instant before
    the sentence was said, so that neither its own message nor anything of that time can be found. Evidence: every
    earlier message that names the thing.
    """

    n: int = 100
    most_mentions: int = 3
    """Earlier messages that may name a rare thing."""
    least_words: int = 3
    """Content words of the sentence."""
    most_words: int = 40
    """Words of the sentence."""

    def __post_init__(self) -> None:
        check_range(self, "n", ge=0)
        check_range(self, "most_mentions", "least_words", "most_words", ge=1)

    def drafts(self, talk: Talk, seed: str) -> Iterator[Draft]:
        mentions = _mentions(talk)
        for place, turn in enumerate(talk.turns):
            if turn.is_spoken and turn.said_at > EPOCH and (draft := self._draft(talk, place, mentions)):
                yield draft

    def _draft(self, talk: Talk, place: int, mentions: Mapping[str, list[int]]) -> Draft | None:
        """Of what the turn mentions again, the rarest."""
        turn = talk.turns[place]
        best: tuple[int, int, str, list[int]] | None = None
        for sentence in sentences(turn.text):
            if len(units(sentence)) > self.most_words or len(set(content_words(sentence))) < self.least_words:
                continue
            for thing in _things(talk, sentence):
                earlier = takewhile(lambda other: talk.turns[other].said_at < turn.said_at, mentions.get(thing, ()))
                before = sorted(islice(earlier, self.most_mentions + 1))
                if 1 <= len(before) <= self.most_mentions and (best is None or (len(before), -len(thing)) < best[:2]):
                    best = (len(before), -len(thing), sentence, before)
        return None if best is None else Draft(place, best[2], tuple(best[3]), turn.said_at - _INSTANT)


def _mentions(talk: Talk) -> Mapping[str, list[int]]:
    """Rare thing -> the turns that name it, the earliest first; tools name things too."""
    found: dict[str, list[int]] = defaultdict(list)
    for place, turn in enumerate(talk.turns):
        for thing in _things(talk, turn.text):
            found[thing].append(place)
    return {thing: sorted(places, key=lambda place: talk.turns[place].said_at) for thing, places in found.items()}


def _things(talk: Talk, text: str) -> list[str]:
    """What a text names, in one spelling each."""
    named = [name for name in _NAME.findall(text) if _is_name(talk, name)]
    others = [thing for pattern in (_PATH, _IDENTIFIER, _NUMBER) for thing in pattern.findall(text)]
    return list(dict.fromkeys(thing.casefold() for thing in (*named, *others)))


def _is_name(talk: Talk, name: str) -> bool:
    """Neither a stop word, as I is, nor somebody who speaks, by name or by a short form of it."""
    words = split_words(name)[0]
    return bool(content_words(name)) and not any(own.startswith(word) for own in talk.names for word in words)
