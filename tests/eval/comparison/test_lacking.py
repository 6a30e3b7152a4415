"""A side that has no value of some questions is ranked, counted and told by those that it shares with the baseline."""

from pathlib import Path

import pytest

from eval.comparison.comparison import Comparison, compared
from eval.comparison.comparison_report import cells, explained, headline
from lcm.errors import LcmError
from tests.support.run_folders import side

EASY_FIRST: list[float | None] = [1.0] * 20 + [0.0] * 20


@pytest.fixture
def found(tmp_path: Path) -> Comparison:
    """One answers the easy questions alone, and not all of them; one does better than the baseline at hard ones."""
    values: dict[str, list[float | None]] = {
        "base": EASY_FIRST,
        "survivor": [1.0] * 19 + [0.0] + [None] * 20,
        "better": [1.0] * 21 + [0.0] * 19,
    }
    return compared([side(tmp_path / name, {"recall@10": column}) for name, column in values.items()])


def test_sides_stand_by_what_can_be_compared(found: Comparison) -> None:
    """The mean of the survivor, 0.95, is the highest, and it is worse than the baseline wherever it has a value."""
    assert [one.side.name for one in found.standings] == ["better", "base", "survivor"]
    told = [row[1:4] for row in cells(found)]
    assert told == [("1 better", "0.525", "+0.025"), ("2 base", "0.500", ""), ("3 survivor", "0.950 n=20", "-0.050")]


def test_the_verdict_says_of_how_many_it_tells_nothing(found: Comparison) -> None:
    lacking = ", over 20 of 40 judged questions: it has no value of 20 (50%)"
    assert headline(found) == [
        "1 better: cannot tell it from the baseline",
        f"3 survivor: cannot tell it from the baseline{lacking}",
    ]


def test_the_count_is_that_of_pairs(found: Comparison, tmp_path: Path) -> None:
    assert explained(found).startswith("20 to 40 judged questions of 40, paired")
    base = side(tmp_path / "base", {"recall@10": EASY_FIRST})
    fewer = side(tmp_path / "fewer", {"recall@10": [*EASY_FIRST[:30], *[None] * 10]})
    assert explained(compared([base, fewer])).startswith("30 judged questions of 40, paired")


def test_of_a_baseline_that_lacks_questions_the_others_are_ranked_by_its_own(tmp_path: Path) -> None:
    """Over the 30 that it has it is as good as the first and better than the second, which wins elsewhere."""
    base = side(tmp_path / "base", {"recall@10": [*EASY_FIRST[:30], *[None] * 10]})
    same = side(tmp_path / "same", {"recall@10": EASY_FIRST})
    worse = side(tmp_path / "worse", {"recall@10": [1.0] * 19 + [0.0] * 11 + [1.0] * 10})
    found = compared([base, worse, same])
    assert [one.side.name for one in found.standings] == ["base", "same", "worse"]


def test_a_measure_that_one_side_lacks_names_that_side(tmp_path: Path) -> None:
    base = side(tmp_path / "base", {"recall@10": EASY_FIRST, "aligned": EASY_FIRST})
    other = side(tmp_path / "other", {"recall@10": EASY_FIRST})
    with pytest.raises(
        LcmError, match="aligned is not known of all of them: choose from: recall@10; without it: other"
    ):
        compared([base, other], measures=["aligned"])
