"""docs/mathematics.md says what the code computes: its formulas, with its numbers, over random rows of the presets."""

import math
import random
from functools import cache
from typing import Any

import polars as pl
import pytest
import yaml
from omegaconf import OmegaConf

from lcm.compaction.summarizer.chain import requested_tokens
from lcm.protocols.retrieval import Stage
from pipelines.config.building import build
from pipelines.config.composition import composed
from tests.golden.components import documents_batch
from tests.lcm.retrieval.decay.frames import days_ago, rows

ROWS = 200
BATCH = documents_batch([])
ANY = random.Random(7)


def drawn(low: float, high: float) -> list[float]:
    return [ANY.uniform(low, high) for _ in range(ROWS)]


def unit(value: float) -> float:
    """[x] of the page."""
    return min(max(value, 0.0), 1.0)


@cache
def part(system: str, key: str) -> Any:
    """A component of a preset as it runs."""
    return build(composed([f"system={system}", "embedder=hashing"]), key)


def stage(name: str) -> Stage:
    return part("lancedb_pro", "ranking").stages[name]


def scores(step: Stage, frame: pl.DataFrame, column: str = "score") -> list[float]:
    """In the order of the documents' names; every row is kept."""
    return step(frame, BATCH).sort(pl.col("document_id").str.slice(1).cast(pl.Int64))[column].to_list()


def test_raw_scores_are_mapped() -> None:
    cosines, bm25 = drawn(-1, 1), [max(0.0, b) for b in drawn(-5, 40)]
    frame = rows(cosine=cosines).with_columns(bm25=pl.Series(bm25), contained=pl.lit(None, pl.Float64))
    assert scores(stage("dense_score"), frame, "dense_score") == pytest.approx([1 / (1 + (1 - c)) for c in cosines])
    lexical = [1 / (1 + math.exp(-b / 5)) if b > 0 else 1 / 2 for b in bm25]
    assert scores(stage("lexical_score"), frame, "lexical_score") == pytest.approx(lexical)


def test_a_weighted_sum_has_a_floor() -> None:
    dense, words = [None if v < 0.2 else v for v in drawn(0, 1)], drawn(0, 1)
    frame = rows(score=words).with_columns(
        dense_score=pl.Series(dense),
        lexical_score=pl.Series(words),
        dense_rank=pl.Series(dense).is_not_null().replace_strict({True: 1, False: None}, return_dtype=pl.Int64),
    )
    expected = [
        unit(w if v is None else max(0.7 * v + 0.3 * w, 0.92 * w * (w >= 0.75)))
        for v, w in zip(dense, words, strict=True)
    ]
    assert scores(part("lancedb_pro", "fusion"), frame) == pytest.approx(expected)


def test_two_passes_weigh_authority() -> None:
    cosines, uses, ages = drawn(0.2, 1)[:8], [0, 1, 5, 0, 20, 3, 2, 9], drawn(0, 3)[:8]
    authority, rates = drawn(0, 1)[:8], drawn(0, 1)[:8]
    frame = rows(
        cosine=cosines, access_count=uses, created_at=[days_ago(a) for a in ages], authority=authority,
        decay_rate=rates, kind=["summary", "message"] * 4,
    )  # fmt: skip
    expected = []
    for c, n, a, g, rate, kind in zip(cosines, uses, ages, authority, rates, frame["kind"], strict=True):
        r = math.exp(-1e-5 * a * 86400)
        omega = 0.5 * r + 0.2 * math.log(1 + n) / math.log(2 + max(uses)) + 0.3 * g
        quality = 1 - 0.5 * rate if kind == "summary" else 1
        expected.append(unit(omega * max(c, 0) * (1 + 0.3 * 0) / (1 + 0.3) * quality))
    assert scores(part("libravdb", "fusion"), frame) == pytest.approx(expected, rel=1e-6)


def test_decay_is_a_stretched_exponential_on_a_floor() -> None:
    ages, uses, importance = drawn(0, 400), [ANY.randrange(0, 9) for _ in range(ROWS)], drawn(0, 1)
    confidence, tiers = drawn(0, 1), [ANY.choice(["core", "working", "peripheral"]) for _ in range(ROWS)]
    kinds, scored = [ANY.choice(["static", "dynamic"]) for _ in range(ROWS)], drawn(0, 1)
    idle = [ANY.uniform(0, age) for age in ages]
    frame = rows(
        score=scored, created_at=[days_ago(a) for a in ages], last_accessed_at=[days_ago(a) for a in idle],
        access_count=uses, importance=importance, confidence=confidence, decay_tier=tiers, temporal_type=kinds,
    )  # fmt: skip
    beta, floor = {"core": 0.8, "working": 1.0, "peripheral": 1.3}, {"core": 0.9, "working": 0.7, "peripheral": 0.5}
    expected = []
    for s, a0, i, n, iota, rho, tier, kind in zip(
        scored, ages, idle, uses, importance, confidence, tiers, kinds, strict=True
    ):
        a1 = i if n > 0 else a0
        half_life = 30 * math.exp(1.5 * iota) / (3 if kind == "dynamic" else 1)
        recency = math.exp(-math.log(2) / half_life * a1 ** beta[tier])
        gap = max(a0 - a1, 1) / max(n - 1, 1)
        frequency = (1 - math.exp(-n / 5)) * (1 if n <= 1 else (1 + math.exp(-gap / 30)) / 2)
        strength = 0.4 * recency + 0.3 * frequency + 0.3 * iota * rho
        expected.append(unit(s * (0.3 + 0.7 * max(floor[tier], strength))))
    assert scores(stage("decay"), frame) == pytest.approx(expected, rel=1e-6)


def test_without_an_engine_age_adds_and_takes() -> None:
    ages, uses, idle, scored = drawn(0, 400), [ANY.randrange(0, 9) for _ in range(ROWS)], drawn(0, 90), drawn(0, 1)
    frame = rows(
        score=scored, created_at=[days_ago(a) for a in ages], last_accessed_at=[days_ago(a) for a in idle],
        access_count=uses,
    )  # fmt: skip
    bonus = [unit(s + 0.1 * math.exp(-a / 14)) for s, a in zip(scored, ages, strict=True)]
    assert scores(stage("recency_boost"), frame) == pytest.approx(bonus, rel=1e-6)
    weighed = [unit(s * (0.7 + 0.3 * 0.7)) for s in scored]
    assert scores(stage("importance_weight"), frame) == pytest.approx(weighed)
    expected = []
    for s, a, n, a1 in zip(scored, ages, uses, idle, strict=True):
        longer = min(60 * (1 + 0.5 * math.log(1 + n * 2 ** (-a1 / 30))), 180) if n else 60
        expected.append(unit(s * (0.5 + 0.5 * math.exp(-a / longer))))
    assert scores(stage("time_decay"), frame) == pytest.approx(expected, rel=1e-6)


def test_a_reranker_is_blended_over_a_floor() -> None:
    blend = build(composed(["reranker=cross_encoder", "embedder=hashing"]), "reranker").blend
    fused, words, replied = drawn(0, 1), drawn(0.4, 1), [None if x < 0.3 else x for x in drawn(0, 1)]
    frame = rows(score=fused).with_columns(lexical_score=pl.Series(words), reranker_score=pl.Series(replied))
    expected = []
    for f, w, x in zip(fused, words, replied, strict=True):
        kept = (0.95, 1.0) if w >= 0.75 else (0.9, 0.95) if w >= 0.6 else (0.5, 0.8)
        expected.append(unit(max(0.8 * f, kept[1] * f) if x is None else max(0.6 * x + 0.4 * f, kept[0] * f)))
    assert blend.apply(frame)["score"].to_list() == pytest.approx(expected)
    cosine = build(composed(["reranker=cosine", "embedder=hashing"]), "reranker")
    assert (cosine.score_weight, cosine.cosine_weight) == (0.7, 0.3)


def test_a_long_text_loses_and_a_low_score_is_dropped() -> None:
    lengths, scored = [ANY.randrange(1, 5000) for _ in range(ROWS)], drawn(0, 1)
    frame = rows(score=scored, length_utf16=lengths)
    expected = [
        unit(s / (1 + 0.5 * math.log2(max(length, 500) / 500))) for s, length in zip(scored, lengths, strict=True)
    ]
    assert scores(stage("length_normalization"), frame) == pytest.approx(expected)
    assert len(stage("hard_min_score")(frame, BATCH)) == sum(s >= 0.35 for s in scored)
    assert stage("diversity").similarity_threshold == 0.85


NUMBERS = {
    ("libravdb", "admission"): """
        weights.w1c=.35 weights.w2c=.4 weights.w3c=.25 weights.w1t=.4 weights.w2t=.35 weights.w3t=.25
        threshold=.35 turn_cosine=.8 turn_saturation=5 memory_cosine=.85 memory_saturation=3 memory_hits=5
    """,
    ("libravdb", "vector_index"): "widths=[64,256,null] exit_thresholds=[.65,.75]",
    ("libravdb", "compaction"): "target_cluster_size=20 first_density=.4",
    ("libravdb", "assembly"): """
        token_budget_fraction=.25 tail.min_turns=4 tail.budget_tokens=128
        shares.soft_fraction=.3 shares.guidance_fraction=.15
    """,
    ("libravdb", "recovery"): """
        reserve.fraction=.1 reserve.least_tokens=16 reserve.most_tokens=128
        failure.floor_score=.15 failure.min_top_k=4 failure.min_mean_confidence=.5
    """,
    ("lossless_claw", "compaction"): """
        context_threshold=.75 fresh_tail_count=64 leaf_chunk_tokens=20000
        leaf_min_fanout=8 condensed_min_fanout=4 condensed_target_tokens=2000
    """,
    ("admission=balanced", "admission"): """
        weights.utility=.1 weights.confidence=.1 weights.novelty=.1 weights.recency=.1 weights.type_prior=.6
        reject_threshold=.45 novelty_pool_size=8 recency_half_life_days=14
    """,
    ("reinforcement=recall", "reinforcement"): """
        tiers.working_access_threshold=3 tiers.working_composite_threshold=.4
        tiers.core_access_threshold=10 tiers.core_composite_threshold=.7 tiers.core_importance_threshold=.8
        tiers.peripheral_composite_threshold=.15 tiers.peripheral_age_days=60
    """,
}
"""Preset or choice, and component -> the numbers of the page that stand in no formula above."""


def test_presets_have_the_numbers_of_the_page() -> None:
    wrong = []
    for (system, key), numbers in NUMBERS.items():
        preset = system if "=" in system else f"system={system}"
        settings = composed([preset, "embedder=hashing"])[key]
        for name, _, text in (number.partition("=") for number in numbers.split()):
            found = OmegaConf.select(settings, name)
            if found != yaml.safe_load(text):
                wrong.append(f"{system} {key}.{name} is {found}, on the page {text}")
    assert wrong == []


def test_a_summary_is_asked_for_with_a_share_of_what_it_covers() -> None:
    for tokens in (100, 1000, 5000, 20_000):
        assert requested_tokens(tokens, 0, False, 2400, 2000) == max(192, min(2400, math.floor(0.35 * tokens)))
        assert requested_tokens(tokens, 0, True, 2400, 2000) == max(96, min(1320, math.floor(0.2 * tokens)))
