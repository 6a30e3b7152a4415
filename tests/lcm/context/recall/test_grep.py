"""Hostile patterns and queries: refused in one line, or stopped within bounds of time and memory."""

import resource
import time

import pytest

from lcm.errors import LimitError
from lcm.limits import PATTERN_STEPS, PATTERN_TEXT_CHARACTERS, QUERY_CHARACTERS
from lcm.store.store import Store
from tests.lcm.context.recall.dags import recall, talk

REFUSED = {
    "(?R)": "calls a group by (?R",
    "(?:a|(?R))b": "calls a group",
    "((?1)|a)b": "calls a group",
    "(?P<x>(?&x)|a)": "calls a group",
    "(?P<x>(?P>x)|a)": "calls a group",
    "(?|(a)(?2)|b)": "calls a group",
    "a{1000000}": "1,000,000 steps",
    "(?:(?:(?:a{1000}){1000}){1000}){1000}": "steps with its repetitions written out: the limit is 10,000",
    "(?:[ab]{99}){999}": "steps",
    "(a+)+": "repeats a group",
    "(a*)*b": "repeats a group",
    "(?:a{9}){9": "",
    "[": "no regular expression",
    "(?V1)" + "[" * 245 + "a" + "]" * 245: "nests too many groups",
}
STOPPED = ("(?:.|x)*(?:c|dd|$(?<=x))", "(a|b|ab)*c\\d", "(?:a{40}){40}c|(?:a|aa)*b$")


def test_a_hostile_pattern_takes_neither_memory_nor_time(store: Store) -> None:
    talk(store, "talk", ["goat", ("a" * 70 + " ") * 15_000])
    reader = recall(regex_timeout_seconds=0.3).on(store)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for pattern, refusal in {**REFUSED, **dict.fromkeys(STOPPED, "")}.items():
        started = time.process_time()
        found = reader.grep(pattern)
        assert time.process_time() - started < 3, pattern
        assert found.is_refused == bool(refusal), pattern
        assert refusal in "; ".join(found.notes)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak < 300 * 1024  # KiB


def test_the_bounds_of_patterns_are_raised_in_the_environment(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    talk(store, "talk", ["a" * 200 + "goat"])
    reader = recall().on(store)
    monkeypatch.setenv(PATTERN_STEPS.variable, "10")
    assert "LCM_MAX_PATTERN_STEPS raises it" in reader.grep("a{20}").notes[0]
    monkeypatch.setenv(PATTERN_STEPS.variable, "20")
    assert reader.grep("a{20}").total == 1
    monkeypatch.setenv(PATTERN_TEXT_CHARACTERS.variable, "200")
    unseen = reader.grep("goat", scope="messages")
    assert (unseen.total, unseen.notes[0][:40]) == (0, "messages: the ends of 1 texts were not s")
    monkeypatch.setenv(PATTERN_TEXT_CHARACTERS.variable, "many")
    with pytest.raises(LimitError, match="LCM_MAX_PATTERN_TEXT_CHARACTERS must be a whole number >= 1, got 'many'"):
        reader.grep("goat")


def test_a_query_beyond_the_limit_is_refused_and_one_within_it_is_answered_or_refused_in_a_line(store: Store) -> None:
    talk(store, "talk", ["goat 日本語"])
    reader = recall().on(store)
    with pytest.raises(LimitError, match="the query has 100,001 characters: the limit is 100,000, and"):
        reader.grep("a" * 100_001, mode="full_text")
    longest = QUERY_CHARACTERS.value
    for words in ("日本語", "日本 語 ", "last ", '"', "* OR NEAR( ^ -", "a\0b "):
        try:
            reader.grep((words * longest)[:longest], mode="full_text")
        except LimitError as error:
            assert str(error).endswith("shorten the query")
