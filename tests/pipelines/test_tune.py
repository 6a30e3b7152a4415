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

from eval.sweep.point_folder import POINT
from eval.tuning import trial_queue
from pipelines import cli
from pipelines.config import building, composition, conf_folder
from pipelines.steps import trial
from pipelines.steps.interruption import INTERRUPTED
from pipelines.steps.search import TrialConfigs
from tests.pipelines.conftest import QUICK, Finished, Lcm

NO_FUSION = (
    "space=fusion",
    "space.system=null",
    "space.fusion.choices=null",
    "space.fusion.floor_ratio=null",
    "space.fusion.floor_from=null",
)
WEIGHTS = (*NO_FUSION, "space.fusion.k=null", "space.ranking=null")
"""The two weights alone."""
ONE_WEIGHT = (*WEIGHTS, "space.fusion.lexical_weight=null")
BY_COST = (
    "study.objectives=[{measure: recall@10, direction: maximize, within: 0.02}, "
    "{measure: tokens@10, direction: minimize}]"
)


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(cli.PIPELINES, "tune", "search a space of configurations")


def folder(done: Finished, name: str = "study") -> Path:
    return done.place / "runs" / "tune" / name


def read(done: Finished, name: str = "study") -> dict[str, Any]:
    return json.loads((folder(done, name) / "summary.json").read_text())


def trials(done: Finished) -> pl.DataFrame:
    return pl.read_parquet(folder(done) / "study.parquet")


@pytest.mark.full
def test_a_study_of_two_objectives_is_kept_told_logged_and_repeated(lcm: Lcm) -> None:
    own = [one for one in QUICK if not one.startswith("tracking")]
    done = lcm("tune", *own, *WEIGHTS, BY_COST, "study.trials=5")
    assert done.code == 0, done.stderr
    names = {path.name for path in folder(done).iterdir()}
    assert names >= {
        "study.parquet", "folds.parquet", "best.yaml", "config.yaml", "study.md", "summary.json", "pareto.png",
        "history.png", "slices.png",
    }  # fmt: skip
    assert "5 different configurations are complete; below 30" in done.stdout
    rows = trials(done)
    assert rows["number"].to_list() == list(range(5))
    assert rows["fusion.dense_weight"].n_unique() == 5
    best = rows.filter(pl.col("is_best"))
    front = rows.filter(pl.col("is_on_front"))
    near = front.filter(pl.col("recall@10") >= front["recall@10"].max() - 0.02)
    assert best["tokens@10"].item() == near["tokens@10"].min()
    summary = read(done)
    assert summary["metrics"]["best/recall@10"] == best["recall@10"].item()
    assert "There is none" not in done.stdout
    assert "held out" in done.stdout
    assert "Pareto front" in done.stdout

    from mlflow.tracking import MlflowClient

    client = MlflowClient(f"sqlite:///{done.place / 'mlflow.db'}")
    runs = client.search_runs([client.get_experiment_by_name("lcm").experiment_id])
    (parent,) = [run for run in runs if run.data.tags["kind"] == "study"]
    nested = [run for run in runs if run.data.tags.get("mlflow.parentRunId") == parent.info.run_id]
    assert len(nested) == 5
    assert len(runs) == 6
    assert parent.data.metrics["best/recall_at_10"] == best["recall@10"].item()

    overrides = yaml.safe_load((folder(done) / "best.yaml").read_text())
    again = lcm(
        "evaluate",
        *overrides,
        "tracking=none",
        "arms=none",
        "measures.latency.queries=0",
        "measures.retention.budgets=[]",
        place="a",
    )
    assert again.summary["measures"]["recall@10"]["value"] == best["recall@10"].item()
    assert shlex.join(["lcm", "evaluate", *overrides]) in (folder(done) / "study.md").read_text()
    own_config = building.resolved(composition.composed([*overrides, "arms=none"]))
    kept = yaml.safe_load((folder(done) / "config.yaml").read_text())
    assert {key: kept[key] for key in ("memory", "fusion", "dataset")} == {
        key: own_config[key] for key in ("memory", "fusion", "dataset")
    }
    assert not {"study", "space"} & set(kept)


@pytest.mark.full
def test_a_study_goes_on_with_more_trials_and_refuses_another_space(lcm: Lcm) -> None:
    first = lcm("tune", *QUICK, *WEIGHTS, "study.trials=2")
    assert first.code == 0, first.stderr
    before = trials(first)
    more = lcm("tune", *QUICK, *WEIGHTS, "study.trials=3")
    assert "Going on with study study: 2 trials are there" in more.stdout
    assert trials(more).drop("is_best", "is_on_front").head(2).equals(before.drop("is_best", "is_on_front"))
    assert len(trials(more)) == 3
    other = lcm("tune", *QUICK, *ONE_WEIGHT, "study.trials=3")
    assert other.code == 2
    assert "study.name=study was begun with something else (space differs)" in other.stderr
    changed = lcm("tune", *QUICK, *WEIGHTS, "study.trials=3", "ranking.stages.limit.n=10")
    assert "(the configuration beside the space differs)" in changed.stderr


def test_a_space_written_out_and_one_measure_alone_are_enough(lcm: Lcm) -> None:
    space = "space={fusion.dense_weight: {low: 0.0, high: 1.0}}"
    quick = (one for one in QUICK if not one.startswith("measures"))
    done = lcm("tune", *quick, "measures=retrieval", space, "study.trials=1")
    assert done.code == 0, done.stderr
    assert [name for name in trials(done).columns if name.startswith("fusion")] == ["fusion.dense_weight"]


@pytest.mark.full
def test_equal_configurations_are_evaluated_once(lcm: Lcm) -> None:
    space = "+space.source={choices: [hybrid, dense]}"
    done = lcm("tune", *QUICK, *ONE_WEIGHT, "space.fusion.dense_weight=null", space, "study.trials=4")
    assert done.code == 0, done.stderr
    rows = trials(done)
    evaluated = rows.filter(pl.col("same_as").is_null())
    assert len(rows) == 4
    assert sorted(evaluated["source"]) == ["dense", "hybrid"]
    assert {int(path.name) for path in (folder(done) / "trials").iterdir()} == set(evaluated["number"])
    for source, values in rows.group_by("source"):
        assert values["recall@10"].n_unique() == 1, source


@pytest.mark.full
def test_a_whole_folder_of_a_trial_is_taken_over_unless_it_comes_from_something_else(
    lcm: Lcm, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = trial.experiment_of
    ran: list[float] = []

    def counted(config: Any, dataset: Any) -> Any:
        ran.append(config.fusion.dense_weight)
        return made(config, dataset)

    monkeypatch.setattr(trial, "experiment_of", counted)
    command = ("tune", *QUICK, *ONE_WEIGHT, "study.trials=1")
    first = lcm(*command)
    assert first.code == 0, first.stderr
    for name, change in {"same": {}, "data": {"dataset_digest": "other"}}.items():
        kept = folder(first, name) / "trials" / "0"
        shutil.copytree(folder(first) / "trials" / "0", kept)
        point = kept / POINT
        point.write_text(json.dumps({**json.loads(point.read_text()), **change}))
        assert lcm(*command, f"study.name={name}").code == 0
        assert json.loads(point.read_text()) == json.loads((folder(first) / "trials" / "0" / POINT).read_text())
    assert len(ran) == 1 + 1


def test_a_poor_trial_is_stopped_at_a_share_of_the_queries_and_a_whole_one_is_a_run(lcm: Lcm) -> None:
    halved = ("tune", *QUICK, *WEIGHTS, "study.pruner=halving", "study.sampler=random")
    lcm(*halved, "study.trials=4", place="stopped")
    again = lcm(*halved, "study.trials=9", place="stopped")
    done = lcm(*halved, "study.trials=9")
    assert done.code == 0, done.stderr
    rows = trials(done)
    ours = ["number", "state", "recall@10", "stopped_at", "fusion.dense_weight"]
    assert trials(again).select(ours).equals(rows.select(ours))
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

        def interrupted(*_: Any) -> None:
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


@pytest.mark.full
def test_a_configuration_that_fails_is_told_and_the_others_are_made(lcm: Lcm, monkeypatch: pytest.MonkeyPatch) -> None:
    made = trial.experiment_of

    def failing(config: Any, dataset: Any) -> Any:
        if config.fusion.dense_weight != 0.7:
            raise RuntimeError("no such weight")
        return made(config, dataset)

    monkeypatch.setattr(trial, "experiment_of", failing)
    done = lcm("tune", *QUICK, *ONE_WEIGHT, "study.trials=2")
    assert done.code == 2
    assert "trial 1 failed: RuntimeError: no such weight (a defect)" in done.stderr
    assert trials(done)["state"].to_list() == ["complete", "failed"]
    assert trials(done)["error"][1] == "RuntimeError: no such weight (a defect)"
    nothing = lcm("tune", *QUICK, *ONE_WEIGHT, "study.trials=2", "study.start=false", place="other")
    assert nothing.code == cli.INTERNAL_ERROR
    assert "no such weight" in nothing.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["study.objectives=[]"], "study.objectives must not be empty"),
        (["study.objectives=[{measure: recal@10, direction: maximize}]"], "nothing measures 'recal@10' here"),
        (
            ["study.objectives=[{measure: context_tokens@4000, direction: minimize}]"],
            "set measures.retention.budgets=[4000]",
        ),
        ([BY_COST, "study.pruner=halving"], "study.pruner=halving needs a single objective, got 2"),
        (["study.pruner=halving", "measures.latency.queries=5"], "study.pruner=halving and measures.latency.queries=5"),
        (["executor=local", "measures.latency.queries=5"], "queries cannot be timed while workers share the machine"),
        (["study.trials=many"], "study.trials must be a whole number, got 'many'"),
        (["study.folds=9", *ONE_WEIGHT], "study.folds=9: sample has 4 workspaces with judged queries"),
        ([*ONE_WEIGHT, "fusion.dense_weight=0.5"], "fusion.dense_weight is searched and set on the command line"),
        (
            [*ONE_WEIGHT, "space.fusion.dense_weight.low=-1"],
            "space.fusion.dense_weight=-1: fusion.dense_weight must be",
        ),
        ([*ONE_WEIGHT, "+space.fusion.nothing={low: 0, high: 1}"], "space.fusion.dense_weight=0.0: fusion.nothing"),
        ([*ONE_WEIGHT, "+space.decay={choices: [none, weibul]}"], "space.decay='weibul': decay=weibul: no such choice"),
        ([*ONE_WEIGHT, "+space.dataset={choices: [a, b]}"], "space.dataset: dataset decides what is measured"),
        (["space=lancedb_pro"], "space: 3 of its keys are not in this configuration, as annotation.expiry"),
        (["space=nothing"], "space=nothing: no such choice"),
        ([], "space: 9 of its keys are not in this configuration, as fusion.weights.words_after_question"),
        (["space={fusion.dense_wieght: {low: 0.0, high: 1.0}}"], "fusion.dense_wieght: no such key; did you mean"),
        (["fusion={nothing: 1}"], "fusion.nothing: no such key"),
        (
            [*ONE_WEIGHT, "+space={fusion.dense_weight: {low: 0, high: 1}}"],
            "space.fusion.dense_weight stands there twice: change",
        ),
        (["measures=[retention,latency]"], "nothing measures 'recall@10' here"),
        (["measures=[retrieval,latency]", "measures.retention.budgets=[500]"], "'measures=[CHOICE,retention]'"),
        (["-m"], "leave -m out"),
    ],
)
def test_what_cannot_work_is_refused_before_the_first_trial(lcm: Lcm, arguments: list[str], told: str) -> None:
    done = lcm("tune", *QUICK, *arguments)
    assert done.code == 2
    assert told in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (done.place / "runs").exists()


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

    beside = READY[space]
    overrides = ["embedder=hashing", f"space={space}", *beside]
    config = composition.composed(overrides, "tune")
    settings = building.build(config, "study")
    _checked(config, settings, _space(config), TrialConfigs(["embedder=hashing", *beside]), overrides)


def test_all_ready_spaces_are_tried() -> None:
    assert sorted(READY) == conf_folder.groups()["space"]


def test_help_tells_of_the_command(lcm: Lcm) -> None:
    done = lcm("tune", "--help")
    assert done.code == 0
    assert "lcm tune [GROUP=CHOICE ...]" in done.stdout
    assert "space: admission, assembly, compaction, decay, fusion, lancedb_pro, libravdb, unified" in done.stdout


@pytest.mark.full
@pytest.mark.parametrize(
    ("space", "beside", "objective", "changed"),
    [
        ("admission", [], "recall@10", "admitted"),
        ("compaction", ["dataset=sample_long"], "retained@2000", "ratio"),
    ],
)
def test_trials_of_a_ready_space_differ_in_what_it_changes(
    lcm: Lcm, space: str, beside: list[str], objective: str, changed: str
) -> None:
    wanted = f"study.objectives=[{{measure: {objective}, direction: maximize}}]"
    done = lcm("tune", *QUICK, *READY[space], *beside, f"space={space}", wanted, "study.trials=5")
    assert done.code == 0, done.stderr
    rows = trials(done)
    assert rows[objective].n_unique() > 1
    assert rows[changed].drop_nulls().n_unique() > 1
    page = (folder(done) / "study.md").read_text()
    assert f"## What the trials changed\n\n| trial | {objective} | {changed} |" in page
