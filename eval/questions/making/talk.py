"""What was said in one workspace, as questions are made from it: turns with their instants, and which hold a word."""

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from lcm.clock import EPOCH
from lcm.records.conversation import Message, Transcript
from lcm.retrieval.ranking.evidence.text_facts import content_words
from lcm.text import split_words

_CJK = "\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff"
_UNIT = re.compile(rf"[{_CJK}]{{1,4}}|(?:(?![{_CJK}])[^\W_])+(?:['’](?:(?![{_CJK}])[^\W_])+)*")
_SPOKEN = ("user", "assistant")


@dataclass(frozen=True, slots=True)
class Turn:
    """A message where it was said."""

    message: Message
    conversation_id: str
    said_at: datetime
    """Its own instant, or the latest before it in its conversation; the epoch where none is known."""
    is_last: bool
    """Of its conversation."""

    @property
    def text(self) -> str:
        return self.message.content

    @property
    def is_spoken(self) -> bool:
        """Words of a person or an assistant, not of a tool or the system."""
        return self.message.role in _SPOKEN and bool(self.text.strip())


@dataclass(frozen=True, slots=True)
class Talk:
    """The turns of a workspace, conversation after conversation; a turn is named by its place among them."""

    workspace_id: str
    turns: tuple[Turn, ...]
    holders: Mapping[str, frozenset[int]]
    """Content word -> the turns that hold it."""
    copies: Mapping[str, tuple[int, ...]]
    """Text -> the turns that say just that, byte by byte."""
    names: frozenset[str]
    """The words of the names of those who speak."""
    end: datetime | None
    """When all has been said; None where no message names a time."""

    def holding(self, words: Iterable[str]) -> frozenset[int]:
        """The turns that hold every one of some content words."""
        sets = sorted((self.holders.get(word, frozenset()) for word in set(words)), key=len)
        return frozenset.intersection(*sets) if sets else frozenset()

    def with_copies(self, places: Iterable[int]) -> tuple[int, ...]:
        """Some turns and all that say just what one of them says, in order."""
        texts = {self.turns[place].text for place in places}
        return tuple(sorted(place for text in texts for place in self.copies[text]))

    def rarity(self, words: Iterable[str]) -> float:
        """The mean of ln(turns / turns that hold the word), over distinct content words."""
        distinct = set(words)
        total = sum(math.log(len(self.turns) / max(len(self.holders.get(word, ())), 1)) for word in distinct)
        return total / len(distinct) if distinct else 0.0


def talks_of(transcripts: Sequence[Transcript]) -> list[Talk]:
    """The talk of each workspace, in the order of the transcripts."""
    workspaces = dict.fromkeys(transcript.workspace_id for transcript in transcripts)
    return [_talk(name, [one for one in transcripts if one.workspace_id == name]) for name in workspaces]


@dataclass(frozen=True, slots=True)
class Unit:
    """A word of a text as it stands there; of Chinese and Japanese at most four characters."""

    surface: str
    start: int
    end: int
    words: tuple[str, ...]
    """Its content words; none of a stop word."""


def units(text: str) -> list[Unit]:
    """The words of a text, in order."""
    return [Unit(found[0], found.start(), found.end(), _content(found[0])) for found in _UNIT.finditer(text)]


@lru_cache(maxsize=100_000)
def _content(surface: str) -> tuple[str, ...]:
    return tuple(content_words(surface))


def _talk(workspace_id: str, transcripts: Sequence[Transcript]) -> Talk:
    turns = tuple(turn for transcript in transcripts for turn in _turns(transcript))
    holders: dict[str, set[int]] = defaultdict(set)
    copies: dict[str, list[int]] = defaultdict(list)
    for place, turn in enumerate(turns):
        copies[turn.text].append(place)
        for word in set(content_words(turn.text)):
            holders[word].add(place)
    authors = {turn.message.author for turn in turns if turn.message.author}
    latest = max((turn.said_at for turn in turns), default=EPOCH)
    return Talk(
        workspace_id=workspace_id,
        turns=turns,
        holders={word: frozenset(places) for word, places in holders.items()},
        copies={text: tuple(places) for text, places in copies.items()},
        names=frozenset(word for author in authors for word in split_words(author)[0]),
        end=None if latest == EPOCH else latest,
    )


def _turns(transcript: Transcript) -> Iterator[Turn]:
    latest, last = EPOCH, len(transcript.messages) - 1
    for place, message in enumerate(transcript.messages):
        latest = max(latest, message.created_at or latest)
        yield Turn(message, transcript.conversation_id, latest, is_last=place == last)
