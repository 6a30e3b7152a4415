"""Figures as they are drawn: labels do not touch, and only what belongs together is joined."""

import itertools
import re

from eval.report.figure import lines
from eval.report.page import Figure


def drawings(figure: Figure) -> list[str]:
    return re.findall(r"<svg.*?</svg>", figure.svg)


def ticks(drawing: str, y: str) -> list[tuple[float, str]]:
    found = re.findall(rf'class="tick" x="([\d.]+)" y="{y}" text-anchor="middle">([^<]*)<', drawing)
    return [(float(x), text) for x, text in found]


def test_labels_of_an_axis_do_not_touch() -> None:
    close = [(0.124388, 0.5), (0.174643, 0.6), (0.337866, 0.6), (0.536781, 0.5)]
    for drawing in drawings(lines({"trials": close}, "t", "weight", "recall@10")):
        told = ticks(drawing, "300")
        assert len(told) >= 3
        assert all(b - a > 7 * (len(left) + len(right)) / 2 for (a, left), (b, right) in itertools.pairwise(told))
    apart = [(0.1, 0.5), (0.5, 0.6), (1.0, 0.6)]
    assert [text for _, text in ticks(drawings(lines({"a": apart}, "t", "w", "r"))[0], "300")] == ["0.1", "0.5", "1"]


def test_points_that_have_nothing_to_do_with_their_neighbours_are_not_joined() -> None:
    series = {"trial": [(0.0, 0.5), (1.0, 0.4)], "best so far": [(0.0, 0.5), (1.0, 0.5)]}
    for drawing in drawings(lines(series, "t", "trial", "recall@10", loose=("trial",))):
        assert drawing.count("<polyline") == 1
        assert drawing.count("<circle") == 2 * (2 + 1)
