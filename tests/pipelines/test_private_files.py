"""What commands make is for its owner alone: stores, run folders, caches, presets, compacted folders, MLflow's."""

import os
from pathlib import Path

import pytest

from eval.dataset.sample import bundled_directory
from tests.pipelines.conftest import QUICK, Lcm

pytestmark = pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
TALKS = str(bundled_directory() / "transcripts")


def open_to_others(*folders: Path) -> dict[str, str]:
    """What others than the owner may read or enter."""
    paths = (path for folder in folders for path in folder.rglob("*"))
    return {str(path): oct(path.stat().st_mode & 0o777) for path in paths if path.stat().st_mode & 0o077}


@pytest.mark.full
def test_what_is_taken_in_and_compacted_is_its_owners_alone(lcm: Lcm) -> None:
    taken = lcm("ingest", TALKS, "into=stores/memory.db", place="here")
    parquet = lcm("ingest", TALKS, "into=messages.parquet", place="here")
    folded = lcm("compact", TALKS, "into=compacted", "shards=1", "tracking=none", place="here")
    assert (taken.code, parquet.code, folded.code) == (0, 0, 0), folded.stderr
    names = {path.name for path in taken.place.rglob("*")}
    assert {"memory.db", "messages.parquet", "shard-000.db", "report.parquet", "plan.json"} <= names
    assert not open_to_others(taken.place)


@pytest.mark.full
def test_runs_caches_presets_and_what_mlflow_makes_are_their_owners_alone(
    lcm: Lcm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LCM_CACHE_DIR", str(tmp_path / "cache"))
    quick = [word for word in QUICK if not word.startswith("tracking")]
    run = lcm("evaluate", *quick, "cache=true", "hydra.run.dir=runs/one", place="here")
    sweep = lcm("evaluate", "-m", *quick, "fusion.dense_weight=0.3,0.5", "executor=local", place="here")
    exported = lcm("export", "runs/one", "to=presets/one", "name=one", place="here")
    assert (run.code, sweep.code, exported.code) == (0, 0, 0), run.stderr + sweep.stderr + exported.stderr
    names = {path.name for path in run.place.rglob("*")}
    assert {"mlflow.db", "summary.json", "run.parquet", "lancedb_pro.json", "points.parquet"} <= names
    assert any((tmp_path / "cache").rglob("*.sqlite"))
    assert not open_to_others(run.place, tmp_path / "cache")
