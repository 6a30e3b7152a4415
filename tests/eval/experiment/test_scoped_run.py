"""A run whose queries read some scopes alone writes nothing of the others: not into its folder, nor to MLflow."""

from pathlib import Path

import polars as pl
import pytest

from eval.arms import Oracle
from eval.dataset.dataset import Dataset
from eval.experiment.outcome import write_run
from eval.measures.retention import Retention
from eval.measures.retrieval import Retrieval
from eval.tracking.mlflow_log import Mlflow
from lcm.memory.system import System
from lcm.records.query import Query
from lcm.retrieval.ranking.pipeline import Ranking
from lcm.retrieval.source.branches import Recent
from pipelines.config import building
from tests.eval.tiny import tiny
from tests.support import experiments
from tests.support.composing import composed
from tests.support.workspaces import LINES, minute, transcript

WORDS = {"ada": "zqada", "bo": "zqbo"}
SCOPES = ("global", "agent:ada")


def dataset(scopes: tuple[str, ...] | None) -> Dataset:
    """Two agents, each of whose messages holds a word of its own; three judged queries about those of the first."""
    talks = [transcript([f"{word} {line}" for line in LINES], f"agent:{who}:main") for who, word in WORDS.items()]
    queries = [
        Query("kitchen", "kitchen", minute(99), scopes=scopes),
        Query("goats", "goats", minute(99), scopes=scopes),
        Query("tea", "tea", minute(99), scopes=scopes, conversation_id="agent:ada:main"),
    ]
    judged = [(query.query_id, f"agent:ada:main:{place}") for query, place in zip(queries, (0, 2, 5), strict=True)]
    return tiny(talks, queries, judged, name="agents")


def written(folder: Path, scopes: tuple[str, ...] | None) -> str:
    """Everything that a run writes, as text."""
    system: System = building.build(
        composed(["system=lancedb_pro", "embedder=hashing", "vector_index=exact", "admission=balanced"]), "memory"
    )
    measures = {"retrieval": Retrieval(names=["recall@1", "tokens@2"]), "retention": Retention(budgets=[300])}
    arms = {"last_n": Ranking(Recent()), "whole": Ranking(Recent(pool_size=None)), "oracle": Oracle()}
    made = dataset(scopes)
    outcome = experiments.outcome(made, system, measures, arms)
    write_run(folder, outcome, made, {}, "dataset: agents\n", {})
    return text_of(folder)


def text_of(folder: Path) -> str:
    files = [path for path in folder.rglob("*") if path.is_file()]
    tables = [str(pl.read_parquet(path).to_dicts()) for path in files if path.suffix == ".parquet"]
    return "\n".join(tables + [path.read_bytes().decode("utf-8", "replace") for path in files])


def test_a_scoped_run_writes_nothing_of_others(tmp_path: Path) -> None:
    told, everything = written(tmp_path / "scoped", SCOPES), written(tmp_path / "whole", None)
    for of_other in (WORDS["bo"], "agent:bo:main"):
        assert of_other not in told
        assert of_other in everything
    assert WORDS["ada"] in told and "agent:ada:main:5" in told


@pytest.mark.slow
@pytest.mark.xdist_group("mlflow")
def test_mlflow_holds_nothing_of_others_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "run", SCOPES)
    Mlflow(uri=f"sqlite:///{tmp_path}/mlflow.db", experiment="scoped").log(tmp_path / "run")
    told = text_of(tmp_path)
    assert WORDS["bo"] not in told and "agent:bo:main" not in told
    assert WORDS["ada"] in told
