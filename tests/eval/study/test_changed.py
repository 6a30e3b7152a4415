"""What a table of points shows of the part that was swept, and what is said where all points are equal."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from eval.study.results import (
    PointResult,
    changed_measures,
    compared_by,
    equal_points,
    frame,
    markdown,
    marked,
    why_equal,
)
from eval.study.sweep import write_sweep
from pipelines.views.runs import show_points
from tests.support.run_folders import write_run_folder

NAMES = ("recall@10", "retained@2000", "retained@1000", "expansions@1000")
FOLDED = {"ratio": 3.5, "confidence": 0.5, "summaries": 7, "depth": 1, "depth_0": 5, "depth_1": 2}
FULL = "0 of 4 contexts compacted; the largest had 812 of the 6,000 tokens that trigger it"


def point(key: str, value: str, recall: float = 0.5, **sections: Any) -> PointResult:
    measures = {name: {"value": recall, "n": 3, "low": recall, "high": recall} for name in NAMES}
    summary = {"measures": measures, "counts": {"messages": 8, "workspaces": 1}, **sections}
    return PointResult(f"{key}{value}", f"{key}={value}", {key: value}, summary)


CONTEXTS = ["ratio", "confidence", "depth_0", "depth_1", "retained@1000", "retained@2000"]


@pytest.mark.parametrize(
    ("key", "shown"),
    [
        ("compaction.budget_tokens", CONTEXTS),
        ("summarizer", CONTEXTS),
        ("experiment", CONTEXTS),
        ("assembly.eviction", ["retained@1000", "retained@2000", "expansions@1000"]),
        ("admission.reject_threshold", ["admitted", "created"]),
        ("vector_index.ef", ["index_recall", "graph_64", "graph_384", "scan_384"]),
        ("fusion.dense_weight", []),
    ],
)
def test_a_table_begins_with_what_the_swept_part_changes(key: str, shown: list[str]) -> None:
    decided = {"create": 6, "merge": 1, "reject": 3}
    searched = {"recall": 0.99, "scan_384": {"share": 0.5}, "graph_384": {"share": 0.25}, "graph_64": {"share": 0.25}}
    sections = {"compression": FOLDED, "decisions": decided, "index_search": searched}
    points = [point(key, value, float(value), **sections) for value in "12"]
    assert changed_measures(points)[: len(shown)] == compared_by(points)[: len(shown)] == shown
    assert "recall@10" in compared_by(points)
    values = [points[0].value(name) for name in ("ratio", "depth_1", "admitted", "created")]
    assert values == [3.5, 2, 1 - 3 / 10, 6 / 10]


def test_points_that_differ_anywhere_are_not_equal() -> None:
    assert why_equal([point("a", "1"), point("a", "2", 0.6)]) == []
    assert why_equal([point("a", "1", compression=FOLDED), point("a", "2")]) == []
    assert why_equal([point("a", "1"), PointResult("b", "a=2", {"a": "2"}, error="no model")]) == []
    mixed = [point("system", "a", compression=FOLDED), point("system", "b", compression={"ratio": 1.0})]
    assert changed_measures(mixed) == [], "a system that does not fold leaves a sweep of systems as it is"


def test_what_became_of_parts_is_in_the_frame_and_has_no_best() -> None:
    points = [point("compaction.budget_tokens", value, float(value), compression=FOLDED) for value in "12"]
    assert frame(points)["ratio"].to_list() == [3.5, 3.5]
    assert "ratio.low" not in frame(points).columns
    assert (marked(points, "ratio"), marked(points, "recall@10")) == (None, 2.0)
    line = markdown(points, ["ratio", "depth_0", "recall@10"], "title", stars={"recall@10": [1]}).splitlines()[-1]
    assert line == "| `1 compaction.budget_tokens=2` | 3 | 3.500 | 5 | **2.000** [2.00 2.00] |"
    assert marked([point("a", "1"), point("a", "2")], "recall@10") is None, "all are equal"
    assert marked([point("a", "1")], "recall@10") == 0.5


def test_equal_points_say_that_no_context_was_compacted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    counts = {"messages": 8, "workspaces": 1, "contexts": 4, "contexts_compacted": 0}
    points = [point("compaction.budget_tokens", v, counts=counts, flags=[FULL, "x"]) for v in "12"]
    notes = why_equal(points)
    assert notes == [
        "all 2 points are equal by every mean, so none is best: compaction.budget_tokens changed nothing here",
        f"no context reached what triggers compaction, in any point; point 0: {FULL}",
    ]
    show_points(points, tmp_path)
    said = " ".join(capsys.readouterr().out.split())
    assert "*" not in said
    assert all(note in said for note in notes)
    wanted = [["compaction.budget_tokens=1"], ["compaction.budget_tokens=2"]]
    write_sweep(tmp_path, points, ["recall@10"], wanted, Counter(), None)
    page = (tmp_path / "sweep.md").read_text()
    assert "**0.500**" not in page
    assert f"- {notes[1]}" in page
    assert FULL in (tmp_path / "summary.json").read_text()


@pytest.mark.parametrize(
    ("key", "flags", "reason"),
    [
        ("summarizer", [], "nothing is compacted in any point: choose compaction=lossless or another"),
        ("admission.x", [], "no candidate was judged in any point: choose an admission or a deduplication"),
        ("vector_index.m", ["all exact (vector_index.from)", "few sessions"], "each point notes: all exact (vector_in"),
        ("fusion.k", ["few sessions"], "no run notes why"),
    ],
)
def test_equal_points_say_why(key: str, flags: list[str], reason: str) -> None:
    (_, *reasons) = why_equal([point(key, value, flags=flags) for value in "12"])
    assert len(reasons) == 1
    assert reasons[0].startswith(reason)


def test_points_that_are_equal_query_by_query_are_told_with_what_would_make_them_act(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a and c the means are equal, too, and their queries are not."""
    points = [point("decay", name, mean) for name, mean in (("a", 0.5), ("b", 0.5), ("c", 0.5), ("d", 0.7), ("e", 0.7))]
    values = {"a": [0.0, 1.0], "b": [0.0, 1.0], "c": [1.0, 0.0], "d": [0.7, 0.7], "away": [0.7, 0.7]}
    for name, column in values.items():
        write_run_folder(tmp_path / f"decay{name}", {"recall@10": column})
    (note,) = equal_points(tmp_path, points)
    assert note.startswith(
        "equal for every query: decay=a, decay=b: decay changed nothing between them (no document is "
    )
    assert "reinforcement=recall, decay.recency_lifts=true, a lower floor" in note
    assert equal_points(tmp_path, points[2:]) == [], "of e nothing is at hand"
    assert equal_points(tmp_path, points[:2]) == [], "all are equal, which is told otherwise"
    show_points(points, tmp_path)
    assert note in " ".join(capsys.readouterr().out.split())
