"""Tables fit the width that there is, and say what they hide and where it is."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eval.report.run_tables import UNCHANGED
from eval.run import Run, read_summary
from pipelines.views.runs import show_run
from tests.pipelines.conftest import Finished

Show = Callable[..., str]


@pytest.fixture
def show(evaluated: Finished, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Show:
    """What `lcm evaluate` ends with where its summary says something else."""
    monkeypatch.chdir(evaluated.place)
    folder = Path("runs/first")

    def shown(**said: Any) -> str:
        show_run({**read_summary(folder), **said}, folder, Run(folder).directions)
        return capsys.readouterr().out

    return shown


def test_five_measures_stand_on_eighty_columns(show: Show, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which a pipe has that says nothing else."""
    monkeypatch.delenv("COLUMNS")
    told = show()
    (heading,) = re.findall(r"┃ arm .*", told)
    shown = ["recall@10", "nDCG@10", "recall@2000t", "tokens@10", "MRR"]
    assert [cell.strip() for cell in heading.split("┃")[3:-1]] == shown
    assert "more measures and intervals in a wider terminal; the run folder holds all" in told


def test_a_caption_names_intervals_where_they_stand(show: Show, monkeypatch: pytest.MonkeyPatch) -> None:
    for columns, caption in (
        ("80", "mean over judged queries"),
        ("240", "mean over judged queries [95% bootstrap interval]"),
    ):
        monkeypatch.setenv("COLUMNS", columns)
        assert caption in show().splitlines()


def test_the_table_of_contexts_is_for_those_who_chose_some(show: Show) -> None:
    usual = show(changed={"fusion": "weighted_sum"})
    assert "┃ budget" not in usual
    assert UNCHANGED in usual
    for chosen in ("assembly", "measures.retention.budgets"):
        assert "┃ budget" in show(changed={chosen: "another"})


def test_the_sample_proves_nothing_wherever_its_numbers_stand(
    evaluated: Finished, swept: Finished, compared: Finished, regressed: Finished
) -> None:
    (page,) = swept.place.rglob("sweep.md")
    told = [page.read_text(), *(one.stdout for one in (evaluated, swept, compared, regressed))]
    assert all("the sample shows the tool; its numbers prove nothing" in text for text in told)
