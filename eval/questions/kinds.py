"""The kinds of generated questions."""

import json
import math
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cache, partial
from itertools import islice, takewhile
from typing import Any

from eval.questions.making import (
    Draft,
    Statement,
    Talk,
    Unit,
    asks,
    content_units,
    drawing,
    sentences,
    statements,
    units,
)
from lcm.checks import check_range
from lcm.clock import EPOCH
from lcm.language_model.replies import names, object_in
from lcm.protocols.models import LanguageModel
from lcm.records.conversation import Part
from lcm.retrieval.ranking.evidence.text_facts import content_words
from lcm.text import split_words, stem

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
    near = {other: talk.turns[other] for other in (place - 1, place + 1) if 0 <= other < len(talk.turns)}
    return [other for other, turn in near.items() if turn.conversation_id == conversation and turn.is_spoken]


def _fits_another(talk: Talk, text: str, words: frozenset[str], around: frozenset[str]) -> bool:
    """Whether a turn of another text holds all of some words, and all of those around are said beside it."""
    held = sorted((talk.holders.get(word, frozenset()) for word in words), key=len)
    candidates: Iterable[int] = held[0]
    rarest = min((talk.holders.get(word, frozenset()) for word in around), key=len, default=None)
    if rarest is not None and 2 * len(rarest) < len(held[0]):  # in repetitive talk, what is rare stands around
        candidates = (beside for other in rarest for beside in (other - 1, other + 1) if beside in held[0])

    def fits(other: int) -> bool:
        beside = _beside(talk, other)
        return all(any(one in talk.holders.get(word, ()) for one in beside) for word in around)

    others = (one for one in candidates if talk.turns[one].text != text and all(one in turns for turns in held))
    return any(map(fits, others))


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
        mentions: dict[str, list[int]] = defaultdict(list)  # tools name things too
        for place in sorted(range(len(talk.turns)), key=lambda place: talk.turns[place].said_at):
            for thing in _things(talk, talk.turns[place].text):
                mentions[thing].append(place)
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


def _things(talk: Talk, text: str) -> list[str]:
    """What a text names, in one spelling each."""

    def is_name(name: str) -> bool:
        """Neither a stop word, as I is, nor somebody who speaks, by name or by a short form of it."""
        words = split_words(name)[0]
        return bool(content_words(name)) and not any(own.startswith(word) for own in talk.names for word in words)

    others = (thing for pattern in (_PATH, _IDENTIFIER, _NUMBER) for thing in pattern.findall(text))
    return list(dict.fromkeys(thing.casefold() for thing in (*filter(is_name, _NAME.findall(text)), *others)))


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
            every = (whole[start : start + self.words] for start in range(len(whole) - self.words + 1))
            pieces = [piece for piece in every if sum(bool(unit.words) for unit in piece) >= self.least_content]
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


@dataclass(frozen=True, slots=True)
class Successor:
    """Asks, in the words of a message, for the reply that came next.

    Evidence: that reply, the replies to byte-equal messages, and byte-equal copies of all of them.
    """

    n: int = 100
    only_questions: bool = True
    """Whether only messages that ask something count: their question is asked again. Else the last words of any do."""
    least_words: int = 3
    """Content words of what is asked with, and of a reply."""
    most_words: int = 40
    """Words of what is asked with."""

    def __post_init__(self) -> None:
        check_range(self, "n", ge=0)
        check_range(self, "least_words", "most_words", ge=1)

    def drafts(self, talk: Talk, seed: str) -> Iterator[Draft]:
        for place, turn in enumerate(talk.turns):
            text = self._asked(turn.text) if turn.is_spoken and talk.copies[turn.text][0] == place else None
            if text is None or len(content_units(talk, text)) < self.least_words:
                continue
            replies = [reply for copy in talk.copies[turn.text] if (reply := self._reply(talk, copy)) is not None]
            evidence = talk.with_copies(replies)
            if evidence:
                yield Draft(place, text, evidence, talk.end)

    def _asked(self, text: str) -> str | None:
        """The last question of a message, or its last words."""
        said = sentences(text)
        if self.only_questions:
            said = [sentence for sentence in said if asks(sentence)]
        if not said:
            return None
        words = units(said[-1])
        return said[-1] if len(words) <= self.most_words else said[-1][words[-self.most_words].start :]

    def _reply(self, talk: Talk, place: int) -> int | None:
        """The next turn, if another speaks in it."""
        turn = talk.turns[place]
        if turn.is_last:
            return None
        reply = talk.turns[place + 1]
        is_other = (reply.message.role, reply.message.author) != (turn.message.role, turn.message.author)
        says_enough = len(content_units(talk, reply.text)) >= self.least_words
        return place + 1 if is_other and reply.is_spoken and says_enough else None


@dataclass(frozen=True, slots=True)
class ToolResult:
    """Asks with the name of a tool and the words of its arguments.

    Evidence: the results of that call and of equal ones, and byte-equal copies of them.
    """

    n: int = 100
    least_words: int = 2
    """Content words of the arguments."""
    most_words: int = 30
    """Words of the arguments that are asked with, the first."""

    def __post_init__(self) -> None:
        check_range(self, "n", ge=0)
        check_range(self, "least_words", "most_words", ge=1)

    def drafts(self, talk: Talk, seed: str) -> Iterator[Draft]:
        calls: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
        for place, part, result in _answered_calls(talk):
            calls[part.tool_name or "", part.tool_input or ""].append((place, result))
        taken: set[int] = set()
        for (name, arguments), answered in calls.items():
            place = answered[0][0]
            text = self._asked(name, arguments)
            if text is None or place in taken:
                continue
            taken.add(place)
            yield Draft(place, text, talk.with_copies(result for _, result in answered), talk.end)

    def _asked(self, name: str, arguments: str) -> str | None:
        try:
            said = " ".join(_leaves(json.loads(arguments)))
        except (ValueError, RecursionError):
            said = arguments
        words = units(said)[: self.most_words]
        if len({word for unit in words for word in unit.words}) < self.least_words:
            return None
        return f"{name.replace('_', ' ')} {' '.join(said[: words[-1].end].split())}"


def _answered_calls(talk: Talk) -> Iterator[tuple[int, Part, int]]:
    """Where a tool was called, the call, and where its result stands: the first message after it that has its id."""
    named: dict[tuple[str, str], list[int]] = defaultdict(list)
    for place, turn in enumerate(talk.turns):
        for call_id in dict.fromkeys(part.tool_call_id for part in turn.message.parts if part.tool_call_id):
            named[turn.conversation_id, call_id].append(place)
    for place, turn in enumerate(talk.turns):
        for part in turn.message.parts:
            if part.part_type == "tool" and part.tool_call_id and part.tool_input is not None:
                call_id, places = part.tool_call_id, named[turn.conversation_id, part.tool_call_id]
                if (after := bisect_right(places, place)) < len(places):
                    answer = talk.turns[places[after]]
                    again = any(o.tool_call_id == call_id and o.tool_input is not None for o in answer.message.parts)
                    if not again and content_words(answer.text):  # else it is another call under the same id
                        yield place, part, places[after]


def _leaves(node: Any) -> Iterator[str]:
    """The values of decoded arguments, without their keys."""
    if isinstance(node, dict | list):
        for child in node.values() if isinstance(node, dict) else node:
            yield from _leaves(child)
    elif isinstance(node, str | int | float) and not isinstance(node, bool):
        yield str(node)


_SYSTEM = (
    "You write questions that test whether a memory finds again what was said. Reply with one JSON object, "
    '{"question": "..."}, and nothing else.'
)
_PROMPT = """{speaker} said this in a recorded conversation:

<message>
{text}
</message>

Write one short question that somebody could ask weeks later, to which this statement of the message is the answer:

<statement>
{statement}
</statement>

The question must be understood by somebody who does not see the message. Describe things by other words: do not use
any of the following words, nor other forms of them: {forbidden}."""
_AGAIN = "\n\nThis question does not do, for it uses {shared}: {question}"


@dataclass(frozen=True, slots=True)
class Written:
    """Has a model ask for rare, self-contained statements without the content words of their message.

    Words are compared by their stems. A question that shares one is asked for again, with what was wrong with it; after
    the last try it is dropped. Evidence: the message and its byte-equal copies.
    """

    language_model: LanguageModel
    n: int = 100
    tries: int = 3
    """Requests for a question before it is dropped."""
    rarest: float = 0.5
    """Share of the statements of a workspace, those with the rarest words first, that are asked for."""
    least_words: int = 5
    """Content words of a statement."""
    most_words: int = 40
    """Words of a statement."""
    most_forbidden: int = 80
    """Content words of a message; a longer one is not asked for, as nothing could be said of it without them."""

    def __post_init__(self) -> None:
        check_range(self, "n", ge=0)
        check_range(self, "rarest", gt=0, le=1)
        check_range(self, "tries", "least_words", "most_words", "most_forbidden", ge=1)

    def drafts(self, talk: Talk, seed: str) -> Iterator[Draft]:
        for statement in statements(talk, self.least_words, self.most_words, self.rarest):
            turn = talk.turns[statement.place]
            if len(content_units(talk, turn.text)) <= self.most_forbidden:
                yield Draft(statement.place, statement.text, talk.copies[turn.text], talk.end)

    def worded(self, draft: Draft, talk: Talk) -> str | None:
        message = talk.turns[draft.place].message
        held = list(dict.fromkeys(content_words(message.content)))
        stems = {stem(word) for word in held}
        prompt = _PROMPT.format(
            speaker=message.author or ("The user" if message.role == "user" else "The assistant"),
            text=message.content,
            statement=draft.text,
            forbidden=", ".join(held),
        )
        again = ""
        for _ in range(self.tries):
            reply = self.language_model.reply(_SYSTEM, prompt + again, names("question"))
            question = (object_in(reply, "question") or {}).get("question")
            if not isinstance(question, str) or not content_words(question):
                continue
            shared = [word for word in dict.fromkeys(content_words(question)) if stem(word) in stems]
            if not shared:
                return " ".join(question.split())
            again += _AGAIN.format(shared=", ".join(shared), question=" ".join(question.split()))
        return None
