"""Categories of the plugin's rows; the vectors of the original are in tests/golden."""

import pytest

from lcm.plugins.lancedb_pro.categories import RowCategory, columns_of, row_category, row_is_of_category
from lcm.records.document import MEMORY_CATEGORIES, category_named


@pytest.mark.parametrize(
    ("category", "metadata", "wanted", "is_wanted"),
    [
        ("decision", None, " Events ", True),  # an older name means a category
        ("decision", '{"memory_category": "case"}', "events", False),  # the memory's own says otherwise
        ("decision", '{"memory_category": "case"}', "cases", True),
        ("decision", '{"memory_category": "case"}', "decision", True),  # equal names, whatever it says
        ("decision", '{"memory_category": "nothing"}', "event", True),  # what it says is no category
        ("events", None, "decision", False),  # an older name wants nothing but itself
        ("fact", "[broken", "case", True),
        ("tea", None, "tea", True),
        ("tea", None, "patterns", False),
    ],
)
def test_a_row_is_wanted_by_a_name_of_either_vocabulary(
    category: str, metadata: str | None, wanted: str, is_wanted: bool
) -> None:
    assert row_is_of_category(category, metadata, wanted) is is_wanted


@pytest.mark.parametrize("category", MEMORY_CATEGORIES)
def test_what_a_tool_stores_under_a_category_is_found_under_it(category: str) -> None:
    own, column = row_category(category)
    assert own == category
    assert column in columns_of(category)
    assert row_is_of_category(column, {"memory_category": own}, category)


def test_an_older_name_stays_the_column_and_what_is_unknown_is_a_pattern() -> None:
    assert row_category("Reflection ") == RowCategory("patterns", "reflection")
    assert row_category("tea") == RowCategory("patterns", "other")
    assert columns_of("tea") == ["tea"]


def test_what_is_no_name_means_no_category() -> None:
    assert [category_named(name) for name in (None, 5, "", "caseses", " Entity")] == [None] * 4 + ["entities"]
