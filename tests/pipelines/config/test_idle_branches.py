"""Branches: what they leave without work, those that a fusion does not weigh, and weights that are all 0."""

import pytest

from lcm.errors import LcmError
from pipelines.config import building
from pipelines.config.idle import idle_note
from tests.support.composing import composed

UNWEIGHED = "source.branches.{} (this fusion weighs none of its scores: it adds candidates alone)"
UNASKED = "vector_index (this source does not ask it)"
NO_COSINE = "fusion by cosine (this source gives none: it counts 0)"
NO_DENSE, NO_LEXICAL = "source.branches.dense=null", "source.branches.lexical=null"
NO_SESSION, NO_SPEAKER = "source.branches.session=null", "source.branches.speaker=null"


def note(*overrides: str) -> str | None:
    return idle_note(composed(["system=hybrid", "source=branches", *overrides]))


def told(*parts: str) -> str:
    return f"parts without work here: {'; '.join(parts)}"


@pytest.mark.parametrize(
    ("overrides", "parts"),
    [
        (["fusion=two_pass", NO_SPEAKER], [UNWEIGHED.format("session")]),
        (["fusion=learnt", "+fusion.weights.session_score=1"], [UNWEIGHED.format("speaker")]),
        (["fusion=reciprocal_rank"], []),
        (["fusion=weighted_sum"], []),
    ],
)
def test_a_branch_that_no_fusion_weighs_is_told(overrides: list[str], parts: list[str]) -> None:
    assert note(*overrides) == (told(*parts) if parts else None)


@pytest.mark.parametrize(
    ("overrides", "part"),
    [
        ([NO_LEXICAL, NO_SESSION, "text_index=bm25s"], "text_index (this source does not ask it)"),
        ([NO_LEXICAL, "text_index=bm25s"], None),
        ([NO_DENSE, NO_SPEAKER, "vector_index=hnsw"], UNASKED),
        ([NO_DENSE, "vector_index=hnsw"], None),
    ],
)
def test_an_index_that_no_branch_asks_is_told(overrides: list[str], part: str | None) -> None:
    assert note(*overrides) == (part and told(part))


def test_a_branch_with_an_index_of_its_own_does_not_ask_that_of_the_memory() -> None:
    own = [f"+text_index@source.branches.{name}.text_index=bm25s" for name in ("lexical", "session.branch")]
    assert note(*own, "text_index=lancedb") == told("text_index (this source does not ask it)")
    assert note(own[0], "text_index=lancedb") is None
    own = [f"+embedder@source.branches.{name}.embedder=hashing" for name in ("dense", "speaker.branch")]
    assert note(*own, "vector_index=hnsw") == told(UNASKED)
    assert note(own[0], "vector_index=hnsw") is None


def test_a_weight_that_was_set_of_a_branch_that_is_not_there_is_told() -> None:
    assert note(NO_DENSE, "fusion.dense_weight=0.1") == told("fusion.dense_weight (this source has no dense branch)")
    assert note(NO_LEXICAL, "fusion=reciprocal_rank", "fusion.lexical_weight=3") == told(
        "fusion.lexical_weight (this source has no lexical branch)"
    )
    assert note(NO_DENSE) is None, "nobody set it"
    assert note(NO_LEXICAL, "fusion.dense_weight=0.1") is None


def test_a_fusion_that_ranks_by_the_cosine_of_no_branch_is_told() -> None:
    ours = note(NO_DENSE, NO_SPEAKER, NO_SESSION, "fusion=two_pass")
    assert ours == idle_note(composed(["system=hybrid", "source=lexical", "fusion=two_pass"])) == told(NO_COSINE)
    assert note(NO_DENSE, NO_SPEAKER, "fusion=two_pass") == told(NO_COSINE, UNWEIGHED.format("session"))


def test_weights_of_0_are_refused_before_a_run_where_no_other_branch_weighs() -> None:
    nothing = ["system=hybrid", "fusion=reciprocal_rank", "fusion.dense_weight=0", "fusion.lexical_weight=0"]
    with pytest.raises(LcmError, match=r"must not both be 0 .*: raise one, or choose source=branches"):
        building.refuse_unused(composed(nothing), [])
    building.refuse_unused(composed(["source=branches", *nothing]), [])
    building.refuse_unused(composed(nothing[:3]), [])


def test_an_embedder_whose_vectors_nothing_compares_is_told() -> None:
    words = ["embedder=token_sum", "source=lexical", "arms=none"]
    unasked = "embedder (nothing here compares its vectors)"
    assert unasked in (note(*words) or "")
    for asks in ("deduplication=create", "recovery=libravdb", "source=dense", "arms=controls"):
        assert unasked not in (note(*words, asks) or ""), asks
