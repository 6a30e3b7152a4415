"""The messages that the evidence of questions names, or why it names none: nothing is guessed.

People call messages by ids, by numbers in a store, by lines of files, or quote them.
"""

import bisect
import re
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from rapidfuzz import fuzz, process

from eval.questions.files import Problem, QuestionsFile
from eval.questions.question import Evidence, LineError, Question
from eval.questions.quotation import (
    NEAREST,
    Likeness,
    Place,
    alike,
    holding,
    likeness,
    may_be_alike,
    places_of,
    searched_texts,
    thinking,
    words_quoted,
)
from eval.questions.sessions import SessionFile, Sessions
from lcm.clock import format_instant
from lcm.given import opened
from lcm.records.conversation import Message
from lcm.retrieval.ranking.evidence.text_facts import content_words
from lcm.store.messages import message_ids_by_number
from lcm.transcript.reading import BINARY, reader_of
from lcm.transcript.recorded_file import RecordedFile

MESSAGE_NUMBER = re.compile(r"msg#(\d{1,18})")
"""How `lcm grep` names a message: its number in the store."""

_LINE = re.compile(r"(?s)(.+):(\d{1,9})")
_LEAST_LIKE = 60.0
"""In per cent: a file name less like is not told."""
_FILE_NAME = re.compile(r"\S+\.(jsonl?|gz|parquet|csv|te?xt|md|log)", re.IGNORECASE)
_ID = re.compile(r"\S+:\d+(#\d+)?|(\S+:)?[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(#\d+)?", re.IGNORECASE)


class Names:
    """What each wanted name stands for; the messages are gone through once."""

    def __init__(self, sessions: Sessions, wanted: Collection[str], store: Path | None) -> None:
        self._sessions = sessions
        self._lines: dict[str, list[Place]] = {}
        numbers = [int(match[1]) for name in wanted if (match := MESSAGE_NUMBER.fullmatch(name))]
        self.numbers: Mapping[int, str] = {} if store is None or not numbers else message_ids_by_number(store, numbers)
        """Number in the store -> message id."""
        sought = {*wanted, *self.numbers.values()}
        sought |= {sessions.copies[name] for name in sought if name in sessions.copies}
        self._whole: dict[str, list[Place]] = {}
        self._ends: dict[str, list[Place]] = {}
        for place in places_of(sessions.transcripts) if sought else ():
            if place.message_id in sought:
                self._whole.setdefault(place.message_id, []).append(place)
            for end in _shorter(place):
                if end in sought:
                    self._ends.setdefault(end, []).append(place)

    def has(self, name: str) -> bool:
        """Whether some message has this id; a number alone is no id unless the file says that it is one."""
        return not name.isdecimal() and bool(self.of(name))

    def of(self, name: str) -> list[Place]:
        """The messages of this id: a whole one, a recorded one, or the end of one that begins with folders; the id of a
        copy names the original."""
        return self._whole.get(name) or self._ends.get(self._sessions.copies.get(name, name), [])

    def on_line(self, name: str) -> list[Place]:
        """The messages that stand on a line, of whichever files have that name."""
        if name not in self._lines:
            files, line = self.files(name), int(name.rpartition(":")[2])
            self._lines[name] = [place for file, path in files for place in self._on_line(file, path, line)]
        return self._lines[name]

    def lines(self, name: str) -> int | None:
        """How many lines the file of a line has; None = several files have that name, or it has no lines."""
        files = self.files(name)
        recorded = RecordedFile(files[0][1])
        return None if len(files) > 1 or recorded.magic in BINARY else _lines(recorded)

    def nearest_files(self, name: str) -> list[str]:
        """The files whose names are most like that of `file:line`, as much of their paths as it has."""
        wanted = Path(name.rpartition(":")[0])
        ends = dict.fromkeys("/".join(path.parts[-len(wanted.parts) :]) for _, path in self._paths())
        found = process.extract(str(wanted), ends.keys(), scorer=fuzz.ratio, limit=NEAREST, score_cutoff=_LEAST_LIKE)
        return [end for end, _, _ in found]

    def files(self, name: str) -> list[tuple[SessionFile, Path]]:
        """The files that `file:line` names; none where it is no line of a file that was read."""
        match = _LINE.fullmatch(name)
        end = f"/{match[1].removeprefix('./').removeprefix('/')}" if match else ""
        return [(file, path) for file, path in self._paths() if match and f"/{path}".endswith(end)]

    def _paths(self) -> Iterator[tuple[SessionFile, Path]]:
        return ((file, path) for file in self._sessions.files for path in (file.path, *file.read_along))

    def _on_line(self, file: SessionFile, path: Path, line: int) -> Iterator[Place]:
        """Read the file again, for where its messages stand; on the line of a copy, the original does."""
        begins = _begin(path, line)
        recorded = RecordedFile(file.path, name=file.name)
        said = {one.conversation_id: (one, deque(one.messages)) for one in file.transcripts}
        for item in reader_of(recorded, file.format).read(recorded):
            if isinstance(item.item, Message) and item.conversation_id in said:
                transcript, messages = said[item.conversation_id]
                is_here = recorded.place == (path, begins)
                if messages and _is_of(messages[0], item.item):
                    place = Place(transcript, messages.popleft())
                    yield from (place,) if is_here else ()
                elif is_here:
                    every = places_of(self._sessions.transcripts)
                    alike = (one for one in every if one.message.content == item.item.content)
                    yield from (one for one in alike if next(_shorter(one)) == item.item.message_id)


def _is_of(message: Message, recorded: Message) -> bool:
    """Whether this is the message that was read of a record, rather than one before which a copy stands."""
    has_its_id = message.message_id.rpartition(":")[2].startswith(recorded.message_id.rpartition(":")[2])
    return has_its_id and message.content == recorded.content and message.parts == recorded.parts


def _shorter(place: Place) -> Iterator[str]:
    """The recorded id, and the id from each of its folders on."""
    name, conversation = place.message_id, place.transcript.conversation_id
    yield name.removeprefix(f"{conversation}:")
    for at, character in enumerate(conversation):
        if character == "/":
            yield name[at + 1 :]


def _begin(path: Path, line: int) -> int:
    """The line on which what stands on a line begins: in one JSON value over many lines, above it; 0 = nothing does."""
    file = RecordedFile(path)
    if file.magic in BINARY or file.shape == "lines":
        return line
    begins = sorted({member.line for member in file.members()})
    above = bisect.bisect_right(begins, line)
    return begins[above - 1] if above and line <= _lines(file) else 0


def _lines(file: RecordedFile) -> int:
    with opened(file.path) as content:
        return sum(1 for _ in content)


_TOLD = 60
_NAMED = ("id", "line")
"""How evidence is found that is not quoted."""


@dataclass(frozen=True, slots=True)
class Located:
    """Evidence, and the messages that it names."""

    evidence: Evidence
    places: tuple[Place, ...]
    how: str
    """How it was found: id, line, quotation, or `like, 93 %`."""

    @property
    def quotations(self) -> dict[str, str]:
        """Message -> the words of it that are quoted; empty where it is named otherwise."""
        quote = self.evidence.quote or ("" if self.how in _NAMED else self.evidence.text)
        return {place.message_id: words_quoted(quote, place) for place in self.places} if quote else {}


@dataclass(frozen=True, slots=True)
class LocatedQuestion:
    """A question all of whose evidence was found."""

    question: Question
    workspace_id: str
    located: tuple[Located, ...]

    @property
    def message_ids(self) -> list[str]:
        """The messages that are its evidence, each once."""
        return list(dict.fromkeys(place.message_id for one in self.located for place in one.places))


@dataclass(frozen=True, slots=True)
class Unresolved:
    """A question whose evidence was not found, or was found in more than one place."""

    question: Question
    problem: Problem
    nearest: tuple[Place, ...]
    """The messages that may be meant, the nearest first."""


class _NotFoundError(LineError):
    def __init__(self, text: str, nearest: Iterable[Place] = ()) -> None:
        super().__init__(text)
        self.nearest = tuple(nearest)[:NEAREST]


def locate(
    file: QuestionsFile, sessions: Sessions, similarity: float = 0.9, store: Path | None = None
) -> tuple[list[LocatedQuestion], list[Unresolved]]:
    """The questions of a file whose evidence is found in sessions, and those whose evidence is not.

    Args:
        similarity: how like a quotation must be to words that are not the same; 1 = but for case and white space.
        store: that `lcm grep` looked into, if evidence is named by its numbers.
    """
    search = _Search(file.questions, sessions, similarity, store)
    found, unresolved = list[LocatedQuestion](), list[Unresolved]()
    for question in file.questions:
        try:
            found.append(search.located(question))
        except _NotFoundError as error:
            unresolved.append(Unresolved(question, Problem(file.path, question.line, str(error)), error.nearest))
    return found, unresolved


@dataclass(slots=True)
class _Search:
    """Looks for the evidence of all questions at once: the messages are gone through once for what stands there word
    for word, and once for what does not."""

    questions: Sequence[Question]
    sessions: Sessions
    similarity: float
    store: Path | None
    names: Names = field(init=False)
    exact: dict[str, list[Place]] = field(init=False)
    like: dict[str, list[Likeness]] = field(init=False)
    instants: dict[str, dict[str, datetime]] = field(init=False, default_factory=dict)
    """Conversation -> message -> when it was said."""
    words: list[tuple[Place, set[str]]] = field(init=False, default_factory=list)
    """Each message with its content words, once something is looked for by these."""

    def __post_init__(self) -> None:
        entries = [(question, one) for question in self.questions for one in question.evidence]
        wanted = {name for _, one in entries for name in (one.text, *one.message_ids) if name}
        self.names = Names(self.sessions, wanted, self.store)
        quotes = {one.quote or one.text for _, one in entries if one.quote or self._is_quotation(one.text)}
        self.exact = holding(quotes, self.sessions.transcripts)
        missed: dict[str, set[str] | None] = {}
        for question, one in entries:
            quote = one.quote or one.text
            if quote in quotes and not one.message_ids:
                try:
                    scope = _scope(question, self.sessions)
                except _NotFoundError:
                    scope = None
                if not _within(self.exact[quote], scope):
                    before = missed.get(quote, set())
                    missed[quote] = None if before is None or scope is None else before | scope
        self.like = alike(missed, self.sessions.transcripts)

    def located(self, question: Question) -> LocatedQuestion:
        scope, located = _scope(question, self.sessions), []
        for number, evidence in enumerate(question.evidence, 1):
            try:
                located.append(self._one(evidence, scope))
            except _NotFoundError as error:
                told = f"evidence {number}: {error}" if len(question.evidence) > 1 else f"evidence: {error}"
                raise _NotFoundError(told, error.nearest) from error
        if question.asked_at is not None:
            located = [self._before(one, question.asked_at) for one in located]
        workspace = self._workspace(question, scope, located)
        return LocatedQuestion(question, workspace, tuple(located))

    def _before(self, one: Located, asked_at: datetime) -> Located:
        """Evidence as it stood when a question was asked: of copies that a quotation names, those said by then."""
        said = [(place, self._said_at(place)) for place in one.places]
        late = [(place, at) for place, at in said if at > asked_at]
        if late and (one.evidence.message_ids or len(late) == len(said)):
            place, at = late[0]
            raise _NotFoundError(
                f"asked at {format_instant(asked_at)}, but {place.message_id} was said at {format_instant(at)}, later; "
                "correct asked_at or leave it out",
                [place],
            )
        return replace(one, places=tuple(place for place, at in said if at <= asked_at))

    def _said_at(self, place: Place) -> datetime:
        """As a replay has it: a message without an instant was said with the one before it."""
        known = self.instants.get(place.transcript.conversation_id)
        if known is None:
            ids = (message.message_id for message in place.transcript.messages)
            known = dict(zip(ids, place.transcript.instants(), strict=True))
            self.instants[place.transcript.conversation_id] = known
        return known[place.message_id]

    def _one(self, evidence: Evidence, scope: set[str] | None) -> Located:
        if evidence.text:
            return self._text(evidence, scope)
        if not evidence.message_ids:
            return self._quotation(evidence, evidence.quote, scope)
        places = [self._named(message_id, scope) for message_id in evidence.message_ids]
        how = "id"
        for place in places if evidence.quote else ():
            if place not in self.exact[evidence.quote]:
                found = likeness(evidence.quote, place)
                if not self._is_like(found):
                    wrong = f"{_told(evidence.quote)} does not stand in {place.message_id}"
                    others = [place, *self.exact[evidence.quote]]
                    raise _NotFoundError(f"{wrong}; correct the quotation or the id", others)
                how = f"id; like, {found.percent:.0f} %"
        return Located(evidence, tuple(places), how)

    def _text(self, evidence: Evidence, scope: set[str] | None) -> Located:
        text = evidence.text
        if MESSAGE_NUMBER.fullmatch(text) or self.names.has(text):
            return Located(evidence, (self._named(text, scope),), "id")
        if self.names.files(text):
            return Located(evidence, (self._on_line(text, scope),), "line")
        if text.isdecimal():
            raise _NotFoundError(f'{text} is a number; write {{"message_id": "{text}"}}, or more of the words')
        if (match := _LINE.fullmatch(text)) and _FILE_NAME.fullmatch(match[1]):
            near = " or ".join(map(repr, self.names.nearest_files(text)))
            meant = f"; did you mean {near}" if near else ""
            raise _NotFoundError(
                f"no file of these sessions is called {_told(match[1])}{meant}; correct it, or write "
                '{"quote": ...} if it is a quotation'
            )
        if _ID.fullmatch(text):
            raise _NotFoundError(
                f'no message has the id {_told(text)}; correct it, or write {{"quote": ...}} if it is a quotation',
                self._nearest_ids(text, scope),
            )
        return self._quotation(evidence, text, scope)

    def _named(self, name: str, scope: set[str] | None) -> Place:
        message_id = name
        if match := MESSAGE_NUMBER.fullmatch(name):
            if self.store is None:
                raise _NotFoundError(f"{name} is a number in a store; name the store, dataset.store=memory.db")
            message_id = self.names.numbers.get(int(match[1]), "")
            if not message_id:
                raise _NotFoundError(f"there is no message {name} in {self.store}; `lcm grep` tells the numbers")
        everywhere = self.names.of(message_id)
        found = _within(everywhere, scope)
        if not found:
            where = f"no message of these sessions has the id {_told(message_id)}"
            if everywhere:
                where = f"{_told(message_id)} is not in the workspace, source or conversation that the question names"
            raise _NotFoundError(where, everywhere or self._nearest_ids(message_id, scope))
        if len(found) > 1:
            raise _NotFoundError(f"{len(found)} messages have the id {_told(message_id)}; write the whole id", found)
        return found[0]

    def _on_line(self, text: str, scope: set[str] | None) -> Place:
        found = _within(self.names.on_line(text), scope)
        if len(found) != 1:
            holds = f"holds {len(found)} messages" if found else "holds no message"
            if not found and (lines := self.names.lines(text)) is not None and lines < int(text.rpartition(":")[2]):
                holds += f", for the file has {lines:,} lines"
            raise _NotFoundError(f"{_told(text)} {holds}; name one by its id or by a quotation", found)
        return found[0]

    def _quotation(self, evidence: Evidence, quote: str, scope: set[str] | None) -> Located:
        if found := _within(self.exact[quote], scope):
            return self._one_message(evidence, quote, found, "quotation")
        near = [one for one in self.like.get(quote, ()) if _within([one.place], scope)]
        close = [one for one in near if may_be_alike(quote) and self._is_like(one)]
        if not close:
            if thought := _within(thinking(quote, self.sessions.transcripts), scope):
                raise _NotFoundError(
                    f"{_told(quote)} stands only in what a model thought, which is no evidence; quote what was said",
                    thought,
                )
            nearest = [one.place for one in near] or self._nearest_by_words(quote, scope)
            raise _NotFoundError(f"{_told(quote)} stands in no message; quote words as they were said", nearest)
        return self._one_message(evidence, quote, [one.place for one in close], f"like, {close[0].percent:.0f} %")

    def _one_message(self, evidence: Evidence, quote: str, found: Sequence[Place], how: str) -> Located:
        if len(found) > 1 and len({place.content_digest() for place in found}) > 1:  # no byte-equal copies of one
            raise _NotFoundError(
                f"{_told(quote)} stands in {len(found)} messages; quote more of one, or name it by its id", found
            )
        return Located(evidence, tuple(found), how)

    def _workspace(self, question: Question, scope: set[str] | None, located: Sequence[Located]) -> str:
        """Where the question is asked: where its evidence lies, or where it says."""
        held = {place.transcript.conversation_id for one in located for place in one.places} or scope
        among = (file for file in self.sessions.files if held is None or not held.isdisjoint(file.conversations))
        workspaces = list(dict.fromkeys(file.workspace_id for file in among))
        if len(workspaces) == 1:
            return workspaces[0]
        told = ", ".join(map(repr, workspaces[:NEAREST])) + (", ..." if len(workspaces) > NEAREST else "")
        if located:
            raise _NotFoundError(
                f"its evidence lies in {len(workspaces)} workspaces ({told}); name one as workspace, or put them "
                "together with dataset.workspace=all"
            )
        raise _NotFoundError(f"an unanswerable question must name its workspace; these are there: {told}")

    def _is_quotation(self, text: str) -> bool:
        known = MESSAGE_NUMBER.fullmatch(text) or self.names.has(text) or self.names.files(text)
        return bool(text) and not known and not text.isdecimal() and not _ID.fullmatch(text)

    def _is_like(self, found: Likeness) -> bool:
        return found.percent >= 100 * self.similarity and found.keeps_its_sense

    def _nearest_by_words(self, quote: str, scope: set[str] | None) -> list[Place]:
        """The messages that share most content words with a text that is like none; those that share none are not
        near."""
        if not self.words:
            every = places_of(self.sessions.transcripts)
            self.words = [(one, set(content_words("\n".join(searched_texts(one.message))))) for one in every]
        wanted = set(content_words(quote))
        shared = sorted(((len(wanted & words), one) for one, words in self.words), key=lambda pair: -pair[0])
        return _within((one for number, one in shared if number), scope)

    def _nearest_ids(self, name: str, scope: set[str] | None) -> list[Place]:
        places = _within(places_of(self.sessions.transcripts), scope)
        ids = {number: place.message_id for number, place in enumerate(places)}
        return [places[at] for _, _, at in process.extract(name, ids, scorer=fuzz.partial_ratio, limit=NEAREST)]


def _scope(question: Question, sessions: Sessions) -> set[str] | None:
    """The conversations in which its evidence may lie; None = any."""
    if question.workspace is None and question.source is None and not question.conversations:
        return None
    files = [file for file in sessions.files if _ends_in(file.workspace_id, question.workspace)]
    if not files:
        there = ", ".join(repr(name) for name in dict.fromkeys(file.workspace_id for file in sessions.files))
        raise _NotFoundError(f"there is no workspace {question.workspace!r}; these are there: {there:.300}")
    if len({file.workspace_id for file in files}) > 1 and question.workspace is not None:
        files = [file for file in files if file.workspace_id == question.workspace] or files
        if len({file.workspace_id for file in files}) > 1:
            raise _NotFoundError(f"several workspaces end in {question.workspace!r}; write the whole name")
    source = question.source
    files = [one for one in files if any(_ends_in(str(path), source) for path in (one.path, one.path.resolve()))]
    if not files:
        raise _NotFoundError(f"no file of these sessions ends in {source!r} (source); name it in dataset.paths")
    ids = {one: file.name for file in files for one in file.conversations}
    for name in question.conversations:
        if not any(_ends_in(one, name) or _ends_in(ids[one], name) for one in ids):
            told = f"there is no conversation {name!r} where the question says"
            raise _NotFoundError(f"{told}; correct it or leave it out")
    named = question.conversations or (None,)
    return {one for one, file in ids.items() for name in named if _ends_in(one, name) or _ends_in(file, name)}


def _ends_in(path: str, end: str | None) -> bool:
    return end is None or path == end or path.endswith(f"/{end}")


def _within(places: Iterable[Place], scope: Collection[str] | None) -> list[Place]:
    return [place for place in places if scope is None or place.transcript.conversation_id in scope]


def _told(text: str) -> str:
    line = " ".join(text.split())
    return repr(line if len(line) <= _TOLD else f"{line[: _TOLD - 3]}...")
