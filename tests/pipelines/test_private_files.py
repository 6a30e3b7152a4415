"""What commands make is for its owner alone: stores, run folders, caches, presets, compacted folders, MLflow's."""

import os
import shutil
from pathlib import Path

import pytest

from eval.dataset.sample import bundled_directory
from tests.pipelines.conftest import Finished, Lcm

pytestmark = pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")


def open_to_others(*folders: Path) -> dict[str, str]:
    """What others than the owner may read or enter, but for what SQLite keeps while some other test reads a store."""
    found = (path for folder in folders for path in folder.rglob("*"))
    paths = (path for path in found if not path.name.endswith(("-wal", "-shm")))
    return {str(path): oct(path.stat().st_mode & 0o777) for path in paths if path.stat().st_mode & 0o077}


def test_what_is_taken_in_and_compacted_is_its_owners_alone(lcm: Lcm, compacted: Finished) -> None:
    talk = str(bundled_directory() / "transcripts" / "assistant.jsonl")
    taken = lcm("ingest", talk, "into=stores/memory.db")
    assert (taken.code, lcm("ingest", talk, "into=messages.parquet").code) == (0, 0), taken.stderr
    names = {path.name for folder in (taken.place, compacted.place) for path in folder.rglob("*")}
    assert {"memory.db", "messages.parquet", "shard-000.db", "report.parquet", "plan.json"} <= names
    assert not open_to_others(taken.place, compacted.place)


@pytest.mark.slow
@pytest.mark.xdist_group("mlflow")
def test_runs_caches_presets_and_what_mlflow_makes_are_their_owners_alone(
    lcm: Lcm, evaluated: Finished, swept: Finished, studied: Finished, tmp_path: Path
) -> None:
    run = shutil.copytree(evaluated.folder, tmp_path / "run")  # which is told where it was logged
    made = lcm("export", str(run), "to=presets/one", "name=one", "tracking.uri=sqlite:///here.db")
    assert made.code == 0, made.stderr
    names = {path.name for one in (made, evaluated, swept, studied) for path in one.place.rglob("*")}
    assert {"here.db", "summary.json", "run.parquet", "lancedb_pro.json", "points.parquet", "study.db"} <= names
    assert any((evaluated.place.parent / "cache").rglob("*.sqlite"))
    caches = [one.place.parent / "cache" for one in (evaluated, swept, studied)]
    assert not open_to_others(made.place, evaluated.place, swept.place, studied.place, *caches)
