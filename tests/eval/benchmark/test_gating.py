"""The gate beside its bare patterns: the same scores, and other ones are found out."""

from dataclasses import replace
from typing import get_args

import pytest

from eval.benchmark.timing import DisagreementError
from lcm.records.rules import Rules
from lcm.writing.admission.gating import Gating
from tests.support.numpy_twins import gating
from tests.support.numpy_twins.gating import GateOverhead

OVERHEAD = GateOverhead(Gating(), texts=24)


@pytest.mark.parametrize("rules", get_args(Rules))
def test_the_bare_patterns_give_the_gates_scores(rules: Rules) -> None:
    (found,) = replace(OVERHEAD, gate=Gating(rules=rules, technical_norm=1.2, threshold=0.3)).run(2, 0)
    assert found.name == "gating"
    assert found.ratio == found.ours / found.bare > 0
    assert found.target == gating.TARGET
    assert found.facts["texts"] == 24
    assert 0 < found.facts["promoted"] < 1


def test_other_scores_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    bare = gating._bare
    monkeypatch.setattr(gating, "_bare", lambda gate, *rest: bare(Gating(technical_norm=1.6), *rest))
    with pytest.raises(DisagreementError):
        OVERHEAD.run(1, 0)


def test_no_texts_cannot_be_compared() -> None:
    with pytest.raises(ValueError, match=r"^texts must be >= 1, got 0$"):
        GateOverhead(Gating(), texts=0)
