"""What the judge is shown, and what is decided without it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from lcm.protocols.writing import Judgement, Neighbour
from lcm.records.document import Candidate
from lcm.writing.deduplication.merge_rule import LineMerge
from lcm.writing.deduplication.nearest import NearestDocuments, cosine_of_score, score_of_cosine
from tests.lcm.writing.admission.tables import TOWARDS, Table, candidate, document


@dataclass
class Skipping:
    """Skips everything, and keeps what it was shown."""

    shown: list[str] = field(default_factory=list)

    def judge(self, candidate: Candidate, near: Sequence[Neighbour], *, incidents: Counter[str]) -> Judgement:
        self.shown = [neighbour.document.document_id for neighbour in near]
        return Judgement("skip", "always")


def table(*cosines: float, category: str = "other") -> Table:
    return Table().holding(*((document(f"d{i}", f"text {i}", category), c) for i, c in enumerate(cosines)))


def test_the_judge_sees_the_nearest_three_that_are_alike() -> None:
    judge = Skipping()
    NearestDocuments(judge).judge(candidate("x"), TOWARDS, table(0.5, 0.58, 0.9, 0.7, 0.8), incidents=Counter())
    assert judge.shown == ["d2", "d4", "d3"]


def test_a_score_of_seven_tenths_is_a_cosine_of_four_sevenths() -> None:
    assert cosine_of_score(0.7) == pytest.approx(4 / 7)
    assert score_of_cosine(4 / 7) == pytest.approx(0.7)
    assert (
        NearestDocuments(Skipping()).judge(candidate("x"), TOWARDS, table(0.572), incidents=Counter()).action == "skip"
    )
    assert (
        NearestDocuments(Skipping()).judge(candidate("x"), TOWARDS, table(0.571), incidents=Counter()).action
        == "create"
    )


def test_documents_that_have_ended_are_not_compared() -> None:
    known = table(0.9)
    NearestDocuments(Skipping()).judge(candidate("x"), TOWARDS, known, incidents=Counter())
    assert known.asked == [(5, True)]


def test_another_item_of_the_same_brand_is_created() -> None:
    fries = candidate("x", "preferences", content="I like fries from McDonalds")
    burgers = document("d", "I like burgers from McDonalds", "preferences")
    known = Table().holding((burgers, 0.9))
    assert (
        NearestDocuments(Skipping()).judge(fries, TOWARDS, known, incidents=Counter()).reason
        == "another item of the same brand"
    )
    known.holding((document("e", "tea", "preferences"), 0.8))
    assert NearestDocuments(Skipping()).judge(fries, TOWARDS, known, incidents=Counter()).action == "skip"
    event = candidate("x", "events", content="I like fries from McDonalds")
    assert (
        NearestDocuments(Skipping()).judge(event, TOWARDS, Table().holding((burgers, 0.9)), incidents=Counter()).action
        == "skip"
    )


def test_a_profile_is_merged_into_the_nearest_document_if_that_is_one() -> None:
    nearest = NearestDocuments(Skipping(), profile_min_score=0.5)  # a cosine of 0
    found = nearest.judge(candidate("x", "profile"), TOWARDS, table(0.1, category="profile"), incidents=Counter())
    assert (found.action, found.matched and found.matched.document_id) == ("merge", "d0")
    assert (
        nearest.judge(candidate("x", "profile"), TOWARDS, table(-0.1, category="profile"), incidents=Counter()).action
        == "create"
    )
    mixed = table(0.1, category="profile").holding((document("e", "tea"), 0.9))
    assert nearest.judge(candidate("x", "profile"), TOWARDS, mixed, incidents=Counter()).action == "create"


def test_without_a_vector_it_is_created() -> None:
    assert NearestDocuments(Skipping()).judge(candidate("x"), None, table(1.0), incidents=Counter()).action == "create"


def test_without_a_merging_nothing_is_merged() -> None:
    assert NearestDocuments(Skipping()).merge(document("d", "a"), candidate("b")) is None
    assert NearestDocuments(Skipping(), LineMerge()).merge(document("d", "a"), candidate("b")) == ("b\na", "", "")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"batch_threshold": 2.0}, r"batch_threshold must be in \[-1, 1\], got 2.0"),
        ({"min_score": 0.0}, r"min_score must be in \(0, 1\], got 0.0"),
        ({"min_score": float("nan")}, r"min_score must be in \(0, 1\], got nan"),
        ({"profile_min_score": 1.1}, r"profile_min_score must be in \(0, 1\], got 1.1"),
        ({"pool_size": 0}, "pool_size must be >= 1, got 0"),
        ({"shown": 0}, "shown must be >= 1, got 0"),
    ],
)
def test_a_setting_out_of_range_is_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        NearestDocuments(Skipping(), **settings)


def test_a_part_that_cannot_do_its_work_is_refused() -> None:
    with pytest.raises(TypeError, match="judging must have judge"):
        NearestDocuments("model")
    with pytest.raises(TypeError, match="merging must have merge"):
        NearestDocuments(Skipping(), "model")
