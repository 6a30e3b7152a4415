"""Results of a sweep: which point is best, and what the table and the plot show."""

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from matplotlib.axes import Axes

from eval.measures.names import Direction
from eval.study.results import PointResult, frame, markdown, marked, numbers
from eval.study.sweep import plot


def result(name: str, settings: dict[str, str], **measures: float | None) -> PointResult:
    entries = {key.replace("_at_", "@"): value for key, value in measures.items()}
    told = {key: {"value": value, "n": 3, "low": value, "high": value} for key, value in entries.items()}
    label = " ".join(f"{key}={value}" for key, value in settings.items())
    directions: dict[str, Direction] = {key: "lower" if "tokens" in key else "higher" for key in told}
    return PointResult(name, label, settings, {"measures": told}, directions=directions)


GRID = [
    result(f"{a}{b}", {"a": str(a), "b": str(b)}, recall_at_10=a * b / 10, tokens_at_10=100.0 * a)
    for a in (1, 2)
    for b in (1, 3)
]
FAILED = PointResult("failed", "a=x|y", {"a": "x"}, None, "it said no")


def test_the_best_of_a_cost_is_the_least() -> None:
    assert marked(GRID, "recall@10") == 2 * 3 / 10
    assert marked(GRID, "tokens@10") == 100.0
    costs = [result(str(n), {}, expansion_tokens_at_1000=n, context_tokens_at_1000=n) for n in (9.0, 7.0)]
    assert marked(costs, "expansion_tokens@1000") == marked(costs, "context_tokens@1000") == 7.0
    assert marked([FAILED], "recall@10") is None
    assert marked([result("none", {}, recall_at_10=None), *GRID], "recall@10") == 2 * 3 / 10


def test_the_frame_has_a_row_for_each_point_failed_ones_too() -> None:
    table = frame([*GRID, FAILED])
    assert table["point"].to_list() == [0, 1, 2, 3, 4]
    assert table["state"].to_list() == ["finished"] * 4 + ["failed"]
    assert table["error"].to_list() == [None] * 4 + ["it said no"]
    assert table["a"].to_list() == ["1", "1", "2", "2", "x"]  # text, for one is no number
    assert table["recall@10"].to_list() == [0.1, 0.3, 0.2, 0.6, None]
    assert frame(GRID)["a"].dtype == pl.Float64


def test_the_markdown_marks_the_best_and_names_what_failed() -> None:
    stars = {"recall@10": [3], "tokens@10": [0, 1]}
    lines = markdown([*GRID, FAILED], ["recall@10", "tokens@10"], "title", stars=stars).splitlines()
    assert lines[0] == "# title"
    assert "| `0 a=1 b=1` | 3 | 0.100 [.100 .100] | **100** |" in lines
    assert "| `3 a=2 b=3` | 3 | **0.600** [.600 .600] | 200 |" in lines
    assert "| `4 a=x\\|y` | 0 | - | - |" in lines
    assert "- point 4 failed: it said no" in lines


def test_a_swept_key_is_numbers_where_all_values_are() -> None:
    assert numbers(["1", "0.5", "1e-3"]) == [1.0, 0.5, 0.001]
    for texts in (["1", "fts5"], ["1", None], ["1", "nan"], ["[1,2]"]):
        assert numbers(texts) is None, texts


def test_numbers_are_plotted_and_names_are_not(tmp_path: Path) -> None:
    names = [result(name, {"text_index": name}, recall_at_10=0.5) for name in ("fts5", "bm25s")]
    assert not plot(names, ["recall@10"], tmp_path / "names.png")
    assert not plot([FAILED], ["recall@10"], tmp_path / "names.png")
    assert not (tmp_path / "names.png").exists()
    one = [result(str(a), {"a": str(a)}, recall_at_10=a / 10) for a in (1, 2, 3)]
    mixed = [result(f"{a}{c}", {"a": str(a), "c": c}, recall_at_10=a / 10) for a in (1, 2) for c in ("x", "y")]
    sizes = set()
    for name, drawn in (("one", one), ("two", GRID), ("mixed", mixed)):
        assert plot(drawn, ["recall@10", "tokens@10"], tmp_path / f"{name}.png")
        sizes.add((tmp_path / f"{name}.png").read_bytes())
    assert len(sizes) == 3


def test_a_haystack_is_drawn_as_large_as_a_query_sees_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = []
    monkeypatch.setattr(Axes, "plot", lambda axes, xs, ys, **_: drawn.append((axes.get_xscale(), xs, ys)))
    monkeypatch.setattr(Axes, "legend", lambda *_, **__: None)
    points = []
    for distractors, counts in {
        0: {"messages": 600, "workspaces": 2},
        1000: {"messages": 1600, "workspaces": 1, "messages_a_query": 1200},
    }.items():
        point = result(str(distractors), {"replay.distractors": str(distractors)}, recall_at_10=1 / (1 + distractors))
        points.append(replace(point, summary={**(point.summary or {}), "counts": counts}))
    assert plot(points, ["recall@10"], tmp_path / "sweep.png")
    assert drawn == [("log", (300.0, 1200.0), (1.0, 1 / 1001))]
    assert frame(points)["messages_a_query"].to_list() == [300.0, 1200.0]
