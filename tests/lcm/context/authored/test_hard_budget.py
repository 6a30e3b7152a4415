"""Too much hard text is refused."""

from dataclasses import replace

import pytest

from lcm.context.authored.hard_budget import check_hard_budget
from lcm.errors import LcmError
from lcm.records import AuthoredNode

HARD = AuthoredNode("a.md#000000", "a.md", "hard", "ListItem", "x", 0, 0, tokens=30)


def test_hard_text_may_fill_its_budget() -> None:
    check_hard_budget([HARD, HARD], 60, "raise it")
    check_hard_budget([HARD], 3 * 0.1 * 100, "raise it")  # 30.000000000000004
    check_hard_budget([], 0, "raise it")


def test_beyond_it_both_numbers_and_the_largest_file_are_named() -> None:
    other = replace(HARD, source="b.md", tokens=45)
    expected = (
        r"^the hard authored text takes 75 tokens \(45 of them in 'b.md'\), its budget is 74.5, and it is never cut: "
        r".*, or raise it$"
    )
    with pytest.raises(LcmError, match=expected):
        check_hard_budget([HARD, other], 74.5, "raise it")


def test_other_tiers_do_not_count() -> None:
    check_hard_budget([HARD, replace(HARD, tier="soft"), replace(HARD, tier="variant")], 30, "raise it")
