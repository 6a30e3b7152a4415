"""The table of docs/scale.md is what its script works out of its figures."""

import re

from experiments.scale_model import SIZES, Figures
from tests.conftest import ROOT


def test_the_table_is_what_the_figures_give() -> None:
    figures = Figures()
    rows = re.findall(r"^\| ([\d,]{9,}) \| (.*) \|$", (ROOT / "docs" / "scale.md").read_text(), re.MULTILINE)
    assert [int(size.replace(",", "")) for size, _ in rows] == list(SIZES)
    for size, cells in rows:
        messages = int(size.replace(",", ""))
        hours = [float(cell.replace(",", "")) for cell in cells.split(" | ")[:7]]
        each = [one / 3600 for one in figures.processor_seconds(messages).values()]
        expected = [*each, *(figures.hours(messages, processors) for processors in (1, 2, 64, 1024))]
        assert all(
            abs(told - found) <= max(0.005, 0.5 * (found >= 100)) for told, found in zip(hours, expected, strict=True)
        )
