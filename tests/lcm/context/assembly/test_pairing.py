"""Results behind their calls."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lcm.context.assembly.shown_items import NO_RESULT, PairedMessage, paired
from lcm.records.rules import LosslessRules
from lcm.transcript.rendering import calls_of, result_id_of


def said(*call_ids: str, **more: Any) -> dict[str, Any]:
    blocks = [{"type": "toolCall", "id": call_id, "name": "run", "arguments": {}} for call_id in call_ids]
    return {"role": "assistant", "content": blocks, **more}


def answer(call_id: str, text: str = "ok") -> dict[str, Any]:
    return {"role": "toolResult", "toolCallId": call_id, "content": [{"type": "text", "text": text}]}


def user(text: str = "u") -> dict[str, Any]:
    return {"role": "user", "content": text}


def repaired(rules: LosslessRules, *messages: dict[str, Any]) -> list[dict[str, Any]]:
    return [placed.message for placed in paired([PairedMessage(message) for message in messages], rules)]


def test_what_the_original_leaves_or_loses_the_corrected_rules_pair() -> None:
    swapped = [said("a", "b"), answer("b"), answer("a"), answer("a", "again")]
    assert repaired("original", *swapped) == swapped
    assert repaired("corrected", *swapped) == [said("a", "b"), answer("a"), answer("b")]
    late = [said("a"), said(), answer("a")]
    assert repaired("corrected", *late) == [said("a"), answer("a"), said()]
    assert repaired("original", *late)[1]["content"][0]["text"] == NO_RESULT
    twice = [said("a"), answer("a", "first"), user(), said("a"), answer("a", "second")]
    assert repaired("corrected", *twice) == twice
    assert answer("a", "second") not in repaired("original", *twice)


def test_by_the_rules_of_0_15_an_id_is_called_once_and_answered_once_by_a_true_result() -> None:
    late = [said("a"), said("b"), answer("b"), answer("a")]
    assert repaired("0.15", *late) == [said("a"), answer("a"), said("b"), answer("b")]
    twice = [said("a"), answer("a"), user(), said("a", "b"), answer("a", "again"), answer("b")]
    assert repaired("0.15", *twice) == [said("a"), answer("a"), user(), said("b"), answer("b")]
    assert repaired("0.15", said("a"), answer("a"), said("a")) == [said("a"), answer("a")]
    assert repaired("0.15", said("a", stopReason="aborted"), said("a"), answer("a")) == [said("a"), answer("a")]
    made_up = {**answer("a", NO_RESULT), "isError": True}
    assert repaired("0.15", said("a"), made_up, user(), answer("a")) == [said("a"), answer("a"), user()]
    assert repaired("0.15", said("a"), made_up, made_up) == [said("a"), made_up]
    missing = repaired("0.15", answer("x"), said("a"), user())
    assert [one["role"] for one in missing] == ["assistant", "toolResult", "user"]


def test_by_the_rules_of_0_15_swapped_results_stay_so_where_nothing_else_is_wrong() -> None:
    swapped = [user(), said("a", "b"), answer("b"), answer("a"), said("c"), answer("c")]
    assert repaired("0.15", *swapped) == swapped
    in_order = [said("a", "b"), answer("a"), answer("b"), user()]
    assert repaired("0.15", *swapped[1:4], user()) == in_order


def test_by_the_corrected_rules_too_missing_results_are_made_up_and_calls_broken_off_left_alone() -> None:
    orphan, called, made_up = repaired("corrected", answer("x"), user(), said("a"))[:3]
    assert (orphan, called) == (user(), said("a"))
    assert (made_up["toolCallId"], made_up["isError"], made_up["toolName"]) == ("a", True, "run")
    assert made_up["content"] == [{"type": "text", "text": NO_RESULT}]
    for stop in ("error", "aborted"):
        assert repaired("corrected", said("a", stopReason=stop), user()) == [said("a", stopReason=stop), user()]
    function, thought = {"type": "function_call", "call_id": "a", "name": "run"}, {"type": "reasoning", "text": "why"}
    (ordered, _) = repaired("corrected", {"role": "assistant", "content": [function, thought]}, answer("a"))
    assert ordered["content"] == [thought, function]
    two = {"role": "assistant", "content": [function, thought, {**function, "call_id": "b"}]}
    assert repaired("corrected", two, answer("a"), answer("b"))[0]["content"] == two["content"]


IDS = st.sampled_from("abc")
MESSAGES = st.lists(
    st.one_of(st.builds(user), st.lists(IDS, max_size=3).map(lambda call_ids: said(*call_ids)), IDS.map(answer)),
    max_size=12,
)


@given(MESSAGES)
def test_strict_puts_each_result_behind_its_call_and_answers_each_call_once(messages: list[dict[str, Any]]) -> None:
    whole = repaired("corrected", *messages)
    place = 0
    while place < len(whole):
        assert whole[place]["role"] != "toolResult"
        due = list(dict(calls_of(whole[place])))
        answered = whole[place + 1 : place + 1 + len(due)]
        assert [result_id_of(one) for one in answered] == due
        place += 1 + len(due)
    assert [one for one in whole if one["role"] != "toolResult"] == [
        one for one in messages if one["role"] != "toolResult"
    ]


@given(MESSAGES, st.sampled_from(["corrected", "original", "0.15"]))
def test_repairing_twice_changes_nothing(messages: list[dict[str, Any]], rules: LosslessRules) -> None:
    called = [call_id for one in messages for call_id, _ in calls_of(one)]
    if rules == "original" and len(set(called)) < len(called):
        return  # an id that is called again is answered with an error, which the next repair takes for a change
    once = repaired(rules, *messages)
    assert repaired(rules, *once) == once
