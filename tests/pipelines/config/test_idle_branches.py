"""Idle parts: branches that a fusion does not weigh."""

import pytest

from pipelines.config.idle import idle_note
from tests.support.composing import composed

UNWEIGHED = "source.branches.{} (this fusion weighs none of its scores: it adds candidates alone)"


@pytest.mark.parametrize(
    ("overrides", "told"),
    [
        (["fusion=two_pass", "source.branches.speaker=null"], [UNWEIGHED.format("session")]),
        (["fusion=learnt", "+fusion.weights.session_score=1"], ["source.branches.speaker"]),
        (["fusion=reciprocal_rank"], []),
        (["fusion=weighted_sum"], []),
    ],
)
def test_a_branch_that_no_fusion_weighs_is_told(overrides: list[str], told: list[str]) -> None:
    note = idle_note(composed(["source=branches", *overrides])) or ""
    assert all(one in note for one in told)
    assert ("source.branches" in note) == bool(told)
