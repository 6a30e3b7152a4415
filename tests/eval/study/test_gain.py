"""The best point of a sweep, and what it gains over the default."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from eval.study.gain import Gain, deciding_measure, gain, markdown, next_commands
from eval.study.results import PointResult, marked
from eval.study.results import markdown as table
from eval.study.sweep import best_point, numbered_point, write_sweep
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
    assert (found.point, found.is_default, found.against) == (2, True, "the default")
    assert found.told().startswith("best by recall@10: 2 system=b: +0.500 [")  # 3 answers other questions
    assert found.stars == {"recall@10": [2]}
    assert found.rows.select("point", "n", "difference", "verdict").rows() == [
        (2, 20, 0.5, "better"), (0, 20, pytest.approx(0.3), "better")
    ]  # fmt: skip
    # Ten of b's queries gain, six of a's; Holm: the least p times two.
    assert found.rows["p"].to_list() == [2 / 2**10, 2 / 2**6]
    assert found.rows["p_holm"].to_list() == [2 * 2 / 2**10, 2 / 2**6]
    assert "| 2 system=b | 20 | 0.600 | +0.500 | [" in markdown(found)


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
    assert chosen.told().startswith("Keep the default: none of 3 settings is significantly better by recall@10; ")
    assert chosen.told().endswith("against the default, cannot tell (p .094, corrected for having chosen among 3)")
    assert (alone.stars, chosen.stars) == ({"recall@10": [1]}, {})


def test_points_that_are_equal_are_held_against_a_default_that_is_not(tmp_path: Path) -> None:
    low, high = ([point(tmp_path, f"{values.count(1.0)}{name}", values) for name in "ab"] for values in (LOW, HIGH))
    found = gained(tmp_path, high, low[0])
    assert (found.point, found.stars, found.is_better) == (0, {"recall@10": [0]}, True)
    assert gained(tmp_path, low, high[0]).told().startswith("Keep the default: none of 2 settings is significantly bet")
    write_sweep(tmp_path, high, ["recall@10"], [["system=12a"], ["system=12b"]], Counter(), found)
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["notes"][0] == (
        "all 2 points are equal by every mean, and the default is not: system changed nothing between them"
    )
    assert summary["metrics"]["best/recall@10"] == 0.6


def test_a_loss_is_never_best(tmp_path: Path) -> None:
    default, *points = (point(tmp_path, name, values) for name, values in (("d", HIGH), ("a", MIDDLE), ("b", LOW)))
    found = gained(tmp_path, points, default)
    assert not found.is_better
    assert found.told().startswith(
        "Keep the default: none of 2 settings is significantly better by recall@10; the highest is 0 system=a: -0.200 ["
    )
    assert found.stars == {}
    assert next_commands(Path("runs/s"), is_better=found.is_better) == ["lcm compare runs/s"]
    assert "**" not in table(points, ["recall@10"], "title", stars=found.stars)
    (one,) = (gained(tmp_path, [default, points[1]], default),)
    assert one.told() == "Keep the default: the one other setting is not significantly better by recall@10"


def test_a_higher_mean_that_chance_explains_does_not_hide_a_point_that_is_better(tmp_path: Path) -> None:
    even = [0.5] * 20
    default, steady = point(tmp_path, "d", even), point(tmp_path, "steady", [0.7] * 10 + even[10:])
    wild = point(tmp_path, "wild", [1.0] * 8 + [0.0] * 3 + even[11:])  # +.125 on average, the other +.100
    found = gained(tmp_path, [wild, steady], default)
    assert [(row["point"], row["verdict"]) for row in found.rows.iter_rows(named=True)] == [
        (0, "cannot tell"), (1, "better")
    ]  # fmt: skip
    assert (found.point, found.stars) == (1, {"recall@10": [1]})


def test_a_star_stands_only_where_the_best_of_a_measure_is_better_beyond_chance(tmp_path: Path) -> None:
    dear, some = [100.0] * 20, [90.0] * 3 + [100.0] * 17
    default = point(tmp_path, "d", LOW, **{"tokens@10": dear, "MRR": LOW})
    frugal = point(tmp_path, "a", HIGH, **{"tokens@10": [50.0] * 20, "MRR": [*LOW[1:], 0.0]})
    found = gain(tmp_path, [default, frugal], default, ["recall@10", "tokens@10", "MRR"])
    assert found is not None and found.stars == {"recall@10": [1], "tokens@10": [1]}
    hardly = point(tmp_path, "b", HIGH, **{"tokens@10": some, "MRR": LOW})
    found = gain(tmp_path, [default, hardly], default, ["recall@10", "tokens@10"])
    assert found is not None and found.stars == {"recall@10": [1]}
    # Six queries are cheaper, p = .031: alone it is better, as the best of three it cannot be told.
    six = point(tmp_path, "c", LOW, **{"tokens@10": [90.0] * 6 + [100.0] * 14, "MRR": HIGH})
    for others, starred in (([], True), ([hardly, point(tmp_path, "e", HIGH, **{"tokens@10": dear})], False)):
        found = gain(tmp_path, [default, six, *others], default, ["recall@10", "MRR", "tokens@10"])
        assert found is not None and ("tokens@10" in found.stars) is starred


@pytest.mark.parametrize(
    ("values", "tokens", "expected"),
    [
        (HIGH, 50.0, {"best/recall@10": 0.6, "best/tokens@10": 50.0}),
        ([1.0, *LOW[1:]], 150.0, {"best/recall@10": 0.1, "best/tokens@10": 100.0}),  # the highest, but for chance
    ],
)
def test_the_metric_of_a_sweep_is_what_its_verdict_keeps(tmp_path: Path, values, tokens, expected) -> None:
    default = point(tmp_path, "d", LOW, **{"tokens@10": [100.0] * 20})
    points = [default, point(tmp_path, "a", values, **{"tokens@10": [tokens] * 20})]
    names = ["recall@10", "tokens@10"]
    write_sweep(tmp_path, points, names, [[], ["a=1"]], Counter(), gain(tmp_path, points, default, names))
    metrics = json.loads((tmp_path / "summary.json").read_text())["metrics"]
    assert {name: value for name, value in metrics.items() if name.startswith("best/")} == pytest.approx(expected)


def test_without_a_default_the_first_point_that_finished_stands_for_it(tmp_path: Path) -> None:
    low, high = point(tmp_path, "a", LOW), point(tmp_path, "b", HIGH)
    for default in (None, PointResult("default", "default", error="no")):
        found = gained(tmp_path, [PointResult("x", "system=x", error="no"), low, high], default)
        assert (found.is_default, found.against) == (False, "the first point, system=a")
        assert found.record()["baseline"] == "a"
    found = gained(tmp_path, [low, high], high)
    assert found.told() == "Keep the default: the one other setting is not significantly better by recall@10"
    assert found.record()["verdict"] is None
    alone = gained(tmp_path, [low, PointResult("x", "system=x", error="no")], low)
    assert alone.told() == "Keep the default: no other setting finished"


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
        (None, "sweep: no point of this sweep is best; name one by its number, as "),
        ("..", "is damaged: '..' is no point of this sweep"),
        ("../elsewhere", "is damaged: '../elsewhere' is no point of this sweep"),
        ("gone", "gone, the best point of the sweep, is not there: repeat the sweep"),
    ],
)
def test_a_best_point_that_is_none_is_refused(tmp_path: Path, best: str | None, message: str) -> None:
    write_run_folder(tmp_path / "elsewhere", {"recall@10": LOW})
    (tmp_path / "sweep").mkdir()
    told: dict[str, Any] = {"label": "k=1", "measure": "recall@10", "value": 0.5, "baseline": "a", "is_default": True}
    told |= {"folder": best, "verdict": "better"}
    summary = {"kind": "sweep", "name": "sweep", "points": [], "best": best and told}
    (tmp_path / "sweep" / "summary.json").write_text(json.dumps(summary))
    with pytest.raises(LcmError, match=re.escape(message)):
        best_point(tmp_path / "sweep")


def test_of_a_sweep_without_a_better_point_one_is_asked_for_by_name(tmp_path: Path) -> None:
    write_run_folder(tmp_path / "b", {"recall@10": LOW})
    points = [{"folder": "a", "label": "k=1", "error": "no"}, {"folder": "b", "label": "k=2", "error": None}]
    told = {"label": "k=2", "measure": "recall@10", "value": 0.5, "baseline": "d", "is_default": True, "folder": "b"}
    for verdict in ("worse", "cannot tell", "same", None):
        summary = {"kind": "sweep", "name": "sweep", "points": points, "best": {**told, "verdict": verdict}}
        (tmp_path / "summary.json").write_text(json.dumps(summary))
        with pytest.raises(LcmError) as refused:
            best_point(tmp_path)
        assert str(refused.value) == (
            f"{tmp_path}: no setting is significantly better than the default by recall@10: keep it, or "
            f"name the point, as {tmp_path}/1 (k=2, the highest by recall@10)"
        )
    assert numbered_point(tmp_path / "1") == (tmp_path / "b", "k=2")
    assert numbered_point(tmp_path / "b") is numbered_point(tmp_path / "one") is None
    for number, why in ((0, "point 0, k=1, did not finish"), (2, "has points 0 to 1, no point 2")):
        with pytest.raises(LcmError, match=why):
            numbered_point(tmp_path / str(number))


def of_conversations(name: str, retained: float, cost: float, recoverable: float) -> PointResult:
    told = {"retained": retained, "context_tokens": cost, "recoverable": recoverable}
    section = {"system@2000": {one: {"value": value, "n": 3, "low": None, "high": None} for one, value in told.items()}}
    return PointResult(name, f"system={name}", {"system": name}, {"measures": {}, "survival": section})


def test_the_best_that_overspends_its_budget_says_so(tmp_path: Path) -> None:
    results = [of_conversations("a", 0.4, 1800.0, 0.5), of_conversations("b", 0.6, 2500.0, 0.3)]
    found = gained(tmp_path, results, results[0], "survival.retained@2000")
    assert (found.point, found.drawn) == (1, "conversation")
    assert "the highest, 1 system=b, was read on other conversations, and cannot be held against it" in found.told()
    assert found.told().endswith("; its contexts overspend their budget: 2,500 tokens on average under 2,000")
    assert "paired by conversation" in markdown(found)
    frugal = gain(tmp_path, results[:1] * 2, results[0], ["survival.retained@2000"])
    assert frugal is None or "overspend" not in frugal.told()
    # What is recoverable is what retained and missing leave: by it none is best.
    assert [marked(results, f"survival.{name}@2000") for name in ("recoverable", "retained")] == [None, 0.6]
