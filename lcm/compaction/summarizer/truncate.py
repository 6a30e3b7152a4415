"""The beginning of the text in the place of a summary: what remains when nothing else gave one."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from lcm.checks import check_range
from lcm.errors import LcmError
from lcm.javascript import first_units, trim, utf16_length
from lcm.records.summary import SummaryRequest, SummaryResult

NOTHING_TO_SUMMARISE = "there is nothing to summarise: the text is blank"


@dataclass(frozen=True, slots=True)
class Truncate:
    """The first units of the text, a newline and the marker; a text that is no longer stays as it is.

    Its confidence is 0: nothing says that what matters stands at the beginning.

    Source: lossless-claw 0.6.3, the summarizer for emergencies, which may cut a character in two.
    """

    max_units: int = 3600
    """UTF-16 code units, the marker not counted."""
    aggressive_max_units: int = 2400
    """Of a request that is pressed for less."""
    marker: str = "[Truncated for context management]"
    """The last line of what was cut."""

    def __post_init__(self) -> None:
        check_range(self, "max_units", "aggressive_max_units", ge=2)  # room for one character

    def summarize(self, requests: Sequence[SummaryRequest], *, incidents: Counter[str]) -> list[SummaryResult]:
        return [self._result(request) for request in requests]

    def _result(self, request: SummaryRequest) -> SummaryResult:
        if not trim(request.text):
            return SummaryResult("", 0.0, "truncate", failure=LcmError(NOTHING_TO_SUMMARISE))
        units = self.aggressive_max_units if request.is_aggressive else self.max_units
        return SummaryResult(cut(request.text, units, self.marker), 0.0, "truncate")


def cut(text: str, units: int, marker: str) -> str:
    """The text if it has no more units, else its first ones, a newline and the marker."""
    return text if utf16_length(text) <= units else f"{first_units(text, units, 'dropped')}\n{marker}"
