"""Settings out of range are refused at construction, in words that name the setting, its range and its value."""

from functools import partial
from math import nan

import pytest

from lcm.compaction.clustering import Clustering
from lcm.compaction.guidance.clauses import ClauseRules
from lcm.compaction.guidance.protected import NoGuidance, ProtectedGuidance
from lcm.compaction.summarizer.chain import Chain, Truncate
from lcm.compaction.summarizer.extractive import Centroid, Extractive
from lcm.compaction.summarizer.llm import Llm
from lcm.compaction.summarizer.t5 import T5
from lcm.language_model.replies import NoModel
from lcm.retrieval.embedder.hashing import Hashing
from lcm.token_estimator import Utf16Units
from tests.lcm.compaction.contexts import head, lossless
from tests.lcm.refusals import assert_refused


def test_settings_of_lossless_compaction_out_of_range_are_refused() -> None:
    folding = partial(lossless, head(1))
    assert_refused(folding, "be in [0, 1]", context_threshold=[1.5, nan], fresh_tail_novelty=1.5, hot_spot_share=1.5)
    assert_refused(folding, "be >= 0", fresh_tail_count=-1)
    assert_refused(folding, "be a whole number >= 64 or null", fresh_tail_max_count=63)
    assert_refused(folding, "be a whole number >= 1", hot_spot_heat=0)
    assert_refused(folding, "be a whole number >= 0 or null", fresh_tail_max_tokens=-1)
    assert_refused(folding, "be a whole number >= 1 or null", summary_prefix_target_tokens=0, max_sweep_passes=0.5)
    assert_refused(folding, "be a whole number >= 64 or null", fallback_max_tokens=63)
    assert_refused(folding, "be >= 1", leaf_min_fanout=0, summary_max_overage_factor=nan)
    assert_refused(folding, "be >= -1", incremental_max_depth=-2)
    assert_refused(partial(folding, leaf_chunk_tokens=9), "be <= leaf_chunk_tokens (9)", min_leaf_tokens=10)
    assert_refused(folding, "be > 0 or null", sweep_deadline_seconds=0)
    assert_refused(folding, "be one of: 0.15, corrected, original", rules="1.4.4")


def test_settings_of_clustering_and_guidance_out_of_range_are_refused() -> None:
    clustering = partial(Clustering, Centroid(Hashing()), NoGuidance(), Utf16Units(), Hashing())
    assert_refused(clustering, "be >= 1", target_cluster_size=0)
    assert_refused(clustering, "be in [0, 1]", preservation_threshold=nan)
    assert_refused(clustering, "be one of: 1.4.4, corrected, original", rules="1.4")
    assert_refused(clustering, "be in (0, 1]", first_density=0.0)
    assert_refused(partial(ProtectedGuidance, ClauseRules()), "be in [0, 1]", booster_threshold=nan)


def test_settings_of_summarizers_out_of_range_are_refused() -> None:
    extractive, llm = partial(Extractive, Hashing(), Utf16Units()), partial(Llm, NoModel())
    assert_refused(extractive, "be >= 0", coverage=-1, position=nan)
    assert_refused(extractive, "be in [0, 1]", previous_share=1.5, code_share=nan)
    assert_refused(extractive, "be in (0, 1]", aggressive_share=0)
    assert_refused(llm, "be in [0, 2] or null", normal_temperature=2.1, aggressive_temperature=nan)
    assert_refused(llm, "be >= 1", workers=0)
    assert_refused(llm, "be > 0 or null", timeout_seconds=0)
    assert_refused(Truncate, "be >= 2 or null", max_units=1, aggressive_max_units=1)
    assert_refused(Truncate, "be a whole number >= 64 or null", max_tokens=63)
    with pytest.raises(ValueError, match="may be null beside max_tokens alone"):
        Truncate(max_units=None)
    assert_refused(T5, "be one of: fp32, int8", precision="int4")
    assert_refused(T5, "be >= 1", beams=0, max_new_tokens=0, batch_size=nan)
    assert_refused(T5, "be a finite number", length_penalty=nan)
    assert_refused(T5, "be >= 32 or null", max_input_tokens=31)
    assert_refused(T5, "be >= 1 or null", threads=0)


def test_a_chain_orders_summarizers_that_it_has_each_once() -> None:
    chain = partial(Chain, {"one": Truncate(), "two": Truncate()})
    assert_refused(chain, "name each summarizer once, and at least one", order=[[], ["one", "one"]])
    with pytest.raises(ValueError, match=r"^order names 'three'; choose from: one, two$"):
        chain(order=["one", "three"])


def test_a_zone_that_there_is_not_is_told(caplog: pytest.LogCaptureFixture) -> None:
    lossless(head(1), timezone="No/Where")
    assert "there is no time zone 'No/Where'" in caplog.text
