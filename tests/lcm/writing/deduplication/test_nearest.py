"""What the judge is shown, and what is decided without it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import pytest

from lcm.protocols.writing import Judgement, Neighbour
from lcm.records.document import Candidate
from lcm.writing.deduplication import LineMerge, NearestDocuments, cosine_of_score, score_of_cosine
from tests.lcm.refusals import assert_refused
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


def judged(known: Table, one: Candidate | None = None, by: NearestDocuments | None = None) -> Judgement:
    nearest = by or NearestDocuments(Skipping())
    return nearest.judge(one or candidate("x"), TOWARDS, known, incidents=Counter())


def test_the_judge_sees_the_nearest_three_that_are_alike_and_stand() -> None:
    judge, known = Skipping(), table(0.5, 0.58, 0.9, 0.7, 0.8)
    judged(known, by=NearestDocuments(judge))
    assert judge.shown == ["d2", "d4", "d3"]
    assert known.asked == [(5, True)]


def test_a_score_of_seven_tenths_is_a_cosine_of_four_sevenths() -> None:
    assert cosine_of_score(0.7) == pytest.approx(4 / 7)
    assert score_of_cosine(4 / 7) == pytest.approx(0.7)
    assert [judged(table(cosine)).action for cosine in (0.572, 0.571)] == ["skip", "create"]


def test_a_profile_is_merged_into_the_nearest_document_if_that_is_one() -> None:
    nearest, one = NearestDocuments(Skipping(), profile_min_score=0.5), candidate("x", "profile")  # a cosine of 0
    found = judged(table(0.1, category="profile"), one, nearest)
    assert (found.action, found.matched and found.matched.document_id) == ("merge", "d0")
    mixed = table(0.1, category="profile").holding((document("e", "tea"), 0.9))
    for known in (table(-0.1, category="profile"), mixed):
        assert judged(known, one, nearest).action == "create"


def test_without_a_merging_nothing_is_merged() -> None:
    assert NearestDocuments(Skipping()).merge(document("d", "a"), candidate("b")) is None
    assert NearestDocuments(Skipping(), LineMerge()).merge(document("d", "a"), candidate("b")) == ("b\na", "", "")


def test_a_setting_out_of_range_and_a_part_that_cannot_do_its_work_are_refused() -> None:
    build = partial(NearestDocuments, Skipping())
    assert_refused(build, "be in [-1, 1]", batch_threshold=2.0)
    assert_refused(build, "be in (0, 1]", min_score=[0.0, float("nan")], profile_min_score=1.1)
    assert_refused(build, "be >= 1", pool_size=0, shown=0)
    for settings, message in (
        ({"judging": "model"}, "judging must have judge"),
        ({"merging": "model"}, "merging must"),
    ):
        with pytest.raises(TypeError, match=message):
            NearestDocuments(**{"judging": Skipping(), **settings})  # type: ignore[arg-type]
