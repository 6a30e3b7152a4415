"""The names by which people call messages: ids, numbers in a store, lines of files."""

import bisect
import re
from collections import deque
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from rapidfuzz import fuzz, process

from eval.questions.quotation import NEAREST, Place, places_of
from eval.questions.sessions import SessionFile, Sessions
from lcm.given import opened
from lcm.records.conversation import Message
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


def looks_like_an_id(text: str) -> bool:
    """Whether nobody would quote this: a place in a conversation, or an id of 32 digits."""
    return _ID.fullmatch(text) is not None


def looks_like_a_line(text: str) -> bool:
    """Whether this is a line of a file, rather than a place in a conversation."""
    return (match := _LINE.fullmatch(text)) is not None and _FILE_NAME.fullmatch(match[1]) is not None


class Names:
    """What each wanted name stands for; the messages are gone through once."""

    def __init__(self, sessions: Sessions, wanted: Collection[str], store: Path | None) -> None:
        self._sessions = sessions
        self._lines: dict[str, list[Place]] = {}
        numbers = [int(match[1]) for name in wanted if (match := MESSAGE_NUMBER.fullmatch(name))]
        self.numbers: Mapping[int, str] = {} if store is None or not numbers else message_ids_by_number(store, numbers)
        """Number in the store -> message id."""
        self._copies = sessions.copies
        sought = {*wanted, *self.numbers.values()}
        sought |= {self._copies[name] for name in sought if name in self._copies}
        self._whole: dict[str, list[Place]] = {}
        self._ends: dict[str, list[Place]] = {}
        for place in self.places() if sought else ():
            if place.message_id in sought:
                self._whole.setdefault(place.message_id, []).append(place)
            for end in _shorter(place):
                if end in sought:
                    self._ends.setdefault(end, []).append(place)

    def places(self) -> Iterator[Place]:
        return places_of(self._sessions.transcripts)

    def has(self, name: str) -> bool:
        """Whether some message has this id; a number alone is no id unless the file says that it is one."""
        return not name.isdecimal() and bool(self.of(name))

    def of(self, name: str) -> list[Place]:
        """The messages of this id: a whole one, a recorded one, or the end of one that begins with folders.

        The id of a copy names the original.
        """
        return self._whole.get(name) or self._ends.get(self._copies.get(name, name), [])

    def is_line(self, name: str) -> bool:
        """Whether this is a line of a file that was read."""
        return bool(self._files(name))

    def on_line(self, name: str) -> list[Place]:
        """The messages that stand on a line, of whichever files have that name."""
        if name not in self._lines:
            files = self._files(name)
            self._lines[name] = [place for file, path in files for place in self._on_line(file, path, _line(name))]
        return self._lines[name]

    def lines(self, name: str) -> int | None:
        """How many lines the file of a line has; None = several files have that name, or it has no lines."""
        files = self._files(name)
        recorded = RecordedFile(files[0][1])
        return None if len(files) > 1 or recorded.magic in BINARY else _lines(recorded)

    def nearest_files(self, name: str) -> list[str]:
        """The files whose names are most like that of `file:line`, as much of their paths as it has."""
        wanted = Path(name.rpartition(":")[0])
        paths = (path for file in self._sessions.files for path in (file.path, *file.read_along))
        ends = dict.fromkeys("/".join(path.parts[-len(wanted.parts) :]) for path in paths)
        found = process.extract(str(wanted), ends.keys(), scorer=fuzz.ratio, limit=NEAREST, score_cutoff=_LEAST_LIKE)
        return [end for end, _, _ in found]

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
                    yield from self._originals(item.item)

    def _originals(self, copy: Message) -> Iterator[Place]:
        for place in self.places():
            recorded = place.message_id.removeprefix(f"{place.transcript.conversation_id}:")
            if recorded == copy.message_id and place.message.content == copy.content:
                yield place

    def _files(self, name: str) -> list[tuple[SessionFile, Path]]:
        match = _LINE.fullmatch(name)
        if match is None:
            return []
        end = f"/{match[1].removeprefix('./').removeprefix('/')}"
        return [
            (file, path)
            for file in self._sessions.files
            for path in (file.path, *file.read_along)
            if f"/{path}".endswith(end)
        ]


def _is_of(message: Message, recorded: Message) -> bool:
    """Whether this is the message that was read of a record, rather than one before which a copy stands."""
    has_its_id = message.message_id.rpartition(":")[2].startswith(recorded.message_id.rpartition(":")[2])
    return has_its_id and message.content == recorded.content and message.parts == recorded.parts


def _line(name: str) -> int:
    return int(name.rpartition(":")[2])


def _shorter(place: Place) -> Iterator[str]:
    """The recorded id, and the id from each of its folders on."""
    name = place.message_id
    yield name.removeprefix(f"{place.transcript.conversation_id}:")
    conversation = place.transcript.conversation_id
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
