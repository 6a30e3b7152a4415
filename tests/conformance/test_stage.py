"""The laws of `Stage`, over every stage that a configuration names: the rerankers and fusions are stages too.

What reads as a stage but is none, since it is not called with a frame, is left out: rankings, paths, blends, decays.
"""

import copy
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from typing import Any

import polars as pl
import pytest
from hydra.utils import get_object
from omegaconf import DictConfig, ListConfig, OmegaConf

import lcm.retrieval.fusion
import lcm.retrieval.ranking
import lcm.retrieval.reranker
import lcm.retrieval.summary_expansion
from lcm.protocols.contract import contract_of
from lcm.protocols.retrieval import REASONS_SCHEMA, Batch, Stage, TellsReasons
from lcm.retrieval.fusion import EVIDENCE_COLUMNS
from lcm.retrieval.ranking.stages.scores import RawScore
from lcm.retrieval.source.indexes import DESCRIBED_BY, OF_ANNOTATION, OF_USE, read_by
from pipelines.config import building, conf_folder
from tests.lcm.retrieval.reranker.test_cross_encoder import build_cross_encoder
from tests.support.composing import composed
from tests.support.richest import richest
from tests.support.workspaces import lived_in, questions

CROSS_ENCODER = "lcm.retrieval.reranker.CrossEncoder"


def stage_nodes() -> dict[str, Any]:
    """Every stage of every ranking, arm, fusion, reranker and decay choice, by its target and settings."""
    hybrid = composed(["ranking=hybrid"])
    configs = [composed([f"ranking={choice}"]) for choice in conf_folder.groups()["ranking"]]
    configs += [composed(["system=unified_two_embedders", "embedder@further_embedder=token_sum"])]
    configs += [composed([f"arms={choice}"]) for choice in conf_folder.groups()["arms"]]
    for group in ("fusion", "reranker", "decay"):
        for choice in conf_folder.groups()[group]:
            config = copy.deepcopy(hybrid)
            config[group] = written = OmegaConf.load(conf_folder.conf_dir() / group / f"{choice}.yaml")
            configs.append(composed(["ranking=hybrid", f"{group}={choice}"]) if "defaults" in written else config)
    nodes: dict[str, Any] = {}
    for config in configs:
        settings = building.resolved(config)
        whole = OmegaConf.create({key: settings[key] for key in ("ranking", "arms")})
        for node in stages_in(whole):
            nodes.setdefault(str(OmegaConf.to_container(node)), node)
    return nodes


def stages_in(node: Any) -> Iterator[DictConfig]:
    if isinstance(node, DictConfig):
        if "_target_" in node and is_stage(get_object(node._target_)):
            yield node
        for key in node:
            yield from stages_in(node[key])
    elif isinstance(node, ListConfig):
        for child in node:
            yield from stages_in(child)


def is_stage(target: Any) -> bool:
    """Whether a class is one; a function that builds a part of a stage is none."""
    return isinstance(target, type) and issubclass(target, Stage)


NODES = stage_nodes()


@pytest.fixture(scope="module")
def prepared_once() -> Iterator[tuple[pl.DataFrame, Batch]]:
    """A frame as a stage late in a pipeline sees it, over documents of many lives: every score there, some missing."""
    with lived_in() as memory:
        ranking = memory.system.ranking
        (batch,) = memory.batches(questions(), ranking, None)
        frame = ranking._candidates(batch)
        for name in ("dense_score", "lexical_score"):
            frame = ranking.stages[name](frame, batch)
        half = pl.int_range(pl.len()) % 2 == 0
        yield (
            frame.with_columns(
                dense_rank=pl.when(half).then("dense_rank"),
                cosine=pl.when(half).then("cosine"),
                dense_score=pl.when(half).then("dense_score"),
                score=pl.col("bm25").fill_null(0.1),
                **{
                    column: pl.col("bm25") * share
                    for share, column in enumerate(sorted(EVIDENCE_COLUMNS))
                    if column not in frame.columns
                },
            ),
            batch,
        )


@pytest.fixture
def prepared(prepared_once: tuple[pl.DataFrame, Batch]) -> tuple[pl.DataFrame, Batch]:
    frame, batch = prepared_once
    return frame.clone(), batch


@pytest.fixture(scope="module")
def cross_encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    directory = tmp_path_factory.mktemp("cross") / "encoder"
    build_cross_encoder(directory)
    return str(directory)


RICHEST = richest((node["_target_"], name, OmegaConf.to_container(node)) for name, node in NODES.items())


@pytest.fixture(
    params=[
        pytest.param(node, id=node["_target_"].rpartition(".")[2], marks=[] if name in RICHEST else pytest.mark.full)
        for name, node in NODES.items()
    ]
)
def stage(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Stage:
    node = copy.deepcopy(request.param)
    if node._target_ == CROSS_ENCODER:
        node.directory = request.getfixturevalue("cross_encoder")
    if "api_key_env" in node:  # without a key no service is asked
        monkeypatch.delenv(node.api_key_env, raising=False)
    return building.build(OmegaConf.create({"stage": node}), "stage")


KEYS = ["query_id", "document_id"]
ANSWER = [*KEYS, "score"]


def adds_no_row(stage: Stage, frame: pl.DataFrame, batch: Batch, after: pl.DataFrame) -> None:
    assert after.join(frame, on=KEYS, how="anti").is_empty()
    assert not after.select(KEYS).is_duplicated().any()


def reads_of_documents_what_it_names(stage: Stage, frame: pl.DataFrame, batch: Batch, after: pl.DataFrame) -> None:
    reads = read_by(stage)
    less = stage(frame.drop(set(DESCRIBED_BY).difference(reads)), batch)
    assert less.equals(after.select(less.columns))


def reads_of_use_annotation_and_evidence_what_it_names(
    stage: Stage, frame: pl.DataFrame, batch: Batch, after: pl.DataFrame
) -> None:
    unnamed = (OF_USE | OF_ANNOTATION | EVIDENCE_COLUMNS) - set(contract_of(stage).reads or ())
    assert stage(frame.drop(unnamed, strict=False), batch).select(ANSWER).equals(after.select(ANSWER))


def gives_reasons_for_dropped_rows(stage: Stage, frame: pl.DataFrame, batch: Batch, after: pl.DataFrame) -> None:
    dropped = frame.join(after, on=KEYS, how="anti").select(KEYS)
    assert isinstance(stage, TellsReasons) or dropped.is_empty()
    if isinstance(stage, TellsReasons):
        reasons = stage.reasons(frame, batch)
        assert dict(reasons.schema) == REASONS_SCHEMA
        assert dropped.join(reasons, on=KEYS, how="anti").is_empty()
        assert reasons.join(frame, on=KEYS, how="anti").is_empty()
        assert not reasons.select(KEYS).is_duplicated().any()
        assert not reasons["reason"].null_count()


def keeps_columns_and_types(stage: Stage, frame: pl.DataFrame, batch: Batch, after: pl.DataFrame) -> None:
    assert {name: after.schema[name] for name in frame.columns} == dict(frame.schema)


def is_deterministic(stage: Stage, frame: pl.DataFrame, batch: Batch, after: pl.DataFrame) -> None:
    assert stage(frame, batch).equals(after)


def treats_each_query_alone(stage: Stage, frame: pl.DataFrame, batch: Batch, after: pl.DataFrame) -> None:
    alone = pl.concat([stage(rows, batch) for _, rows in frame.group_by("query_id", maintain_order=True)])
    assert after.equals(alone)


def takes_an_empty_frame(stage: Stage, frame: pl.DataFrame, batch: Batch, after: pl.DataFrame) -> None:
    assert stage(frame.clear(), batch).is_empty()


def breaks_no_score(stage: Stage, frame: pl.DataFrame, batch: Batch, after: pl.DataFrame) -> None:
    scores = after["score"]
    assert not scores.is_nan().any()
    if not isinstance(stage, RawScore):  # which shows a raw score, missing where its branch did not return the row
        assert scores.is_finite().all()
        assert not scores.has_nulls()


def makes_the_columns_that_it_names(stage: Stage, frame: pl.DataFrame, batch: Batch, after: pl.DataFrame) -> None:
    made = list(getattr(stage, "makes", ()))
    assert set(made) <= set(after.columns)
    assert not made or not after.select(made).equals(frame.select(made))


LAWS = (
    adds_no_row,
    reads_of_documents_what_it_names,
    reads_of_use_annotation_and_evidence_what_it_names,
    gives_reasons_for_dropped_rows,
    keeps_columns_and_types,
    is_deterministic,
    treats_each_query_alone,
    takes_an_empty_frame,
    breaks_no_score,
    makes_the_columns_that_it_names,
)


def test_a_stage_keeps_every_law(stage: Stage, prepared: tuple[pl.DataFrame, Batch]) -> None:
    frame, batch = prepared
    assert frame["score"].is_finite().all()
    before = frame.clone()
    after = stage(frame, batch)
    broken = []
    for law in LAWS:
        try:
            law(stage, frame, batch, after)
        except AssertionError as error:
            broken.append(f"{law.__name__}: {error}")
    assert broken == []
    assert frame.equals(before), "a stage leaves its argument alone"


def test_every_stage_of_the_package_is_held_to_the_laws() -> None:
    packages = (
        lcm.retrieval.ranking,
        lcm.retrieval.fusion,
        lcm.retrieval.reranker,
        lcm.retrieval.summary_expansion,
    )
    inner = [
        one.name
        for package in packages
        for one in pkgutil.walk_packages(getattr(package, "__path__", []), f"{package.__name__}.")
    ]
    defined = {
        found
        for name in (*(package.__name__ for package in packages), *inner)
        for found in vars(importlib.import_module(name)).values()
        if inspect.isclass(found) and found.__module__ == name and issubclass(found, Stage)
    }
    assert {get_object(node._target_) for node in NODES.values()} == defined
