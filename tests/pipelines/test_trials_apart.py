"""Trials of a study that an executor's workers make side by side."""

from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from eval.executor import FailedItem, Local
from eval.study.settings import Space, Study
from lcm.errors import LcmError
from pipelines.steps import trials as trials
from pipelines.steps.search import StudySetup, TrialConfigs
from pipelines.steps.trials import TrialEnd
from tests.pipelines.conftest import Finished, Lcm
from tests.pipelines.test_tune import read
from tests.pipelines.test_tune import trials as rows_of
from tests.support.looked_at import STUDIED
from tests.support.ray_of_two import RAY_OF_TWO

RECALL = {"measure": "recall@10", "direction": "maximize"}
CONFIGS = TrialConfigs(["system=hybrid", "executor=local", "executor.workers=3", "+executor.more=1"])


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["local", pytest.param("ray", marks=[*RAY_OF_TWO, pytest.mark.full])])
def test_workers_make_each_trial_once_with_the_numbers_of_one_process(
    executor: str, lcm: Lcm, studied: Finished, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    if executor == "ray":
        request.getfixturevalue("ray_of_two")
    monkeypatch.setattr(trials, "trials_here", lambda *_: pytest.fail("a trial was made here"))
    apart = lcm(*STUDIED, "report=false", f"executor={executor}")
    assert apart.code == 0, apart.stderr
    shown = ["number", "fusion.dense_weight", "recall@10", "is_best"]
    assert rows_of(apart).select(shown).equals(rows_of(studied).select(shown))
    told = {line.split(":")[0] for line in apart.stdout.splitlines()}
    assert told >= {f"trial {number}" for number in range(4)}
    assert read(apart)["metrics"]["best/recall@10"] == read(studied)["metrics"]["best/recall@10"]


def test_a_worker_asks_its_workspaces_itself() -> None:
    assert CONFIGS.by_one_process().common == ("system=hybrid", "executor=none")


def test_a_worker_that_does_not_see_the_study_begins_none_of_its_own(tmp_path: Path) -> None:
    elsewhere = StudySetup(Study([RECALL]), Space(()), CONFIGS, None, (), (), tmp_path)  # type: ignore[arg-type]
    with pytest.raises(LcmError, match=r"study\.db is not there where a worker is: .* study\.storage=postgresql://"):
        list(trials._trials_of_worker(elsewhere))
    assert not list(tmp_path.iterdir())


@dataclass(frozen=True)
class Setup:
    configs: TrialConfigs = CONFIGS


class OneDies(Local):
    """An executor of which one worker dies."""

    def map(self, task: Any, items: Any) -> Generator[Any, None, None]:
        yield TrialEnd(0, "trial 0: recall@10 0.5")
        yield FailedItem(0, "its process ended with exit code -9")


def test_what_a_worker_that_dies_leaves_is_made_here(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    setup: Any = Setup()
    queue: Any = object()

    def made_here(of: object, search: Any, started: float) -> Generator[TrialEnd, None, None]:
        assert of is queue and search.configs.common[-1] == "executor=none"
        yield TrialEnd(1, "trial 1: recall@10 0.5")

    monkeypatch.setattr(trials, "trials_here", made_here)
    assert [end.number for end in trials.trials_apart(OneDies(workers=2), queue, setup)] == [0, 1]
    assert "a worker came to no end: its process ended with exit code -9" in capsys.readouterr().err
    with pytest.raises(LcmError, match="no worker came to its end"):
        list(trials.trials_apart(OneDies(workers=1), queue, setup))
