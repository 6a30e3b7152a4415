"""What is chosen for a context, and how it is shown."""

import math
from dataclasses import replace
from typing import Any

import pytest

from lcm.context.assembly.lossless import Lossless
from lcm.protocols.context import ContextRequest
from lcm.records.context import Context
from lcm.records.conversation import Message, Part
from lcm.records.summary import Summary
from lcm.token_estimator.utf16_units import Utf16Units
from tests.lcm.context.assembly.recorded import assistant, call, message, result, summary, user

OURS = Lossless(Utf16Units(), fresh_tail_count=1)
ORIGINAL = replace(OURS, eviction="relevance", rules="original")


def said(number: int, text: str = "") -> Message:
    """40 characters: 10 tokens."""
    return user(f"{number} {text} ".ljust(40, "."), f"m{number}")


def context(assembly: Lossless, items: list[Message | Summary], budget_tokens: int, prompt: str = "") -> Context:
    return assembly.assemble(items, [ContextRequest(budget_tokens, prompt)])[0]


def ids(found: Context) -> list[str]:
    return [item.item_id for item in found.items]


def test_the_newest_items_stay_up_to_the_first_that_does_not_fit() -> None:
    long = replace(user("x" * 400, "long"))  # 100 tokens
    items: list[Message | Summary] = [said(0), long, said(1), said(2), said(3)]
    found = context(OURS, items, 45)
    assert ids(found) == ["m1", "m2", "m3"]
    assert (found.tokens, found.evicted, found.budget_tokens) == (3 * 10, 2, 45)


def test_the_most_relevant_stay_and_what_does_not_fit_is_passed_over() -> None:
    items = [said(0, "cache"), said(1), said(2), said(3, "cache cache"), said(4)]
    by_prompt = replace(OURS, eviction="relevance")
    assert ids(context(by_prompt, items, 30, "the cache")) == ["m0", "m3", "m4"]
    assert ids(context(by_prompt, items, 40, "the cache")) == ["m0", "m2", "m3", "m4"]  # of equals the newest
    assert ids(context(by_prompt, items, 30, "?")) == ["m2", "m3", "m4"]
    assert ids(context(by_prompt, items, 50, "the cache")) == [f"m{n}" for n in range(5)]


def test_terms_of_json_see_the_keys_of_blocks_and_words_do_not() -> None:
    items = [assistant("something else entirely here now", "a"), said(1, "nothing"), said(2)]
    assert ids(context(ORIGINAL, items, 29, "text")) == ["a", "m2"]
    assert ids(context(replace(ORIGINAL, rules="corrected"), items, 29, "text")) == ["m1", "m2"]


def test_words_find_what_is_not_ascii() -> None:
    items = [said(0, "東京"), said(1), said(2)]
    by_words = replace(OURS, eviction="relevance")
    assert ids(context(by_words, items, 20, "東京都")) == ["m0", "m2"]
    assert ids(context(ORIGINAL, items, 20, "東京都")) == ["m1", "m2"]


def test_the_tail_is_shown_over_any_budget() -> None:
    found = context(replace(OURS, fresh_tail_count=2), [said(0), said(1), said(2)], 5)
    assert ids(found) == ["m1", "m2"]
    assert found.tokens == 20
    assert all(item.in_tail for item in found.items)


def test_the_tail_ends_where_its_tokens_do_but_holds_the_newest() -> None:
    bound = replace(OURS, fresh_tail_count=3, fresh_tail_max_tokens=20)
    items = [said(n) for n in range(4)]
    assert [item.in_tail for item in context(bound, items, 100).items] == [False, False, True, True]
    assert ids(context(replace(bound, fresh_tail_max_tokens=1), items, 1)) == ["m3"]


def test_a_tail_may_be_empty() -> None:
    assert ids(context(replace(OURS, fresh_tail_count=0), [said(0)], 1)) == []
    assert ids(context(replace(OURS, fresh_tail_count=0), [said(0)], 10)) == ["m0"]


@pytest.mark.parametrize("assembly", [OURS, ORIGINAL])
def test_a_result_before_its_call_goes_behind_it_with_the_tail(assembly: Lossless) -> None:
    found = context(assembly, [result("c", message_id="r"), said(1), call("c", message_id="c")], 1)
    assert ids(found) == ["c", "r"]
    assert [one["role"] for one in found.messages] == ["assistant", "toolResult"]
    assert [item.in_tail for item in found.items] == [True, True]


def test_the_call_of_a_result_in_the_tail_comes_along() -> None:
    items = [call("c", message_id="c"), said(1), result("c", "42", "r")]
    found = context(OURS, items, 1)
    assert ids(found) == ["c", "r"]
    assert [one["role"] for one in found.messages] == ["assistant", "toolResult"]
    lost = context(ORIGINAL, items, 1)
    assert ids(lost) == ["r"]
    assert lost.messages == ()
    assert lost.items[0].text == ""


def test_a_call_that_comes_along_stays_in_its_place() -> None:
    items = [call("c", message_id="c"), said(1), said(2), result("c", "42", "r")]
    assert ids(context(OURS, items, 1000)) == ["c", "m1", "m2", "r"]
    assert ids(context(OURS, items, 40)) == ["c", "m2", "r"]  # 16 + 10 + 8 tokens


def test_of_calls_of_one_id_before_the_tail_the_nearest_comes_along() -> None:
    items = [call("c", message_id="old"), said(1), call("c", message_id="near"), said(2), result("c", "42", "r")]
    assert ids(context(OURS, items, 1)) == ["near", "r"]


def test_a_result_before_the_tail_stays_out_where_the_tail_answers_the_call() -> None:
    items = [result("c", "old", "before"), said(1), call("c", message_id="call"), result("c", "new", "after")]
    two = replace(OURS, fresh_tail_count=2)
    assert ids(context(two, items, 1)) == ["call", "after"]
    assert ids(context(replace(two, rules="original"), items, 1))[0] == "call"
    assert "before" in ids(context(replace(two, rules="original"), items, 1))


def test_calls_before_the_tail_whose_results_are_not_chosen_are_left_out() -> None:
    both = message(
        {"role": "assistant", "content": [{"type": "text", "text": "so"}, {"type": "toolCall", "id": "c", "name": "x"}]}
    )
    found = context(OURS, [both, said(1)], 100)
    assert found.messages[0]["content"] == [{"type": "text", "text": "so"}]
    assert found.items[0].text == "so"


def test_results_as_recorded_of_codex_answer_calls_of_one_turn() -> None:
    items = [_codex("call", "a"), _codex("call", "b"), _codex("output", "a"), _codex("output", "b"), said(9)]
    for assembly in (OURS, ORIGINAL):
        found = context(assembly, items, 1000)
        assert [one["role"] for one in found.messages] == ["assistant", "toolResult", "toolResult", "user"]
        assert [one["content"][0]["text"] for one in found.messages[1:3]] == ["out a", "out b"]
        assert all(item.text for item in found.items)


def test_a_summary_is_shown_as_xml_and_brings_a_note() -> None:
    found = context(OURS, [summary("Before."), said(1)], 1000)
    assert found.items[0].kind == "summary"
    assert found.items[0].text == found.messages[0]["content"]
    assert found.items[0].tokens == math.ceil(len(found.items[0].text) / 4)
    assert found.system_note
    assert context(OURS, [said(1)], 1000).system_note == ""


def test_the_note_tells_of_summaries_that_did_not_fit() -> None:
    found = context(OURS, [summary("Before. " * 50), said(1)], 10)
    assert (ids(found), bool(found.system_note)) == (["m1"], True)


@pytest.mark.parametrize(
    ("fields", "asked", "given"),
    [
        ({}, 50, 50),
        ({}, 0, 128_000),
        ({"default_budget_tokens": 70}, -1, 70),
        ({"default_budget_tokens": None}, 0, 0),
        ({"max_budget_tokens": 30}, 50, 30),
        ({"max_budget_tokens": 30}, 0, 30),
    ],
)
def test_budgets(fields: dict[str, Any], asked: int, given: int) -> None:
    assert context(replace(OURS, **fields), [said(0)], asked).budget_tokens == given


def test_only_relevance_reads_prompts() -> None:
    assert (OURS.reads_prompts, ORIGINAL.reads_prompts) == (False, True)


def test_what_cannot_be_shown_is_not_made() -> None:
    class Counting:
        counted = 0

        def count(self, texts: list[str]) -> list[int]:
            self.counted += len(texts)
            return Utf16Units().count(texts)

    counting = Counting()
    context(replace(OURS, token_estimator=counting), [said(n) for n in range(5000)], 100)
    assert counting.counted <= 128  # 10 fit; items are made by 64


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"fresh_tail_count": -1}, "fresh_tail_count must be >= 0, got -1"),
        ({"fresh_tail_max_tokens": 0}, "fresh_tail_max_tokens must be > 0 or null, got 0"),
        ({"max_budget_tokens": math.nan}, "max_budget_tokens must be > 0 or null, got nan"),
        ({"default_budget_tokens": -5}, "default_budget_tokens must be > 0 or null, got -5"),
        ({"eviction": "oldest"}, "eviction must be one of: chronological, relevance, got 'oldest'"),
        ({"rules": "1.4.4"}, "rules must be one of: corrected, original, got '1.4.4'"),
        ({"timezone": "Mars/Base"}, "timezone must be an IANA name such as Europe/Madrid, got 'Mars/Base'"),
    ],
)
def test_a_field_out_of_range_is_named(fields: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        replace(OURS, **fields)


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
