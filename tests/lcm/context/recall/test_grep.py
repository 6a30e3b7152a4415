"""Hostile patterns and queries: refused in one line, or stopped within bounds of time and memory."""

import resource
import time
from datetime import timedelta
from typing import Any

import pytest

from lcm.errors import LimitError
from lcm.limits import PATTERN_STEPS, PATTERN_TEXT_CHARACTERS, QUERY_CHARACTERS
from lcm.records.conversation import Message, Transcript
from lcm.store.store import Store
from tests.lcm.context.recall.dags import START, TOKENS, recall, talk

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


def test_words_are_sorted_as_asked(store: Store) -> None:
    talk(store, "talk", ["goat goat goat", "a goat " + "and more " * 9, "goat goat"])
    readers = {order: recall(rules="0.15", order=order).on(store) for order in ("time", "relevance", "hybrid")}

    def told(order: str, **asked: Any) -> list[str]:
        found = readers[order].grep("goat", mode="full_text", scope="messages", **asked).messages
        return [hit.snippet[:9] for hit in found]

    assert told("time") == ["goat goat", "a goat an", "goat goat"]
    assert told("relevance")[2] == told("hybrid")[2] == "a goat an"
    (first, *_) = readers["relevance"].grep("goat", mode="full_text", scope="messages").messages
    long_after = first.created_at + timedelta(days=10**5)
    aged = readers["hybrid"].grep("goat", mode="full_text", scope="messages", now=long_after).messages
    assert aged[0].message_id == first.message_id  # all are equally old by then
    assert [hit.created_at for hit in readers["relevance"].grep("goat", scope="messages").messages] == sorted(
        (hit.created_at for hit in aged), reverse=True
    )


def test_age_outweighs_rank_where_a_search_is_hybrid(store: Store) -> None:
    old, new = START, START + timedelta(days=900)
    said = [("goat goat", old), ("a goat among others", new), ("kettle", new)]
    messages = [Message(f"m{n}", "user", text, "s", at) for n, (text, at) in enumerate(said)]
    store.ingest(Transcript("talk", tuple(messages)), TOKENS)
    found = {
        order: [hit.message_id for hit in recall(order=order).on(store).grep("goat", mode="full_text").messages]
        for order in ("relevance", "hybrid", "time")
    }
    assert found == {"relevance": ["m0", "m1"], "hybrid": ["m1", "m0"], "time": ["m1", "m0"]}


@pytest.mark.parametrize("pattern", ["a|b", "a.*b", "a.+", "[ab]c", r"\bword", r"\d", "^start", "end$"])
def test_a_regular_expression_is_no_words_by_the_rules_of_0_15(store: Store, pattern: str) -> None:
    talk(store, "talk", [pattern])
    newer = recall(rules="0.15").on(store)
    assert newer.grep(pattern, mode="full_text").is_refused
    assert not newer.grep(f'"{pattern}"', mode="full_text").is_refused
    assert not recall().on(store).grep(pattern, mode="full_text").is_refused


@pytest.mark.parametrize("words", ["v1.2 is out", "[]", "$5 or 6", "a^b", "C:\\Users"])
def test_words_with_a_mark_are_words(store: Store, words: str) -> None:
    assert not recall(rules="0.15").on(store).grep(words, mode="full_text").is_refused


def test_phrases_stay_phrases_by_the_rules_of_0_15(store: Store) -> None:
    talk(store, "talk", ["a blue kettle", "the kettle is blue"])
    found = recall(rules="0.15", order="time").on(store).grep('"blue kettle"', mode="full_text")
    assert [hit.snippet for hit in found.messages] == ["a blue kettle"]
