"""What a conversation has stated so far: each fact with its last true value, where it was said, and what it was."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lcm.compaction.facts.done import FAILED, SUCCEEDED, exit_outcome
from lcm.compaction.facts.finding import seen_in_results, statements_of
from lcm.compaction.facts.named import is_same_path
from lcm.compaction.facts.reading import is_result, read_message
from lcm.compaction.facts.statement import Call, Kind, Statement
from lcm.compaction.facts.wording import content_words, folded
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

    @property
    def is_changed(self) -> bool:
        return bool(self.former)


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
        self._remember_calls(read.said.calls, found)
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
        kind, key, value = statement.kind, statement.key, statement.value
        before = self.facts.get((kind, key))
        if kind in ("path", "change") and key not in self._paths[name := key.rpartition("/")[2]]:
            self._paths[name].append(key)
        if before is None:
            cue = cue_of(statement, utterance(message))
            self.facts[kind, key] = Fact(kind, key, value, statement.said, (message.message_id,), cue=cue)
        elif before.value == value or not value:  # naming it takes back nothing that was said of it
            ids = dict.fromkeys((*before.message_ids, *([message.message_id] if before.value == value else [])))
            self.facts[kind, key] = replace(before, message_ids=tuple(ids))
        else:
            former = tuple(one for one in (*before.former, before.value) if one and one != value)
            cue = cue_of(statement, utterance(message)) or before.cue
            said = statement.said or before.said
            self.facts[kind, key] = Fact(kind, key, value, said, (message.message_id,), former, cue)

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
        results = list(_results(message))
        for call_id, told in results:
            done = self._calls.pop(call_id, ())
            for statement in done:
                if statement.kind == "command" and told:
                    yield statement._replace(value=told, start=0, end=0)
                elif statement.kind == "change" and told == FAILED:
                    self._take_back(statement)

    def _take_back(self, statement: Statement) -> None:
        fact = self.facts.get((statement.kind, statement.key))
        if fact is not None and fact.value == statement.value and len(fact.message_ids) == 1:
            del self.facts[fact.subject]

    def _remember_calls(self, calls: Sequence[Call], found: Sequence[Statement]) -> None:
        done = [one for one in found if one.kind in ("command", "change")]
        for call in calls:
            if call.call_id:
                self._calls[call.call_id] = tuple(one for one in done if call.start <= one.start < call.end)


def _results(message: Message) -> Iterator[tuple[str, str | None]]:
    """The calls whose results a message brings, and how each ended, where that is told."""
    for part in message.parts:
        if part.tool_call_id and part.tool_input is None:
            told = part.text or part.tool_output or message.content
            ended = exit_outcome(told[-400:]) or exit_outcome(told[:200])
            yield part.tool_call_id, ended or _marked(message, part.metadata)


def _marked(message: Message, metadata: Mapping[str, Any]) -> str | None:
    """How a call ended, by the mark that its result bears."""
    native = message.envelope.get("native")
    for record in (metadata.get("raw"), native):
        if isinstance(record, Mapping):
            for key in ("is_error", "isError"):
                if isinstance(record.get(key), bool):
                    return FAILED if record[key] else SUCCEEDED
    return None


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
