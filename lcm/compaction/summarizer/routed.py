"""A summarizer for technical talk, and another for the rest."""

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from threading import Lock

from lcm.checks import check_range
from lcm.compaction.summarizer.chain import has_words
from lcm.compaction.summarizer.t5 import T5
from lcm.errors import AuthError, LcmError, ModelError, UnrecordedReplyError
from lcm.protocols.compaction import Summarizer
from lcm.records.summary import SummaryRequest, SummaryResult

_log = logging.getLogger(__name__)
_refusing = Lock()


@dataclass(frozen=True, slots=True)
class Routed:
    """`abstractive` summarises turns whose mean admission score is at least the threshold; `extractive` the others,
    those asked to be extractive, and whatever `abstractive` gives no words for. A batch stays a batch.

    Nothing stands in for refused credentials: they are the failure of this result and of each later one that
    `abstractive` would have made, without asking it again.

    Source: libravdb memory 1.3.5; 1.4.4, where no turn carries the score, so that nothing is ever routed, and where a
    failing model ends the compaction.
    """

    extractive: Summarizer
    abstractive: Summarizer | None
    """None: everything is extractive."""
    threshold: float = 0.6
    prepends_previous: bool = True
    """The previous summary becomes the first turn of what `abstractive` reads, for models without a place for it."""
    _refusals: list[AuthError] = field(default_factory=list, init=False, repr=False, compare=False)
    """The first one; empty while none is known."""

    def __post_init__(self) -> None:
        check_range(self, "threshold", ge=0, le=1)

    @property
    def reads_admission(self) -> bool:
        """Whether it depends on how technical turns are which summarizer is asked."""
        return self.abstractive is not None and self.threshold > 0

    @property
    def is_routing(self) -> bool:
        """Whether summaries do: without a model those of `abstractive` are extractive, too."""
        return self.reads_admission and not (isinstance(self.abstractive, T5) and self.abstractive.model is None)

    def summarize(self, requests: Sequence[SummaryRequest], *, incidents: Counter[str]) -> list[SummaryResult]:
        """One result a request.

        Raises:
            UnrecordedReplyError: if a replay lacks a reply, in whose place nothing may stand.
        """
        results: dict[int, SummaryResult] = {}
        abstract = [place for place, request in enumerate(requests) if self._is_abstractive(request)]
        if self.abstractive is not None and abstract:
            asked = [self._worded(requests[place]) for place in abstract]
            found = self._asked(self.abstractive, asked, incidents)
            results = {
                place: result
                for place, result in zip(abstract, found, strict=True)
                if isinstance(result.failure, AuthError) or (result.failure is None and has_words(result.text))
            }
            _report(len(abstract) - len(results), found, incidents)
        left = [place for place in range(len(requests)) if place not in results]
        if left:
            extracted = self.extractive.summarize([requests[place] for place in left], incidents=incidents)
            results.update(zip(left, extracted, strict=True))
        return [results[place] for place in range(len(requests))]

    def _is_abstractive(self, request: SummaryRequest) -> bool:
        return not request.is_extractive and request.technicality >= self.threshold

    def _asked(
        self, summarizer: Summarizer, requests: Sequence[SummaryRequest], incidents: Counter[str]
    ) -> list[SummaryResult]:
        with _refusing:
            known = list(self._refusals)
        found = _failed(known[0], len(requests)) if known else _asked(summarizer, requests, incidents)
        refusals = [result.failure for result in found if isinstance(result.failure, AuthError)]
        if refusals:
            with _refusing:
                is_first = not self._refusals
                self._refusals[:] = self._refusals or refusals[:1]
            incidents["abstractive was refused: no summary"] += len(refusals)
            if is_first:
                _log.warning("the credentials of abstractive were refused, it is asked no more: %s", refusals[0])
        return found

    def _worded(self, request: SummaryRequest) -> SummaryRequest:
        if not self.prepends_previous or not request.previous:
            return request
        text, turns = f"{request.previous}\n{request.text}", (request.previous, *request.turns)
        return replace(request, text=text, turns=turns, previous=None)


def _report(count: int, found: Sequence[SummaryResult], incidents: Counter[str]) -> None:
    if not count:
        return
    failures = (result.failure for result in found if not isinstance(result.failure, AuthError))
    why = next((failure for failure in failures if failure is not None), "it wrote no words")
    _log.warning("no abstractive summary of %d of %d texts, extractive ones stand in: %s", count, len(found), why)
    incidents["abstractive gave no summary: extractive stood in"] += count


def _asked(summarizer: Summarizer, requests: Sequence[SummaryRequest], incidents: Counter[str]) -> list[SummaryResult]:
    try:
        return summarizer.summarize(requests, incidents=incidents)
    except UnrecordedReplyError:
        raise
    except ModelError as error:
        return _failed(error, len(requests))


def _failed(failure: LcmError, count: int) -> list[SummaryResult]:
    return [SummaryResult("", 0.0, "abstractive", failure=failure)] * count
