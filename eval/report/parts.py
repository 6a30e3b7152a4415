"""What a report page consists of, before it is HTML: sections of tables, figures and facts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from markupsafe import Markup

from eval.report.packing import Blocks
from eval.table import Table


@dataclass(frozen=True, slots=True)
class Figure:
    """A drawing with its words; the numbers behind it stand in a table beside it, or in the titles of its points."""

    kind: ClassVar[str] = "figure"
    caption: str
    svg: Markup


@dataclass(frozen=True, slots=True)
class Facts:
    """Names and what they are."""

    kind: ClassVar[str] = "facts"
    pairs: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Notes:
    """Sentences, each for itself."""

    kind: ClassVar[str] = "notes"
    lines: Sequence[str]


@dataclass(frozen=True, slots=True)
class Step:
    """A component of a system, and what it is set to."""

    role: str
    name: str
    settings: Sequence[tuple[str, str]] = ()
    more: int = 0
    """Further settings, which the configuration tells."""


@dataclass(frozen=True, slots=True)
class Flow:
    """A system as data passes through it: lanes of steps, each in order."""

    kind: ClassVar[str] = "flow"
    lanes: Mapping[str, Sequence[Step]]


@dataclass(frozen=True, slots=True)
class Source:
    """A text as it stands in a file, folded until it is asked for."""

    kind: ClassVar[str] = "source"
    title: str
    text: str


Part = Table | Figure | Facts | Notes | Flow | Source


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a page under a heading."""

    anchor: str
    title: str
    parts: Sequence[Part]
    lead: str = ""
    """What it shows, in a sentence."""


@dataclass(frozen=True, slots=True)
class ReportPage:
    """One page: what was found, and what lies behind it."""

    kind: str
    """`run`, `comparison`, `sweep`, `study`, `regression`."""
    title: str
    headline: Sequence[str]
    """What it comes to, in sentences."""
    sections: Sequence[Section]
    label: str = ""
    """What must stand beside the numbers."""
    blocks: Blocks = field(default_factory=Blocks)
    """What the explorer unpacks; empty where there is none."""
