"""From the older vocabulary; the vectors of the original are in tests/golden."""

import pytest

from lcm.plugins.lancedb_pro.row_fields import memory_category, normalized


@pytest.mark.parametrize(
    ("older", "category"),
    [("preference", "preferences"), ("entity", "entities"), ("decision", "events"), ("other", "patterns")],
)
def test_a_category_of_the_older_vocabulary_has_a_name_among_the_six(older: str, category: str) -> None:
    assert memory_category(older, "any text") == category


def test_a_short_self_description_is_a_profile_and_any_other_fact_a_case() -> None:
    assert memory_category("fact", "well, My name is Bob") == "profile"
    assert memory_category("fact", "the sky is blue") == "cases"


@pytest.mark.parametrize(("length", "category"), [(199, "profile"), (200, "cases")])
def test_a_profile_is_shorter_than_200_units(length: int, category: str) -> None:
    assert memory_category("fact", "my name " + "x" * (length - 8)) == category


def test_an_english_cue_stands_between_ascii_words() -> None:
    assert memory_category("fact", "economy x") == "cases"
    assert memory_category("fact", "my 猫") == "cases"


def test_a_chinese_cue_counts_wherever_it_stands() -> None:
    assert memory_category("fact", "我的猫") == "profile"
    assert memory_category("fact", "大家叫我小明") == "profile"
    assert memory_category("fact", "他的猫") == "cases"


def test_anything_unknown_is_a_pattern() -> None:
    assert {memory_category(name, "my name") for name in (None, "", "reflection", "Fact", "events")} == {"patterns"}


def test_a_category_is_recognised_whatever_its_case_and_white_space() -> None:
    assert normalized("\u3000EVENTS ") == "events"
    assert normalized("event") is None
