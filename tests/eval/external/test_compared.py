"""External memories beside others in a comparison."""

import re
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from eval.comparison.comparison import compared
from eval.comparison.comparison_report import headline, incidents, markdown, report
from eval.comparison.side import Side, read_side
from eval.regression.regression import Regression
from lcm.errors import LcmError
from pipelines.views.comparison_table import show_comparison
from tests.support.run_folders import write_run_folder

NOTE = "external memory mine 1 answered none of 40 queries and has no number: reset crashed: it ended with exit code 3"


def sides(folder: Path) -> list[Side]:
    write_run_folder(folder / "ours", {"recall@10": [1.0] * 40})
    write_run_folder(folder / "better", {"recall@10": [0.0] * 20 + [1.0] * 20})
    read = [read_side(folder / name, name) for name in ("ours", "better", "better")]
    silent = replace(
        read[2],
        name="mine",
        values=pl.DataFrame(schema=read[2].values.schema),
        summary={**read[2].summary, "flags": [NOTE]},
    )
    return [*read[:2], silent]


def test_a_side_without_a_number_stands_beside_the_others_and_says_why(tmp_path: Path) -> None:
    found = compared(sides(tmp_path))
    assert [standing.side.name for standing in found.standings] == ["ours", "better", "mine"]
    assert set(found.rows["side"]) == {1}
    assert headline(found)[1] == "3 mine: has no number"
    assert f"mine: {NOTE}" in found.notes


def test_nothing_is_held_against_a_side_without_a_number(tmp_path: Path) -> None:
    with pytest.raises(LcmError, match="mine has no number to be compared by: name another baseline first"):
        compared(sides(tmp_path)[::-1])


def test_the_gate_says_why_a_candidate_has_no_number(tmp_path: Path) -> None:
    ours, _, silent = sides(tmp_path)
    with pytest.raises(LcmError, match=re.escape(f"the candidate has no number to be compared by: {NOTE}")):
        Regression().compare(ours, silent)


def test_what_a_side_survived_is_told_wherever_a_comparison_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ours, better, _ = sides(tmp_path)
    counted = {"external: texts repeated": 1200, "external: search timed out": 3}
    found = compared([ours, replace(better, summary={**better.summary, "incidents": counted})])
    line = "2 better: survived: external: texts repeated (1,200 times), external: search timed out (3 times)"
    assert incidents(found) == [line]
    assert f"- {line}" in markdown(found, None)
    assert [one["incidents"] for one in report(found)["sides"]] == [{}, counted]
    show_comparison(found, tmp_path / "compare.md")
    assert line in " ".join(capsys.readouterr().out.split())


def test_a_side_that_answers_the_easy_half_stands_by_what_it_shares_and_says_so(tmp_path: Path) -> None:
    """It does as the other does where it answers, and its mean is twice as high."""
    write_run_folder(tmp_path / "easy", {"recall@10": [None] * 20 + [1.0] * 20})
    ours, better, _ = sides(tmp_path)
    found = compared([better, read_side(tmp_path / "easy", "easy"), ours])
    assert [standing.side.name for standing in found.standings] == ["ours", "better", "easy"]
    told = next(line for line in headline(found) if "easy" in line)
    assert "the same as the baseline, over 20 of 40 judged questions: it has no value of 20 (50%)" in told
    assert not any("has no value" in line for line in headline(found) if "ours" in line)
