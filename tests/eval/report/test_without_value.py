"""A question without a value is none of which a page tells a number: not in a headline, a curve, a kind of question."""

import json
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest

from eval.comparison.pairing import comparable
from eval.report.comparison_page import categories
from eval.report.figure import lines
from eval.report.ranking import columns_of_run, queries_of, rank_curves
from eval.report.run_page import curves, run_page
from eval.run import Run
from eval.table import Table
from tests.support.run_folders import write_run_folder

VALUES: Sequence[float | None] = [1.0, 1.0, 0.0, None]
RANKINGS = {"q000": ["m1"], "q001": ["m1"], "q002": ["m2"]}
KINDS = ["one", "one", "other", "other"]


def folder(path: Path, values: Sequence[float | None] = VALUES) -> Path:
    """A run of four judged questions; of the last the memory said nothing."""
    write_run_folder(path, {"recall@10": values}, KINDS, rankings=RANKINGS)
    run = pl.read_parquet(path / "run.parquet")
    run.with_columns(score=pl.lit(1.0)).write_parquet(path / "run.parquet")
    summary = json.loads((path / "summary.json").read_text())
    summary |= {
        "measures": {"recall@10": {"value": 2 / 3, "n": 3, "low": None, "high": None}},
        "arms": {},
        "categories": {},
        "interval": {"confidence": 0.95},
        "counts": {"queries": 4, "judged_queries": 4, "workspaces": 1, "messages": 2, "documents": 2},
    }
    (path / "summary.json").write_text(json.dumps(summary))
    return path


@pytest.fixture
def partly(tmp_path: Path) -> Path:
    return folder(tmp_path / "partly")


def test_a_headline_says_over_how_many_its_mean_is_and_a_curve_ends_there(partly: Path) -> None:
    columns, queries = columns_of_run(Run(partly, "system")), queries_of(Run(partly))
    assert run_page(Run(partly), columns, queries).headline[0] == "recall@10 is 0.667, over 3 of 4 judged questions."
    assert rank_curves(columns, queries)["system"][-1][1] == pytest.approx(2 / 3)


def test_curves_beside_each_other_are_over_the_questions_that_both_answered(partly: Path, tmp_path: Path) -> None:
    whole = folder(tmp_path / "whole", [1.0, 1.0, 0.0, 0.0])
    columns = [columns_of_run(Run(partly, "a"))[0], columns_of_run(Run(whole, "b"))[0]]
    figure = curves(columns, queries_of(Run(whole))).parts[0]
    same = {name: [(1, 2 / 3)] for name in ("a", "b")}
    assert figure == lines(same, "Recall by ranks that are read", "ranks that are read", "recall")


def test_kinds_of_question_are_over_those_that_all_answered(partly: Path, tmp_path: Path) -> None:
    ours = comparable(folder(tmp_path / "ours", [1.0, 1.0, 0.0, 1.0]), "ours")
    section = categories(ours, [ours, comparable(partly, "theirs")], "recall@10", is_cost=False)
    (table,) = section.parts
    assert isinstance(table, Table)
    assert [row[:2] for row in table.rows] == [("one", 2), ("other", 1)]
    assert [(row[3].value, row[3].note) for row in table.rows] == [(1.0, "0.000"), (0.0, "0.000")]
