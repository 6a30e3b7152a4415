"""`lcm regress`: where the two sides come from, what is said, and how it exits."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from eval.tracking.mlflow_log import Mlflow
from eval.tracking.registry import promote, register
from lcm.errors import LcmError
from pipelines import regress
from pipelines.config import composition
from pipelines.steps.point import evaluated
from tests.support.run_folders import write_run_folder

GOOD = {"recall@10": [1.0] * 100, "nDCG@10": [0.5] * 100}
BAD = {"recall@10": [0.0] * 30 + [1.0] * 70, "nDCG@10": [0.5] * 100}
UNSURE = {"recall@10": [1.0] * 100, "nDCG@10": [0.0] * 20 + [1.0] * 20 + [0.5] * 60}
FAST = ("regress.resamples=1000", "tracking=none")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that commands run in, with three runs."""
    monkeypatch.chdir(tmp_path)
    for name, values in (("good", GOOD), ("bad", BAD), ("unsure", UNSURE)):
        write_run_folder(tmp_path / name, values)
    return tmp_path


def report(folder: Path) -> Any:
    return json.loads((folder / "report.json").read_text())


@pytest.mark.parametrize(
    ("candidate", "code", "said"),
    [("good", 0, "fine: "), ("bad", 1, "regressed: "), ("unsure", 2, "cannot tell: ")],
)
def test_the_exit_code_is_the_verdict(
    here: Path, capsys: pytest.CaptureFixture[str], candidate: str, code: int, said: str
) -> None:
    assert regress.main(["good", candidate, "into=out", *FAST]) == code
    assert f"\n{said}" in capsys.readouterr().out
    assert report(here / "out")["exit_code"] == code
    assert {path.name for path in (here / "out").iterdir()} >= {"report.md", "report.xml", "verdict.parquet"}


@pytest.mark.full
@pytest.mark.parametrize(
    "arguments",
    [
        ["candidate=bad", "baseline=good"],
        ["good/summary.json", "bad/per_query.parquet"],
    ],
    ids=" ".join,
)
def test_a_side_is_a_folder_or_a_file_of_it(here: Path, arguments: Sequence[str]) -> None:
    assert regress.main([*arguments, "into=out", *FAST]) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["into=out"], "name a baseline: a run folder, an MLflow run id, an alias such as champion, or a preset"),
        (["good", "nowhere/run"], "candidate nowhere/run: no such folder or file; name a run folder, an MLflow run id"),
        (["champion", "good"], "baseline champion: no such folder or file, and tracking=none knows no runs"),
        (["good", "bad", "good"], "good: two sides are named already, good and bad"),
        (["good", "bad", "ranking.stages.limit.n=1"], "ranking.stages.limit.n=1 changes nothing: both sides are given"),
        (["good", "bad", "--fast"], "no such option: '--fast'; `lcm regress --help` tells more"),
        (["good", "bad", "into="], "into= has no value: write into=VALUE, or leave it out"),
        (["good", "bad", "hydra.run.dir=x"], "hydra.run.dir=x: write into=FOLDER"),
        (["good", "bad", "into=good"], "into=good holds a complete run or comparison: name another folder"),
        (["good", "bad", "into=note.txt"], "into=note.txt cannot be made"),
        (["good", "note.txt"], "candidate note.txt is neither a preset (.yaml) nor one of summary.json, "),
        (["good", "empty"], "empty is not a complete run: it has no summary.json"),
        (["good", "two"], "candidate two holds 2 presets: name one of: a.yaml, b.yaml"),
        (["good", "bad", "regress.alpha=2"], "regress.alpha must be in (0, 1), got 2"),
        (["good", "bad", "regress.resamples=many"], "regress.resamples must be a whole number, got 'many'"),
        (
            ["good", "bad", "regress.measures.recall@10.tolerance=-1"],
            "regress.measures.recall@10.tolerance must be a number >= 0 or a share such as 10%, got -1",
        ),
        (
            ["good", "bad", "regress.measures.recall@10.tolerance=nan"],
            "regress.measures.recall@10.tolerance must be a number >= 0 or a share such as 10%, got nan",
        ),
        (
            ["good", "bad", "regress.measures.recall@10.detectable=null"],
            "regress.measures.recall@10.detectable must be a number >= 0 or a share such as 10%, got None",
        ),
        (
            ["good", "bad", "regress.measures={MRR:5}"],
            "regress.measures.MRR must have tolerance and detectable, got 5",
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_input_is_one_line_and_leaves_nothing(here: Path, arguments: list[str], message: str) -> None:
    (here / "note.txt").write_text("no run")
    (here / "empty").mkdir()
    for name in ("a", "b"):
        (here / "two" / "system").mkdir(parents=True, exist_ok=True)
        (here / "two" / "system" / f"{name}.yaml").write_text("")
    with pytest.raises(LcmError, match=f"^{re.escape(message)}") as caught:
        regress.main([*FAST, *arguments])
    assert "\n" not in str(caught.value)
    assert not (here / "out").exists()
    assert not list(here.glob("runs/*/*"))


@pytest.mark.parametrize(
    ("setting", "tolerance"),
    [
        ("regress.measures.recall@10.tolerance=0.04", 0.04),
        ("regress.measures={recall@10:{tolerance:0.03,detectable:0.2}}", 0.03),
    ],
)
def test_a_tolerance_is_set_on_the_command_line(here: Path, setting: str, tolerance: float) -> None:
    regress.main(["good", "bad", "into=out", setting, *FAST])
    assert {row["measure"]: row["tolerance"] for row in report(here / "out")["rows"]} == {
        "recall@10": tolerance,
        "nDCG@10": 0.01,
    }


def test_other_measures_are_added_and_left_out(here: Path) -> None:
    write_run_folder(here / "more", {**GOOD, "MRR": [1.0] * 100})
    limits = "regress.measures={MRR:{tolerance:0.1,detectable:0.2},recall@10:null}"
    assert regress.main(["more", "more", "into=out", limits, *FAST]) == 0
    assert [row["measure"] for row in report(here / "out")["rows"]] == ["nDCG@10", "MRR"]
    assert report(here / "out")["not_measured"] == ["session.recall@5", "tokens@10"]


def test_the_queries_that_got_worse_are_told(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    regress.main(["good", "bad", "into=out", "regress.changed_queries=2", *FAST])
    worse = [line for line in capsys.readouterr().out.splitlines() if line.startswith("worse: ")]
    assert worse == [f"worse: q00{i} 'What?': recall@10 1.000 -> 0.000" for i in range(2)]


def test_the_configuration_can_be_looked_at(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert regress.main(["--cfg", "job"]) == 0
    assert "least_queries: 10" in capsys.readouterr().out


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real run of the bundled sample."""
    folder = tmp_path_factory.mktemp("sample") / "base"
    config = composition.composed(
        ["embedder=hashing", "arms=none", "measures.latency.queries=0", "measures.retention.budgets=[]"]
    )
    evaluated(config, folder, lambda *_: None)
    return folder


@pytest.mark.full
def test_what_overrides_describe_is_evaluated_on_the_baselines_dataset(here: Path, sample: Path) -> None:
    """The baseline's measures.retention.budgets are taken over; one document a query is a loss."""
    assert regress.main([str(sample), "embedder=hashing", "ranking.stages.limit.n=1", "into=cut", *FAST]) == 1
    found = report(here / "cut")
    assert found["candidate"]["name"] == "embedder=hashing ranking.stages.limit.n=1 (evaluated now)"
    config = (here / "cut" / "candidate" / "config.yaml").read_text()
    assert "budgets: []" in config
    assert "regress:" not in config
    first = found["worse_queries"][0]
    assert (len(first["baseline"]), len(first["candidate"])) == (10, 1)
    assert any(one["covers_evidence"] for one in first["baseline"])


@pytest.mark.full
@pytest.mark.parametrize(
    ("setting", "message"),
    [
        (
            "measures.retention.rouge_threshold=0.9",
            "different measures.retention.rouge_threshold: baseline 0.5, candidate 0.9; ",
        ),
        ("replay=per_turn", "different replay: baseline 'eval.replay.bulk.Bulk', candidate 'eval.replay.per_turn."),
    ],
)
def test_what_would_be_measured_otherwise_is_refused_before_it_is_evaluated(
    here: Path, sample: Path, setting: str, message: str
) -> None:
    with pytest.raises(LcmError, match=f"^{re.escape(message)}"):
        regress.main([str(sample), "embedder=hashing", setting, "into=out", *FAST])
    assert not (here / "out").exists()


def test_runs_without_a_configuration_are_compared_and_the_report_says_so(here: Path) -> None:
    assert regress.main(["good", "good", "into=out", *FAST]) == 0
    unknown = ["replay", "measures"]
    assert report(here / "out")["not_known_to_agree"] == unknown
    text = (here / "out" / "report.md").read_text()
    assert "config.yaml does not tell: replay, measures\n" in text


@pytest.mark.full
def test_a_preset_is_evaluated_as_it_is_written_though_a_choice_of_ours_has_its_name(here: Path, sample: Path) -> None:
    """Equal settings give equal numbers; our own system=neighbours ranks otherwise."""
    (here / "neighbours.yaml").write_text("# @package _global_\ndefaults:\n  - override /embedder: hashing\n")
    assert regress.main([str(sample), "neighbours.yaml", "into=out", *FAST]) == 0
    assert {row["changed"] for row in report(here / "out")["rows"]} == {0}
    assert report(here / "out")["candidate"]["name"] == "neighbours.yaml"


@pytest.mark.full
def test_a_preset_brings_its_choices_along(here: Path, sample: Path) -> None:
    (here / "preset" / "system").mkdir(parents=True)
    (here / "preset" / "fusion").mkdir()
    chosen = "# @package _global_\ndefaults:\n  - override /embedder: hashing\n  - override /fusion: mine\n"
    (here / "preset" / "system" / "mine.yaml").write_text(chosen)
    fusion = "_target_: lcm.retrieval.fusion.weighted_sum.WeightedSum\ndense_weight: 0.125\n"
    (here / "preset" / "fusion" / "mine.yaml").write_text(fusion)
    assert regress.main([str(sample), "preset", "into=out", *FAST]) in (0, 1, 2)
    assert "dense_weight: 0.125" in (here / "out" / "candidate" / "config.yaml").read_text()


@pytest.mark.full
def test_runs_and_aliases_of_mlflow_are_sides_and_the_comparison_is_logged(here: Path) -> None:
    """A real database: the good run is champion, the bad one is named by its id."""
    from mlflow.tracking import MlflowClient

    uri = f"sqlite:///{here / 'runs.db'}"
    tracking = Mlflow(uri=uri)
    ids = []
    for name in ("good", "bad"):
        write_run_folder(here / name, GOOD if name == "good" else BAD, config_hash=name)
        (here / name / "config.yaml").write_text("a: 1\n")
        ids.append(re.search("MLflow run (\\w+)", tracking.log(here / name))[1])  # type: ignore[index]
    promote(uri, "unified", register(uri, "unified", ids[0]))
    asked = ["champion", ids[1], "into=out", f"tracking.uri={uri}", "regress.resamples=1000"]
    assert regress.main(asked) == 1
    assert report(here / "out")["baseline"]["name"] == f"champion (MLflow run {ids[0][:8]})"
    client = MlflowClient(tracking_uri=uri)
    experiment = client.get_experiment_by_name("lcm")
    assert experiment is not None
    logged = next(
        run for run in client.search_runs([experiment.experiment_id]) if run.data.tags.get("kind") == "regression"
    )
    assert logged.data.tags["gate"] == "regressed"
    assert logged.data.metrics["recall_at_10.difference"] == pytest.approx(-0.3)
    assert logged.data.params["alpha"] == "0.05"
    assert "report.xml" in {artifact.path for artifact in client.list_artifacts(logged.info.run_id)}
