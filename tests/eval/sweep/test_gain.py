"""The best point of a sweep, and what it gains over the default."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from eval.sweep.gain import Gain, deciding_measure, gain, markdown
from eval.sweep.results import PointResult, marked
from eval.sweep.sweep_folder import best_point
from lcm.errors import LcmError
from tests.support.run_folders import write_run_folder


def point(folder: Path, name: str, values: list[float], text: str = "What?", **more: list[float]) -> PointResult:
    measured = {"recall@10": values, **more}
    write_run_folder(folder / name, measured, text=text)
    told = {
        measure: {"value": sum(each) / len(each), "n": len(each), "low": 0.1, "high": 0.9}
        for measure, each in measured.items()
    }
    directions: Any = dict.fromkeys(told, "higher") | {"tokens@10": "lower"}
    return PointResult(name, f"system={name}", {"system": name}, {"measures": told}, directions=directions)


LOW, MIDDLE, HIGH = ([0.0] * (20 - ones) + [1.0] * ones for ones in (2, 8, 12))


def test_points_are_held_against_the_default(tmp_path: Path) -> None:
    results = [
        point(tmp_path, "a", MIDDLE),
        PointResult("failed", "system=failed", error="it did not"),
        point(tmp_path, "b", HIGH),
        point(tmp_path, "elsewhere", [1.0] * 20, text="Who?"),
    ]
    default = point(tmp_path, "default", LOW)
    found = gained(tmp_path, results, default)
    assert (found.point, found.is_default, found.against) == (3, True, "the default")
    assert found.row is None  # it answers other questions
    assert "it was asked other questions than the default" in found.told()
    assert found.rows.select("point", "n", "difference", "verdict").rows() == [
        (2, 20, 0.5, "better"), (0, 20, pytest.approx(0.3), "better")
    ]  # fmt: skip
    # Ten of b's queries gain, six of a's; Holm: the least p times two.
    assert found.rows["p"].to_list() == [2 / 2**10, 2 / 2**6]
    assert found.rows["p_holm"].to_list() == [2 * 2 / 2**10, 2 / 2**6]
    assert "| 2 | 20 | 0.600 | +0.500 | [" in markdown(found)


def gained(folder: Path, results: list[PointResult], default: PointResult | None, measure: str = "recall@10") -> Gain:
    found = gain(folder, results, default, [measure])
    assert found is not None
    return found


def test_the_choice_among_many_is_paid_for(tmp_path: Path) -> None:
    """Six queries gain, p = .031: alone it is better, as the best of three it cannot be told."""
    default, best = point(tmp_path, "default", LOW), point(tmp_path, "best", [0.0] * 12 + [1.0] * 8)
    others = [point(tmp_path, name, LOW) for name in ("c", "d")]
    alone, chosen = gained(tmp_path, [default, best], default), gained(tmp_path, [default, best, *others], default)
    assert alone.row is not None and chosen.row is not None
    assert (alone.row["verdict"], alone.row["p_holm"]) == ("better", 2 / 2**6)
    assert (chosen.row["verdict"], chosen.row["p_holm"]) == ("cannot tell", 3 * 2 / 2**6)
    assert chosen.row["low"] <= alone.row["low"] <= alone.row["high"] <= chosen.row["high"]
    assert chosen.row["high"] - chosen.row["low"] > alone.row["high"] - alone.row["low"]  # they hold for all three
    assert chosen.told().endswith("against the default, cannot tell (p .094, corrected for having chosen among 3)")


def test_without_a_default_the_first_point_that_finished_stands_for_it(tmp_path: Path) -> None:
    low, high = point(tmp_path, "a", LOW), point(tmp_path, "b", HIGH)
    for default in (None, PointResult("default", "default", error="no")):
        found = gained(tmp_path, [PointResult("x", "system=x", error="no"), low, high], default)
        assert (found.is_default, found.against) == (False, "the first point, system=a")
        assert found.record()["baseline"] == "a"
    found = gained(tmp_path, [low, high], high)
    assert found.told() == "best by recall@10: 1 system=b, the default: no point is better"
    assert found.record()["verdict"] is None


def test_the_measure_that_decides_is_no_cost_and_tells_points_apart(tmp_path: Path) -> None:
    same = {"recall@10": MIDDLE, "tokens@10": [100.0] * 20}
    one = point(tmp_path, "a", same["recall@10"], **{"tokens@10": [1.0] * 20, "MRR": LOW, "nDCG@10": LOW})
    two = point(tmp_path, "b", same["recall@10"], **{"tokens@10": [9.0] * 20, "MRR": HIGH, "nDCG@10": HIGH})
    names = ["tokens@10", "MRR", "recall@10", "nDCG@10"]
    assert deciding_measure([one, two], names) == "nDCG@10"
    assert deciding_measure([one, one], ["tokens@10", "recall@10"]) is None
    assert gain(tmp_path, [one, one], one, names) is None
    assert markdown(None) == ""


def test_of_a_point_that_another_machine_keeps_nothing_is_paired(tmp_path: Path) -> None:
    away = PointResult("gone", "system=gone", {}, point(tmp_path, "a", HIGH).summary)
    assert gained(tmp_path, [point(tmp_path, "b", LOW), away], None).rows.is_empty()


@pytest.mark.parametrize(
    ("best", "message"),
    [
        (None, "no point of this sweep is best; name the folder of one of its points"),
        ("..", "is damaged: '..' is no point of this sweep"),
        ("../elsewhere", "is damaged: '../elsewhere' is no point of this sweep"),
        ("gone", "gone, the best point of the sweep, is not there: repeat the sweep"),
    ],
)
def test_a_best_point_that_is_none_is_refused(tmp_path: Path, best: str | None, message: str) -> None:
    write_run_folder(tmp_path / "elsewhere", {"recall@10": LOW})
    (tmp_path / "sweep").mkdir()
    told = {"label": "k=1", "measure": "recall@10", "value": 0.5, "baseline": "a", "is_default": True, "folder": best}
    summary = {"kind": "sweep", "name": "sweep", "points": [], "best": best and told}
    (tmp_path / "sweep" / "summary.json").write_text(json.dumps(summary))
    with pytest.raises(LcmError, match=re.escape(message)):
        best_point(tmp_path / "sweep")


def of_conversations(name: str, retained: float, cost: float, recoverable: float) -> PointResult:
    told = {"retained": retained, "context_tokens": cost, "recoverable": recoverable}
    section = {"system@2000": {one: {"value": value, "n": 3, "low": None, "high": None} for one, value in told.items()}}
    return PointResult(name, f"system={name}", {"system": name}, {"measures": {}, "survival": section})


def test_the_best_that_overspends_its_budget_says_so(tmp_path: Path) -> None:
    results = [of_conversations("a", 0.4, 1800.0, 0.5), of_conversations("b", 0.6, 2500.0, 0.3)]
    found = gained(tmp_path, results, results[0], "survival.retained@2000")
    assert (found.point, found.drawn) == (1, "conversation")
    assert "it was read on other conversations than the default" in found.told()
    assert found.told().endswith("; its contexts overspend their budget: 2,500 tokens on average under 2,000")
    assert "paired by conversation" in markdown(found)
    frugal = gain(tmp_path, results[:1] * 2, results[0], ["survival.retained@2000"])
    assert frugal is None or "overspend" not in frugal.told()
    # What is recoverable is what retained and missing leave: by it none is best.
    assert [marked(results, f"survival.{name}@2000") for name in ("recoverable", "retained")] == [None, 0.6]
