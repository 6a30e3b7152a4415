"""How often later messages come back to what a message states."""

from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from lcm.compaction import window as counting
from lcm.compaction.window import Heat, PlannedWindow, StoredWindow, facts_of
from lcm.records.conversation import Message, Part
from lcm.records.summary import MessageHeat, Summary
from lcm.store.store import Store
from lcm.token_estimator import Utf16Units
from tests.lcm.compaction.contexts import CONVERSATION, NOW, conversation, message, window

THINGS = ("src/app.py", "src/db.py", "docs/plan.md", "https://example.org/a", "nothing that counts")
SAID = st.lists(st.lists(st.sampled_from(THINGS), max_size=3).map(" and ".join), min_size=1, max_size=12)


def said(texts: Sequence[str], first: int = 1) -> list[Message]:
    return [message(n, text) for n, text in enumerate(texts, first)]


def oracle(messages: Sequence[Message], standing: set[str]) -> dict[str, int]:
    """By looking at all pairs."""
    return {
        one.message_id: sum(bool(facts_of(one) & facts_of(later)) for later in messages[place + 1 :])
        for place, one in enumerate(messages)
        if one.message_id in standing
    }


def counted(heat: Heat) -> dict[str, int]:
    return {message_id: known.heat for message_id, known in heat.of_all().items()}


@given(texts=SAID, data=st.data())
@settings(deadline=None)
def test_heat_is_that_of_all_pairs_and_equal_when_read_at_once(texts: list[str], data: st.DataObject) -> None:
    """Messages come in pieces, and some leave between them."""
    messages = said(texts)
    heat, standing, place = Heat(), set[str](), 0
    while place < len(messages):
        stop = data.draw(st.integers(place + 1, len(messages)))
        standing |= {one.message_id for one in messages[place:stop]}
        standing -= data.draw(st.sets(st.sampled_from(sorted(standing))))
        heat.follow(messages[place:stop], standing)
        place = stop
    at_once = Heat()
    at_once.follow(messages, standing)
    assert counted(heat) == counted(at_once) == oracle(messages, standing)
    assert heat.read == at_once.read == len(messages)
    assert heat.covers(standing)


def tool(call_id: str, **more: Any) -> Part:
    return Part("tool", tool_call_id=call_id, tool_name="read", **more)


def test_a_result_belongs_to_the_nearest_message_that_calls_it_and_waits() -> None:
    parts = [
        [tool("a", tool_input="{}"), tool("b", tool_input="{}")],
        [tool("b", text="of the first")],
        [tool("a", tool_input="{}")],
        [tool("a", text="of the second")],
        [tool("a", text="of nobody")],
    ]
    messages = [Message(f"m{n}", "assistant", "", "s", NOW, parts=tuple(one)) for n, one in enumerate(parts)]
    names = {one.message_id for one in messages}
    whole, pieces = Heat(), Heat()
    whole.follow(messages, names)
    for number, one in enumerate(messages):
        pieces.follow([one], {f"m{n}" for n in range(1, number + 1)})  # the first has left: it is still who called
    callers = {name: known.caller for name, known in whole.of_all().items()}
    assert callers == {"m0": "m0", "m1": "m0", "m2": "m2", "m3": "m2", "m4": "m4"}
    assert {name: known.caller for name, known in pieces.of_all().items()} == {
        name: caller for name, caller in callers.items() if name != "m0"
    }


def fold(kept: StoredWindow, entries: int) -> None:
    chunk = kept.entries[:entries]
    ids = tuple(entry.item_id for entry in chunk)
    summary = Summary("sum_x", CONVERSATION, "leaf", 0, "short", 1, NOW, source_ids=ids)
    kept.replace(chunk[0].ordinal, chunk[-1].ordinal, summary)


def test_a_window_reads_each_message_once_and_a_reopened_one_knows_the_same() -> None:
    store, read = Store(opened_at=NOW), list[str]()
    kept = window(store)
    facts = counting.facts_of

    def noted(one: Message) -> frozenset[counting.Fact]:
        read.append(one.message_id)
        return facts(one)

    with patch.object(counting, "facts_of", noted):
        for number, thing in enumerate(["src/app.py", "src/db.py", "src/app.py", "src/db.py", "src/app.py"], 1):
            store.append(CONVERSATION, said([thing], number), Utf16Units())
            kept.follow()
            kept.heat()
            if number == 3:
                fold(kept, 1)
        assert read == [f"c-m{n}" for n in range(1, 6)]
    assert kept.heat() == window(store).heat()
    assert kept.heat() == {f"c-m{n}": MessageHeat(heat, f"c-m{n}") for n, heat in ((2, 1), (3, 1), (4, 0), (5, 0))}


def test_what_was_to_be_folded_and_stands_again_is_as_hot_as_before() -> None:
    store = conversation(["src/app.py", "src/db.py", "src/app.py"])
    kept = window(store)
    before = kept.heat()
    with kept.staged():
        fold(kept, 2)
        assert set(kept.heat()) == {"c-m3"}
    assert kept.heat() == before == PlannedWindow(kept).heat()
