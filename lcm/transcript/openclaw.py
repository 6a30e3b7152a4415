"""OpenClaw sessions: JSONL, the early form of pi whose entries have no ids, and an agent's database of such records.

A header, then one entry a line. Entries of type `message` become messages; all others (model changes, labels,
compactions, types unknown to us) are kept as events.

Entries form a tree by `parentId`: whoever goes back and says something else leaves a branch behind. The live branch is
the path from the last entry to the root; an entry of type `leaf` goes back without saying anything.

Of one session there may be older states, in archives of the database or in files (`session_states`): what an older
one alone holds is a conversation of its own, as an abandoned branch is.
"""

from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from lcm.checks import check_choice
from lcm.encoding import to_json, well_formed
from lcm.errors import TranscriptError
from lcm.records.conversation import Event, Message
from lcm.transcript.agent_database import Records, is_agent_database, stored_sessions
from lcm.transcript.branches import Stretches
from lcm.transcript.database import columns, is_database, snapshot
from lcm.transcript.fields import as_object, kind, listed, object_in, text_in
from lcm.transcript.identity import Digests, digest, native_id, recorded_instant
from lcm.transcript.parts import decompose, enclosed
from lcm.transcript.reader import RecordedItem
from lcm.transcript.recorded_file import RecordedFile

Branches = Literal["apart", "in_file_order"]


@dataclass(frozen=True, slots=True)
class OpenClawReader:
    """Reads a session, or several one behind the other: a whole header with another id begins the next.

    The id of a session names its conversation too.
    """

    branches: Branches = "apart"
    """`apart`: the conversation is the live branch, and the messages of each abandoned one are a conversation named
    by the session and its first message. `in_file_order`: all are one conversation, as lossless-claw 0.6.3 reads
    them."""

    name = "openclaw"

    def __post_init__(self) -> None:
        check_choice(self, branches=Branches)

    def detects(self, file: RecordedFile) -> bool:
        if is_database(file):
            return is_agent_database(file)
        first = file.first if isinstance(file.first, list) else []
        has_other_header = any(isinstance(value, dict) and value.get("type") == "session_start" for value in first)
        is_begun = bool(first) and all(
            _is_header(value) and {"version", "id", "cwd"} <= value.keys() for value in first
        )
        return (any(map(_is_entry, first)) and not has_other_header) or is_begun

    def read(self, file: RecordedFile) -> Iterator[RecordedItem]:
        if not is_database(file):
            session_id = session_of(file) or file.name
            held = Digests()
            for path in file.newer:
                for record in records_of(RecordedFile(path), session_id):
                    held.add(identity(record))
            yield from self._state(file, RecordedFile.values, session_id, held if file.newer else None)
            return
        with snapshot(file) as connection:
            for session in stored_sessions(connection):
                if session.window is not None:
                    with file.record(1, f"session_windows, session {session.session_id}: "):
                        window = Event("session_window", columns(session.window))
                        yield RecordedItem(session.session_id, window, text_in(session.window, "display_name"))
                held = Digests()
                for number, records in enumerate(session.states):
                    yield from self._state(file, records, session.session_id, held if number else None)
                    for _, record in records(RecordedFile(file.path)) if number + 1 < len(session.states) else ():
                        held.add(identity(record))

    def _state(
        self, file: RecordedFile, records: Records, session_id: str, held: Digests | None
    ) -> Iterator[RecordedItem]:
        """Give what one state of a session holds.

        Args:
            held: what newer states hold; None = it is the newest.
        """
        again = RecordedFile(file.path)
        if held is None:
            conversation_id, has_branches = session_id, self.branches == "apart"
        else:
            new = (record for _, record in records(again) if is_message(record) and not held.has(identity(record)))
            first = next(new, None)
            if first is None:
                return
            conversation_id = f"{session_id}~{native_id(first.get('id')) or digest(identity(first))}"
            has_branches = False
        has_headers = held is None and not is_database(file)
        entries = (value for _, value in records(again))
        branches = Stretches(_abandoned(entries, session_id if has_headers else None) if has_branches else ())
        title: str | None = None
        place = -1
        for line, entry in records(file):
            with file.record(line):
                as_object(entry, "an entry")
                place += 1
                if has_headers and (begun := _begun(entry)) not in ("", session_id):
                    session_id = conversation_id = begun
                    title = None
                if held is not None and held.has(identity(entry)):
                    continue
                if entry.get("type") == "session_info" and isinstance(entry.get("name"), str):
                    title = well_formed(entry["name"])
                if is_message(entry):
                    message = _message(entry, session_id)
                    yield RecordedItem(conversation_id + branches.suffix(place, message.message_id), message, title)
                else:
                    yield RecordedItem(conversation_id, Event(kind(entry), entry), title)


def session_of(file: RecordedFile) -> str:
    """The id that the header names; empty where there is none."""
    header = next(filter(_is_header, listed(file.first)), None)
    return native_id(header.get("id")) if header else ""


def records_of(file: RecordedFile, session_id: str | None = None) -> Iterator[Any]:
    """The records of a session's file, or those that a database holds of a session, as far as they can be read."""
    try:
        if not is_database(file):
            yield from (value for _, value in file.values())
            return
        with snapshot(file) as connection:
            for session in stored_sessions(connection, session_id):
                for records in session.states:
                    yield from (value for _, value in records(file))
    except TranscriptError as error:  # it becomes too large when it is unpacked
        file.put_aside(1, str(error), to_end=True)


def identity(record: Any) -> str:
    """What a record is known by in another state of its session: its id, and of a message what it says."""
    record_id = native_id(record.get("id")) if isinstance(record, dict) else ""
    if not record_id:
        return to_json(record)
    native = object_in(record, "message")
    return to_json([kind(record), record_id, native.get("role"), native.get("content")])


def is_message(record: Any) -> bool:
    return isinstance(record, dict) and record.get("type") == "message"


def _is_header(value: Any) -> bool:
    return isinstance(value, dict) and value.get("type") == "session"


def _begun(entry: Any) -> str:
    """The id of the session that a whole header begins; empty where the entry is none."""
    return native_id(entry.get("id")) if _is_header(entry) and {"timestamp", "cwd"} <= entry.keys() else ""


def _is_entry(value: Any) -> bool:
    """Say whether this is a message entry: a header alone may be any tool's."""
    message = value.get("message") if isinstance(value, dict) and value.get("type") == "message" else None
    is_said = isinstance(message, dict) and isinstance(message.get("role"), str)
    return is_said and "timestamp" in value and ("parentId" in value or "id" not in value)


def _message(entry: dict[str, Any], session_id: str) -> Message:
    native = entry.get("message")
    if not isinstance(native, dict) or not isinstance(native.get("role"), str):
        raise TranscriptError("a message entry needs a `message` object with a `role`")
    said = decompose(native)
    return Message(
        message_id=native_id(entry.get("id")),
        role=said.role,
        content=said.content,
        session_id=session_id,
        created_at=recorded_instant(entry, ("timestamp",)) or recorded_instant(native, ("timestamp",)),
        parts=said.parts,
        envelope=enclosed(said.envelope, entry, "message"),
    )


def _abandoned(entries: Iterable[Any], session_id: str | None) -> list[range]:
    """The places, from 0, of the entries that do not lead to the last one of their session.

    Args:
        entries: of the file, or of the database's session.
        session_id: of the first session; None = whatever headers say, there is one.
    """

    def session(entry: Any) -> str | None:
        nonlocal session_id
        session_id = session_id if session_id is None else _begun(entry) or session_id
        return session_id

    abandoned: list[range] = []
    start = 0
    for _, own in groupby(entries, session):
        ranges, count = _abandoned_of(own)
        abandoned += [range(start + one.start, start + one.stop) for one in ranges]
        start += count
    return abandoned


def _abandoned_of(entries: Iterable[Any]) -> tuple[list[range], int]:
    """The places of what does not lead to the last entry, each stretch that begins somewhere else; and all places.

    An entry without `parentId`, or whose parent is not in the file, follows the one before it. Null is the root's
    parent: a later entry with it begins the tree anew, in a file whose entries name their parents.
    """
    ids, odd = array("Q"), dict[int, int]()  # digests of ids; place -> digest of a parent that is not the entry before
    roots: list[int] = []
    has_tree = is_begun = False
    previous: object = None
    for entry in entries:
        if isinstance(entry, dict):
            parent = entry.get("targetId" if entry.get("type") == "leaf" else "parentId")
            has_tree = has_tree or (parent is not None and parent == previous)
            if isinstance(parent, str) and parent != previous:
                odd[len(ids)] = digest(parent)
            elif parent is None and "parentId" in entry and is_begun:
                roots.append(len(ids))
            previous = None if _is_header(entry) else entry.get("id")
            is_begun = is_begun or previous is not None
            ids.append(digest(previous) if isinstance(previous, str) else 0)
    parents = _places(odd, np.frombuffer(ids, np.uint64)) | dict.fromkeys(roots if has_tree else (), -1)
    forks = sorted(parents)
    abandoned, end = [], len(ids)
    for fork in reversed(forks):
        if fork < end:
            gap = range(parents[fork] + 1, fork)
            cuts = [gap.start, *(place for place in forks if place in gap), gap.stop]
            abandoned += [range(first, last) for first, last in pairwise(cuts) if first < last]
            end = parents[fork] + 1
    return abandoned, len(ids)


def _places(wanted: Mapping[int, int], ids: npt.NDArray[np.uint64]) -> dict[int, int]:
    """Where the wanted ids stand, for those that stand before the place that wants them."""
    order = np.argsort(ids, kind="stable")
    found = np.searchsorted(ids, np.fromiter(wanted.values(), np.uint64, len(wanted)), sorter=order)
    places = {
        place: int(order[at])
        for (place, digest), at in zip(wanted.items(), found, strict=True)
        if at < len(ids) and ids[order[at]] == digest
    }
    return {place: parent for place, parent in places.items() if parent < place - 1}
