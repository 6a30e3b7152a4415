"""The table of docs/scale.md is what its script works out of its figures."""

import re
from math import log

import pytest

from docs.experiments.scale_model import SIZES, Figures
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


def test_costs_follow_the_formulas() -> None:
    figures = Figures(compact_us=1000, embed_us=2000, graph_us=500, graph_at=100, workspace_messages=10, efficiency=0.5)
    assert figures.processor_seconds(10) == pytest.approx(
        {"compact": 10 * 1000 / 1e6, "embed": 10 * 2000 / 1e6, "index": 10 * 500 * log(10) / log(100) / 1e6}
    )
    one = (1000 + 2000 + 500 * log(10) / log(100)) / 3600
    assert abs(figures.hours(10**6, 1) - one) < 1e-9
    assert abs(figures.hours(10**6, 4) - one / 4 / 0.5) < 1e-9
