"""The fullest table that a terminal has room for."""

from bisect import bisect_left
from collections.abc import Callable, Collection, Sequence

from rich.console import Console
from rich.table import Table

_NARROWEST = 14
"""Letters that a column of words keeps; what is longer is folded there."""


def fits(out: Console, table: Table) -> bool:
    """Whether a table can be printed without a broken line."""
    return out.measure(table, options=out.options.update(width=10_000)).maximum <= out.width


def widest(out: Console, table: Callable[[int], Table], sizes: Sequence[int]) -> tuple[int, Table] | None:
    """The first size that fits, found by halving, and its table; None where none fits.

    Args:
        table: makes one of a size.
        sizes: ever smaller, and their tables ever narrower.
    """
    place = bisect_left(sizes, True, key=lambda size: fits(out, table(size)))
    return (sizes[place], table(sizes[place])) if place < len(sizes) else None


def fullest(
    out: Console, table: Callable[[Collection[str]], Table], left_out: Sequence[Collection[str]], words: int = 0
) -> tuple[Table, Collection[str]]:
    """The first table that fits, and the columns that it lacks; the last one where none does.

    Args:
        table: makes one without columns of these headings.
        left_out: what may be missing, the least first.
        words: the place of the column that is folded where that makes a table fit; half of the width at most.
    """
    for missing in left_out:
        made = table(missing)
        folded = made.columns[words]
        for folded.max_width in (out.width // 2, out.width // 3, out.width // 4, _NARROWEST):
            if fits(out, made):
                return made, missing
    return made, missing
