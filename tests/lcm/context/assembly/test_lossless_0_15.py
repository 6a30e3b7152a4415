"""What the rules of lossless-claw 0.15.3 show otherwise than those of 0.6.3."""

from dataclasses import replace
from typing import Any

from lcm.context.assembly.lossless import Clamp, Lossless, names_in, quoted, serialized_tokens
from lcm.protocols.context import ContextRequest, Mention
from lcm.records.context import Context
from lcm.records.conversation import LargeFile, Message
from lcm.records.summary import Summary
from lcm.token_estimator import ScriptAware
from tests.lcm.context.assembly.recorded import assistant, call, message, result, summary, user

TOKENS = ScriptAware(image_tokens=None)
NEWER = Lossless(TOKENS, fresh_tail_count=1, fresh_tail_max_tokens=None, rules="0.15")


def context(assembly: Lossless, items: list[Message | Summary], budget_tokens: int, **asked: Any) -> Context:
    return assembly.assemble(items, [ContextRequest(budget_tokens, **asked)])[0]


def tail(assembly: Lossless, items: list[Message | Summary]) -> list[str]:
    return [item.item_id for item in context(assembly, items, 1).items if item.in_tail]


def test_the_tail_counts_messages_and_never_splits_the_newest_turn_of_a_user() -> None:
    items = [user("old", "u1"), user("now", "u2"), call("c", message_id="c"), result("c", message_id="r"), summary("s")]
    assert tail(NEWER, items) == ["u2", "c", "r", "sum_1"]
    assert tail(replace(NEWER, fresh_tail_max_tokens=0), items) == ["u2", "c", "r", "sum_1"]
    assert tail(replace(NEWER, fresh_tail_count=0), items) == []
    assert tail(NEWER, items[2:4]) == ["r"]  # nobody asked
    assert tail(replace(NEWER, rules="original", fresh_tail_count=2), items) == ["r", "sum_1"]
    several = [user("12345678" * 4, f"m{n}") for n in range(4)]
    assert tail(replace(NEWER, fresh_tail_count=3, fresh_tail_max_tokens=16), several) == ["m2", "m3"]


def test_a_call_stands_before_its_result_or_waits_in_the_tail() -> None:
    items = [result("c", message_id="r"), call("c", message_id="c"), user("now", "u")]
    assert [one["role"] for one in context(NEWER, items, 1000).messages] == ["user"]
    waiting = [user("now", "u"), call("c", message_id="c")]
    roles = [one["role"] for one in context(NEWER, waiting, 1000).messages]
    assert roles == ["user", "assistant", "toolResult"]
    assert [one["role"] for one in context(NEWER, [*items[:1], *waiting], 1).messages] == ["user"]


def test_what_says_nothing_is_left_out_and_an_answer_carries_its_bill() -> None:
    thought = {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": " "}]}
    found = context(NEWER, [user("a", "u"), message(thought, "t"), user(" ", "blank"), assistant("b", "b")], 1000)
    assert [one["content"] for one in found.messages] == ["a", [{"type": "text", "text": "b"}]]
    assert found.messages[1]["usage"]["output"] == found.items[-1].tokens == 7
    empty = Message("m", "assistant", " ", "s")
    assert context(NEWER, [user("a", "u"), empty], 1000).tokens == 1


def test_a_summary_is_marked_as_not_to_be_trusted() -> None:
    (shown,) = context(NEWER, [summary("<b>")], 1000).messages
    assert ' descendant_count="0" trust="untrusted" earliest_at=' in shown["content"]
    assert "\n&lt;b&gt;\n" in shown["content"]
    assert "trust" not in str(context(replace(NEWER, rules="original"), [summary("<b>")], 1000).messages)


def test_large_results_are_whole_in_the_tail_and_named_before_it() -> None:
    def large(number: int) -> Message:
        file = LargeFile(f"file_{number:016}", 0, 0, None, None, 4000, "")
        return replace(result(f"c{number}", "word " * 100, f"r{number}"), files=(file,))

    items = [call("c1"), large(1), user("now"), call("c2"), large(2)]
    in_tail = replace(NEWER, large_results="in_tail")
    old, new = (one for one in context(in_tail, items, 1000).messages if one["role"] == "toolResult")
    assert old["content"][0]["text"].startswith("[LCM Tool Output: file_0000000000000001 | tool=read | 4,000 bytes]")
    assert new["content"][0]["text"] == "word " * 100
    costs = {item.item_id: item.tokens for item in context(in_tail, items, 1000).items}
    assert costs["r1"] == TOKENS.count([old["content"][0]["text"]])[0] < costs["r2"]
    assert str(context(replace(NEWER, large_results="whole"), items, 1000).messages).count("word word") == 2 * 50
    assert "word word" not in str(context(NEWER, items, 1000).messages)


def clamped(fraction: float = 0.9, **choices: bool) -> Lossless:
    return replace(NEWER, clamp=Clamp(fraction, **choices))


def test_what_costs_more_than_the_budget_as_json_loses_its_oldest_the_tail_among_it() -> None:
    items = [user("x" * 40, "u1"), assistant("y" * 40, "a"), user("z" * 40, "u2")]
    whole = context(clamped(), items, 1000)
    assert (whole.notes["is_clamped"], len(whole.messages)) == (False, 3)
    sent = whole.notes["serialized_tokens"]
    assert sent == sum(serialized_tokens([dict(one) for one in whole.messages], TOKENS)) > whole.tokens
    assert len(context(clamped(), items, sent).messages) == 3
    cut = context(clamped(), items, sent - 1)
    assert [item.item_id for item in cut.items] == ["a", "u2"]
    assert cut.left_out["u1"].reason == "clamped"
    assert cut.evicted == 1
    assert [item.item_id for item in context(clamped(0.1), items, sent - 1).items] == ["u2"]
    assert len(context(NEWER, items, sent - 1).messages) == 3


def test_a_clamped_context_ends_and_begins_with_a_user() -> None:
    words = {"role": "user", "content": "ask"}
    answer = {"role": "assistant", "content": [{"type": "text", "text": "w" * 80}]}
    found = {"role": "toolResult", "toolCallId": "c", "content": [{"type": "text", "text": "r" * 80}]}
    assert Clamp().cut([words, answer, found, answer], 45, TOKENS).kept == (0,)
    assert Clamp(keeps_answers=True).cut([words, answer, found, answer], 45, TOKENS).kept == (0, 3)
    assert Clamp(keeps_answers=True).cut([words, found, found], 45, TOKENS).kept == (0, 2)
    blank = {"role": "assistant", "content": [{"type": "text", "text": " "}]}
    assert Clamp(keeps_answers=True).cut([found, words, blank], 30, TOKENS).kept == (1,)
    assert Clamp().cut([answer], 5, TOKENS).kept == (0,)
    assert Clamp().cut([], 5, TOKENS).kept == ()


def test_a_payload_costs_the_same_however_long_it_is() -> None:
    def costs(data: str) -> int:
        return serialized_tokens([{"role": "user", "content": [{"type": "image", "data": data}]}], TOKENS)[0]

    assert costs("a1" * 3000) == costs("a1" * 9000) > 1600
    assert costs("a1" * 2000) < 1600  # short
    assert costs("aa" * 3000) < 1600  # no digit
    assert costs("a 1" * 3000) > 1600 + costs("") or costs("a 1" * 3000) > 2000  # words, counted as they are


def asked(name: str, *texts: str) -> dict[str, Any]:
    return {
        "prompt": f"what is {name}?",
        "mentions": {name: [Mention(f"said-{place}", text) for place, text in enumerate(texts)]},
    }


def test_a_context_begins_with_what_was_last_said_of_a_name_that_it_lacks() -> None:
    looking = replace(NEWER, looked_up_names=4)
    found = context(looking, [user("go on")], 1000, **asked("MAX_RETRIES", "No. MAX_RETRIES is 7.", "MAX_RETRIES is 5"))
    assert found.messages[0]["content"].endswith("\n- MAX_RETRIES is 7.")
    assert found.items[0].source_message_ids == ("said-0",)
    assert found.tokens == sum(item.tokens for item in found.items)
    assert looking.reads_prompts
    for without in (
        context(looking, [user("MAX_RETRIES is 9")], 1000, **asked("MAX_RETRIES", "MAX_RETRIES is 7.")),
        context(looking, [user("go on")], 20, **asked("MAX_RETRIES", "MAX_RETRIES is 7.")),
        context(looking, [user("go on")], 1000, **asked("MAX_RETRIES", "MAX_RETRIES_MS is 7.")),
        context(NEWER, [user("go on")], 1000, **asked("MAX_RETRIES", "MAX_RETRIES is 7.")),
    ):
        assert len(without.messages) == 1


def test_a_cue_does_not_clamp_a_context() -> None:
    asks = asked("MAX_RETRIES", "MAX_RETRIES is 7.")
    looking = replace(clamped(), looked_up_names=4)
    sent = context(looking, [user("go on")], 1000).notes["serialized_tokens"]
    cue = context(looking, [user("go on")], 1000, **asks).messages[0]
    costs = sent + serialized_tokens([dict(cue)], TOKENS)[0]
    assert len(context(looking, [user("go on")], costs, **asks).messages) == 2
    assert len(context(looking, [user("go on")], costs - 1, **asks).messages) == 1


def test_names_are_in_capitals_and_no_secret_is_quoted() -> None:
    assert names_in("A_B lower_case SINGLE _LEAD API_KEY A_B C_1 D_E", 2) == ["A_B", "C_1"]
    assert names_in("A_B", 0) == []
    assert quoted("First! xA_B, then A_B is on. Later.\nA_B", "A_B") == "xA_B, then A_B is on."
    assert quoted("A_B with password=hunter2", "A_B") is None
    assert quoted("A_B sk-abcdefghijklmnop", "A_B") is None
    assert quoted("A_B_C", "A_B") is None
    long = quoted("w " * 2000 + "A_B" + " w" * 2000, "A_B")
    assert long is not None
    assert long.startswith("...")
    assert long.endswith("...")
    assert long.index("A_B") > 3 * len(long) // 4 - 20
