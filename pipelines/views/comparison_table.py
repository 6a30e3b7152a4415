"""A comparison on the terminal."""

from dataclasses import replace
from pathlib import Path

from eval.comparison.comparison import Comparison
from eval.comparison.report import explained, headline, incidents, table
from pipelines.views.terminal import kept, say, show

_MOST_SIDES = 12


def show_comparison(comparison: Comparison, page: Path) -> None:
    """The fullest table that fits, best first; a line for each side; where the rest is."""
    beside = f"; {comparison.label}" if comparison.label else ""
    told = replace(table(comparison, _MOST_SIDES), caption=f"{comparison.title}{beside}", notes=[explained(comparison)])
    show(told, f"{page} has all")
    if (hidden := len(comparison.standings) - _MOST_SIDES) > 0:
        say(f"{hidden} more sides: {page} has all")
    for line in (*headline(comparison)[:_MOST_SIDES], *incidents(comparison)[:_MOST_SIDES]):
        say(line)
    for note in comparison.notes[:_MOST_SIDES]:
        say(f"note: {note}")
    kept(page)
