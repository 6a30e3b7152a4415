"""`lcm tune`: a study from its space to its folder, and what it refuses."""

import json
import shlex
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml

from eval.study import queue as trial_queue
from eval.study.point import POINT
from pipelines import cli
from pipelines.config import building, composition, conf_folder
from pipelines.steps import trials as trial
from pipelines.steps.interruption import INTERRUPTED
from pipelines.steps.search import TrialConfigs
from tests.pipelines.conftest import QUICK, Finished, Lcm
from tests.pipelines.test_report import words
from tests.support.looked_at import NO_CONTEXTS, ONE_WEIGHT, STUDIED, copied

TWO_WEIGHTS = ("space={fusion.dense_weight: {low: 0.0, high: 1.0}, fusion.lexical_weight: {low: 0.0, high: 1.0}}",)
BY_COST = (
    "study.objectives=[{measure: recall@10, direction: maximize, within: 0.02}, "
    "{measure: tokens@10, direction: minimize}]"
)


def folder(done: Finished, name: str = "study") -> Path:
    return done.place / "runs" / "tune" / name


def read(done: Finished, name: str = "study") -> dict[str, Any]:
    return json.loads((folder(done, name) / "summary.json").read_text())


def trials(done: Finished) -> pl.DataFrame:
    return pl.read_parquet(folder(done) / "study.parquet")


@pytest.fixture
def study(studied: Finished, tmp_path: Path) -> Path:
    """A copy of the study, where the same command finds it."""
    return copied(studied, tmp_path) / "runs" / "tune" / "study"


def test_a_study_is_kept_told_and_repeated(studied: Finished) -> None:
    assert {path.name for path in folder(studied).iterdir()} >= {
        *("study.parquet", "folds.parquet", "best.yaml", "config.yaml", "study.md", "summary.json", "report.html"),
        *("history.png", "slices.png"),
    }
    assert "4 different configurations are complete; below 30" in studied.stdout
    page = words(folder(studied) / "report.html")
    assert read(studied)["notes"]
    assert all(f"{note[1:]}." in page and note in studied.stdout for note in read(studied)["notes"])
    rows = trials(studied)
    assert rows["number"].to_list() == list(range(4))
    assert rows["fusion.dense_weight"].n_unique() == 4
    best = rows.filter(pl.col("is_best"))
    assert read(studied)["metrics"]["best/recall@10"] == best["recall@10"].item() == rows["recall@10"].max()
    assert "held out" in studied.stdout
    overrides = yaml.safe_load((folder(studied) / "best.yaml").read_text())
    assert shlex.join(["lcm", "evaluate", *overrides]) in (folder(studied) / "study.md").read_text()
    own = building.resolved(composition.composed([*overrides, "arms=none"]))
    kept = yaml.safe_load((folder(studied) / "config.yaml").read_text())
    assert all(kept[key] == own[key] for key in ("memory", "fusion", "dataset"))
    assert not {"study", "space"} & set(kept)


def test_a_study_goes_on_with_more_trials_and_repeats_its_best(lcm: Lcm, studied: Finished, study: Path) -> None:
    more = lcm(*STUDIED[:-1], "study.trials=5", "report=false")
    assert "Going on with study study: 4 trials are there" in more.stdout
    flags = ("is_best", "is_on_front")
    assert trials(more).drop(flags).head(4).equals(trials(studied).drop(flags))
    assert len(trials(more)) == 5
    for other, differs in (
        ([*QUICK, *TWO_WEIGHTS], "study.name=study was begun with something else (space differs)"),
        ([*QUICK, *ONE_WEIGHT, "ranking.stages.limit.n=10"], "(the configuration beside the space differs)"),
    ):
        refused = lcm("tune", *other, "study.trials=5")
        assert (refused.code, differs in refused.stderr) == (2, True), refused.stderr
    overrides = yaml.safe_load((folder(studied) / "best.yaml").read_text())
    quick = ("tracking=none", "arms=none", "measures.latency.queries=0", NO_CONTEXTS, "report=false")
    again = lcm("evaluate", *overrides, *quick, place="a")
    best = trials(studied).filter(pl.col("is_best"))["recall@10"].item()
    assert again.summary["measures"]["recall@10"]["value"] == best


def test_of_two_objectives_the_cheapest_near_the_best_is_picked(lcm: Lcm) -> None:
    done = lcm("tune", *QUICK, NO_CONTEXTS, *TWO_WEIGHTS, BY_COST, "study.trials=4")
    assert done.code == 0, done.stderr
    rows = trials(done)
    front = rows.filter(pl.col("is_on_front"))
    near = front.filter(pl.col("recall@10") >= front["recall@10"].max() - 0.02)
    assert rows.filter(pl.col("is_best"))["tokens@10"].item() == near["tokens@10"].min()
    assert "Pareto front" in done.stdout
    assert (folder(done) / "pareto.png").is_file()


def test_a_whole_folder_of_a_trial_is_taken_over_unless_it_comes_from_something_else(
    lcm: Lcm, study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = trial.experiment_of
    ran: list[float] = []

    def counted(config: Any, *others: Any, **named: Any) -> Any:
        ran.append(config.fusion.dense_weight)
        return made(config, *others, **named)

    monkeypatch.setattr(trial, "experiment_of", counted)
    for name, change in {"same": {}, "data": {"dataset_digest": "other"}}.items():
        kept = study.parent / name / "trials" / "0"
        shutil.copytree(study / "trials" / "0", kept)
        point = kept / POINT
        point.write_text(json.dumps({**json.loads(point.read_text()), **change}))
        assert lcm(*STUDIED[:-1], "study.trials=1", f"study.name={name}").code == 0
        assert json.loads(point.read_text()) == json.loads((study / "trials" / "0" / POINT).read_text())
    assert len(ran) == 1


def test_equal_configurations_are_evaluated_once(lcm: Lcm) -> None:
    space = "space={source: {choices: [hybrid, dense]}}"
    quick = (one for one in QUICK if not one.startswith("measures"))
    done = lcm("tune", *quick, "measures=retrieval", space, "study.trials=4")
    assert done.code == 0, done.stderr
    rows = trials(done)
    evaluated = rows.filter(pl.col("same_as").is_null())
    assert len(rows) == 4
    assert sorted(evaluated["source"]) == ["dense", "hybrid"]
    assert {int(path.name) for path in (folder(done) / "trials").iterdir()} == set(evaluated["number"])
    for source, values in rows.group_by("source"):
        assert values["recall@10"].n_unique() == 1, source


def test_a_poor_trial_is_stopped_at_a_share_of_the_queries_and_a_whole_one_is_a_run(lcm: Lcm) -> None:
    halved = ("study.pruner=halving", "study.sampler=random", "study.trials=9")
    done = lcm("tune", *QUICK, NO_CONTEXTS, *TWO_WEIGHTS, *halved)
    assert done.code == 0, done.stderr
    rows = trials(done)
    pruned = rows.filter(state="pruned")
    assert set(pruned["stopped_at"]) == {"1/4"}
    assert f"{len(pruned)} pruned ({len(pruned)} at 1/4 of the queries)" in (folder(done) / "study.md").read_text()
    assert read(done)["metrics"]["trials/stopped at 1 in 4"] == len(pruned)
    assert set(rows["state"]) == {"complete", "pruned"}
    complete = rows.filter(state="complete")
    assert {int(path.name) for path in (folder(done) / "trials").iterdir()} == set(complete["number"])
    assert rows.filter(state="pruned")["recall@10"].null_count() == len(rows) - len(complete)
    kept = json.loads((folder(done) / "trials" / "0" / "summary.json").read_text())
    assert kept["measures"]["recall@10"]["value"] == complete["recall@10"][0]
    assert kept["counts"]["workspaces"] == 4


def test_ctrl_c_within_the_database_ends_at_once_and_the_trial_is_made(
    lcm: Lcm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it leaves half done keeps the database locked until the process ends, and may hide it by an error."""
    made = trial.experiment_of
    database = Path("runs/tune/study/study.db")
    with closing(sqlite3.connect(":memory:")) as half_done:

        def interrupted(*_: Any, **__: Any) -> None:
            half_done.execute("ATTACH ? AS study", [str(database.resolve())])
            half_done.execute("BEGIN IMMEDIATE")
            half_done.execute("UPDATE study.trials SET state = state")
            try:
                raise KeyboardInterrupt
            finally:
                raise RuntimeError("a session that was interrupted cannot be closed")

        monkeypatch.setattr(trial, "experiment_of", interrupted)
        command = ("tune", *QUICK, *ONE_WEIGHT, "study.trials=1")
        monkeypatch.setattr(trial_queue, "_BUSY_S", 1)
        stopped = lcm(*command)
    assert (stopped.code, stopped.stderr) == (
        INTERRUPTED,
        "lcm: warning: stopped in trial 0; the same command goes on from there\nlcm: interrupted\n",
    )
    monkeypatch.setattr(trial, "experiment_of", made)
    assert lcm(*command).code == 0
    assert trials(stopped)["state"].to_list() == ["complete"]


def test_a_configuration_that_fails_is_told_and_the_others_are_made(lcm: Lcm, monkeypatch: pytest.MonkeyPatch) -> None:
    made = trial.experiment_of

    def failing(config: Any, *others: Any, **named: Any) -> Any:
        if config.fusion.dense_weight != 0.7:
            raise RuntimeError("no such weight")
        return made(config, *others, **named)

    monkeypatch.setattr(trial, "experiment_of", failing)
    done = lcm("tune", *QUICK, *ONE_WEIGHT, "study.trials=2")
    assert done.code == 2
    assert "trial 1 failed: RuntimeError: no such weight (a defect)" in done.stderr
    assert trials(done)["state"].to_list() == ["complete", "failed"]
    assert trials(done)["error"][1] == "RuntimeError: no such weight (a defect)"
    nothing = lcm("tune", *QUICK, *ONE_WEIGHT, "study.trials=2", "study.start=false", place="other")
    assert nothing.code == cli.INTERNAL_ERROR
    assert "no such weight" in nothing.stderr


READY = {
    "unified": [],
    "fusion": [],
    "decay": [],
    "lancedb_pro": ["system=lancedb_pro"],
    "libravdb": ["system=libravdb"],
    "assembly": ["measures.retention.budgets=[4000]"],
    "admission": ["annotation=rules"],
    "compaction": ["replay=per_turn", "measures.retention.budgets=[2000]"],
}
"""What stands beside each ready space on the command line."""


@pytest.mark.parametrize(
    "space", [pytest.param(space, marks=[] if space in ("fusion", "unified") else pytest.mark.full) for space in READY]
)
def test_every_bound_and_choice_of_a_ready_space_can_be_built(space: str) -> None:
    from pipelines.tune import _checked, _space

    assert sorted(READY) == conf_folder.groups()["space"]
    beside = READY[space]
    overrides = ["embedder=hashing", f"space={space}", *beside]
    config = composition.composed(overrides, "tune")
    settings = building.build(config, "study")
    _checked(config, settings, _space(config), TrialConfigs(["embedder=hashing", *beside]), overrides)
