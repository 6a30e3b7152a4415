"""The beginning of the text in the place of a summary: what remains when nothing else gave one."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from lcm.checks import check_range
from lcm.compaction.summarizer.untrusted import harmless_beginning
from lcm.errors import LcmError
from lcm.javascript import first_units, trim, utf16_length
from lcm.protocols.models import TokenEstimator
from lcm.records.summary import SummaryRequest, SummaryResult
from lcm.token_estimator import ScriptAware

NOTHING_TO_SUMMARISE = "there is nothing to summarise: the text is blank"


@dataclass(frozen=True, slots=True)
class Truncate:
    """The first units of the text, a newline and the marker; a text that is no longer stays as it is.

    With `max_tokens` the marker is counted and always there, and what reads like an order to a model is left out.
    Its confidence is 0: nothing says that what matters stands at the beginning.

    Source: lossless-claw 0.6.3, the summarizer for emergencies, which may cut a character in two; with `max_tokens`
    0.15.3.
    """

    max_units: int | None = 3600
    """UTF-16 code units, the marker not counted; None = no bound of units."""
    aggressive_max_units: int | None = 2400
    """Of a request that is pressed for less; None = no bound of units."""
    max_tokens: int | None = None
    """Of the words and the marker; None = no bound of tokens."""
    marker: str = "[Truncated for context management]"
    """The last line of what was cut."""
    token_estimator: TokenEstimator = field(default_factory=ScriptAware)
    unused_where: ClassVar[Mapping[str, Mapping[str, object]]] = {"token_estimator": {"max_tokens": None}}

    def __post_init__(self) -> None:
        check_range(self, "max_units", "aggressive_max_units", ge=2, or_null=True)  # room for one character
        check_range(self, "max_tokens", ge=64, or_null=True, is_whole=True)  # room for either marker
        if self.max_tokens is None and None in (self.max_units, self.aggressive_max_units):
            raise ValueError("max_units and aggressive_max_units may be null beside max_tokens alone")

    def summarize(self, requests: Sequence[SummaryRequest], *, incidents: Counter[str]) -> list[SummaryResult]:
        return [self._result(request) for request in requests]

    def _result(self, request: SummaryRequest) -> SummaryResult:
        if not trim(request.text):
            return SummaryResult("", 0.0, "truncate", failure=LcmError(NOTHING_TO_SUMMARISE))
        units = self.aggressive_max_units if request.is_aggressive else self.max_units
        return SummaryResult(self._cut(request.text, units), 0.0, "truncate")

    def _cut(self, text: str, units: int | None) -> str:
        if self.max_tokens is None and units is not None:
            return cut(text, units, self.marker)
        return harmless_beginning(
            text, self.token_estimator, most_tokens=self.max_tokens, most_units=units, mark=self.marker
        )


def cut(text: str, units: int, marker: str) -> str:
    """The text if it has no more units, else its first ones, a newline and the marker."""
    return text if utf16_length(text) <= units else f"{first_units(text, units, 'dropped')}\n{marker}"
