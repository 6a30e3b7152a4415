"""Tables fit the terminal that they are shown on."""

from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from eval.study.results import PointResult
from pipelines.views import runs, terminal

MEASURES = {
    name: {"value": 0.5, "n": 91.0, "low": 0.4, "high": 0.6}
    for name in ("recall@5", "recall@10", "recall_all@10", "nDCG@10", "MRR", "session.recall@5", "tokens@10")
}


SUMMARY = {
    "dataset": {"name": "sample", "protocol": "evidence=original"},
    "interval": {"kind": "percentile bootstrap over queries", "confidence": 0.95},
    "counts": {"workspaces": 4, "messages": 4, "documents": 4, "judged_queries": 91, "queries": 102},
    "measures": MEASURES,
    "arms": {"bm25": MEASURES, "[odd] arm": MEASURES},
    "categories": {"single_hop": MEASURES},
    "timing": {"latency_ms": {"total": {"p50_ms": 1.0, "p95_ms": 2.0, "p99_ms": 3.0}}},
    "notes": [],
    "flags": [],
}


@pytest.fixture
def columns(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    def set_columns(width: int) -> None:
        monkeypatch.setattr(terminal, "console", lambda: Console(soft_wrap=True, width=width))

    return set_columns


def rows(said: str) -> list[str]:
    return [line for line in said.splitlines() if line[:1] in "┏┃┡│└"]


@pytest.mark.parametrize(
    ("width", "shown", "hidden"),
    [
        (200, ["0.500 [.400 .600]", "session.recall@5", "tokens@10"], []),
        (120, ["0.500 [.400 .600]", "recall@10", "MRR", "more measures in a wider terminal"], ["session.recall@5"]),
        (
            80,
            ["0.500", "recall@10", "nDCG@10", "tokens@10", "MRR", "more measures and intervals in a wider terminal"],
            ["[.400", "session.recall@5"],
        ),
        (40, ["0.500", "recall@10"], ["tokens@10"]),
    ],
)
def test_tables_fit_the_terminal(columns, capsys: pytest.CaptureFixture[str], width, shown, hidden) -> None:
    columns(width)
    runs.show_run(SUMMARY, Path("runs/1"), {"tokens@10": "lower"})
    said = capsys.readouterr().out
    assert max(map(len, rows(said))) <= width
    assert "…" not in said
    assert "[odd] arm" in said
    for text in shown:
        assert text in said
    for text in hidden:
        assert text not in said


def test_a_long_point_is_folded_rather_than_cut(columns, capsys: pytest.CaptureFixture[str]) -> None:
    columns(80)
    label = " ".join(f"ranking.stages.stage_{i}.threshold=0.5" for i in range(4))
    points = [
        PointResult("a", label, summary={"measures": MEASURES}),
        PointResult("b", "fusion.dense_weight=1", error="no model"),
    ]
    runs.show_points(points, Path("runs/1"))
    said = capsys.readouterr().out
    assert max(map(len, rows(said))) <= 80
    first_cells = "".join(line.split("│")[1].strip() for line in rows(said) if line.startswith("│"))
    assert f"0 {label}".replace(" ", "") in first_cells.replace(" ", "")
    assert "point 1 failed: fusion.dense_weight=1: no model" in said


def test_on_80_columns_a_scorecard_tells_what_contexts_cost(columns, capsys: pytest.CaptureFixture[str]) -> None:
    columns(80)
    names = ("retained", "recoverable", "missing", "mutated", "stale", "facts", "context_tokens", "filler_tokens")
    entry = {"value": 0.5, "n": 14.0, "low": 0.4, "high": 0.6}
    section = {"system@8000": dict.fromkeys(names, entry)}
    runs.show_run(SUMMARY | {"measures": {}, "arms": {}, "categories": {}, "survival": section}, Path("run"), {})
    (heading,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("┃ survival"))
    assert [cell.strip() for cell in heading.split("┃")[3:7]] == [
        "retained",
        "recoverable",
        "missing",
        "context_tokens",
    ]


def test_a_cell_is_written_by_what_its_measure_is(columns, capsys: pytest.CaptureFixture[str]) -> None:
    """A rating above 5 keeps its places and its interval; a cost above 5, as tokens are, is a whole number."""
    columns(200)
    entry = {"value": 7.25, "n": 91.0, "low": 6.875, "high": 12.5}
    measures = dict.fromkeys(("rating@10", "tokens@10", "rating"), entry) | {"recall@10": {**entry, "value": None}}
    runs.show_run(SUMMARY | {"measures": measures, "arms": {}, "categories": {}}, Path("run"), {"tokens@10": "lower"})
    (row,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("│ system"))
    cells = [cell.strip() for cell in row.split("│")[3:-1]]
    assert sorted(cells) == sorted(["-", "7", "7.250 [6.88 12.5]", "7.250 [6.88 12.5]"])
