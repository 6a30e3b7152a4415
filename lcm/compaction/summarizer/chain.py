"""Summarizers in the order in which they are asked."""

import logging
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from lcm.errors import AuthError, LcmError, ModelError, UnrecordedReplyError
from lcm.protocols.compaction import Summarizer
from lcm.records.summary import SummaryRequest, SummaryResult

_PADDING = re.compile(r"</?s>|<(?:pad|unk|mask)>|<extra_id_\d+>|\[(?:PAD|UNK|CLS|SEP|MASK)\]", re.IGNORECASE)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Chain:
    """Asks each summarizer for the summaries that those before it did not give; a batch stays a batch.

    No summary is one that failed, is blank, or holds nothing but a model's padding and marks without a letter or digit.
    Where no summarizer gives one, the failure of the last is the result.
    """

    summarizers: Mapping[str, Summarizer]
    order: Sequence[str]
    """Names of them; those that are not named are never asked."""

    def __post_init__(self) -> None:
        if not self.order or len(set(self.order)) < len(self.order):
            raise ValueError(f"order must name each summarizer once, and at least one, got {list(self.order)}")
        if unknown := [name for name in self.order if name not in self.summarizers]:
            raise ValueError(f"order names {unknown[0]!r}; choose from: {', '.join(sorted(self.summarizers))}")

    def summarize(self, requests: Sequence[SummaryRequest], *, incidents: Counter[str]) -> list[SummaryResult]:
        """One result a request.

        Raises:
            UnrecordedReplyError: if a replay lacks a reply, in whose place nothing may stand.
        """
        results: dict[int, SummaryResult] = {}
        passed_on: dict[int, list[str]] = {}
        waiting = list(range(len(requests)))
        for name in self.order:
            if not waiting:
                break
            found = _checked(name, _asked(self.summarizers[name], name, [requests[i] for i in waiting], incidents))
            results.update(zip(waiting, found, strict=True))
            _warn(name, found)
            waiting = [i for i in waiting if results[i].failure is not None]
            for i in waiting:
                problem = "was refused" if isinstance(results[i].failure, AuthError) else "gave no summary"
                passed_on.setdefault(i, []).append(f"{name} {problem}")
            for i in passed_on.keys() - set(waiting):
                incidents.update(f"{problem}: {name} stood in" for problem in passed_on.pop(i))
        for problems in passed_on.values():
            incidents.update(f"{problem}: nothing stood in" for problem in problems)
        return [results[i] for i in range(len(requests))]


def _asked(
    summarizer: Summarizer, name: str, requests: Sequence[SummaryRequest], incidents: Counter[str]
) -> list[SummaryResult]:
    try:
        return summarizer.summarize(requests, incidents=incidents)
    except UnrecordedReplyError:
        raise
    except ModelError as error:
        return [SummaryResult("", 0.0, name, failure=error)] * len(requests)


def _checked(name: str, results: Sequence[SummaryResult]) -> list[SummaryResult]:
    """The results, a text without words as the failure that it is."""
    return [
        result
        if result.failure is not None or has_words(result.text)
        else replace(result, text="", confidence=0.0, failure=LcmError(f"{name} wrote no words: {result.text[:80]!r}"))
        for result in results
    ]


def _warn(name: str, results: Sequence[SummaryResult]) -> None:
    failures = [result.failure for result in results if result.failure is not None]
    if failures:
        _log.warning("%s gave no summary of %d of %d texts: %s", name, len(failures), len(results), failures[0])


def has_words(text: str) -> bool:
    """Say whether a letter or digit is left of a text without the tokens that pad a model's output."""
    return any(character.isalnum() for character in _PADDING.sub(" ", text))
