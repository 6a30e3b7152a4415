"""Brand and item of a preference, where the vectors of the original in tests/golden say nothing of it."""

from lcm.writing.deduplication import Preference, preference, token


def test_a_list_that_begins_with_what_ends_one_is_not_cut_to_nothing() -> None:
    assert preference("I like tea when it rains from Lipton") == Preference("lipton", ("tea",))
    assert preference("I like when it rains from Lipton") == Preference("lipton", ("whenitrains",))
    assert token(" “The  Blue Kettle”。") == "bluekettle"
