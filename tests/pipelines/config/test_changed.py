"""What tells a configuration from the default: choices, then what is not as they have it, then what was named."""

import pytest

from pipelines.config.composition import CompositionCache, composed
from pipelines.config.presets import asked_of, changed

HYBRID = {
    "system": "hybrid", "assembly": "lossless", "ranking": "hybrid", "fusion": "weighted_sum", "extraction": "verbatim",
}  # fmt: skip


@pytest.mark.parametrize(
    ("overrides", "told"),
    [
        ([], {}),
        (["system=hybrid"], HYBRID),
        (["system=hybrid", "fusion=plain_sum"], HYBRID | {"fusion": "plain_sum"}),
        (["fusion=reciprocal_rank", "fusion.k=30"], {"fusion": "reciprocal_rank", "fusion.k": 30}),
        (["fusion.weights.dense_score=0.5", "means.seed=7"], {"fusion.weights.dense_score": 0.5, "means.seed": 7}),
        (["measures.latency=null"], {"measures.latency": None}),
        (["+dataset@distractors.beam=beam"], {"dataset@distractors.beam": "beam"}),
        (
            ["summarizer=routed", "summarizer@summarizer.abstractive=truncate"],
            {"summarizer": "routed", "summarizer@summarizer.abstractive": "truncate"},
        ),
    ],
)
def test_what_differs_is_told(overrides: list[str], told: dict[str, object]) -> None:
    assert changed(composed(overrides), overrides) == told
    assert changed(CompositionCache().composed(overrides), overrides) == told


def test_what_is_named_is_told_though_it_is_the_default() -> None:
    overrides = ["fusion=weighted_sum", "fusion.clamp=true"]
    assert changed(composed(overrides), overrides) == {"fusion": "weighted_sum", "fusion.clamp": True}


def test_a_preset_tells_what_it_sets_beside_its_choices() -> None:
    overrides = ["experiment=locomo"]
    told = changed(composed(overrides), overrides)
    assert told["experiment"] == "locomo"
    assert told["dataset.evidence"] == "repaired"


def test_what_changes_no_number_is_not_told() -> None:
    overrides = ["cache=false", "tracking=none", "executor=none", "stages.max_gib=1", "hydra.run.dir=a", "arms=none"]
    told = asked_of(composed(overrides), overrides)
    assert told == {"overrides": ["arms=none"], "changed": {"arms": "none"}}
