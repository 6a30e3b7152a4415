"""Compaction of many conversations side by side, so that their requests reach the summarizer in batches."""

from collections.abc import Iterable, Iterator
from itertools import islice

from lcm.protocols import Summarizer, Work
from lcm.records import CompactionReport, SummaryRequest


def in_lockstep(works: Iterable[Work], summarizer: Summarizer, width: int = 64) -> Iterator[CompactionReport]:
    """Drive works to their ends, at most `width` at a time; their reports come in the order of the works.

    Every round asks the summarizer once, for the next request of each work that is under way.
    """
    waiting = iter(works)
    reports: dict[int, CompactionReport] = {}
    pending: dict[int, tuple[Work, SummaryRequest]] = {}
    begun = told = 0
    while True:
        before = begun
        for work in islice(waiting, width - len(pending)):
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
        results = summarizer.summarize([request for _, request in pending.values()])
        for (number, (work, _)), result in zip(list(pending.items()), results, strict=True):
            try:
                pending[number] = (work, work.send(result))
            except StopIteration as end:
                del pending[number]
                reports[number] = end.value


def run(work: Work, summarizer: Summarizer) -> CompactionReport:
    """Drive one work to its end."""
    return next(in_lockstep([work], summarizer))
