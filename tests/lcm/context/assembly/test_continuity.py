"""Contexts of authored text, the newest turns, rules and what was recalled: worked cases."""

from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace

import pytest

from lcm.compaction.recent_tail import RecentTail
from lcm.context.assembly.continuity import Continuity, entry_of
from lcm.context.assembly.parts import BudgetShares, MemoryText, closing, opening, sections
from lcm.protocols.context import ContextRequest
from lcm.records.context import Context
from lcm.records.query import Recalled
from lcm.retrieval.recovery.fetch import RawTurnRecovery
from lcm.token_estimator import Utf16Units
from pipelines.config import building, composition
from tests.lcm.context.assembly.recorded import NOW, assistant, call, message, result, summary, user
from tests.lcm.context.assembly.remembered import node, recalled

PLAIN = Continuity(Utf16Units(), tail=RecentTail(min_turns=2, budget_tokens=0, budget_fraction=None))
TALK = [user("where is it", "u1"), assistant("in the attic", "a1"), user("and now", "u2"), assistant("gone", "a2")]
ORIGINAL = Continuity(Utf16Units(), token_budget_fraction=0.25, tail=RecentTail(budget_fraction=None), rules="1.4.4")
WIDE = SimpleNamespace(dim=8)
"""All that a recovery asks of an embedder."""
RECOVERING = replace(PLAIN, recovery=RawTurnRecovery(WIDE))


def ids(context: Context, tier: str) -> list[str]:
    return [item.item_id for item in context.items if item.context_tier == tier]


def test_everything_stands_in_its_section_once() -> None:
    nodes = [node("hard", "Use metric units.", "h"), node("soft", "Be brief.", "s")]
    found = [recalled("r", "the key is blue"), recalled("g", "never push", "guidance")]
    [context] = PLAIN.assemble([summary("old"), *TALK], [ContextRequest(1000, "key", found)], nodes)
    assert [item.item_id for item in context.items] == ["h", "s", "u2", "a2", "g", "r"]
    assert context.evicted == 1 + 2, "summaries are no turns"
    assert [said["content"] for said in context.messages] == ["and now", [{"type": "text", "text": "gone"}]]
    assert [line for line in context.system_note.splitlines() if line.startswith(("<", "["))] == [
        *("<authored_context>", "[A1] Use metric units.", "[A2] Be brief.", "</authored_context>"),
        *("<elevated_guidance>", "[E1] never push", "</elevated_guidance>"),
        "<recalled_memories>",
        '[M1] <entry role="user" source="recalled">the key is blue</entry>',
        "</recalled_memories>",
    ]
    in_tail = sum(item.tokens for item in context.items if item.in_tail)
    assert Utf16Units().count([context.system_note])[0] <= context.tokens - in_tail


@pytest.mark.parametrize(("rules", "shows_calls"), [("corrected", True), ("original", False), ("1.4.4", False)])
def test_a_call_beside_words_stands_in_the_tail_by_the_corrected_rules(rules, shows_calls):
    blocks = [{"type": "text", "text": "I look it up"}, {"type": "toolCall", "id": "read-1", "name": "read"}]
    said = message({"role": "assistant", "content": blocks}, "a1")
    [context] = Continuity(Utf16Units(), rules=rules).assemble([user("where?", "u1"), said], [ContextRequest(1000)])
    shown = context.items[-1].text
    assert "I look it up" in shown
    assert ("read-1" in shown) is shows_calls


def test_an_entry_of_a_message_that_holds_only_calls_shows_them_and_one_of_nothing_has_no_text() -> None:
    talk = [user("look", "u"), call("c", message_id="call"), result("c", "found", "r"), user("", "nothing")]
    shown = '<entry role="assistant" source="session">[tool read] p: 1</entry>'
    [context] = ORIGINAL.assemble(talk, [ContextRequest(4000, "key")])
    items = {item.item_id: item for item in context.items}
    assert shown == items["call"].text == entry_of(talk[1])
    assert shown in context.system_note
    assert shown in [said["content"] for said in context.messages]
    assert items["call"].tokens == Utf16Units().count([shown])[0]
    assert items["nothing"].text == ""


def test_guidance_takes_its_share_and_no_more_and_recall_is_starved_before_it() -> None:
    rules = [recalled(f"g{place}", "x" * 200, "guidance") for place in range(9)]  # 50 tokens and its label each
    [context] = PLAIN.assemble([], [ContextRequest(1000, "k", rules)])
    assert sum(item.tokens for item in context.items) <= 0.15 * 1000
    assert ids(context, "guidance") == ["g0", "g1"]  # 3 * ceil((200 + 6) / 4) = 156 > 150
    found = [recalled("m", "x" * 100), recalled("g", "rule", "guidance")]
    whole = PLAIN.assemble([], [ContextRequest(1000, "k", found)])[0]
    cost = sum(item.tokens for item in whole.items)
    tight = replace(PLAIN, shares=BudgetShares(guidance_fraction=1.0))
    [context] = tight.assemble([], [ContextRequest(cost - 1, "k", found)])
    assert (ids(context, "guidance"), ids(context, "recalled")) == (["g"], [])


@pytest.mark.parametrize("rules", ["original", "1.4.4"])
def test_a_rule_leaves_others_less_by_what_it_counts_and_not_by_what_it_is_packed_by(rules):
    packing = replace(ORIGINAL, rules=rules)  # of 400 tokens it has 100, of which rules may take 15
    others = [recalled("m", "y" * 4 * tokens) for tokens in (78, 79)]
    beside = {}
    for counted in (0, 21, 23):
        rule = recalled("g", "x" * 40, "guidance", tokens=counted)  # 10 tokens; 22 as the message that shows it
        shown = [packing.assemble([], [ContextRequest(400, "k", [rule, other])])[0] for other in others]
        assert [ids(context, "guidance") for context in shown] == [["g"], ["g"]]
        beside[counted] = [ids(context, "recalled") for context in shown]
    assert beside == {0: [["m"], []], 21: [["m"], ["m"]], 23: [[], []]}


def test_what_stands_only_for_turns_and_rules_that_are_shown_is_left_out() -> None:
    found = [
        recalled("shown", source_message_ids=("u2",)),
        recalled("half", source_message_ids=("u1", "u2")),
        recalled("older", source_message_ids=("u1",)),
        recalled("of a rule", source_message_ids=("x",)),
        recalled("g", kind="guidance", source_message_ids=("x",)),
    ]
    [context] = PLAIN.assemble(TALK, [ContextRequest(1000, "k", found)])
    assert (ids(context, "recalled"), ids(context, "guidance")) == (["half", "older"], ["g"])


def test_a_summary_is_nobodys_words_but_where_its_record_names_a_role() -> None:
    for role, shown in (("", "unknown"), ("user", "user")):
        [context] = PLAIN.assemble([], [ContextRequest(1000, "k", [recalled("s", "told", "summary", role=role)])])
        assert f'<entry role="{shown}" source="recalled">told</entry>' in context.system_note


def test_a_question_about_dreams_is_answered_by_authored_text_and_dreams_alone_where_there_are_any() -> None:
    found = [recalled("m"), recalled("d", kind="dream"), recalled("g", kind="guidance")]
    nodes = [node("hard", "h", "h"), node("soft", "s", "s")]

    def shown(assembly: Continuity, prompt: str, found: list[Recalled]) -> list[str]:
        return [item.item_id for item in assembly.assemble(TALK, [ContextRequest(1000, prompt, found)], nodes)[0].items]

    awake = ["h", "s", "u2", "a2", "g", "m"]
    assert shown(PLAIN, "what did I dream?", found) == ["h", "s", "d"]
    assert shown(PLAIN, "what did I dreamt?", found) == shown(PLAIN, "what did I dream?", found[::2]) == awake
    assert shown(ORIGINAL, "what did I dream?", found[::2]) == ["h", "s"], "its code knows nothing but dreams then"


def test_the_code_of_the_original_recovers_by_its_reserve_whatever_is_left() -> None:
    talk = [user("x" * 150, f"u{i}") for i in range(4)]
    vague = [recalled(f"s{i}", "told", "summary", role="", confidence=0.1, score=0.4) for i in range(4)]
    lost = recalled("lost", "said long ago, and lost", is_recovered=True, scope_class="session")
    budget = 4 * (4 * Utf16Units().count([entry_of(talk[0])])[0] + 1)  # one token is left beside the turns
    shown = {}
    for rules in ("original", "1.4.4"):
        assembly = replace(ORIGINAL, recovery=RawTurnRecovery(WIDE), rules=rules)
        shown[rules] = ids(assembly.assemble(talk, [ContextRequest(budget, "key", [*vague, lost])])[0], "recovered")
    assert shown == {"original": [], "1.4.4": ["lost"]}


def test_the_preset_recalls_beside_a_long_dialogue_and_the_code_of_its_original_does_not() -> None:
    talk = [(assistant if i % 2 else user)("x" * 100, f"t{i}") for i in range(80)]
    shown = {}
    for rules in ("original", "1.4.4"):
        assembly = building.build(composition.composed(["system=libravdb", f"assembly.rules={rules}"]), "assembly")
        [context] = assembly.assemble(talk, [ContextRequest(4000, "key", [recalled("r")])])
        shown[rules] = len(ids(context, "tail")), ids(context, "recalled"), context.is_degraded
    # A turn's entry costs 40 tokens: 4 turns always, more than the 128 of a tail, whose boundary stands before u76.
    assert shown == {"original": (4, ["r"], False), "1.4.4": (80, [], True)}


def test_what_was_fetched_for_a_question_of_no_session_is_shown_in_any_conversation() -> None:
    """Its answer has not failed, and its context has a session: that it was fetched tells that it names none."""
    fetched = recalled("raw", "the key is blue", is_recovered=True, cosine=0.9)
    asked = [ContextRequest(500, "key", [recalled("r"), *more]) for more in ([fetched], [])]
    with_it, without = RECOVERING.assemble(TALK, asked)
    assert not with_it.notes["has_failed"]
    assert (with_it.notes["is_elsewhere"], with_it.notes["reserve_tokens"]) == (True, 500 // 10)
    assert (ids(with_it, "recalled"), ids(with_it, "recovered")) == (["r"], ["raw"])
    assert (without.notes["is_elsewhere"], without.notes["reserve_tokens"]) == (False, 0)


def test_a_session_that_is_folded_whole_is_no_elsewhere_though_its_answer_has_nothing_of_it() -> None:
    asked, notes = [ContextRequest(500, "key", [recalled("r")])], []
    for items in ([], [summary("old")], TALK):
        [context] = RECOVERING.assemble(items, asked)
        notes.append((context.notes["is_elsewhere"], context.notes["reserve_tokens"]))
    assert notes == [(True, 500 // 10), (False, 0), (False, 0)]


def test_the_first_entry_of_a_section_pays_for_its_frame_where_nothing_else_was_recalled() -> None:
    said = ("the key is blue", "the key is gone")
    fetched = [recalled(f"raw {i}", text, is_recovered=True, cosine=0.9) for i, text in enumerate(said)]
    [context] = RECOVERING.assemble(TALK, [ContextRequest(2000, "key", fetched)])
    around = opening("recalled_memories") + closing("recalled_memories")
    frame, line = Utf16Units().count([around, f'[M1] <entry role="user" source="recalled">{said[0]}</entry>\n'])
    assert ids(context, "recovered") == ["raw 0", "raw 1"]
    assert [item.tokens for item in context.items if item.context_tier == "recovered"] == [frame + line, line]


def test_the_reserve_is_kept_for_what_was_recovered() -> None:
    vague = [recalled(f"s{place}", "x" * 400, "summary", scope_class="session") for place in range(4)]
    lost = recalled("raw", "the key is blue", is_recovered=True, scope_class="session", cosine=0.9)
    asked = [ContextRequest(500, "key", [*vague, lost])]
    [context], [without] = RECOVERING.assemble(TALK, asked), PLAIN.assemble(TALK, asked)
    assert context.notes["has_failed"]
    assert context.notes["reserve_tokens"] == 500 // 10
    assert len(ids(without, "recalled")) == len(ids(context, "recalled")) == 3
    assert (ids(context, "recovered"), ids(without, "recovered")) == (["raw"], [])


def test_what_is_recovered_is_not_what_was_chosen_already() -> None:
    vague = [recalled(f"s{place}", "x", "summary", scope_class="session") for place in range(4)]
    turn = recalled("doc", "the key", scope_class="session", source_message_ids=("m7",))
    again = replace(turn, document_id="raw", is_recovered=True)
    [context] = RECOVERING.assemble(TALK, [ContextRequest(2000, "key", [*vague, turn, again])])
    assert "doc" in ids(context, "recalled")
    assert ids(context, "recovered") == []


def test_the_tail_is_known_before_anything_is_recalled() -> None:
    nodes = [node("hard", "h", "h")]
    [context] = PLAIN.assemble(TALK, [ContextRequest(1000, "k", [recalled("r")])], nodes)
    assert PLAIN.tail_message_ids(TALK, 1000, nodes) == ids(context, "tail")
    assert PLAIN.tail_message_ids(TALK, 1000, nodes, "my dreams") == []


def test_the_section_of_the_tail_is_in_the_order_of_time_and_what_has_none_is_first() -> None:
    told = [("late", NOW), ("early", NOW - timedelta(days=1)), ("undated", None)]
    shown = sections([MemoryText("tail", text, "user", said_at) for text, said_at in told])
    assert shown["recent_session_tail"] == [
        f'[T{place}] <entry role="user" source="session">{text}</entry>\n'
        for place, text in enumerate(("undated", "early", "late"), start=1)
    ]
