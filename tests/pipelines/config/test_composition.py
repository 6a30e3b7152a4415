"""Points composed together are those composed one by one, and fail in the same words."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from omegaconf import DictConfig, OmegaConf

from pipelines.config import building, composition
from pipelines.config.composition import CompositionCache

SETTINGS = (
    "fusion.dense_weight=0.1", "fusion.dense_weight=2", "fusion.k=30", "cache=false", "ranking.stages.limit.n=7",
    "ranking.stages.limit=null", "ranking.order=[dense_score,fusion]", "measures.latency={queries: 3}",
    "measures.retention.budgets=[]", "measures=[retrieval,retention]", "measures.latency=null",
    "scopes.agent_access={a:[b]}", "+scopes.agent_access.a=[b]", "~ranking.stages.limit", "~fusion.dense_weight",
    "++fusion.dense_weight=3", "+fusion.more=1", "fusion.dense_wieght=1", "decay.floor_core=0.1", "memory.ranking=null",
    "ranking.stages.fusion.k=1", "dataset.directory=${oc.env:HOME}", "dataset=null", "fusion=", "nothing=1",
    "fusion.dense_weight=''", 'tracking.uri="a b,c"', "hydra.run.dir=x", "fusion.dense_weight=1,2", "system=null",
    "reranker@fusion=none",
)  # fmt: skip
CHOICES = (
    "fusion=reciprocal_rank", "fusion=weighted_sum", "decay=weibull", "embedder=hashing", "system=lancedb_pro",
    "system=libravdb", "ranking=lancedb_pro", "vector_index=hnsw", "fusion=nothing", "arms=none", "sweep=decay",
)  # fmt: skip


def told(composed: DictConfig) -> tuple[str, bool | None]:
    return OmegaConf.to_yaml(composed), OmegaConf.is_struct(composed)


def outcome(compositions: CompositionCache | None, overrides: list[str]) -> object:
    """The configuration, or the message of the error."""
    try:
        if compositions is None:
            return told(composition.composed(overrides))
        return told(compositions.composed(overrides))
    except Exception as error:
        return type(error).__name__, str(error)


KEPT = CompositionCache()


@settings(max_examples=10)
@given(
    st.lists(st.sampled_from(CHOICES), max_size=2),
    st.lists(st.sampled_from(SETTINGS), max_size=4),
    st.randoms(use_true_random=False),
)
def test_points_composed_together_are_those_composed_alone(
    choices: list[str], changes: list[str], order: Random
) -> None:
    overrides = [*choices, *changes]
    order.shuffle(overrides)
    assert outcome(KEPT, overrides) == outcome(None, overrides)


def test_a_point_cannot_change_another() -> None:
    compositions = CompositionCache()
    first = compositions.composed(["system=hybrid", "fusion.dense_weight=0.1"])
    second = compositions.composed(["system=hybrid", "fusion.lexical_weight=0.2"])
    assert (first.fusion.dense_weight, first.fusion.lexical_weight) == (0.1, 0.3)
    assert (second.fusion.dense_weight, second.fusion.lexical_weight) == (0.7, 0.2)


def test_choices_are_composed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    composed: list[tuple[str, ...]] = []
    real = composition._by_hydra

    def counted(overrides: tuple[str, ...], *rest: str, **more: bool) -> DictConfig:
        composed.append(tuple(overrides))
        return real(overrides, *rest, **more)

    monkeypatch.setattr(composition, "_by_hydra", counted)
    compositions = CompositionCache()
    for weight in range(20):
        compositions.composed(["system=hybrid", f"fusion.dense_weight={weight}", "hydra.sweep.dir=x"])
    assert composed == [("system=hybrid", "hydra.sweep.dir=x")]


@pytest.mark.parametrize("system", ["unified", "libravdb"])
def test_a_resolved_configuration_is_written_as_omegaconf_writes_it(system: str) -> None:
    config = composition.composed([f"system={system}", "means.confidence=0.9"])
    assert building.resolved_text(building.resolved(config)) == OmegaConf.to_yaml(config, resolve=True)
    odd = {"a": ["1e3", "yes", "Käse", 1e-7, None, "two\nlines", "x" * 200, "a: b", ""], "b": {}, "c": {"d": []}}
    assert building.resolved_text(odd) == OmegaConf.to_yaml(OmegaConf.create(odd))
