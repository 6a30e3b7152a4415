"""Trials of a study that an executor's workers make side by side."""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import pytest

from eval.executor import FailedItem, Local
from lcm.errors import LcmError
from pipelines.steps import trials as trials
from pipelines.steps.search import TrialConfigs
from pipelines.steps.trials import TrialEnd
from tests.pipelines.conftest import Finished, Lcm
from tests.pipelines.test_tune import read
from tests.pipelines.test_tune import trials as rows_of
from tests.support.looked_at import STUDIED

CONFIGS = TrialConfigs(["system=hybrid", "executor=local", "executor.workers=3", "+executor.more=1"])


@pytest.mark.slow
def test_workers_make_each_trial_once_with_the_numbers_of_one_process(
    lcm: Lcm, studied: Finished, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trials, "trials_here", lambda *_: pytest.fail("a trial was made here"))
    apart = lcm(*STUDIED, "report=false", "executor=local")
    assert apart.code == 0, apart.stderr
    shown = ["number", "fusion.dense_weight", "recall@10", "is_best"]
    assert rows_of(apart).select(shown).equals(rows_of(studied).select(shown))
    told = {line.split(":")[0] for line in apart.stdout.splitlines()}
    assert told >= {f"trial {number}" for number in range(4)}
    assert read(apart)["metrics"]["best/recall@10"] == read(studied)["metrics"]["best/recall@10"]


def test_a_worker_asks_its_workspaces_itself() -> None:
    assert CONFIGS.by_one_process().common == ("system=hybrid", "executor=none")


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
