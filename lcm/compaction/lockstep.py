"""Compaction of many conversations side by side, so that their requests reach the summarizer in batches."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from itertools import islice

from lcm.protocols.compaction import Summarizer, Work
from lcm.records.summary import CompactionReport, SummaryRequest, SummaryResult

Clock = Callable[[], float]
"""Seconds that only rise, as `time.monotonic` tells them."""


@dataclass(frozen=True, slots=True)
class TimedResult(SummaryResult):
    """A result that says how long its work has been under way: what time limits are held against."""

    elapsed_seconds: float = 0.0


def in_lockstep(
    works: Iterable[Work],
    summarizer: Summarizer,
    width: int = 64,
    clock: Clock | None = None,
    *,
    incidents: Counter[str],
) -> Iterator[CompactionReport]:
    """Drive works to their ends, at most `width` at a time; their reports come in the order of the works.

    Every round asks the summarizer once, for the next request of each work that is under way.

    Args:
        works: their work.
        summarizer: answers.
        width: how many are under way at once.
        clock: lets works see time pass, and so keep their time limits; without one no work is ever late.
        incidents: counts what the summarizer survives.
    """
    waiting = iter(works)
    reports: dict[int, CompactionReport] = {}
    pending: dict[int, tuple[Work, SummaryRequest]] = {}
    begun_at: dict[int, float] = {}
    begun = told = 0
    while True:
        before = begun
        for work in islice(waiting, width - len(pending)):
            if clock is not None:
                begun_at[begun] = clock()
            try:
                pending[begun] = (work, next(work))
            except StopIteration as end:
                reports[begun] = end.value
            begun += 1
        while told in reports:
            yield reports.pop(told)
            told += 1
        if not pending:
            if begun == before:
                return
            continue
        results = summarizer.summarize([request for _, request in pending.values()], incidents=incidents)
        for (number, (work, _)), result in zip(list(pending.items()), results, strict=True):
            answer = result if clock is None else _timed(result, clock() - begun_at[number])
            try:
                pending[number] = (work, work.send(answer))
            except StopIteration as end:
                del pending[number]
                reports[number] = end.value


def run(work: Work, summarizer: Summarizer, clock: Clock | None = None, *, incidents: Counter[str]) -> CompactionReport:
    """Drive one work to its end."""
    return next(in_lockstep([work], summarizer, clock=clock, incidents=incidents))


def resumed(work: Work, request: SummaryRequest) -> Work:
    """Work that has given its first request already, as work that is to give it."""
    try:
        while True:
            request = work.send((yield request))
    except StopIteration as end:
        report: CompactionReport = end.value
        return report


def _timed(result: SummaryResult, elapsed_seconds: float) -> TimedResult:
    said = {field.name: getattr(result, field.name) for field in fields(SummaryResult)}
    return TimedResult(**said, elapsed_seconds=elapsed_seconds)
