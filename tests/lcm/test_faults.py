"""What is damaged and made again is an incident of everyone who counts."""

import logging
from collections import Counter

import pytest

from lcm.faults import counting, made_again


def test_what_is_made_again_is_warned_of_and_counted_by_all_that_count(caplog: pytest.LogCaptureFixture) -> None:
    outer, inner = Counter[str](), Counter[str]()
    with caplog.at_level(logging.WARNING), counting(outer):
        made_again("index", "a.vectors is damaged")
        with counting(inner):
            made_again("recorded reply", "b.json is damaged")
    made_again("index", "c.vectors is damaged")
    assert outer == {"damaged index": 1, "damaged recorded reply": 1}
    assert inner == {"damaged recorded reply": 1}
    assert [record.message for record in caplog.records] == [
        "a.vectors is damaged", "b.json is damaged", "c.vectors is damaged",
    ]  # fmt: skip
