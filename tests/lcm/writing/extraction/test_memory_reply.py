"""What counts in a language model's reply."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.writing.extraction.llm import ExtractedMemory, read_reply

LAUNCH = {"category": "events", "abstract": "Launched the app"}


def reply(*memories: Any) -> str:
    return json.dumps({"memories": memories})


def test_a_category_and_an_abstract_are_enough_in_any_case_and_with_blanks() -> None:
    assert read_reply(reply(LAUNCH)) == ([ExtractedMemory("events", "Launched the app", "", "", ())], [])
    item = {"category": " EVENTS ", "abstract": " Launched it \n", "overview": " o ", "content": None}
    assert read_reply(reply(item)) == ([ExtractedMemory("events", "Launched it", "o", "", ())], [])
    assert read_reply('{"memories": []}') == ([], [])


@pytest.mark.parametrize(
    ("item", "reason"),
    [(item, "invalid_memory") for item in (None, 5, {}, {"category": "events"})]
    + [({**LAUNCH, "category": category}, "invalid_memory") for category in ("event", "other", "", None, 3)]
    + [
        ({**LAUNCH, key: value}, "invalid_memory")
        for key, value in (("abstract", 12345), ("overview", []), ("content", 5))
    ]
    + [({**LAUNCH, "abstract": text}, "noise_memory") for text in ("", "abcd", "  abcd  ", "Do you remember me?")]
    + [({**LAUNCH, "abstract": "他对花生🥜"}, None)],  # five units
)
def test_an_item_that_is_no_memory_is_refused_and_the_others_stay(item: Any, reason: str | None) -> None:
    checked = read_reply(reply(item, LAUNCH))
    assert checked is not None
    assert (len(checked.memories), checked.refused) == ((1, [reason]) if reason else (2, []))


@pytest.mark.parametrize(
    ("register", "item", "before", "since"),
    [
        ("real", {"grounding": "real"}, None, None),
        ("real", {"grounding": "constructed"}, None, "constructed_memory"),
        ("fiction", {"grounding": "real"}, None, "fiction_memory"),
        (7, {"grounding": "who knows"}, None, None),
        ("real", {"category": " Event"}, "invalid_memory", None),
        ("real", {"abstract": "You never remember it"}, None, "noise_memory"),
    ],
)
def test_since_beta_11_what_was_made_up_is_refused(
    register: object, item: dict[str, str], before: str | None, since: str | None
) -> None:
    said = json.dumps({"conversation_register": register, "memories": [{**LAUNCH, **item}]})
    for rules, refused in (("beta.10", before), ("beta.11", since)):
        checked = read_reply(said, rules)
        assert checked is not None
        assert checked.refused == ([refused] if refused else [])
        for memory in checked.memories:
            told = {"grounding": "real", "conversation_register": "mixed" if register == 7 else "real"}
            assert memory.grounding == (told if rules == "beta.11" else {})
            assert memory.category == "events"


def test_sources_are_turn_numbers_or_nothing() -> None:
    for named in ([2, 1, 2], [], None, "1", [1, "2"], [0], [True], [1.5]):
        checked = read_reply(reply({**LAUNCH, "sources": named}))
        assert checked is not None
        assert checked.memories[0].sources == ((1, 2) if named == [2, 1, 2] else ())


def test_words_around_the_object_are_passed_over() -> None:
    one, half = reply(LAUNCH), '{"memories": [1]}'
    for text in (f"```json\n{one}\n```", f"Here you are:\n{one}\nDone.", f"<think>{half} or so</think>{one}"):
        assert read_reply(text) == read_reply(one)


def test_a_reply_without_a_list_of_memories_is_unreadable() -> None:
    unreadable = ("", "null", "[]", "sorry", '{"memories": "x"}', '{"facts": []}', '{"memories": [{"cat')
    assert [read_reply(text) for text in unreadable] == [None] * len(unreadable)


@given(st.text() | st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists).map(json.dumps))
def test_no_reply_raises(text: str) -> None:
    read_reply(text)
    read_reply('{"memories": [' + text + "]}")
