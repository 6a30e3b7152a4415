"""Formulas against numpy: both sides answer alike, and one that does not is found out."""

import math
from dataclasses import replace
from typing import Any, get_args

import polars as pl
import pytest

from eval.benchmark.timing import DisagreementError
from lcm.protocols.retrieval import Batch
from lcm.records.rules import Rules
from lcm.retrieval.decay.exponential import Exponential
from lcm.retrieval.decay.none import NoDecay
from lcm.retrieval.decay.weibull import Weibull
from lcm.retrieval.fusion.two_pass import TwoPass
from lcm.retrieval.ranking.stages.decay_boost import DecayBoost
from lcm.retrieval.ranking.stages.diversity import Diversity
from lcm.retrieval.ranking.stages.importance_weight import ImportanceWeight
from lcm.retrieval.ranking.stages.length_normalization import LengthNormalization
from lcm.retrieval.ranking.stages.limit import Limit
from lcm.retrieval.ranking.stages.min_score import MinScore
from lcm.retrieval.ranking.stages.noise_filter import NoiseFilter
from lcm.retrieval.ranking.stages.not_expired import NotExpired
from lcm.retrieval.ranking.stages.recency_boost import RecencyBoost
from lcm.retrieval.ranking.stages.time_decay import TimeDecay
from lcm.retrieval.reranker.cosine import Cosine
from lcm.writing.admission.gating import Gating
from tests.support.numpy_twins import gating, two_pass
from tests.support.numpy_twins import stages as numpy_stages
from tests.support.numpy_twins.fused import fused
from tests.support.numpy_twins.gating import GateOverhead
from tests.support.numpy_twins.post_fusion import DiversityWalk, OneByOne, PostFusion
from tests.support.numpy_twins.two_pass import TwoPassScore

pytestmark = pytest.mark.usefixtures("no_full_collections")

FUSION = TwoPass(Exponential(1e-5, 1e-7, 1e-5), k1=20, theta1=0.55, authority_weight=0.1)
OVERHEAD = GateOverhead(Gating(), texts=24)
STAGES = {
    "min_score": MinScore(),
    "not_expired": NotExpired(),
    "reranker": Cosine(window=35),
    "recency_boost": RecencyBoost(),
    "importance_weight": ImportanceWeight(),
    "length_normalization": LengthNormalization(),
    "time_decay": TimeDecay(),
    "decay": DecayBoost(Weibull(recency_lifts=True)),
    "hard_min_score": MinScore(0.35),
    "noise_filter": NoiseFilter(),
    "diversity": Diversity(),
    "limit": Limit(12),
}
POST_FUSION = PostFusion(STAGES, documents=400, queries=30, candidates=40, dim=16)
ONE_BY_ONE = OneByOne(STAGES, documents=400, queries=6, candidates=40, dim=16)
DIVERSITY = DiversityWalk(Diversity(), documents=400, queries=7, candidates=60, dim=16, batch_sizes=[1, 5])
CHOICE = TwoPassScore(FUSION, documents=400, queries=30, candidates=40)


@pytest.mark.parametrize("changes", [{}, {"rules": "original"}, {"k2": 20, "kappa": 2.0}, {"theta1": 0.99}])
def test_it_agrees_and_gives_finite_ratios(changes: dict[str, Any]) -> None:
    found = replace(CHOICE, fusion=replace(FUSION, **changes)).run(1, 0)
    assert [comparison.name for comparison in found] == ["two-pass", "two-pass, without words"]
    assert all(math.isfinite(comparison.ratio) and comparison.ratio > 0 for comparison in found)
    assert [comparison.target for comparison in found] == [two_pass.TARGET, None]


def test_every_part_of_the_score_finds_work() -> None:
    made = fused(documents=400, queries=30, candidates=40, dim=16, seed=0)
    whole = FUSION(made.frame, made.batch)
    assert 0 < len(whole) < 30 * FUSION.k2  # the floor leaves some queries less than the second pass would
    for change in ({"kappa": 0.0}, {"frequency_weight": 0.0}, {"recency": NoDecay()}, {"k1": 8}, {"theta1": 0.2}):
        other = replace(FUSION, **change)(made.frame, made.batch)
        assert not other.select("document_id", "score").equals(whole.select("document_id", "score")), change


def test_others_passes_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    best = two_pass.best
    for change in ({"k2": 7}, {"kappa": 0.31}, {"frequency_weight": 0.21}, {"theta1": 0.6}):
        monkeypatch.setattr(two_pass, "best", lambda arrays, fusion, by=change: best(arrays, replace(fusion, **by)))
        with pytest.raises(DisagreementError, match="two passes and those in numpy gave different"):
            CHOICE.run(1, 0)


@pytest.mark.parametrize("rules", get_args(Rules))
def test_the_bare_patterns_give_the_gates_scores(rules: Rules) -> None:
    (found,) = replace(OVERHEAD, gate=Gating(rules=rules, technical_norm=1.2, threshold=0.3)).run(2, 0)
    assert found.name == "gating"
    assert found.ratio == found.ours / found.bare > 0
    assert found.target == gating.TARGET
    assert found.facts["texts"] == 24
    assert 0 < found.facts["promoted"] < 1


def test_other_scores_of_the_gate_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    bare = gating._bare
    monkeypatch.setattr(gating, "_bare", lambda gate, *rest: bare(Gating(technical_norm=1.6), *rest))
    with pytest.raises(DisagreementError):
        OVERHEAD.run(1, 0)


@pytest.mark.parametrize(
    ("choice", "names"),
    [
        (POST_FUSION, ["post-fusion"]),
        (replace(POST_FUSION, stages={**STAGES, "time_decay": None, "reranker": None}), ["post-fusion"]),
        (ONE_BY_ONE, ["post-fusion, one by one"]),
        (DIVERSITY, ["diversity, 1 a batch", "diversity, 5 a batch"]),
    ],
)
def test_stages_after_fusion_agree(choice: Any, names: list[str]) -> None:
    found = choice.run(1, 0)
    assert [comparison.name for comparison in found] == names
    assert all(comparison.ratio == comparison.ours / comparison.bare > 0 for comparison in found)


def test_every_stage_after_fusion_finds_work() -> None:
    """A stage that changed nothing would be compared with nothing."""
    made = fused(documents=400, queries=30, candidates=40, dim=16, seed=0)
    frame = made.frame
    for name, stage in STAGES.items():
        after = stage(frame, made.batch)
        assert not after.select("document_id", "score").equals(frame.select("document_id", "score")), name
        frame = after


def test_a_loop_of_other_stages_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    rank = numpy_stages.rank
    for wrong, words in (
        ({"limit": Limit(11)}, "different orders"),
        ({"noise_filter": NoiseFilter(denials=False)}, "different orders"),
        ({"importance_weight": ImportanceWeight(0.7 + 1e-7)}, "different scores"),
    ):
        other = list((STAGES | wrong).values())
        monkeypatch.setattr(numpy_stages, "rank", lambda rows, _, other=other: rank(rows, other))
        with pytest.raises(DisagreementError, match=words):
            POST_FUSION.run(1, 0)


def test_other_walks_and_a_query_that_ranks_otherwise_alone_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def touchy(frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        return frame.head(30)  # of all rows, not of each query's

    with pytest.raises(DisagreementError, match="at once and one by one"):
        replace(ONE_BY_ONE, stages={"touchy": touchy}).run(1, 0)
    walk = numpy_stages.walk
    monkeypatch.setattr(numpy_stages, "walk", lambda vectors, _: walk(vectors, 0.99))
    with pytest.raises(DisagreementError, match="different orders"):
        DIVERSITY.run(1, 0)
