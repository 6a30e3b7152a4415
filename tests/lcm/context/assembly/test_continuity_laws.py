"""The laws of continuity, over conversations, authored text and answers of any shape, for both presets."""

import re
from dataclasses import replace
from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.context.assembly.continuity import Continuity
from lcm.context.assembly.parts import SECTIONS, OversizedHardError, entry, verbatim
from lcm.protocols.context import ContextRequest
from lcm.records.context import Context
from lcm.retrieval.recovery.fetch import RawTurnRecovery
from pipelines.config import building, composition
from tests.lcm.context.assembly.remembered import WORDS, answers, authored, conversations
from tests.support.left_out import check_left_out

BUDGETS = st.integers(0, 900)
PROMPTS = st.sampled_from(["", "where is it", "a dream of ab", "how many days between ab and 東"])
_TAG = re.compile(rf"<\s*/?\s*({'|'.join((*SECTIONS, 'entry'))})\b", re.IGNORECASE)


@cache
def chosen(choice: str) -> Continuity:
    made: Continuity = building.build(composition.composed(f"assembly={choice}".split()), "assembly")
    return replace(made, recovery=RawTurnRecovery(SimpleNamespace(dim=8)))


@st.composite
def cases(draw: st.DrawFn) -> tuple[Any, Any, Any]:
    messages = draw(conversations())
    return messages, draw(authored()), draw(answers(messages))


def tier(context: Context, name: str) -> list[str]:
    return [item.item_id for item in context.items if item.context_tier == name]


def assembled(assembly: Continuity, case: Any, budget_tokens: int, prompt: str = "where is it") -> Context | None:
    """The context; None where its hard text is refused."""
    messages, nodes, found = case
    try:
        return assembly.assemble(messages, [ContextRequest(budget_tokens, prompt, found)], nodes)[0]
    except OversizedHardError as error:
        assert error.tokens > error.budget_tokens
        return None


@pytest.mark.parametrize("choice", ["continuity", "libravdb", "libravdb assembly.rules=1.4.4"])
@given(case=cases(), budget_tokens=BUDGETS, prompt=PROMPTS, min_turns=st.integers(0, 5))
def test_laws_of_every_context(choice: str, case: Any, budget_tokens: int, prompt: str, min_turns: int) -> None:
    assembly = replace(chosen(choice), tail=replace(chosen(choice).tail, min_turns=min_turns))
    messages, nodes, found = case
    context = assembled(assembly, case, budget_tokens, prompt)
    if context is None:
        assert choice == "continuity"
        return
    assert context == assembled(assembly, case, budget_tokens, prompt)
    names = [item.item_id for item in context.items]
    assert len(set(names)) == len(names)
    check_left_out(context, [*(one.message_id for one in messages), *(one.document_id for one in found)])
    memory_tokens = budget_tokens * assembly.token_budget_fraction  # a quarter, or all: exact
    assert context.is_degraded or context.tokens <= memory_tokens
    assert not context.is_degraded or context.notes["degraded"] or context.tokens > memory_tokens
    hard, soft = ([node.node_id for node in nodes if node.tier == name] for name in ("hard", "soft"))
    assert tier(context, "hard") == hard
    assert tier(context, "soft") == soft[: len(tier(context, "soft"))]
    said, tail = [message.message_id for message in messages], tier(context, "tail")
    is_dream = "dream" in prompt and (assembly.rules == "1.4.4" or any(one.kind == "dream" for one in found))
    assert tail == ([] if is_dream else said[len(said) - len(tail) :])
    assert is_dream or set(tail) >= set(said[max(0, len(said) - min_turns) :])
    kinds = {one.document_id: one.kind for one in found}
    of_tier = {name: {kinds[one] for one in tier(context, name)} for name in ("recalled", "recovered", "guidance")}
    if is_dream:
        assert of_tier["recalled"] <= {"dream"}
        assert not of_tier["guidance"] | of_tier["recovered"]
    else:
        assert of_tier["guidance"] <= {"guidance"}
        assert "dream" not in of_tier["recalled"] | of_tier["recovered"]
    for item in context.items:
        if item.kind == "document" and item.source_message_ids:
            assert not set(item.source_message_ids) <= set(tail)
    if context.notes["degraded"]:
        assert {item.context_tier for item in context.items} <= {"hard", "tail"}
        assert context.system_note.startswith("Memory is degraded")


@given(case=cases(), budgets=st.tuples(BUDGETS, BUDGETS).map(sorted))
def test_the_better_choice_is_within_its_budget_or_its_newest_turns_are_not(case: Any, budgets: list[int]) -> None:
    less, more = (assembled(chosen("continuity"), case, budget) for budget in budgets)
    if less is None:
        return
    if less.is_degraded:
        assert {item.context_tier for item in less.items} <= {"hard", "tail"}
        assert less.tokens > budgets[0]
    assert more is not None
    for name in ("hard", "tail", "soft"):  # a larger budget drops none of them
        assert set(tier(less, name)) <= set(tier(more, name))


@given(case=cases(), budget_tokens=BUDGETS)
def test_who_comes_first_takes_the_same_whatever_stands_behind_it(case: Any, budget_tokens: int) -> None:
    messages, nodes, found = case
    rules = [one for one in found if one.kind == "guidance" and not one.is_recovered]
    answers = (found, rules, [])
    whole, without_recall, bare = (
        assembled(chosen("continuity"), (messages, nodes, answer), budget_tokens) for answer in answers
    )
    if whole is None or without_recall is None or bare is None:
        assert whole is without_recall is bare is None
        return
    assert tier(whole, "guidance") == tier(without_recall, "guidance")
    for name in ("hard", "soft", "tail"):
        assert tier(whole, name) == tier(bare, name)


@given(choice=st.sampled_from(["continuity", "libravdb"]), case=cases())
def test_what_was_said_or_written_cannot_close_its_section(choice: str, case: Any) -> None:
    context = assembled(replace(chosen(choice), token_budget_fraction=1.0), case, 5000)
    assert context is not None
    open_tags: list[str] = []
    for found in _TAG.finditer(context.system_note):
        name = found.group(1)
        if "/" in found.group(0):
            assert open_tags.pop() == name
        else:
            assert (name == "entry") == bool(open_tags)
            open_tags.append(name)
    assert open_tags == []


@given(text=WORDS, role=st.sampled_from(["user", "assistant", "tool", '"><x']))
def test_an_entry_is_closed_by_its_own_end_alone(text: str, role: str) -> None:
    wrapped = entry(text, role, "session")
    assert wrapped.count("<") == 2
    assert wrapped.endswith("</entry>")
    assert not _TAG.search(verbatim(text))
    if not _TAG.search(text):
        assert verbatim(text) == text
