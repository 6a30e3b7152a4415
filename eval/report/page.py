"""A report: one HTML file of sections, tables, figures and facts that needs nothing beside it, asks nothing of a
network, and runs its own script alone.

Further data lies compressed in blocks that are unpacked when somebody looks. A block is JSON, packed by gzip, in
base64: letters that end no element and mean nothing to a browser, whatever a transcript says.
"""

import base64
import gzip
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, ClassVar

from markupsafe import Markup

from eval.table import Table, shown
from lcm.encoding import well_formed
from lcm.files import private, write_text

_LEVEL = 6
"""Of gzip: a tenth larger than the best, at a third of its time."""


@dataclass(slots=True)
class Blocks:
    """The blocks of one page, by name."""

    packed: dict[str, str] = field(default_factory=dict)
    """Name -> base64; names are the page's own, never words of a transcript."""

    def add(self, name: str, value: Any) -> None:
        text = well_formed(json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False))
        self.packed[name] = base64.b64encode(gzip.compress(text.encode(), _LEVEL, mtime=0)).decode()

    def add_series(self, name: str, parts: Iterable[Sequence[Any]]) -> list[int]:
        """Add the parts of one long list, `name0`, `name1`, ...; returns where each begins."""
        starts, at = [], 0
        for number, part in enumerate(parts):
            self.add(f"{name}{number}", part)
            starts.append(at)
            at += len(part)
        return starts

    @property
    def size(self) -> int:
        """Bytes in the page."""
        return sum(map(len, self.packed.values()))


def parted(rows: Sequence[Any], sizes: Iterable[int], most: int) -> Iterator[Sequence[Any]]:
    """Cut a list into parts of about `most`, a row counting as its size says."""
    begin, total = 0, 0
    for place, size in enumerate(sizes):
        if total and total + size > most:
            yield rows[begin:place]
            begin, total = place, 0
        total += size
    if begin < len(rows):
        yield rows[begin:]


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
    """A part of a page under a heading; without parts, it is left out."""

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


PAGE = "report.html"


@private()
def write_page(path: Path, page: ReportPage) -> None:
    """Write a page that is there whole or not at all."""
    write_text(path, rendered(page))


def rendered(page: ReportPage) -> str:
    """The page as HTML.

    Its policy names the one style and the one script by their digests: whatever else a page came to hold would do
    nothing.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined  # here: only who writes a page needs it

    environment = Environment(
        loader=PackageLoader("eval.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["shown"] = shown
    style, script = _static("report.css"), _static("folding.js") + _static("report.js")
    policy = (
        f"default-src 'none'; style-src {_digest(style)}; script-src {_digest(script)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return environment.get_template("page.html").render(
        page=page,
        sections=[section for section in page.sections if section.parts],
        policy=policy,
        style=Markup(style),  # noqa: S704  # our own file
        script=Markup(script),  # noqa: S704  # our own file
        blocks=page.blocks.packed,
    )


def _static(name: str) -> str:
    return resources.files("eval.report").joinpath("static", name).read_text("utf-8")


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
