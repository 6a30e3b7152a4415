"""`lcm transfer`: whether a tuned preset holds in a memory that honours all, most or none of its settings."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from eval.external.session import Told
from pipelines.export import source_of
from pipelines.transfer import _exported, _notes, main, read_command
from tests.pipelines.conftest import Finished, Lcm

MEMORY = Path(__file__).parents[1] / "support/external/configured.py"
SAID = [
    *(f"Boat number {i} lies at berth {i * 7 % 83} and belongs to owner {i * 5 % 61}" for i in range(32)),
    *(f"I don't have any information about harbour {i} and its pilot {i * 3}" for i in range(8)),
]
"""The last fifth looks like noise, which the default drops."""
FROM = "system=lancedb_pro ranking.stages.hard_min_score.threshold=1.0"
"""Which finds nothing at all: no score is so high."""
PRESET = (
    "system=lancedb_pro ranking.stages.hard_min_score.threshold=0.0 ranking.stages.min_score.threshold=0.0 "
    "ranking.stages.noise_filter=null annotation.expiry=false"
)
ALIKE = ("embedder=hashing", "tracking=none", "means.resamples=20", "measures.retention.budgets=[]")


@pytest.fixture
def asked(tmp_path: Path) -> tuple[str, ...]:
    """Overrides of a dataset in which each message is asked for in its own words."""
    lines = [{"role": "user", "content": text, "timestamp": f"2026-03-02T09:{i:02}:00Z"} for i, text in enumerate(SAID)]
    (tmp_path / "talk.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    questions = [{"question": text, "evidence": [text]} for text in SAID]
    (tmp_path / "questions.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in questions))
    return (
        "dataset=own",
        f"dataset.paths=[{tmp_path}/talk.jsonl]",
        "dataset.format=chat",
        f"dataset.questions={tmp_path}/questions.jsonl",
    )


def memory(behaviour: str) -> str:
    return f"external.command=[{sys.executable},{MEMORY},{behaviour}]"


def transfer(lcm: Lcm, asked: tuple[str, ...], behaviour: str, *more: str) -> tuple[Finished, dict[str, Any]]:
    done = lcm(
        "transfer", PRESET, "target=lancedb_pro", f"from={FROM}", memory(behaviour), f"into={behaviour}", *asked,
        *ALIKE, *more,
    )  # fmt: skip
    assert done.code == 0, done.stderr
    return done, json.loads((done.place / behaviour / "transfer.json").read_text())


def gains(record: dict[str, Any], measure: str = "recall@10") -> dict[str, Any]:
    return next(one for one in record["gains"] if one["measure"] == measure)


def lost(record: dict[str, Any]) -> dict[str, str]:
    return {one["key"]: one["lost"] for one in record["settings"] if one["lost"]}


@pytest.mark.slow
def test_the_share_is_of_the_settings_that_are_honoured(lcm: Lcm, asked: tuple[str, ...]) -> None:
    """One memory after the other over one dataset: what is evaluated here is found again."""
    _, whole = transfer(lcm, asked, "all")
    assert gains(whole)["here"]["difference"] == 1.0
    assert gains(whole)["share"] == 1.0
    assert lost(whole).keys() == {"annotation.expiry"}
    assert len(whole["settings"]) == 4

    done, most = transfer(lcm, asked, "most")
    assert gains(most)["share"] == pytest.approx(0.8)
    assert 0.6 < gains(most)["low"] < 0.8 < gains(most)["high"] < 1.0
    assert lost(most) == lost(whole) | {"ranking.stages.noise_filter": "the memory ignores retrieval.filterNoise"}
    assert "of 4 tuned settings 2 went along, 2 were lost" in done.stdout
    assert "ranking.stages.noise_filter" in done.stdout
    assert most["sides"]["here"] == whole["sides"]["here"]
    assert json.loads((done.place / "most/summary.json").read_text())["metrics"]["recall@10.share"] == pytest.approx(
        0.8
    )

    _, nothing = transfer(lcm, asked, "none")
    assert [gains(nothing)[name] for name in ("share", "low", "high")] == [0.0, 0.0, 0.0]
    assert "ranking.stages.hard_min_score.threshold" in lost(nothing)

    done, silent = transfer(lcm, asked, "silent", "cluster=workspace")
    assert not silent["ignores_told"]
    assert "note: the memory does not say which settings it ignores" in done.stdout
    assert gains(silent)["low"] is None  # one conversation has no interval
    assert "no share is told" in done.stdout


@pytest.mark.parametrize("version", [("target=libravdb", "for=1.10"), ("target=libravdb@1.10",)])
def test_a_version_is_told_what_its_manifest_takes(version: tuple[str, ...], tmp_path: Path) -> None:
    """As `lcm export` writes it: 1.10 takes theta1, and refuses what the version rebuilt here knows."""
    asked = read_command(["libravdb", *version, memory("all")])
    assert asked.tuned_from == "system=libravdb"
    tuned = source_of(None, ["system=libravdb", "fusion.theta1=0.3", "admission.technical_norm=2"], None, tmp_path)
    exported = _exported(tuned, tmp_path / "preset", "tuned", asked.target)
    assert exported.settings["config"]["section7Theta1"] == 0.3
    assert not {"gatingWeights", "gatingTechNorm"} & exported.settings["config"].keys()
    assert exported.provenance["version"] == "1.10.14-beta.1"
    side = SimpleNamespace(summary={"dataset": {"digest": ""}})
    (note, *_) = _notes(exported, side, [], Told())  # type: ignore[arg-type]
    assert note.startswith("libravdb-memory 1.10.14-beta.1 refuses, and the memory is not told: gatingWeights.w1c")
    (note, *_) = _notes(exported, side, [], Told("libravdb-memory", "1.4.4"))  # type: ignore[arg-type]
    assert note.startswith("the memory is libravdb-memory 1.4.4 and is told what is exported for 1.10.14-beta.1")
    for other in Told("libravdb-memory", "1.10.14-beta.1"), Told("an adapter of ours", "1"):
        assert not any("exported for" in one for one in _notes(exported, side, [], other))  # type: ignore[arg-type]


@pytest.mark.parametrize(("there", "code"), [(None, 2), ({"difference": 0.1}, 0)])
def test_a_transfer_without_a_number_there_is_no_success(
    there: dict[str, float] | None, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    gains = [{"measure": "recall@10", "here": {"difference": 0.1}, "there": there}]
    for name, gives in {"_source": None, "_exported": None, "_transferred": {"gains": gains}}.items():
        monkeypatch.setattr(f"pipelines.transfer.{name}", lambda *_, gives=gives: gives)
    monkeypatch.setattr("pipelines.transfer.show_transfer", lambda *_: None)
    monkeypatch.setattr("pipelines.transfer.log_and_report", lambda *_: None)
    assert main(["lancedb_pro_tuned", "target=lancedb_pro", memory("all"), "tracking=none", "into=there"]) == code
