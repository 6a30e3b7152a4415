"""Memories that a language model writes down."""

import json
import logging
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from lcm.errors import ModelError
from lcm.records.document import Candidate
from lcm.writing.extraction.llm import Llm
from tests.lcm.refusals import assert_refused
from tests.support.language_models import Failing, Quoting, Replying
from tests.support.workspaces import minute, transcript

MESSAGES = transcript().messages  # two sessions of four
TALK = MESSAGES[:4]
GOATS = {
    "category": "entities",
    "abstract": "Goats: three near the river",
    "overview": "- three goats",
    "content": "Her sister keeps three goats near the river.",
}


def memories(*items: dict[str, Any]) -> Replying:
    return Replying(json.dumps({"memories": items}))


def extracted(*items: dict[str, Any]) -> list[Candidate]:
    return Llm(memories(*items)).extract(TALK, incidents=Counter())


def test_a_memory_becomes_a_candidate_with_its_three_levels() -> None:
    assert extracted({**GOATS, "sources": [3]}) == [
        Candidate(
            text="Goats: three near the river",
            source_message_ids=("talk:2",),
            kind="memory",
            category="entities",
            importance=0.7,
            confidence=0.7,
            overview="- three goats",
            content="Her sister keeps three goats near the river.",
            batch="talk:0 to talk:3",
        )
    ]


def test_since_beta_11_the_model_says_what_is_real_and_its_word_stays_with_the_memory() -> None:
    asked = memories({**GOATS, "sources": [3]}, {**GOATS, "grounding": "constructed"})
    incidents = Counter[str]()
    (candidate,) = Llm(asked, rules="beta.11").extract(TALK, incidents=incidents)
    assert candidate.metadata == {"grounding": "real", "conversation_register": "mixed"}
    assert incidents["constructed_memory"] == 1
    Llm(asked).extract(TALK, incidents=incidents)
    assert ["conversation_register" in system for system, _ in asked.asked] == [True, False]


@pytest.mark.parametrize(("rules", "asked"), [("beta.10", 0), ("beta.11", 1)])
def test_since_beta_11_an_order_that_nothing_marks_is_what_somebody_said(rules: str, asked: int) -> None:
    model, order = memories(), replace(TALK[0], content="Do not use any memory tools.")
    Llm(model, rules=rules, min_messages=1).extract([order], incidents=Counter())  # type: ignore[arg-type]
    assert len(model.asked) == asked


def test_a_memory_without_proper_sources_rests_on_the_whole_chunk() -> None:
    for sources in (None, [], "3", [0], [9], [1, 9]):
        (candidate,) = extracted({**GOATS, "sources": sources})
        assert candidate.source_message_ids == ("talk:0", "talk:1", "talk:2", "talk:3")


def test_the_full_narrative_says_how_long_a_memory_holds_counted_from_its_last_source() -> None:
    today = {**GOATS, "content": "They escaped today.", "sources": [1, 3]}
    tomorrow = {**GOATS, "content": "", "abstract": "Goats: they leave tomorrow", "sources": [1]}
    first, second = extracted(today, tomorrow)
    assert (first.temporal_type, first.valid_until) == ("dynamic", minute(2) + timedelta(hours=18))
    assert second.valid_until == minute(0) + timedelta(hours=24)
    (endless,) = Llm(memories(today), expiry=False).extract(TALK, incidents=Counter())
    assert (endless.temporal_type, endless.valid_until) == ("dynamic", None)


def test_memories_of_one_reply_share_a_batch_and_those_of_another_do_not() -> None:
    found = Llm(memories(GOATS, GOATS)).extract(MESSAGES, incidents=Counter())
    assert [candidate.batch for candidate in found] == ["talk:0 to talk:3"] * 2 + ["talk:4 to talk:7"] * 2


def test_only_the_first_five_memories_count(caplog: pytest.LogCaptureFixture) -> None:
    items = [{**GOATS, "abstract": f"Goat number {i}"} for i in range(7)]
    incidents = Counter[str]()
    found = Llm(memories({"category": "none"}, *items)).extract(TALK, incidents=incidents)
    assert [candidate.text for candidate in found] == [f"Goat number {i}" for i in range(5)]
    assert incidents == {"invalid_memory": 1, "surplus_memory": 2}
    assert "talk:0 to talk:3: 2 dropped, surplus_memory" in caplog.text


def test_an_unreadable_reply_is_counted_an_empty_list_is_not_and_a_failure_is_raised(
    caplog: pytest.LogCaptureFixture,
) -> None:
    incidents = Counter[str]()
    assert Llm(memories()).extract(TALK, incidents=incidents) == []
    assert not incidents
    assert Llm(Replying("I cannot do that")).extract(TALK, incidents=incidents) == []
    assert incidents == {"unreadable_reply": 1}
    assert "no list of memories in the reply 'I cannot do that'" in caplog.text
    with pytest.raises(ModelError, match="the model is gone"):
        Llm(Failing()).extract(TALK, incidents=Counter())


def test_fewer_messages_wait_and_are_read_with_the_next_ones(caplog: pytest.LogCaptureFixture) -> None:
    model = memories({**GOATS, "sources": [3]})
    extraction, incidents = Llm(model), Counter[str]()
    with caplog.at_level(logging.INFO):
        assert extraction.extract(MESSAGES[:3], incidents=incidents) == []
    assert model.asked == []
    assert incidents == {"waiting_messages": 3}
    assert "3 messages wait" in caplog.text
    (candidate,) = extraction.extract(TALK, known=3, incidents=Counter())
    assert candidate.source_message_ids == ("talk:2", "talk:3")  # it was read when the fourth came


def test_a_short_chunk_that_the_next_message_has_no_room_in_is_read_with_it() -> None:
    model = memories(GOATS)
    extraction = Llm(model, max_chars=60)
    long = (replace(TALK[0], content="x" * 50), replace(TALK[1], content="y" * 50))
    assert extraction.extract(long[:1], incidents=Counter()) == []
    (candidate,) = extraction.extract(long, known=1, incidents=Counter())
    assert candidate.source_message_ids == ("talk:0", "talk:1")
    assert candidate.batch == "talk:0 to talk:0"
    longer = (*long, replace(TALK[2], content="z"))
    assert extraction.extract(longer, known=2, incidents=Counter()) == []  # read already


def test_a_chunk_that_grows_is_shown_whole_and_gives_only_what_is_new() -> None:
    messages = tuple(replace(message, session_id="one") for message in MESSAGES[:6])
    old, new = {**GOATS, "sources": [1, 4]}, {**GOATS, "sources": [1, 6]}
    incidents = Counter[str]()
    (candidate,) = Llm(memories(old, new)).extract(messages, known=4, incidents=incidents)
    assert candidate.source_message_ids == ("talk:0", "talk:5")
    assert incidents == {"repeated_memory": 1}


def test_a_chunk_that_was_read_is_not_read_again() -> None:
    model = memories(GOATS)
    found = Llm(model).extract(MESSAGES, known=4, incidents=Counter())
    assert len(model.asked) == 1
    assert found[0].batch == "talk:4 to talk:7"


def test_only_the_named_roles_are_shown_and_counted() -> None:
    model = memories(GOATS)
    assert Llm(model, roles=["user"]).extract(TALK, incidents=Counter()) == []  # two messages of a user
    (candidate,) = Llm(model, roles=["user"]).extract(MESSAGES, incidents=Counter())
    assert candidate.source_message_ids == ("talk:0", "talk:2", "talk:4", "talk:6")


def test_only_the_end_of_a_long_message_is_shown(caplog: pytest.LogCaptureFixture) -> None:
    model = memories()
    extraction, incidents = Llm(model, max_chars=20, min_messages=1), Counter[str]()
    extraction.extract((replace(TALK[0], content="begin " + "x" * 30 + " 🐐 end"),), incidents=incidents)
    assert f">\n{'x' * 13} 🐐 end\n<" in model.asked[0][1]  # 13 + 1 + 2 + 4 units
    assert incidents == {"cut_message": 1}
    assert "only its last 20 units are shown" in caplog.text


def test_a_lone_surrogate_reaches_no_model() -> None:
    model = memories()
    Llm(model).extract((replace(TALK[0], content="half \ud83d goat", author="A\udc00"), *TALK[1:]), incidents=Counter())
    model.asked[0][1].encode()


def test_settings_out_of_range_are_refused() -> None:
    assert_refused(partial(Llm, Quoting()), "be >= 1", max_chars=0, min_messages=0, max_memories=0)
    with pytest.raises(ValueError, match="roles must be some of"):
        Llm(Quoting(), roles=["robot"])  # type: ignore[list-item]
