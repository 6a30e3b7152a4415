"""The laws of `Stage`, over every stage that a configuration names."""

from collections.abc import Iterator
from typing import Any

import polars as pl
import pytest
from omegaconf import DictConfig, ListConfig, OmegaConf

from lcm.memory import Memory
from lcm.protocols import Batch, Stage
from pipelines import configuration
from tests.workspaces import queries, system, transcript


def stage_nodes() -> dict[str, Any]:
    """Every stage of every ranking, arm and fusion choice, by its target and settings."""
    nodes: dict[str, Any] = {}
    for group in ("ranking", "arms", "fusion"):
        for choice in configuration.groups()[group]:
            config = configuration.composed([f"{group}={choice}"])
            for node in stages_in(OmegaConf.create(configuration.resolved(config))[group]):
                nodes.setdefault(str(OmegaConf.to_container(node)), node)
    return nodes


def stages_in(node: Any) -> Iterator[DictConfig]:
    if isinstance(node, DictConfig):
        target = str(node.get("_target_", ""))
        if target.startswith(("lcm.ranking.", "lcm.fusion.")) and not target.endswith(".Ranking"):
            yield node
        for key in node:
            yield from stages_in(node[key])
    elif isinstance(node, ListConfig):
        for child in node:
            yield from stages_in(child)


NODES = stage_nodes()


@pytest.fixture(scope="module")
def memory() -> Iterator[Memory]:
    with system().open() as opened:
        opened.ingest(transcript())
        yield opened


@pytest.fixture(params=list(NODES.values()), ids=[node["_target_"].rpartition(".")[2] for node in NODES.values()])
def stage(request: pytest.FixtureRequest) -> Stage:
    return configuration.build(OmegaConf.create({"stage": request.param}), "stage")


def prepared(memory: Memory, asked: list[Any]) -> tuple[pl.DataFrame, Batch]:
    """A frame as a stage late in a pipeline sees it: every score there, some missing."""
    ranking = memory.system.ranking
    (batch,) = memory._batches(asked, ranking, None)
    frame = ranking._candidates(batch)
    for name in ("dense_score", "lexical_score"):
        frame = ranking.stages[name](frame, batch)
    half = pl.int_range(pl.len()) % 2 == 0
    frame = frame.with_columns(
        dense_rank=pl.when(half).then("dense_rank"),
        cosine=pl.when(half).then("cosine"),
        dense_score=pl.when(half).then("dense_score"),
        score=pl.col("bm25").fill_null(0.1),
    )
    return frame, batch


def test_a_stage_adds_no_row(stage: Stage, memory: Memory) -> None:
    frame, batch = prepared(memory, queries())
    after = stage(frame, batch)
    keys = ["query_id", "document_id"]
    assert after.join(frame, on=keys, how="anti").is_empty()
    assert not after.select(keys).is_duplicated().any()


def test_a_stage_keeps_columns_and_types(stage: Stage, memory: Memory) -> None:
    frame, batch = prepared(memory, queries())
    after = stage(frame, batch).schema
    assert {name: after[name] for name in frame.columns} == dict(frame.schema)


def test_a_stage_leaves_its_argument_alone(stage: Stage, memory: Memory) -> None:
    frame, batch = prepared(memory, queries())
    before = frame.clone()
    stage(frame, batch)
    assert frame.equals(before)


def test_a_stage_is_deterministic(stage: Stage, memory: Memory) -> None:
    frame, batch = prepared(memory, queries())
    assert stage(frame, batch).equals(stage(frame, batch))


def test_a_stage_treats_each_query_alone(stage: Stage, memory: Memory) -> None:
    frame, batch = prepared(memory, queries())
    alone = pl.concat([stage(rows, batch) for _, rows in frame.group_by("query_id", maintain_order=True)])
    assert stage(frame, batch).equals(alone)


def test_a_stage_takes_an_empty_frame(stage: Stage, memory: Memory) -> None:
    frame, batch = prepared(memory, queries())
    assert stage(frame.clear(), batch).is_empty()
