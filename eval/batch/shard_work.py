"""The work on one shard: its sources into its store, compacted."""

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from filelock import FileLock, Timeout

from eval.batch.replay import Replay, ReplayParts, Triggers
from eval.batch.report import Ledger, LedgerContent, conversation_row, source_row
from eval.batch.sources import Shard, SourceReader, TranscriptSource, opened
from eval.mirror import Mirror
from lcm.compaction import work
from lcm.compaction.work import in_lockstep
from lcm.errors import LcmError, StoreError
from lcm.faults import counting, made_again, refuse_emptied
from lcm.files import private
from lcm.protocols.compaction import Summarizer, Work
from lcm.records.conversation import Transcript
from lcm.records.summary import CompactionReport, SummaryRequest, SummaryResult
from lcm.store.store import Store
from lcm.transcript.reading import nothing_in

_log = logging.getLogger(__name__)
_SOURCES = 16
"""So many are read side by side, a piece of each in turn: long conversations of different files share batches."""
_WIDTH = 64
_LOCK_WAIT_S = 60.0


class ShardProgress(NamedTuple):
    """How much of one shard this run has read so far."""

    shard: int
    bytes_done: float
    """Of the sources' size; what was done before counts."""
    messages: int


class SourceReport(NamedTuple):
    """What became of one source of a shard: how much was read, and what was put aside or failed."""

    shard: int
    source: TranscriptSource
    conversations: int
    messages: int
    put_aside: tuple[str, ...]
    doubts: tuple[str, ...]
    refused: str | None
    is_silent: bool
    """Nothing is said in it; where it was done before, in the shard."""
    was_done: bool = False
    failures: tuple[str, ...] = ()
    """Why conversations are not compacted to their ends, one reason each: the source is not done."""
    incidents: tuple[tuple[str, int], ...] = ()
    """What the work on the shard survived since it told of a source, by name and times."""


@dataclass(frozen=True, slots=True)
class ShardWork:
    """Reads and compacts one shard, as an executor runs it; going on with a shard repeats nothing that was written."""

    into: Path
    """Of the stores; where it mirrors a URL and is not on the machine of the worker, that has a mirror of its own."""
    parts: Callable[[], ReplayParts]
    """Builds the components, in the worker's own process."""
    triggers: Triggers
    format: str = "auto"
    url: str | None = None

    def __call__(self, shard: Shard) -> Iterator[ShardProgress | SourceReport]:
        if not self.into.is_dir():
            yield from self._away(shard)
            return
        try:
            with FileLock(self.into / f"{shard.name}.lock", timeout=_LOCK_WAIT_S), _failures_told_together():
                yield from self._work(shard)
        except Timeout as error:
            raise LcmError(f"{shard.name} of {self.into} is being worked on; try again when that is done") from error

    def _away(self, shard: Shard) -> Iterator[ShardProgress | SourceReport]:
        """The work on another machine: what is known of the shard is fetched there, and sent from there."""
        if self.url is None:
            raise LcmError(
                f"{self.into} is not there where {shard.name} is worked on: on a cluster, name a URL such as "
                "s3://BUCKET/FOLDER, or a folder that all machines see at this path, and keep the transcripts likewise"
            )
        mirror = Mirror.of(self.url)
        mirror.fetch(f"{shard.name}.")
        with private():
            mirror.place.mkdir(parents=True, exist_ok=True)
        brought = replace(shard, sources=tuple(source.here() for source in shard.sources))
        try:
            yield from replace(self, into=mirror.place)(brought)
        finally:
            mirror.send(f"{shard.name}.")

    def earlier_reports(self, shard: Shard) -> list[SourceReport] | None:
        """What an earlier run told of the shard, where nothing is left to do: known without a worker."""
        path = self.into / f"{shard.name}.db"
        if not path.exists() and shard.sources:
            return None
        told = Ledger(self.into / f"{shard.name}.jsonl").read()
        if told.ended:
            tells, again = f"its ledger tells of {len(told.ended)} sources", f"remove {shard.name}.jsonl beside it"
            refuse_emptied(path, tells, f"{again} to begin this shard anew", StoreError)
        with Store(path) as store:
            if told.damaged or not all(_is_done(store, told, source) for source in shard.sources):
                return None
            return [_done_before(shard, source, store) for source in shard.sources]

    def _work(self, shard: Shard) -> Iterator[ShardProgress | SourceReport]:
        parts = self.parts()
        ledger = Ledger(self.into / f"{shard.name}.jsonl")
        incidents = Counter[str]()
        with (
            counting(incidents),
            Store(self.into / f"{shard.name}.db") as store,
            Replay(store, parts, self.triggers, incidents=incidents) as replay,
        ):
            told_before = ledger.mend()
            for place in told_before.damaged:
                made_again("ledger", f"{ledger.path}, {place}, is damaged: its source is read again")
            summarizer = _TimedSummarizer(parts.compaction.summarizer, incidents)
            under_way: list[SourceReader] = []
            waiting = iter(shard.sources)
            done_bytes = messages = 0
            while True:
                while len(under_way) < _SOURCES and (source := next(waiting, None)):
                    if _is_done(store, told_before, source):
                        done_bytes += source.size_bytes
                        yield _done_before(shard, source, store)._replace(incidents=_taken(incidents))
                    else:
                        under_way.append(opened(source, self.format))
                if not under_way:
                    break
                messages += _round(under_way, replay, summarizer)
                for reading in [one for one in under_way if one.is_over]:
                    under_way.remove(reading)
                    done_bytes += reading.source.size_bytes
                    told = _ended(shard, reading, store, replay, summarizer, ledger)
                    yield told._replace(incidents=_taken(incidents))
                read = sum(min(one.file.size_read, one.source.size_bytes) for one in under_way)
                yield ShardProgress(shard.number, done_bytes + read, messages)


def _taken(incidents: Counter[str]) -> tuple[tuple[str, int], ...]:
    """What was counted since this was asked last."""
    taken = tuple(incidents.items())
    incidents.clear()
    return taken


def _round(readings: Sequence[SourceReader], replay: Replay, summarizer: "_TimedSummarizer") -> int:
    """Take in a piece of each source; returns how many messages were read."""
    told: dict[str, list[tuple[SourceReader, Transcript]]] = {}
    for reading in readings:
        for piece in reading.take():
            told.setdefault(piece.conversation_id, []).append((reading, piece))
    summarizer.work_off(
        summarizer.timed(replay.take_in(conversation_id, pieces), pieces[0][0], conversation_id)
        for conversation_id, pieces in told.items()
    )
    return sum(len(piece.messages) for pieces in told.values() for _, piece in pieces)


def _ended(
    shard: Shard, reading: SourceReader, store: Store, replay: Replay, summarizer: "_TimedSummarizer", ledger: Ledger
) -> SourceReport:
    """End the conversations of a source that was read, and note it as done unless a summarizer failed."""
    if not reading.refused:
        summarizer.work_off(
            summarizer.timed(replay.finish(conversation_id, reading), reading, conversation_id)
            for conversation_id in list(reading.conversations)
        )
    if not reading.refused and not reading.conversations and reading.source.parts == 1:
        reading.refuse(nothing_in(reading.source.path))
    replay.commit()
    messages = sum(one.messages for one in reading.conversations.values())
    if reading.refused:
        ledger.add(reading.source.digest, [source_row(shard.number, reading)])
    else:
        stored = (one for one in reading.conversations if store.last_message(one))
        ledger.add(reading.source.digest, (conversation_row(store, shard.number, reading, one) for one in stored))
        if not reading.failures:
            store.note_done(reading.source.digest, str(reading.source.path), messages, datetime.now(UTC))
    return SourceReport(
        shard=shard.number,
        source=reading.source,
        conversations=len(reading.conversations),
        messages=messages,
        put_aside=tuple(str(line) for line in reading.file.quarantine),
        doubts=tuple(reading.file.doubts),
        refused=reading.refused,
        is_silent=reading.file.is_silent,
        failures=tuple(reading.failures),
    )


def _is_done(store: Store, told: LedgerContent, source: TranscriptSource) -> bool:
    """Whether a source is taken in and compacted, and what became of it is known."""
    return source.digest in told.ended and store.is_done(source.digest)


def _done_before(shard: Shard, source: TranscriptSource, store: Store) -> SourceReport:
    return SourceReport(shard.number, source, 0, 0, (), (), None, not store.has_words(), was_done=True)


@contextmanager
def _failures_told_together() -> Iterator[None]:
    """Log no warning for each conversation: whoever runs the batch tells the failures of all sources together."""
    log = logging.getLogger(work.__name__)

    def is_kept(record: logging.LogRecord) -> bool:
        return record.levelno < logging.WARNING

    log.addFilter(is_kept)
    try:
        yield
    finally:
        log.removeFilter(is_kept)


class _TimedSummarizer:
    """A summarizer whose calls are shared out among the conversations that asked."""

    def __init__(self, summarizer: Summarizer, incidents: Counter[str]) -> None:
        self._summarizer = summarizer
        self.incidents = incidents
        self._share = 0.0

    def summarize(self, requests: Sequence[SummaryRequest], *, incidents: Counter[str]) -> list[SummaryResult]:
        started = time.perf_counter()
        results = self._summarizer.summarize(requests, incidents=incidents)
        self._share = (time.perf_counter() - started) / len(requests)
        return results

    def work_off(self, works: Iterable[Work]) -> None:
        """Take work on conversations to its end, side by side."""
        for _ in in_lockstep(works, self, _WIDTH, incidents=self.incidents):
            pass

    def timed(self, work: Work, reading: SourceReader, conversation_id: str) -> Work:
        """The work, its seconds counted."""
        read = reading.conversation(conversation_id)
        started = time.perf_counter()
        try:
            request = next(work)
            while True:
                read.seconds += time.perf_counter() - started
                result = yield request
                read.seconds += self._share
                started = time.perf_counter()
                request = work.send(result)
        except StopIteration as end:
            read.seconds += time.perf_counter() - started
            report: CompactionReport = end.value
            read.reason = report.reason
            return report
