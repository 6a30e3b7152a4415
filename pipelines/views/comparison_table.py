"""A comparison on the terminal."""

from collections.abc import Collection
from functools import partial
from pathlib import Path

from rich.markup import escape
from rich.table import Table

from eval.comparison.comparison import Comparison
from eval.comparison.comparison_report import HEADINGS, cells, explained, headline, incidents
from lcm.encoding import printable
from pipelines.views.fitting import fullest
from pipelines.views.terminal import console, kept, say

_COLORS = {"better": "green", "worse": "red", "cannot tell": "yellow"}
_MOST_SIDES = 12
_LEFT_OUT = ((), ("p (Holm)",), ("p (Holm)", "difference", "interval"))
"""What a narrow terminal lacks: a difference and its interval go together, for beside a mean an interval alone would
be read as the mean's."""
_NUMBERS = (2, 3, 5)
"""The headings of columns of numbers, by place."""


def show_comparison(comparison: Comparison, page: Path) -> None:
    """The fullest table that fits, best first; a line for each side; where the rest is."""
    out = console()
    table, left_out = fullest(out, partial(_table, comparison), _LEFT_OUT, words=1)
    beside = f"; {comparison.label}" if comparison.label else ""
    say(f"{comparison.title}{beside}")
    out.print(table, highlight=False, soft_wrap=False)
    say(explained(comparison))
    if left_out:
        say(f"{', '.join(left_out)} in a wider terminal; {page} has all")
    if (hidden := len(comparison.standings) - _MOST_SIDES) > 0:
        say(f"{hidden} more sides: {page} has all")
    for line in headline(comparison)[:_MOST_SIDES]:
        say(line)
    for line in incidents(comparison)[:_MOST_SIDES]:
        say(line)
    for note in comparison.notes[:_MOST_SIDES]:
        say(f"note: {note}")
    kept(page)


def _table(comparison: Comparison, left_out: Collection[str]) -> Table:
    table = Table()
    for i, heading in enumerate(HEADINGS):
        if heading not in left_out:
            table.add_column(heading, justify="right" if i in _NUMBERS else "left", no_wrap=i != 1, overflow="fold")
    before = None
    for row in cells(comparison):
        measure, side, *_, verdict = row
        if int(side.partition(" ")[0]) > _MOST_SIDES and verdict != "baseline":
            continue
        if before not in (None, measure):
            table.add_section()
        color = _COLORS.get(verdict)
        shown = [
            escape(printable(cell)) for heading, cell in zip(HEADINGS, row, strict=True) if heading not in left_out
        ]
        table.add_row(*shown[:-1], f"[{color}]{verdict}[/{color}]" if color else verdict)
        before = measure
    return table
