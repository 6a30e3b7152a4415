"""Idle parts: what admission weighs by category, where nobody sets categories."""

import pytest

from pipelines.config.idle import idle_note
from tests.support.composing import composed

IDLE = "admission by category (nobody sets categories: annotation=rules does)"


@pytest.mark.parametrize(
    ("overrides", "is_told"),
    [
        (["admission=balanced"], True),
        (["admission=balanced", "annotation=rules"], False),
        (["admission=balanced", "extraction=llm"], False),
        (["admission=gating"], False),
        (["system=lancedb_pro", "admission=conservative"], False),
        (["system=lancedb_pro_tuned", "admission=high_recall"], False),
    ],
)
def test_admission_by_category_without_categories_is_told(overrides: list[str], is_told: bool) -> None:
    assert (IDLE in (idle_note(composed(overrides)) or "")) == is_told
