"""What is chosen for a context, and how it is shown."""

import math
from dataclasses import replace

import pytest

from lcm.context.assembly.lossless import Lossless
from lcm.protocols.context import ContextRequest
from lcm.records.context import Context
from lcm.records.conversation import Message, Part
from lcm.records.summary import Summary
from lcm.token_estimator import Utf16Units
from tests.lcm.context.assembly.recorded import assistant, call, message, result, summary, user

OURS = Lossless(Utf16Units(), fresh_tail_count=1)
BY_PROMPT = replace(OURS, eviction="relevance")
ORIGINAL = replace(BY_PROMPT, rules="original")


def said(number: int, text: str = "") -> Message:
    """40 characters: 10 tokens."""
    return user(f"{number} {text} ".ljust(40, "."), f"m{number}")


def context(assembly: Lossless, items: list[Message | Summary], budget_tokens: int, prompt: str = "") -> Context:
    return assembly.assemble(items, [ContextRequest(budget_tokens, prompt)])[0]


def ids(found: Context) -> list[str]:
    return [item.item_id for item in found.items]


def test_the_most_relevant_stay_and_what_does_not_fit_is_passed_over() -> None:
    items = [said(0, "cache"), said(1), said(2), said(3, "cache cache"), said(4)]
    assert ids(context(BY_PROMPT, items, 30, "the cache")) == ["m0", "m3", "m4"]
    assert ids(context(BY_PROMPT, items, 40, "the cache")) == ["m0", "m2", "m3", "m4"]  # of equals the newest
    assert ids(context(BY_PROMPT, items, 30, "?")) == ["m2", "m3", "m4"]
    assert ids(context(BY_PROMPT, items, 50, "the cache")) == [f"m{n}" for n in range(5)]
    assert (OURS.reads_prompts, BY_PROMPT.reads_prompts) == (False, True)


def test_words_find_what_is_not_ascii_and_no_keys_of_blocks() -> None:
    items = [assistant("something else entirely here now", "a"), said(1, "nothing"), said(2)]
    assert ids(context(ORIGINAL, items, 29, "text")) == ["a", "m2"]
    assert ids(context(BY_PROMPT, items, 29, "text")) == ["m1", "m2"]
    items = [said(0, "東京"), said(1), said(2)]
    assert ids(context(BY_PROMPT, items, 20, "東京都")) == ["m0", "m2"]
    assert ids(context(ORIGINAL, items, 20, "東京都")) == ["m1", "m2"]


def test_the_tail_is_shown_over_any_budget_up_to_its_own_but_for_the_newest() -> None:
    items = [said(n) for n in range(4)]
    found = context(replace(OURS, fresh_tail_count=2), items, 5)
    assert (ids(found), found.tokens) == (["m2", "m3"], 20)
    assert all(item.in_tail for item in found.items)
    bound = replace(OURS, fresh_tail_count=3, fresh_tail_max_tokens=20)
    assert [item.in_tail for item in context(bound, items, 100).items] == [False, False, True, True]
    assert ids(context(replace(bound, fresh_tail_max_tokens=1), items, 1)) == ["m3"]
    without = replace(OURS, fresh_tail_count=0)
    assert [ids(context(without, items[:1], budget)) for budget in (1, 10)] == [[], ["m0"]]


@pytest.mark.parametrize("assembly", [OURS, ORIGINAL])
def test_a_result_before_its_call_goes_behind_it_with_the_tail(assembly: Lossless) -> None:
    found = context(assembly, [result("c", message_id="r"), said(1), call("c", message_id="c")], 1)
    assert ids(found) == ["c", "r"]
    assert [one["role"] for one in found.messages] == ["assistant", "toolResult"]
    assert [item.in_tail for item in found.items] == [True, True]


def test_the_nearest_call_of_a_result_in_the_tail_comes_along_in_its_place() -> None:
    items = [call("c", message_id="old"), said(1), call("c", message_id="c"), said(2), result("c", "42", "r")]
    found = context(OURS, items, 1)
    assert ids(found) == ["c", "r"]
    assert [one["role"] for one in found.messages] == ["assistant", "toolResult"]
    assert ids(context(OURS, items[2:], 1000)) == ["c", "m2", "r"]
    assert ids(context(OURS, [items[2], said(1), *items[3:]], 40)) == ["c", "m2", "r"]  # 16 + 10 + 8 tokens
    lost = context(ORIGINAL, items, 1)
    assert (ids(lost), lost.messages, lost.items[0].text) == (["r"], (), "")


def test_a_result_before_the_tail_stays_out_where_the_tail_answers_the_call() -> None:
    items = [result("c", "old", "before"), said(1), call("c", message_id="call"), result("c", "new", "after")]
    two = replace(OURS, fresh_tail_count=2)
    assert ids(context(two, items, 1)) == ["call", "after"]
    original = ids(context(replace(two, rules="original"), items, 1))
    assert original[0] == "call"
    assert "before" in original


def test_calls_before_the_tail_whose_results_are_not_chosen_are_left_out() -> None:
    words = {"type": "text", "text": "so"}
    both = message({"role": "assistant", "content": [words, {"type": "toolCall", "id": "c", "name": "x"}]})
    found = context(OURS, [both, said(1)], 100)
    assert found.messages[0]["content"] == [words]
    assert found.items[0].text == "so"


def test_results_as_recorded_of_codex_answer_calls_of_one_turn() -> None:
    items = [_codex("call", "a"), _codex("call", "b"), _codex("output", "a"), _codex("output", "b"), said(9)]
    for assembly in (OURS, ORIGINAL):
        found = context(assembly, items, 1000)
        assert [one["role"] for one in found.messages] == ["assistant", "toolResult", "toolResult", "user"]
        assert [one["content"][0]["text"] for one in found.messages[1:3]] == ["out a", "out b"]
        assert all(item.text for item in found.items)


def test_a_summary_is_shown_as_xml_and_brings_a_note_even_where_it_does_not_fit() -> None:
    found = context(OURS, [summary("Before."), said(1)], 1000)
    shown = found.items[0]
    assert (shown.kind, shown.text) == ("summary", found.messages[0]["content"])
    assert shown.tokens == math.ceil(len(shown.text) / 4)
    assert found.system_note
    assert context(OURS, [said(1)], 1000).system_note == ""
    left_out = context(OURS, [summary("Before. " * 50), said(1)], 10)
    assert (ids(left_out), bool(left_out.system_note)) == (["m1"], True)


def test_a_budget_that_is_none_is_the_default_and_none_is_above_the_most() -> None:
    for fields, asked, given in [
        ({}, 50, 50),
        ({}, 0, 128_000),
        ({"default_budget_tokens": 70}, -1, 70),
        ({"default_budget_tokens": None}, 0, 0),
        ({"max_budget_tokens": 30}, 50, 30),
        ({"max_budget_tokens": 30}, 0, 30),
    ]:
        assert context(replace(OURS, **fields), [said(0)], asked).budget_tokens == given


def test_what_cannot_be_shown_is_not_made() -> None:
    class Counting:
        counted = 0
        image_tokens = None

        def count(self, texts: list[str]) -> list[int]:
            self.counted += len(texts)
            return Utf16Units().count(texts)

    counting = Counting()
    context(replace(OURS, token_estimator=counting), [said(n) for n in range(5000)], 100)
    assert counting.counted <= 128  # 10 fit; items are made by 64


def _codex(kind: str, call_id: str) -> Message:
    part = (
        Part("tool", tool_call_id=call_id, tool_name="shell", tool_input='{"cmd":"ls"}')
        if kind == "call"
        else Part("tool", text=f"out {call_id}", tool_call_id=call_id)
    )
    native = {"type": "function_call" if kind == "call" else "function_call_output", "call_id": call_id}
    envelope = {"native": native, "slots": {}, "record": {"payload": None}, "within": "payload"}
    role = "assistant" if kind == "call" else "tool"
    return Message(f"{kind}-{call_id}", role, "", "s", parts=(part,), envelope=envelope)  # type: ignore[arg-type]
