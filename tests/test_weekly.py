"""What a week tries of many cases."""

from datetime import date, timedelta

from tests.support.weekly import of_this_week

MONDAY = date(2026, 1, 5)


def test_in_time_every_case_is_tried_and_within_a_week_the_same() -> None:
    cases = range(50)
    weeks = [of_this_week(cases, 12, MONDAY + timedelta(weeks=week)) for week in range(5)]
    assert {case for week in weeks for case in week} == set(cases)
    assert all(len(set(week)) == 12 for week in weeks)
    assert of_this_week(cases, 12, MONDAY) == weeks[0]
    assert sorted(of_this_week(cases, 60, MONDAY)) == list(cases)
