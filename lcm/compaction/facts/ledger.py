"""What a conversation has stated so far, each fact with its last true value and where it was said; and how each stands
in what is shown of the conversation: as said, outdated, distorted, or not at all."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from rapidfuzz.distance import Levenshtein

from lcm.compaction.facts.done import FAILED, SUCCEEDED, exit_outcome, is_same_path
from lcm.compaction.facts.finding import seen_in_results, statements_in, statements_of
from lcm.compaction.facts.reading import Kind, Statement, content_words, folded, is_result, read_message
from lcm.records.conversation import Message
from lcm.transcript.passages import utterance

Subject = tuple[Kind, str]
"""A kind and a key: what a fact is about."""
_AGENT = "assistant"
_SHORT_REPLY = 12
"""Words of a reply that needs no word of its question."""
_AROUND = 150
_CUE_WORDS = 2
"""Before a statement, and behind it."""
_REPEATED = 0.5
"""Of the words of a question, in what answers it later."""


@dataclass(frozen=True, slots=True)
class Fact:
    """The last true value of what a conversation is about."""

    kind: Kind
    key: str
    value: str
    said: str
    """Its words where this value was first said."""
    message_ids: tuple[str, ...]
    """The messages that state this value, in order."""
    former: tuple[str, ...] = ()
    """The values that it had before, oldest first."""
    cue: str = ""
    """The words around it where it was said: what one who has lost it would search for."""

    @property
    def subject(self) -> Subject:
        return self.kind, self.key


@dataclass(slots=True)
class Ledger:
    """The facts of one conversation as its messages come in, in order."""

    facts: dict[Subject, Fact] = field(default_factory=dict)
    stated: dict[str, tuple[Statement, ...]] = field(default_factory=dict)
    """Message -> what it states, under the keys of `facts`, and what stands in its results."""
    _paths: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """The last part of a path -> the paths that end in it."""
    _calls: dict[str, tuple[Statement, ...]] = field(default_factory=dict)
    """Call of a tool -> what was run and changed by it."""
    _asked: dict[Subject, tuple[str, int]] = field(default_factory=dict)
    """Open question -> who asked it, and how many messages were spoken by then."""
    _spoken: int = 0
    _heard: list[str] = field(default_factory=list)
    """The words of all messages, folded."""

    @classmethod
    def of(cls, messages: Iterable[Message]) -> "Ledger":
        ledger = cls()
        for message in messages:
            ledger.add(message)
        return ledger

    def add(self, message: Message) -> None:
        read = read_message(message)
        found = [*map(self.known, statements_of(read)), *self._outcomes(message)]
        if not is_result(message) and message.content.strip():
            self._hear(message, [one for one in found if one.kind == "question"])
        for statement in found:
            self._note(statement, message)
        self.stated[message.message_id] = (*found, *map(self.known, seen_in_results(read)))
        done = [one for one in found if one.kind in ("command", "change")]
        for call in read.said.calls:
            if call.call_id:
                self._calls[call.call_id] = tuple(one for one in done if call.start <= one.start < call.end)
        self._heard += [folded(read.said.text), folded(read.brought.text)]

    def known(self, statement: Statement) -> Statement:
        """The statement under the key by which the ledger knows what it is about: one path has two spellings."""
        if statement.kind not in ("path", "change"):
            return statement
        name = statement.key.rpartition("/")[2]
        same = next((path for path in self._paths.get(name, ()) if is_same_path(path, statement.key)), statement.key)
        return statement._replace(key=same)

    def was_said(self, words: str) -> bool:
        """Whether some message holds folded words, as it was said or as a tool brought it."""
        return any(words in text for text in self._heard)

    def _note(self, statement: Statement, message: Message) -> None:
        kind, key, value = subject = statement[:3]
        before = self.facts.get((kind, key))
        if kind in ("path", "change") and key not in self._paths[name := key.rpartition("/")[2]]:
            self._paths[name].append(key)
        if before is not None and before.value == value:
            ids = dict.fromkeys((*before.message_ids, message.message_id))
            self.facts[kind, key] = replace(before, message_ids=tuple(ids))
        elif before is None:
            cue = cue_of(statement, utterance(message))
            self.facts[kind, key] = Fact(*subject, statement.said, (message.message_id,), cue=cue)
        elif value:  # naming it takes back nothing that was said of it
            former = tuple(one for one in (*before.former, before.value) if one and one != value)
            cue = cue_of(statement, utterance(message)) or before.cue
            said = statement.said or before.said
            self.facts[kind, key] = Fact(*subject, said, (message.message_id,), former, cue)

    def _hear(self, message: Message, questions: Sequence[Statement]) -> None:
        """Close the questions that a message answers, and remember those that it asks."""
        speaker, words = message.author or message.role, message.content
        said, is_reply = set(content_words(words)), not any(part.tool_input is not None for part in message.parts)
        for subject, (asker, place) in list(self._asked.items()):
            asked = set(subject[1].split())
            is_next = place == self._spoken and (bool(asked & said) or len(words.split()) <= _SHORT_REPLY)
            is_told = asker != _AGENT and is_reply  # who asks a person or an agent is answered; an agent may be ignored
            if asker != speaker and (is_next or is_told or len(asked & said) >= _REPEATED * len(asked)):
                del self._asked[subject], self.facts[subject]
        self._spoken += 1
        self._asked |= {("question", one.key): (speaker, self._spoken) for one in questions}

    def _outcomes(self, message: Message) -> Iterator[Statement]:
        """How the commands ended whose results a message brings; a change that failed was none."""
        for part in message.parts:
            if not part.tool_call_id or part.tool_input is not None:
                continue
            words = part.text or part.tool_output or message.content
            told = exit_outcome(words[-400:]) or exit_outcome(words[:200]) or _marked(message, part.metadata)
            for statement in self._calls.pop(part.tool_call_id, ()):
                fact = self.facts.get((statement.kind, statement.key))
                is_only = fact is not None and fact.value == statement.value and len(fact.message_ids) == 1
                if statement.kind == "command" and told:
                    yield statement._replace(value=told, start=0, end=0)
                elif statement.kind == "change" and told == FAILED and is_only:
                    del self.facts[statement.kind, statement.key]


def _marked(message: Message, metadata: Mapping[str, Any]) -> str | None:
    """How a call ended, by the mark that its result bears."""
    records = [one for one in (metadata.get("raw"), message.envelope.get("native")) if isinstance(one, Mapping)]
    marks = (record.get(key) for record in records for key in ("is_error", "isError"))
    has_failed = next((mark for mark in marks if isinstance(mark, bool)), None)
    return None if has_failed is None else FAILED if has_failed else SUCCEEDED


def cue_of(statement: Statement, text: str) -> str:
    """The content words of the line of a statement that stand nearest to its own words, which are not among them."""
    at = max(text.find(statement.said), 0) if statement.said else 0
    end = at + len(statement.said)
    start, stop = text.rfind("\n", 0, at) + 1, text.find("\n", end)
    own = set(content_words(statement.said))
    before = [word for word in content_words(text[max(start, at - _AROUND) : at]) if word not in own]
    behind = [word for word in content_words(text[end : end + _AROUND if stop < 0 else stop]) if word not in own]
    if not before and not behind:  # the line is its words: some of them must do
        behind = list(content_words(statement.said))
    return " ".join(dict.fromkeys((*before[-_CUE_WORDS:], *behind[:_CUE_WORDS])))


Standing = Literal["retained", "stale", "mutated", "missing"]
_SENTENCES: tuple[Kind, ...] = ("decision", "rule", "preference", "question")
"""Kinds whose key is the gist of a sentence, which may be told in other words."""
_ITSELF: tuple[Kind, ...] = ("path", "identifier", "url", "error", "command", "name", *_SENTENCES)
"""Kinds whose words hold all that the fact is, unless it has a value apart from its key."""
_SAME_GIST = 0.6
"""Of the words of two gists together, those in both, from which they are about the same."""
_SLIPS, _LETTERS_A_SLIP, _SHORTEST = 2, 40, 6
"""How many letters may differ, and one more for so many letters, between what somebody said and a distorted form of it;
shorter words have none."""


class Shown:
    """What a context shows of a conversation."""

    def __init__(self, ledger: Ledger, message_ids: Iterable[str], texts: Sequence[str]) -> None:
        """
        Args:
            message_ids: of the messages that it shows as they were said.
            texts: its other texts, as summaries.
        """
        self._ledger = ledger
        self._texts = [f" {folded(text)} " for text in texts]
        quoted = [ledger.known(one) for text in texts for one in statements_in(text)]
        said = [one for message_id in message_ids for one in ledger.stated.get(message_id, ())]
        self._stated = {one[:3] for one in (*said, *quoted)}
        self._values: dict[tuple[str, str], set[str]] = defaultdict(set)
        """Kind and key -> the values that texts and messages state."""
        self._gists: dict[str, list[tuple[frozenset[str], str]]] = defaultdict(list)
        """Kind of sentence -> the gists that are stated, each with its value."""
        self._named: dict[str, dict[str, str]] = defaultdict(dict)
        """Kind -> what texts name and nobody said: key and words."""
        for kind, key, value in self._stated:
            self._values[kind, key].add(value)
            if kind in _SENTENCES:
                self._gists[kind].append((frozenset(key.split()), value))
        for one in quoted:
            if one.kind in _ITSELF and one.kind not in _SENTENCES and (one.kind, one.key) not in ledger.facts:
                self._named[one.kind][one.key] = one.said

    def standing(self, fact: Fact) -> Standing:
        """A fact that stands nowhere is stale where an earlier value of it does, mutated where a value does that it
        never had, or a distorted form of its own words that nobody ever said; else it is missing."""
        if (fact.kind, fact.key, fact.value) in self._stated or self._stands_in_words(fact):
            return "retained"
        alike = self._of_gist(fact) if fact.kind in _SENTENCES else set()
        if fact.value in alike:
            return "retained"
        others = (self._values.get(fact.subject, set()) | alike) - {""} if fact.value else set()
        if others - set(fact.former):
            return "mutated"
        if others:
            return "stale"
        return "mutated" if self._is_distorted(fact) else "missing"

    def _stands_in_words(self, fact: Fact) -> bool:
        if fact.kind not in _ITSELF or (fact.value and fact.kind not in _SENTENCES):
            return False
        words = folded(fact.said)
        return bool(words) and any(holds_words(text, words) for text in self._texts)

    def _of_gist(self, fact: Fact) -> set[str]:
        """The values that sentences of nearly the same gist state."""
        gist = frozenset(fact.key.split())
        return {
            value
            for other, value in self._gists.get(fact.kind, ())
            if len(gist & other) >= _SAME_GIST * len(gist | other)
        }

    def _is_distorted(self, fact: Fact) -> bool:
        """Whether a text names what differs from it in a few letters and was never said."""
        if (fact.value and fact.kind != "command") or len(fact.key) < _SHORTEST:
            return False
        slips = _SLIPS + len(fact.key) // _LETTERS_A_SLIP
        return any(
            Levenshtein.distance(fact.key, key, score_cutoff=slips) <= slips and not self._ledger.was_said(folded(said))
            for key, said in self._named.get(fact.kind, {}).items()
        )


def standings(ledger: Ledger, message_ids: Iterable[str], texts: Sequence[str]) -> Mapping[tuple[Kind, str], Standing]:
    """How every fact of a conversation stands in a context.

    Args:
        message_ids: of the messages that it shows as they were said.
        texts: its other texts, as summaries.
    """
    shown = Shown(ledger, message_ids, texts)
    return {subject: shown.standing(fact) for subject, fact in ledger.facts.items()}


def holds_words(text: str, words: str) -> bool:
    """Whether words stand in a text, whole."""
    at = text.find(words)
    while at >= 0:
        before, behind = text[at - 1 : at], text[at + len(words) : at + len(words) + 1]
        is_begun = not (re.match(r"\w", before) and re.match(r"\w", words))
        if is_begun and not (re.match(r"\w", behind) and re.match(r"\w", words[-1])):
            return True
        at = text.find(words, at + 1)
    return False
