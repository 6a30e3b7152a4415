"""A side that has no value of some questions is ranked, counted and told by those that it shares with the baseline."""

import re
from pathlib import Path

import polars as pl
import pytest

from eval.comparison.comparison import Comparison, compared
from eval.comparison.report import explained, headline, incidents, markdown, report, table
from eval.regression.regression import Regression
from eval.run import Run
from lcm.errors import LcmError
from pipelines.compare import show_comparison
from tests.support.run_folders import side

EASY_FIRST: list[float | None] = [1.0] * 20 + [0.0] * 20


@pytest.fixture
def found(tmp_path: Path) -> Comparison:
    """One answers the easy questions alone, and not all of them; one does better than the baseline at hard ones."""
    values: dict[str, list[float | None]] = {
        "base": EASY_FIRST,
        "survivor": [1.0] * 19 + [0.0] + [None] * 20,
        "better": [1.0] * 21 + [0.0] * 19,
    }
    return compared([side(tmp_path / name, {"recall@10": column}) for name, column in values.items()])


def test_sides_stand_by_what_can_be_compared_and_the_verdict_says_of_how_many_it_tells_nothing(
    found: Comparison, tmp_path: Path
) -> None:
    """The mean of the survivor, 0.95, is the highest, and it is worse than the baseline wherever it has a value."""
    assert [one.side.name for one in found.standings] == ["better", "base", "survivor"]
    told = [tuple(row[1:4]) for row in table(found).texts()]
    assert told == [("1 better", "0.525", "+0.025"), ("2 base", "0.500", ""), ("3 survivor", "0.950 n=20", "-0.050")]
    lacking = ", over 20 of 40 judged questions: it has no value of 20 (50%)"
    assert headline(found) == [
        "1 better: cannot tell it from the baseline",
        f"3 survivor: cannot tell it from the baseline{lacking}",
    ]
    assert explained(found).startswith("20 to 40 judged questions of 40, paired")
    fewer = side(tmp_path / "fewer", {"recall@10": [*EASY_FIRST[:30], *[None] * 10]})
    assert explained(compared([found.baseline.side, fewer])).startswith("30 judged questions of 40, paired")


def test_of_a_baseline_that_lacks_questions_the_others_are_ranked_by_its_own(tmp_path: Path) -> None:
    """Over the 30 that it has it is as good as the first and better than the second, which wins elsewhere."""
    base = side(tmp_path / "base", {"recall@10": [*EASY_FIRST[:30], *[None] * 10]})
    same = side(tmp_path / "same", {"recall@10": EASY_FIRST})
    worse = side(tmp_path / "worse", {"recall@10": [1.0] * 19 + [0.0] * 11 + [1.0] * 10})
    found = compared([base, worse, same])
    assert [one.side.name for one in found.standings] == ["base", "same", "worse"]


NOTE = "external memory mine 1 answered none of 40 queries and has no number: reset crashed: it ended with exit code 3"


def sides(folder: Path) -> list[Run]:
    ours = side(folder / "ours", {"recall@10": [1.0] * 40})
    better = side(folder / "better", {"recall@10": [0.0] * 20 + [1.0] * 20})
    nothing = pl.DataFrame(schema=better.values.schema)
    return [ours, better, better.having("mine", values=nothing, summary={**better.summary, "flags": [NOTE]})]


def test_a_side_without_a_number_stands_beside_the_others_and_says_why(tmp_path: Path) -> None:
    found = compared(sides(tmp_path))
    assert [standing.side.name for standing in found.standings] == ["ours", "better", "mine"]
    assert set(found.rows["side"]) == {1}
    assert headline(found)[1] == "3 mine: has no number"
    assert f"mine: {NOTE}" in found.notes


def test_nothing_is_held_against_a_side_without_a_number_and_the_gate_says_why(tmp_path: Path) -> None:
    ours, better, silent = sides(tmp_path)
    with pytest.raises(LcmError, match="mine has no number to be compared by: name another baseline first"):
        compared([silent, better, ours])
    with pytest.raises(LcmError, match=re.escape(f"the candidate has no number to be compared by: {NOTE}")):
        Regression().compare(ours, silent)


def test_what_a_side_survived_is_told_wherever_a_comparison_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ours, better, _ = sides(tmp_path)
    counted = {"external: texts repeated": 1200, "external: search timed out": 3}
    found = compared([ours, better.having(better.name, summary={**better.summary, "incidents": counted})])
    line = "2 better: survived: external: texts repeated (1,200 times), external: search timed out (3 times)"
    assert incidents(found) == [line]
    assert f"- {line}" in markdown(found, None)
    assert [one["incidents"] for one in report(found)["sides"]] == [{}, counted]
    show_comparison(found, tmp_path / "compare.md")
    assert line in " ".join(capsys.readouterr().out.split())
