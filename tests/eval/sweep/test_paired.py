"""Points of a sweep against the best of them."""

from pathlib import Path

import polars as pl
import pytest

from eval.sweep.paired import PER_QUERY, gap_cells, markdown, paired
from eval.sweep.results import PointResult


def point(folder: Path, name: str, values: list[float], digest: str = "d", **more: list[float]) -> PointResult:
    (folder / name).mkdir(parents=True)
    frames = [
        pl.DataFrame({"query_id": [f"q{n}" for n in range(len(each))], "value": each}).with_columns(
            arm=pl.lit("system"), measure=pl.lit(measure)
        )
        for measure, each in {"recall@10": values, **more}.items()
    ]
    pl.concat(frames).write_parquet(folder / name / PER_QUERY)
    measures = {"recall@10": {"value": sum(values) / len(values), "n": len(values), "low": 0.1, "high": 0.9}}
    return PointResult(name, f"system={name}", {}, {"measures": measures, "dataset": {"digest": digest}})


def test_each_point_is_paired_with_the_best(tmp_path: Path) -> None:
    results = [
        point(tmp_path, "a", [0.0, 1.0, 0.0, 1.0]),
        PointResult("failed", "system=failed", error="it did not"),
        point(tmp_path, "b", [1.0, 1.0, 0.0, 1.0]),
        point(tmp_path, "c", [0.0, 0.0, 0.0, 0.0]),
        point(tmp_path, "other data", [1.0, 1.0, 1.0, 1.0], digest="e"),
    ]
    rows = paired(tmp_path, results, ["recall@10"])
    assert rows.select("point", "n", "value", "difference").rows() == [
        (2, 4, 0.75, None), (0, 4, 0.5, -0.25), (3, 4, 0.0, -0.75)
    ]  # fmt: skip
    # One query of a differs: both signs of it are as far. Of c's three, two of eight assignments are.
    assert rows["p"].to_list() == [None, 1.0, 2 / 8]
    assert rows["p_holm"].to_list() == [None, 1.0, 2 / 8 * 2]
    assert rows.row(0, named=True)["value_low"] == 0.1
    assert gap_cells(rows.row(0, named=True)) == ("", "", "best")
    assert gap_cells(rows.row(2, named=True))[::2] == ("-0.750", "0.500")
    assert "| recall@10 | 3 | 4 | 0.000 | -0.750 | [" in markdown(rows)


def test_points_that_judge_other_queries_and_points_alone_are_not_compared(tmp_path: Path) -> None:
    alone = [point(tmp_path / "alone", "a", [1.0, 0.0])]
    assert paired(tmp_path / "alone", alone, ["recall@10"]).is_empty()
    assert markdown(paired(tmp_path / "alone", alone, ["recall@10"])) == ""
    uneven = [point(tmp_path, "a", [1.0, 1.0]), point(tmp_path, "b", [1.0, 0.0, 0.0])]
    assert paired(tmp_path, uneven, ["recall@10"])["point"].to_list() == [0]
    kept_elsewhere = PointResult("gone", "system=gone", {}, alone[0].summary)
    assert paired(tmp_path, [kept_elsewhere, *uneven[:1]], ["recall@10"]).is_empty()


def test_a_tiny_p_value_is_told_as_a_bound() -> None:
    row = {"difference": -0.25, "low": None, "high": None, "p_holm": 0.0002}
    assert gap_cells(row) == ("-0.250", "", "< 0.001")
    assert gap_cells(row | {"p_holm": pytest.approx(0.0005).expected})[2] in ("0.001", "0.000")
