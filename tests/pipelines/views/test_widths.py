"""Tables fit the width that there is, and say what they hide and where it is."""

import re

import pytest

from tests.pipelines.conftest import QUICK, Lcm

RUN = ("evaluate", *QUICK, "arms=controls")


def tables(text: str) -> list[str]:
    return [line for line in text.splitlines() if line[:1] in "┏┃┡│└"]


@pytest.mark.parametrize("width", [80, *(pytest.param(width, marks=pytest.mark.full) for width in (60, 120, 200))])
def test_no_line_of_a_table_is_wider_than_what_there_is(width: int, lcm: Lcm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    for command in (RUN, (*RUN[:1], "-m", *RUN[1:], "fusion.dense_weight=0.5,0.7")):
        done = lcm(*command)
        lines = tables(done.stdout)
        assert lines
        assert max(map(len, lines)) <= width
        assert not any(line.startswith("┃") and "…" in line for line in lines)


def test_five_measures_stand_on_eighty_columns(lcm: Lcm, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which a pipe has that says nothing else."""
    monkeypatch.delenv("COLUMNS")
    done = lcm(*RUN)
    (heading,) = re.findall(r"┃ arm .*", done.stdout)
    assert [cell.strip() for cell in heading.split("┃")[3:-1]] == [
        "recall@10", "nDCG@10", "recall@2000t", "tokens@10", "MRR",
    ]  # fmt: skip
    assert "more measures and intervals in a wider terminal; the run folder holds all" in done.stdout


def test_intervals_stand_where_five_fit_with_them(lcm: Lcm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    shown = lcm(*RUN).stdout
    assert re.search(r"│ system +│ +91 │ 0\.\d{3} \[\.\d{3} \.\d{3}\]", shown)


@pytest.mark.full
def test_the_table_of_contexts_is_for_those_who_chose_some(lcm: Lcm) -> None:
    usual = ["evaluate", *(one for one in QUICK if not one.startswith("system=")), "arms=controls"]
    assert "┃ budget" not in lcm(*usual).stdout
    assert "┃ budget" in lcm(*RUN, "assembly=continuity").stdout
    assert "┃ budget" in lcm(*RUN, "measures.retention.budgets=[500]").stdout


@pytest.mark.full
def test_the_sample_proves_nothing_wherever_its_numbers_stand(lcm: Lcm) -> None:
    caveat = "the sample shows the tool; its numbers prove nothing"
    assert caveat in lcm(*RUN, "hydra.run.dir=a").stdout
    swept = lcm("evaluate", "-m", *QUICK, "fusion.dense_weight=0.5,0.7", "hydra.sweep.dir=b")
    assert caveat in swept.stdout
    assert caveat in (swept.place / "b" / "sweep.md").read_text()
    lcm("evaluate", *QUICK, "fusion.dense_weight=0.2", "hydra.run.dir=c")
    assert caveat in lcm("compare", "a", "c", "tracking=none").stdout
    assert caveat in lcm("regress", "a", "c", "tracking=none").stdout
