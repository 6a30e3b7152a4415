"""From the older vocabulary; the vectors of the original are in tests/golden."""

import pytest

from lcm.plugins.lancedb_pro.row_fields import MAPPED, memory_category, normalized


@pytest.mark.parametrize(
    ("older", "text", "category"),
    [
        ("preference", "any text", "preferences"),
        ("entity", "any text", "entities"),
        ("decision", "any text", "events"),
        *((name, "my name", "patterns") for name in ("other", None, "", "reflection", "Fact", "events")),
        ("fact", "well, My name is Bob", "profile"),
        ("fact", "the sky is blue", "cases"),
        ("fact", "my name " + "x" * 191, "profile"),
        ("fact", "my name " + "x" * 192, "cases"),  # of 200 units
        ("fact", "economy x", "cases"),  # an English cue stands between ASCII words
        ("fact", "my 猫", "cases"),
        ("fact", "我的猫", "profile"),  # a Chinese one anywhere
        ("fact", "大家叫我小明", "profile"),
        ("fact", "他的猫", "cases"),
    ],
)
def test_a_category_of_the_older_vocabulary_has_a_name_among_the_six(older: str, text: str, category: str) -> None:
    assert memory_category(older, text) == category


@pytest.mark.parametrize(
    ("older", "kind", "category"),
    [("events", None, "events"), ("EVENTS", None, "patterns"), ("decision", None, "events"),
     ("decision", MAPPED, "profile"), ("fact", MAPPED, "profile"), ("profile", MAPPED, "profile")],
)  # fmt: skip
def test_since_beta_11_the_six_stay_and_a_decision_of_a_reflection_is_a_fact(
    older: str, kind: str | None, category: str
) -> None:
    assert memory_category(older, "my name", "beta.11", kind) == category


def test_a_category_is_recognised_whatever_its_case_and_white_space() -> None:
    assert normalized("\u3000EVENTS ") == "events"
    assert normalized("event") is None
