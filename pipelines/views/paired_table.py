"""The table of points against the baseline of their sweep."""

from collections.abc import Collection

from rich.markup import escape
from rich.table import Table

from eval.comparison.wording import interval, probability, signed
from eval.study.gain import CONFIDENCE, Gain, with_baseline

PAIRED_POINTS = 12
"""So many are shown."""
INTERVAL = f"{100 * CONFIDENCE:g} % interval of all"


def paired_table(gain: Gain, left_out: Collection[str]) -> Table:
    """The best points first, the baseline among them, without columns of some headings."""
    shown = [name for name in ("difference", INTERVAL, "p (Holm)") if name not in left_out]
    table = Table()
    table.add_column("point", overflow="fold")
    for heading in (gain.measure, *shown):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    rows = gain.rows.head(PAIRED_POINTS)
    name = "the default" if gain.is_default else gain.baseline.label
    for row in with_baseline(rows):
        if row is None:
            told = (name, f"{rows['baseline'][0]:.3f}", *("" for _ in shown), "baseline")
            table.add_row(*map(escape, told))
            continue
        numbers = {
            "difference": signed(row["difference"], row["lower_is_better"]),
            INTERVAL: interval(row),
            "p (Holm)": probability(row["p_holm"]),
        }
        cells = (f"{row['point']} {row['label']}", f"{row['candidate']:.3f}", *(numbers[one] for one in shown))
        table.add_row(*map(escape, cells), escape(row["verdict"]))
    return table
