"""What a finder finds, and what it is given to read."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

Kind = Literal[
    "path", "change", "command", "error", "identifier", "url", "number", "date", "name",
    "decision", "rule", "preference", "question",
]  # fmt: skip
"""`path`: a file that is named; `change`: what was done to a file; `command`: what was run, and how it ended;
`identifier`: hashes, ids, versions and names in code; `number`: with its unit or its label; `date`: days and times of
day; `rule`: what must, must not or may be done; `question`: one that was asked."""

KINDS: tuple[Kind, ...] = Kind.__args__  # type: ignore[attr-defined]


class Statement(NamedTuple):
    """One thing that a text states."""

    kind: Kind
    key: str
    """What it is about, folded. Two statements of one kind and key are about the same."""
    value: str
    """What is said of it, folded; empty where naming it is all that is said."""
    said: str
    """Its words as they stand."""
    start: int
    end: int
    """Where they stand, in code points."""


class Call(NamedTuple):
    """One call of a tool within a text."""

    name: str
    arguments: Mapping[str, Any]
    start: int
    end: int
    """Where the text tells it."""
    call_id: str = ""
    """Joins it to its result."""


_CALL_HEAD = 300


@dataclass(frozen=True, slots=True)
class ReadText:
    """A text as finders read it."""

    text: str
    calls: tuple[Call, ...] = ()
    """The calls of tools that the text tells of; where it is a summary, its words are all there is."""
    states_rules: bool = True
    """Whether its speaker can lay down rules and preferences."""
    sentences: tuple[tuple[int, int], ...] = field(default=())
    """Where each begins and ends; what is no prose, as blocks of code, is left out."""

    @property
    def places(self) -> tuple[tuple[int, int], ...]:
        """The sentences, and the beginning of each call: what it is given, short of the content of files."""
        return (*self.sentences, *((call.start, min(call.end, call.start + _CALL_HEAD)) for call in self.calls))

    def tells(self, start: int) -> bool:
        """Whether what stands there is told, and is not within a file that a call writes."""
        return not any(call.start + _CALL_HEAD <= start < call.end for call in self.calls)

    def words(self, place: tuple[int, int]) -> str:
        return self.text[place[0] : place[1]]


Finder = Callable[[ReadText], Iterator[Statement]]
"""Finds the statements of one kind in a text.

Laws: deterministic; `said` is what stands between `start` and `end`; a sentence gives the same statements wherever it
stands, so that a text that quotes it states the same; nothing is found in the empty text.
"""
