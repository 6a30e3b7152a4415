"""Questions made from transcripts, without anybody who asked them: drawn by a seed, with what they are made of told.

What was said in a workspace is one talk: turns with their instants, and which hold a word. A kind makes drafts of it,
most of them from statements, sentences that say something by themselves.
"""

import hashlib
import math
import random
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Protocol, runtime_checkable

from eval.questions.question import Evidence, Question
from eval.questions.quotation import overlap
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
    turns = tuple(
        Turn(message, one.conversation_id, said_at, is_last=message is one.messages[-1])
        for one in transcripts
        for message, said_at in zip(one.messages, one.instants(), strict=True)
    )
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
    """The rarest statement of each turn that makes one, of at least so many content words and at most so many words, as
    long as it is in the rarest share of the workspace."""
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
        letters = sum(character.isalpha() or character.isspace() for character in text)
        if asks(text) or letters < _LEAST_LETTERS * len(text):
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


@dataclass(frozen=True, slots=True)
class Draft:
    """A question that could be asked."""

    place: int
    text: str
    evidence: tuple[int, ...]
    asked_at: datetime | None
    """None where no message names a time."""


class Kind(Protocol):
    """A `kinds` choice: one way of making questions, without a model.

    Laws: at most one draft a turn; each has words and evidence; all of its evidence was said before it is asked, or at
    that instant, and byte-equal copies of evidence that can be seen then are evidence too; a question that stands for
    a turn is asked before that turn was said; equal talks and seeds give equal drafts.
    """

    @property
    def n(self) -> int:
        """How many questions are wanted, over all workspaces."""
        ...

    def drafts(self, talk: Talk, seed: str) -> Iterator[Draft]:
        """Every question that could be asked of a workspace, in the order of its turns."""
        ...


@runtime_checkable
class Words(Protocol):
    """A kind whose drafts are put into words one by one, as far as questions are wanted."""

    def worded(self, draft: Draft, talk: Talk) -> str | None:
        """The question; None where no good one could be had."""
        ...


def drawing(seed: str, talk: Talk, place: int) -> random.Random:
    """Chance for what is made from one turn: other turns do not move it."""
    return random.Random(f"{seed}/{talk.workspace_id}/{talk.turns[place].message.message_id}")  # noqa: S311 - no secret


@dataclass(frozen=True, slots=True)
class KindReport:
    """What became of one kind of questions."""

    kind: str
    wanted: int
    possible: int
    made: int
    dropped: int
    """Questions that could not be put into words as they should."""
    overlap: float | None
    """Share of a question's content words that its evidence holds, mean over the questions."""


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """Generated questions, kind by kind, each in the order of the talk."""

    questions: tuple[Question, ...]
    reports: tuple[KindReport, ...]


def make_questions(transcripts: Sequence[Transcript], kinds: Mapping[str, Kind], seed: int = 0) -> QuestionSet:
    """Make questions of each kind, named by it, as many as it wants or as there are.

    The seed decides which of the possible ones are asked, and in which words.
    """
    talks = talks_of(transcripts)
    made = [_of_kind(talks, name, kind, f"{seed}/{name}") for name, kind in kinds.items()]
    return QuestionSet(tuple(one for questions, _ in made for one in questions), tuple(report for _, report in made))


def _of_kind(talks: Sequence[Talk], name: str, kind: Kind, seed: str) -> tuple[list[Question], KindReport]:
    possible = list[tuple[Talk, Draft]]()
    for talk in talks:
        first: dict[object, Draft] = {}
        for draft in kind.drafts(talk, seed):  # the same words at another instant may have other answers
            first.setdefault((draft.text, draft.asked_at), draft)
        possible += ((talk, draft) for draft in first.values())
    order = list(range(len(possible)))
    random.Random(seed).shuffle(order)  # noqa: S311 - no secret
    made: dict[int, tuple[Question, float | None]] = {}
    dropped = 0
    for position in order:
        if len(made) >= kind.n:
            break
        talk, draft = possible[position]
        text = kind.worded(draft, talk) if isinstance(kind, Words) else draft.text
        if text is None:
            dropped += 1
            continue
        shared = overlap(text, [talk.turns[place].text for place in draft.evidence])
        made[position] = _question(name, text, draft, talk), shared
    kept = [made[position] for position in sorted(made)]
    shares = [shared for _, shared in kept if shared is not None]
    mean = sum(shares) / len(shares) if shares else None
    return [question for question, _ in kept], KindReport(name, kind.n, len(possible), len(made), dropped, mean)


def _question(name: str, text: str, draft: Draft, talk: Talk) -> Question:
    evidence = [talk.turns[place] for place in draft.evidence]
    told = "\x00".join((talk.workspace_id, talk.turns[draft.place].message.message_id, text))
    return Question(
        question_id=f"{name}-{hashlib.sha256(told.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}",
        question=text,
        evidence=(Evidence(message_ids=tuple(turn.message.message_id for turn in evidence)),),
        asked_at=draft.asked_at,
        category=name,
        generated=name,
        conversations=tuple(dict.fromkeys(turn.conversation_id for turn in evidence)),
    )
