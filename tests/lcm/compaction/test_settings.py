"""Settings out of range are refused at construction, in words that name the setting, its range and its value."""

from collections.abc import Callable
from math import nan
from typing import Any

import pytest

from lcm.compaction.clustering.clustering import Clustering
from lcm.compaction.guidance.clauses import ClauseRules
from lcm.compaction.guidance.none import NoGuidance
from lcm.compaction.guidance.protected import ProtectedGuidance
from lcm.compaction.summarizer.centroid import Centroid
from lcm.compaction.summarizer.chain import Chain
from lcm.compaction.summarizer.extractive import Extractive
from lcm.compaction.summarizer.llm import Llm
from lcm.compaction.summarizer.t5 import T5
from lcm.compaction.summarizer.truncate import Truncate
from lcm.language_model.none import NoModel
from lcm.retrieval.embedder.hashing import Hashing
from lcm.token_estimator.utf16_units import Utf16Units
from tests.lcm.compaction.contexts import head, lossless


def folding(**settings: Any) -> object:
    return lossless(head(1), **settings)


def clustering(**settings: Any) -> object:
    return Clustering(Centroid(Hashing()), NoGuidance(), Utf16Units(), Hashing(), **settings)


def extractive(**settings: Any) -> object:
    return Extractive(Hashing(), Utf16Units(), **settings)


def llm(**settings: Any) -> object:
    return Llm(NoModel(), **settings)


def chain(**settings: Any) -> object:
    return Chain({"one": Truncate(), "two": Truncate()}, **settings)


def guidance(**settings: Any) -> object:
    return ProtectedGuidance(ClauseRules(), **settings)


REFUSED: list[tuple[Callable[..., object], dict[str, Any], str]] = [
    (folding, {"context_threshold": 1.5}, "context_threshold must be in [0, 1], got 1.5"),
    (folding, {"context_threshold": nan}, "context_threshold must be in [0, 1], got nan"),
    (folding, {"fresh_tail_count": -1}, "fresh_tail_count must be >= 0, got -1"),
    (folding, {"fresh_tail_max_count": 63}, "fresh_tail_max_count must be a whole number >= 64 or null, got 63"),
    (folding, {"fresh_tail_novelty": 1.5}, "fresh_tail_novelty must be in [0, 1], got 1.5"),
    (folding, {"hot_spot_share": 1.5}, "hot_spot_share must be in [0, 1], got 1.5"),
    (folding, {"hot_spot_heat": 0}, "hot_spot_heat must be a whole number >= 1, got 0"),
    (folding, {"leaf_min_fanout": 0}, "leaf_min_fanout must be >= 1, got 0"),
    (folding, {"incremental_max_depth": -2}, "incremental_max_depth must be >= -1, got -2"),
    (folding, {"summary_max_overage_factor": nan}, "summary_max_overage_factor must be >= 1, got nan"),
    (
        folding,
        {"leaf_chunk_tokens": 9, "min_leaf_tokens": 10},
        "min_leaf_tokens must be <= leaf_chunk_tokens (9), got 10",
    ),
    (folding, {"sweep_deadline_seconds": 0}, "sweep_deadline_seconds must be > 0 or null, got 0"),
    (folding, {"rules": "1.4.4"}, "rules must be one of: corrected, original, got '1.4.4'"),
    (clustering, {"target_cluster_size": 0}, "target_cluster_size must be >= 1, got 0"),
    (clustering, {"preservation_threshold": nan}, "preservation_threshold must be in [0, 1], got nan"),
    (clustering, {"first_density": 0.0}, "density must be in (0, 1], got 0.0"),
    (clustering, {"rules": "1.4"}, "rules must be one of: 1.4.4, corrected, original, got '1.4'"),
    (guidance, {"booster_threshold": nan}, "booster_threshold must be in [0, 1], got nan"),
    (extractive, {"coverage": -1}, "coverage must be >= 0, got -1"),
    (extractive, {"position": nan}, "position must be >= 0, got nan"),
    (extractive, {"previous_share": 1.5}, "previous_share must be in [0, 1], got 1.5"),
    (extractive, {"code_share": nan}, "code_share must be in [0, 1], got nan"),
    (extractive, {"aggressive_share": 0}, "aggressive_share must be in (0, 1], got 0"),
    (llm, {"normal_temperature": 2.1}, "normal_temperature must be in [0, 2] or null, got 2.1"),
    (llm, {"aggressive_temperature": nan}, "aggressive_temperature must be in [0, 2] or null, got nan"),
    (llm, {"workers": 0}, "workers must be >= 1, got 0"),
    (llm, {"timeout_seconds": 0}, "timeout_seconds must be > 0 or null, got 0"),
    (Truncate, {"max_units": 1}, "max_units must be >= 2, got 1"),
    (Truncate, {"aggressive_max_units": 1}, "aggressive_max_units must be >= 2, got 1"),
    (chain, {"order": []}, "order must name each summarizer once, and at least one, got []"),
    (chain, {"order": ["one", "one"]}, "order must name each summarizer once, and at least one, got ['one', 'one']"),
    (chain, {"order": ["one", "three"]}, "order names 'three'; choose from: one, two"),
    (T5, {"precision": "int4"}, "precision must be one of: fp32, int8, got 'int4'"),
    (T5, {"beams": 0}, "beams must be >= 1, got 0"),
    (T5, {"max_new_tokens": 0}, "max_new_tokens must be >= 1, got 0"),
    (T5, {"batch_size": nan}, "batch_size must be >= 1, got nan"),
    (T5, {"length_penalty": nan}, "length_penalty must be a finite number, got nan"),
    (T5, {"max_input_tokens": 31}, "max_input_tokens must be >= 32 or null, got 31"),
    (T5, {"threads": 0}, "threads must be >= 1 or null, got 0"),
]


def test_a_setting_out_of_range_is_refused_by_name() -> None:
    said = []
    for made, settings, _ in REFUSED:
        with pytest.raises(ValueError) as refusal:
            made(**settings)
        said.append(str(refusal.value))
    assert said == [message for _, _, message in REFUSED]


def test_a_zone_that_there_is_not_is_told(caplog: pytest.LogCaptureFixture) -> None:
    folding(timezone="No/Where")
    assert "there is no time zone 'No/Where'" in caplog.text
