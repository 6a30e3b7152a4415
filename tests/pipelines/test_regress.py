"""`lcm regress`: where the two sides come from, what is said, and how it exits."""

import json
import re
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from lcm.errors import LcmError
from pipelines import regress
from tests.pipelines.conftest import Finished
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
    ("sides", "code", "said"),
    [
        (["good", "good/summary.json"], 0, "fine: "),
        (["candidate=bad/per_query.parquet", "baseline=good"], 1, "regressed: "),
        (["good", "unsure"], 3, "cannot tell: "),
    ],
)
def test_the_exit_code_is_the_verdict(
    here: Path, capsys: pytest.CaptureFixture[str], sides: list[str], code: int, said: str
) -> None:
    assert regress.main([*sides, "into=out", "regress.changed_queries=2", *FAST]) == code
    told = capsys.readouterr().out
    assert f"\n{said}" in told
    worse = [line for line in told.splitlines() if line.startswith("worse: ")]
    if code == 1:
        assert worse == [f"worse: q00{i} 'What?': recall@10 1.000 -> 0.000" for i in range(2)]
    assert report(here / "out")["exit_code"] == code
    assert {path.name for path in (here / "out").iterdir()} >= {"report.md", "report.xml", "verdict.parquet"}


def test_other_measures_and_tolerances_are_set_on_the_command_line(here: Path) -> None:
    write_run_folder(here / "more", {**GOOD, "MRR": [1.0] * 100})
    limits = "regress.measures={MRR:{tolerance:0.1,detectable:0.2},recall@10:null}"
    assert regress.main(["more", "more", "into=out", limits, "regress.measures.nDCG@10.tolerance=0.04", *FAST]) == 0
    assert [(row["measure"], row["tolerance"]) for row in report(here / "out")["rows"]] == [
        ("nDCG@10", 0.04), ("MRR", 0.1)
    ]  # fmt: skip
    assert report(here / "out")["not_measured"] == ["session.recall@5", "tokens@10"]
    assert regress.main(["--cfg", "job"]) == 0


@pytest.fixture
def sample(compared: Finished) -> str:
    """A real run of the bundled sample."""
    return str(compared.place / "second")


def test_what_overrides_describe_is_evaluated_on_the_baselines_dataset(here: Path, sample: str) -> None:
    """The baseline's measures are taken over; one document a query is a loss."""
    cut = ["system=hybrid", "embedder=hashing", "ranking.stages.limit.n=1", "into=cut", "report=false"]
    assert regress.main([sample, *cut, *FAST]) == 1
    found = report(here / "cut")
    assert found["candidate"]["name"] == "system=hybrid embedder=hashing ranking.stages.limit.n=1 (evaluated now)"
    config = (here / "cut" / "candidate" / "config.yaml").read_text()
    assert "regress:" not in config
    first = found["worse_queries"][0]
    assert (len(first["baseline"]), len(first["candidate"])) == (10, 1)
    assert any(one["covers_evidence"] for one in first["baseline"])


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        (
            "measures.retention.rouge_threshold=0.9",
            "different measures.retention.rouge_threshold: baseline 0.5, candidate 0.9; ",
        ),
        (
            "replay=per_turn",
            "different replay: baseline 'eval.replay.workspace_replay.Bulk', candidate 'eval.replay.workspace_replay.",
        ),
    ],
)
def test_what_would_be_measured_otherwise_is_refused_before_it_is_evaluated(
    here: Path, sample: str, setting: str, message: str
) -> None:
    with pytest.raises(LcmError, match=f"^{re.escape(message)}"):
        regress.main([sample, "embedder=hashing", setting, "into=out", *FAST])
    assert not (here / "out").exists()


def test_a_sweep_as_baseline_is_refused_before_anything_is_evaluated(here: Path) -> None:
    (here / "swept").mkdir()
    (here / "swept" / "summary.json").write_text(json.dumps({"kind": "sweep", "name": "sweep", "points": []}))
    never = patch("pipelines.steps.sides.evaluated", side_effect=AssertionError("evaluated"))
    with never, pytest.raises(LcmError, match=r"^swept is a sweep, not a run: name a folder that `lcm evaluate` wrote"):
        regress.main(["swept", "embedder=hashing", "into=out", *FAST])
    assert not (here / "out").exists()


def test_runs_without_a_configuration_are_compared_and_the_report_says_so(here: Path) -> None:
    assert regress.main(["good", "good", "into=out", *FAST]) == 0
    unknown = ["replay", "measures"]
    assert report(here / "out")["not_known_to_agree"] == unknown
    text = (here / "out" / "report.md").read_text()
    assert "config.yaml does not tell: replay, measures\n" in text


def test_a_preset_brings_its_choices_along_though_a_choice_of_ours_has_its_name(here: Path, sample: str) -> None:
    (here / "preset" / "system").mkdir(parents=True)
    (here / "preset" / "fusion").mkdir()
    chosen = "# @package _global_\ndefaults:\n  - override /embedder: hashing\n  - override /fusion: mine\n"
    (here / "preset" / "system" / "neighbours.yaml").write_text(chosen)
    fusion = "_target_: lcm.retrieval.fusion.WeightedSum\ndense_weight: 0.125\n"
    (here / "preset" / "fusion" / "mine.yaml").write_text(fusion)
    assert regress.main([sample, "preset", "into=out", "report=false", *FAST]) in (0, 1, 3)
    config = (here / "out" / "candidate" / "config.yaml").read_text()
    assert "dense_weight: 0.125" in config
    assert "neighbour_window" not in config and "stages.neighbours" not in config
