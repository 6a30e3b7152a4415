"""What is shown of an index that may miss documents: of one run, and of the points of a sweep."""

from pathlib import Path
from typing import Any

import pytest

from eval.report.run_tables import index_table, searches_table
from eval.study.results import PointResult, repeated_notes
from eval.table import Table
from pipelines.views.runs import show_points

GRAPH = {"searches": 30, "share": 0.75, "recall": 0.98, "recall@10": 0.99}
SCAN = {"searches": 10, "share": 0.25, "recall": 1.0, "recall@10": 1.0}
FOUND = {"searches": 40, "share": 1.0, "recall": 0.985, "recall@10": None, "graph": 30, "scan": 10} | {
    "graph_64": GRAPH,
    "scan_384": SCAN,
}
TIMES = {
    "dense": {"p50_ms": 1.5, "n": 8},
    "dense_exact": {"p50_ms": 3.0, "n": 8, "slower": 7},
    "dense_graph_64": {"p50_ms": 1.25, "n": 8},
    "dense_exact_graph_64": {"p50_ms": 3.0, "n": 8, "slower": 7},
}


def read(table: Table | None) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Titles and cells."""
    assert table is not None
    return tuple(column.title for column in table.columns), [tuple(row) for row in table.texts()]


def test_each_way_stands_beside_exact_search_of_the_same_queries() -> None:
    headings, rows = read(index_table({"index_search": FOUND, "timing": {"latency_ms": TIMES}}))
    assert headings[-3:] == ("p50, ms", "exact p50, ms", "faster")
    assert rows == [
        ("all", "40", "100%", "0.985", "-", "1.50", "3.00", "7 of 8"),
        ("graph of 64", "30", "75%", "0.980", "0.990", "1.25", "3.00", "7 of 8"),
        ("scan of 384", "10", "25%", "1.000", "1.000", "-", "-", "-"),
    ]


def test_columns_without_a_value_are_left_out() -> None:
    untimed: dict[str, Any] = {"index_search": FOUND, "timing": {}}
    assert read(index_table(untimed))[0][-1] == "recall@10"
    assert read(searches_table([untimed]))[0][-1] == "scan of 384"
    assert index_table({"timing": {}}) is searches_table([None, {"timing": {}}]) is None


def test_a_point_has_one_row() -> None:
    plain = {
        "index_search": {name: one for name, one in FOUND.items() if name != "graph_64"}
        | {"scan_384": {**SCAN, "share": 1.0}},
        "timing": {},
    }
    headings, rows = read(searches_table([None, {"index_search": FOUND, "timing": {"latency_ms": TIMES}}, plain]))
    assert headings == (
        *("point", "searches", "recall of exact", "recall@10", "graph of 64", "scan of 384"),
        *("p50, ms", "exact p50, ms", "faster"),
    )
    assert rows == [
        ("1", "40", "0.985", "-", "75% at 0.980", "25% at 1.000", "1.50", "3.00", "7 of 8"),
        ("2", "40", "0.985", "-", "-", "100% at 1.000", "-", "-", "-"),
    ]


def test_what_several_points_note_is_told_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def point(name: str, *flags: str) -> PointResult:
        counts = {"messages": 1, "workspaces": 1}
        told = {"measures": {}, "counts": counts, "notes": ["of all"], "flags": list(flags), "timing": {}}
        return PointResult(name, f"ranking={name}", {"ranking": name}, told)

    results = [point("a", "of two", "of one"), point("b", "of two"), point("c"), PointResult("d", "ranking=d")]
    assert repeated_notes(results) == ["of all (3 of 4 points)", "of two (2 of 4 points)"]
    show_points(results, tmp_path)
    said = capsys.readouterr().out
    assert said.count("of all") == 1
    assert "of one" not in said
