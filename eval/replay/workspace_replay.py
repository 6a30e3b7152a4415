"""How transcripts reach a memory: all at once or turn by turn, as a series of checkpoints, played once and opened from
the cache afterwards."""

import json
import logging
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import groupby
from pathlib import Path
from typing import Any, Protocol

from eval.cache.stage_cache import StageCache
from eval.replay.haystack import Haystack, transcript_until
from lcm.errors import StoreError
from lcm.faults import StoreFaultError, told
from lcm.files import written_whole
from lcm.memory.live_documents import LiveDocuments
from lcm.memory.memory import Memory
from lcm.memory.system import System
from lcm.records.conversation import Message, Transcript
from lcm.records.query import Query
from lcm.records.summary import ContextReading


def growth(
    transcripts: Sequence[Transcript], queries: Sequence[Query]
) -> Iterator[tuple[list[tuple[Transcript, int]], list[Query]]]:
    """Queries in the order of asking, those between the same two messages together, and what grew before them: each
    transcript as far as it was said by then, with how many of its messages were known before."""
    said = [transcript.instants() for transcript in transcripts]
    by_extent: dict[tuple[int, ...], list[Query]] = {}
    for query in sorted(queries, key=lambda query: query.asked_at):
        extent = tuple(bisect_right(times, query.asked_at) for times in said)
        by_extent.setdefault(extent, []).append(query)
    before = (0,) * len(transcripts)
    for extent, asked in by_extent.items():
        grown = zip(transcripts, extent, before, strict=True)
        yield [(transcript_until(one, n), known) for one, n, known in grown if n > known], asked
        before = extent


_MOST_CHECKPOINTS = 16
"""Checkpoints of a workspace that are kept; where questions lie between more, it is played each time."""
_TEMPORARY = ""
"""A workspace that lies in memory until it is large."""
_INDEX = "checkpoints.json"
_BYTES_A_DOCUMENT = 20_000
"""What a document takes in memory, roughly: its vectors, its words in an index, its row."""

_log = logging.getLogger(__name__)


class Replay(Protocol):
    """A `replay` choice: how transcripts reach a memory.

    Laws: every query is yielded once, with those between the same two messages; when it is, the memory holds what was
    said before it, and no more.
    """

    def play(
        self, memory: Memory, transcripts: Sequence[Transcript], queries: Sequence[Query]
    ) -> Iterator[list[Query]]: ...


@dataclass(frozen=True, slots=True)
class ReplayCheckpoint:
    """A memory as it was when questions were asked. The last checkpoint has none: all is ingested."""

    queries: list[Query]
    open: Callable[[], Memory]
    """The memory; until the next checkpoint, and not to be closed."""
    incidents: Counter[str]
    """What was survived since the checkpoint before, by name and times."""
    contexts: tuple[ContextReading, ...] = ()
    """What the triggers of compaction saw of each context; of the last checkpoint."""


@dataclass(frozen=True, slots=True)
class WorkspaceReplay:
    """Replays one workspace: yields its checkpoints, from the cache where it holds them."""

    system: System
    replay: Replay
    transcripts: Sequence[Transcript]
    queries: Sequence[Query]
    cache: StageCache | None = None
    key: str | None = None
    """The digest of all that the checkpoints depend on; None = nothing is kept."""
    is_frozen: bool = True
    """Whether answering changes nothing: then one opened memory serves every run of this process, and a state that was
    kept serves after the first checkpoint too."""

    def checkpoints(self) -> Iterator[ReplayCheckpoint]:
        """Play, or open what was played before; queries come in the same order either way."""
        kept = self._kept()
        yield from self._played() if kept is None else self._opened(*kept)

    def _kept(self) -> tuple[Path, list[Any]] | None:
        """The folder of what was played before, and its index; it is looked through once a process."""
        if self.cache is None or self.key is None:
            return None
        found: tuple[Path, list[Any]] | None = self.cache.held("checkpoints", self.key)
        if found is None and (folder := self.cache.read_folder("checkpoints", self.key)) is not None:
            with suppress(OSError):  # another process has made room since
                found = folder, json.loads((folder / _INDEX).read_text())
                self.cache.in_memory("checkpoints", self.key, lambda: (found, 0))
        return found

    def _opened(
        self, folder: Path, index: Sequence[tuple[int, list[str], dict[str, int], list[ContextReading]]]
    ) -> Iterator[ReplayCheckpoint]:
        asked = {query.query_id: query for query in self.queries}
        first = {number: place for place, (number, *_) in reversed(list(enumerate(index)))}

        def copied(number: int) -> Memory:
            try:
                return Memory.open_copy(self.system, folder / f"{number}.db")
            except StoreError as error:  # another process has made room since
                _log.warning("%s: played again", error)
                return self._played_to(first[number])

        def documents(number: int) -> tuple[LiveDocuments, int]:
            live = copied(number).live
            return live, len(live.frame) * _BYTES_A_DOCUMENT

        @lru_cache(maxsize=1)
        def opened(number: int) -> Memory:
            if self.cache is None or not self.is_frozen:
                return copied(number)
            # Other systems of this process have the same documents: they answer and show differently.
            live = self.cache.in_memory("opened", f"{self.key}-{number}", partial(documents, number))
            return Memory(self.system, live.store, live=live)

        for number, query_ids, incidents, contexts in index:
            yield ReplayCheckpoint(
                [asked[query_id] for query_id in query_ids],
                partial(opened, number),
                Counter(incidents),
                tuple(ContextReading(*reading) for reading in contexts),
            )

    def _played_to(self, place: int) -> Memory:
        """A memory as it was at a checkpoint, or at the end where there were fewer."""
        memory = Memory.open(self.system, _TEMPORARY)
        for at, _ in enumerate(self.replay.play(memory, self.transcripts, self.queries)):
            if at == place:
                break
        return memory

    def _played(self) -> Iterator[ReplayCheckpoint]:
        with ExitStack() as until_done:
            memory = until_done.enter_context(Memory.open(self.system, _TEMPORARY))
            states = _SavedCheckpoints(None, memory)
            if self.cache is not None and self.key is not None:
                states.folder = until_done.enter_context(self.cache.written_folder("checkpoints", self.key))
            before = Counter[str]()
            for asked in self.replay.play(memory, self.transcripts, self.queries):
                incidents = memory.incidents - before
                states.keep(asked, incidents)
                if len(states.index) > (_MOST_CHECKPOINTS if self.is_frozen else 1):
                    states.discard()
                yield ReplayCheckpoint(asked, lambda: memory, incidents)
                before = Counter(memory.incidents)
            incidents = memory.incidents - before
            contexts = memory.compaction.readings
            states.keep([], incidents, contexts, is_same=not self.is_frozen)
            yield ReplayCheckpoint([], lambda: memory, incidents, tuple(contexts))
            states.write_index()


class _SavedCheckpoints:
    """Copies of a memory at each checkpoint, in files of a folder."""

    def __init__(self, folder: Path | None, memory: Memory) -> None:
        self.folder = folder
        self.index: list[tuple[int, list[str], dict[str, int], list[ContextReading]]] = []
        self._memory = memory
        self._number = -1
        self._changes = -1

    def keep(
        self,
        asked: Sequence[Query],
        incidents: Counter[str],
        contexts: Sequence[ContextReading] = (),
        *,
        is_same: bool = False,
    ) -> None:
        changes = self._memory.store.changes
        if self._number < 0 or (changes != self._changes and not is_same):
            self._number, self._changes = self._number + 1, changes
            with self._given_up_where_refused():
                if self.folder is not None:
                    self._memory.copy_to(self.folder / f"{self._number}.db")
        self.index.append((self._number, [query.query_id for query in asked], dict(incidents), list(contexts)))

    def discard(self) -> None:
        """Too much to keep: an empty folder is not kept."""
        for file in self.folder.iterdir() if self.folder is not None else ():
            file.unlink()
        self.folder = None

    def write_index(self) -> None:
        with self._given_up_where_refused():
            if self.folder is not None:
                with written_whole(self.folder / _INDEX) as file:
                    file.write(json.dumps(self.index).encode())

    @contextmanager
    def _given_up_where_refused(self) -> Iterator[None]:
        """A full disk and the like keep no checkpoints; the replay goes on."""
        try:
            yield
        except (OSError, StoreFaultError) as error:
            _log.warning("checkpoints are not kept: %s", told(error) or error)
            self.discard()


@dataclass(frozen=True, slots=True)
class Bulk(Haystack):
    """Ingests everything up to the next question, compacts once, then answers; nothing later is known by then."""

    def play(
        self, memory: Memory, transcripts: Sequence[Transcript], queries: Sequence[Query]
    ) -> Iterator[list[Query]]:
        for grown, asked in growth(transcripts, queries):
            memory.ingest_all([transcript for transcript, _ in grown])
            memory.compact([transcript.conversation_id for transcript, _ in grown])
            yield asked


@dataclass(frozen=True, slots=True)
class PerTurn(Haystack):
    """A turn is all up to the next message of the user. After each, compaction looks at its triggers; a question finds
    the context that existed then. Transcripts of one workspace are ingested one after another between two questions."""

    is_per_turn = True

    def play(
        self, memory: Memory, transcripts: Sequence[Transcript], queries: Sequence[Query]
    ) -> Iterator[list[Query]]:
        for grown, asked in growth(transcripts, queries):
            for transcript, known in grown:
                name = transcript.conversation_id
                for turn in turns(transcript.messages[known:]):
                    memory.take_turn(name, turn)
                if memory.system.session.writes(name, name):
                    memory.store.put_events(name, 0, transcript.events, transcript.title)
            memory.catch_up()
            yield asked


def turns(messages: Sequence[Message]) -> Iterator[list[Message]]:
    """Cut before each message of the user."""
    number = 0

    def turn_of(message: Message) -> int:
        nonlocal number
        number += message.role == "user"
        return number

    for _, turn in groupby(messages, turn_of):
        yield list(turn)
