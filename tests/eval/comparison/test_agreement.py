"""What is not comparable is refused in one line that names both values."""

import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml

from eval.comparison.pairing import comparable, require_comparable, unknown_settings
from eval.run import Run
from lcm.errors import LcmError
from tests.support.run_folders import side, write_run_folder

SAME: dict[str, Any] = {"values": {"recall@10": [1.0, 0.5], "session.recall@5": [1.0, 1.0]}}
MISSING = "recall@10 of 2 queries of the baseline and 1 of the candidate: 1 are missing in the candidate and 0 in"
TOY = {"name": "toy", "protocol": "as is", "digest": "a" * 64}

BOTH = [1.0, 1.0]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"dataset": {**TOY, "name": "other"}}, "different dataset: baseline 'toy', candidate 'other'"),
        ({"dataset": {**TOY, "protocol": "mended"}}, "different protocol: baseline 'as is', candidate 'mended'"),
        (
            {"dataset": {**TOY, "digest": "b" * 64}},
            f"different dataset digest: baseline {'a' * 12}, candidate bbbbbbbb",
        ),
        ({"definitions": "2"}, "different measure definitions: baseline '1', candidate '2'"),
        ({"values": {"recall@10": [1.0, 0.5]}}, "different levels: baseline 'message, session', candidate 'message'"),
        (
            {"values": {"recall@10": [1.0], "session.recall@5": [1.0]}},
            "2 queries of the baseline and 1 of the candidate: 1 are missing in the candidate and 0 in the baseline",
        ),
        ({"values": {"recall@10": [1.0, None], "session.recall@5": BOTH}}, MISSING),
        ({"values": {"recall@10": [1.0, float("nan")], "session.recall@5": BOTH}}, MISSING),
        (
            {"values": {"MRR": BOTH, "session.recall@5": BOTH}},
            "recall@10 was measured of the baseline only: evaluate both alike, or leave it out with regress.measures={",
        ),
    ],
)
def test_two_runs_that_differ_are_refused(tmp_path: Path, changed: dict[str, Any], message: str) -> None:
    ours, theirs = side(tmp_path / "ours", **SAME), side(tmp_path / "theirs", **{**SAME, **changed})
    with pytest.raises(LcmError, match=re.escape(message)) as caught:
        require_comparable(ours, theirs, ["recall@10"])
    assert "\n" not in str(caught.value)
    with pytest.raises(LcmError, match=r"neither run has any of MAP: choose .* from: recall@10, session\.recall@5"):
        require_comparable(ours, ours, ["MAP"])


def test_a_number_that_both_lack_is_no_difference(tmp_path: Path) -> None:
    values: dict[str, Any] = {"values": {"recall@10": [1.0, float("nan"), 0.5]}}
    ours, theirs = side(tmp_path / "ours", **values), side(tmp_path / "theirs", **values)
    assert require_comparable(ours, theirs, ["recall@10", "MRR"]) == ["recall@10"]


def test_a_folder_that_cannot_be_compared_says_why(tmp_path: Path) -> None:
    comparison = write_run_folder(tmp_path / "old", **SAME, kind="comparison", name="old")
    with pytest.raises(LcmError, match=r"^old is a comparison, not a run: name a folder that `lcm evaluate` wr"):
        comparable(comparison, "old")
    undefined = write_run_folder(tmp_path / "older", **SAME, definitions="left out")
    with pytest.raises(LcmError, match=r"^older does not say by which definitions its measures were made: run `lcm e"):
        comparable(undefined, "older")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        *((f"{name}.parquet", "no parquet") for name in ("queries", "per_query")),
        *(("config.yaml", content) for content in ("a: [1", "- 1")),
    ],
)
def test_a_missing_or_damaged_file_is_one_line(tmp_path: Path, name: str, content: str) -> None:
    folder = write_run_folder(tmp_path / "run", **SAME)
    (folder / name).write_text(content)
    with pytest.raises(LcmError, match=rf"{name} is damaged .*[;:] run `lcm evaluate` again") as caught:
        assert comparable(folder, "run").config
    assert "\n" not in str(caught.value)
    (folder / name).unlink()
    if name != "config.yaml":
        told = f"^run has no {name} beside its summary: copy it there, or run `lcm evaluate`"
        with pytest.raises(LcmError, match=told):
            comparable(folder, "run")


def test_a_query_with_two_values_is_refused(tmp_path: Path) -> None:
    folder = write_run_folder(tmp_path / "run", **SAME)
    values = pl.read_parquet(folder / "per_query.parquet")
    pl.concat([values, values[:1]]).write_parquet(folder / "per_query.parquet")
    with pytest.raises(LcmError, match="has several values of recall@10 for query q000"):
        comparable(folder, "run")


def test_which_way_a_measure_is_better_is_told_by_one_of_the_runs(tmp_path: Path) -> None:
    """A run of an older lcm does not tell."""
    for name in ("older", "old"):
        path = write_run_folder(tmp_path / name, **SAME) / "per_query.parquet"
        pl.read_parquet(path).drop("direction").write_parquet(path)
    older, old = comparable(tmp_path / "older", "older"), comparable(tmp_path / "old", "old")
    with pytest.raises(
        LcmError, match=r"^neither run says whether more or less of recall@10 is better: evaluate one of"
    ):
        require_comparable(older, old, ["recall@10"])
    assert require_comparable(older, side(tmp_path / "new", **SAME), ["recall@10"]) == ["recall@10"]


LEVELS = ["message", "session"]
MEASURES: dict[str, dict[str, Any]] = {
    "retrieval": {"_target_": "eval.measures.retrieval.Retrieval", "names": ["recall@10"], "levels": LEVELS},
    "retention": {"_target_": "eval.measures.retention.Retention", "budgets": [1000], "rouge_threshold": 0.1},
    "summary_quality": {"_target_": "eval.measures.memory.SummaryQuality", "target_tokens": 60},
    "latency": {"_target_": "eval.measures.latency.Latency", "queries": 3},
}

PER_TURN = "eval.replay.workspace_replay.PerTurn"
BULK = "eval.replay.workspace_replay.Bulk"
Changes = dict[str, dict[str, Any] | None]


def config(changes: Changes, replay: str = BULK) -> dict[str, Any]:
    """A configuration with these changes of its measures; None leaves one out."""
    measures = {name: {**node, **(changes.get(name) or {})} for name, node in MEASURES.items()}
    left = {name: node for name, node in measures.items() if changes.get(name, {}) is not None}
    return {"replay": {"_target_": replay}, "measures": left, "means": {"seed": len(changes)}}


def configured(folder: Path, changes: Changes, replay: str = BULK) -> Run:
    write_run_folder(folder, **SAME)
    (folder / "config.yaml").write_text(yaml.safe_dump(config(changes, replay)))
    return comparable(folder, folder.name)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"retention": {"rouge_threshold": 0.9}}, "measures.retention.rouge_threshold: baseline 0.1, cand"),
        ({}, f"replay: baseline '{BULK}', candidate '{PER_TURN}'; "),
        ({"summary_quality": {"target_tokens": 0}}, "measures.summary_quality.target_tokens: baseline 60, "),
        ({"retrieval": {"levels": LEVELS[1:]}}, f"measures.retrieval.levels: baseline {LEVELS}, candidate"),
        ({"retrieval": {"names": ["recall@10", "MRR"]}}, None),
        ({"retrieval": {"levels": LEVELS[::-1]}}, None),
        ({"retention": {"budgets": []}}, None),
        ({"retention": None}, None),
        ({"latency": {"queries": 0}}, None),
    ],
)
def test_runs_that_were_measured_otherwise_are_refused_unless_no_value_changes(
    tmp_path: Path, changes: Changes, message: str | None
) -> None:
    """Where no measure is changed, the replay is."""
    ours = configured(tmp_path / "ours", {})
    theirs = configured(tmp_path / "theirs", changes, BULK if changes else PER_TURN)
    if message is None:
        assert require_comparable(ours, theirs, ["recall@10"]) == ["recall@10"]
        assert unknown_settings(ours, theirs) == []
        return
    with pytest.raises(LcmError, match=f"^different {re.escape(message)}") as caught:
        require_comparable(ours, theirs, ["recall@10"])
    assert "\n" not in str(caught.value)


def test_what_a_configuration_does_not_tell_is_named(tmp_path: Path) -> None:
    """A run by its numbers alone, one of a time when there was no threshold, and one that kept its measures apart."""
    ours, bare = configured(tmp_path / "ours", {}), side(tmp_path / "bare", **SAME)
    assert require_comparable(ours, bare, ["recall@10"]) == ["recall@10"]
    assert unknown_settings(ours, bare) == ["replay", "measures"]
    older = config({})
    del older["measures"]["retention"]["rouge_threshold"]
    (tmp_path / "bare" / "config.yaml").write_text(yaml.safe_dump(older))
    assert unknown_settings(ours, comparable(tmp_path / "bare", "older")) == ["measures.retention.rouge_threshold"]
    apart = {"replay": older["replay"], **MEASURES, "measures": MEASURES["retrieval"]}
    (tmp_path / "bare" / "config.yaml").write_text(yaml.safe_dump(apart))
    assert unknown_settings(ours, comparable(tmp_path / "bare", "older")) == ["measures"]


def test_a_side_is_not_called_by_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "correct-horse-battery")
    folder = write_run_folder(tmp_path / "run", **SAME)
    assert "correct-horse" not in comparable(folder, "language_model.api_key=correct-horse-battery").name
