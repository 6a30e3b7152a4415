"""What counts in a language model's reply."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.writing.extraction.memory_reply import ExtractedMemory, read_reply

LAUNCH = {"category": "events", "abstract": "Launched the app"}


def reply(*memories: Any) -> str:
    return json.dumps({"memories": memories})


def test_a_category_and_an_abstract_are_enough() -> None:
    assert read_reply(reply(LAUNCH)) == ([ExtractedMemory("events", "Launched the app", "", "", ())], [])


def test_categories_are_normalised_and_texts_trimmed() -> None:
    item = {"category": " EVENTS ", "abstract": " Launched it \n", "overview": " o ", "content": None}
    assert read_reply(reply(item)) == ([ExtractedMemory("events", "Launched it", "o", "", ())], [])


@pytest.mark.parametrize(
    "item",
    [None, 5, "x", [], {}, {"category": "events"}, {"abstract": "Launched the app"}]
    + [{**LAUNCH, "category": category} for category in ("event", "other", "", None, 3)]
    + [{**LAUNCH, "abstract": 12345}, {**LAUNCH, "overview": ["o"]}, {**LAUNCH, "content": 5}],
)
def test_an_item_that_is_no_memory_is_refused_and_the_others_stay(item: Any) -> None:
    checked = read_reply(reply(item, LAUNCH))
    assert checked is not None
    assert len(checked.memories) == 1
    assert checked.refused == ["invalid_memory"]


@pytest.mark.parametrize("abstract", ["", "abcd", "  abcd  ", "hello there", "Do you remember me?"])
def test_an_abstract_too_short_or_of_no_worth_is_refused(abstract: str) -> None:
    assert read_reply(reply({**LAUNCH, "abstract": abstract})) == ([], ["noise_memory"])


def test_an_abstract_of_five_units_is_long_enough() -> None:
    checked = read_reply(reply({**LAUNCH, "abstract": "他对花生🥜"}))
    assert checked is not None
    assert len(checked.memories) == 1


@pytest.mark.parametrize(
    ("named", "sources"),
    [([2, 1, 2], (1, 2)), ([], ()), (None, ()), ("1", ()), ([1, "2"], ()), ([0], ()), ([True], ()), ([1.5], ())],
)
def test_sources_are_turn_numbers_or_nothing(named: Any, sources: tuple[int, ...]) -> None:
    checked = read_reply(reply({**LAUNCH, "sources": named}))
    assert checked is not None
    assert checked.memories[0].sources == sources


@pytest.mark.parametrize("frame", ["{}", "```json\n{}\n```", "Here you are:\n{}\nDone.", "<think>{{}} or so</think>{}"])
def test_words_around_the_object_are_passed_over(frame: str) -> None:
    checked = read_reply(frame.replace("{{}}", '{"memories": [1]}').replace("{}", reply(LAUNCH)))
    assert checked is not None
    assert len(checked.memories) == 1
    assert not checked.refused


@pytest.mark.parametrize(
    "text", ["", "null", "[]", "sorry", '{"memories": "x"}', '{"facts": []}', '{"memories": [{"cat']
)
def test_a_reply_without_a_list_of_memories_is_unreadable(text: str) -> None:
    assert read_reply(text) is None


def test_an_empty_list_is_no_failure() -> None:
    assert read_reply('{"memories": []}') == ([], [])


@given(st.text() | st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists).map(json.dumps))
def test_no_reply_raises(text: str) -> None:
    read_reply(text)
    read_reply('{"memories": [' + text + "]}")
