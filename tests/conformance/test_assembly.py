"""The laws of `Assembly`, over every YAML of its group, over random conversations."""

import html
import os
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.errors import TranscriptError
from lcm.protocols.context import Assembly, ContextRequest
from lcm.records.context import Context
from lcm.records.conversation import Message
from lcm.records.summary import ContextEntry, Summary
from lcm.store.summaries import ContextRecords
from lcm.token_estimator import ScriptAware
from lcm.transcript.folders import recorded_files
from lcm.transcript.reading import joined, read_pieces, read_transcripts, reader_of
from lcm.transcript.rendering import calls_of, result_id_of
from pipelines.config import building
from tests.lcm.context.assembly.recorded import assistant, call, result, summary, user
from tests.support.composing import composed
from tests.support.left_out import check_left_out
from tests.support.richest import once_a_class

ROOT = Path(__file__).parents[2]
CHOICES = [*once_a_class("assembly"), pytest.param("libravdb assembly.rules=1.4.4", marks=pytest.mark.full)]
RECORDINGS = sorted((ROOT / "tests/recordings").iterdir())

WORDS = st.text(st.sampled_from('ab 東京<&"\n'), max_size=60)
IDS = st.sampled_from("abc")
PROMPTS = st.sampled_from(["", "ab", "東京", "?"])
BUDGETS = st.integers(0, 150)


@cache
def chosen(choice: str) -> Assembly:
    """An assembly by its name, with what is set beside it."""
    return building.build(composed(f"assembly={choice}".split()), "assembly")


@st.composite
def conversations(draw: st.DrawFn) -> list[Message | Summary]:
    kinds = st.sampled_from(["user", "assistant", "call", "result", "summary"])
    items: list[Message | Summary] = []
    for place, kind in enumerate(draw(st.lists(kinds, max_size=12))):
        name = f"{kind}-{place}"
        if kind == "user":
            items.append(user(draw(WORDS), name))
        elif kind == "assistant":
            items.append(assistant(draw(WORDS), name))
        elif kind == "call":
            items.append(call(*draw(st.lists(IDS, min_size=1, max_size=2)), message_id=name))
        elif kind == "result":
            items.append(result(draw(IDS), draw(WORDS), name))
        else:
            items.append(summary(draw(WORDS), name, draw(st.integers(0, 2))))
    return items


def with_tail(choice: str, count: int) -> Any:
    """The assembly, as it shows a tail of so many messages or items, which no clamp cuts."""
    assembly: Any = chosen(choice)
    if assembly.shows_documents:
        return replace(assembly, tail=replace(assembly.tail, min_turns=count))
    return replace(assembly, fresh_tail_count=count, clamp=None)


def of_everything(choice: str) -> Any:
    """The assembly, as it shows a whole conversation where the budget is large."""
    assembly: Any = chosen(choice)
    if assembly.shows_documents:
        return replace(assembly, tail=replace(assembly.tail, budget_fraction=1.0))
    return replace(assembly, fresh_tail_count=64, fresh_tail_max_tokens=None)


def strict(assembly: Any) -> Any:
    return assembly if assembly.shows_documents else replace(assembly, rules="corrected")


def name_of(item: Message | Summary) -> str:
    return item.message_id if isinstance(item, Message) else item.summary_id


def check_calls(context: Context) -> None:
    """Each result stands behind an assistant's message that calls its id, before the next one."""
    called: set[str] = set()
    for said in context.messages:
        if said["role"] == "assistant":
            called = {call_id for call_id, _ in calls_of(dict(said))}
        assert said["role"] != "toolResult" or result_id_of(dict(said)) in called


def check_pairs(context: Context) -> None:
    """Each result stands in the run of results behind an assistant's message that calls its id, once."""
    due: Counter[str] = Counter()
    for said in context.messages:
        if said["role"] == "toolResult":
            assert due[result_id_of(dict(said))] == 1
            due[result_id_of(dict(said))] = 0
        else:
            has_tiers = any(item.context_tier for item in context.items)
            assert said["role"] in ("user", "assistant") or (said["role"] == "system" and has_tiers)
            due = Counter(dict.fromkeys((call_id for call_id, _ in calls_of(dict(said))), 1))


@pytest.mark.parametrize("choice", CHOICES)
@given(items=conversations(), tail=st.integers(0, 4), asks=st.lists(st.tuples(BUDGETS, PROMPTS), max_size=4))
def test_laws_of_a_context(choice: str, items: list[Message | Summary], tail: int, asks: list[Any]) -> None:
    assembly = with_tail(choice, tail)
    if not assembly.shows_documents:
        assembly = replace(assembly, default_budget_tokens=None)
    before = repr(items)
    contexts = assembly.assemble(items, [ContextRequest(*ask) for ask in asks])
    assert contexts == [assembly.assemble(items, [ContextRequest(*ask)])[0] for ask in asks]
    assert repr(items) == before
    for context, (budget_tokens, _) in zip(contexts, asks, strict=True):
        assert context.budget_tokens == budget_tokens
        assert context.tokens == sum(item.tokens for item in context.items)
        tail_tokens = sum(item.tokens for item in context.items if item.in_tail)
        assert context.tokens <= max(budget_tokens, tail_tokens)
        names = [item.item_id for item in context.items]
        assert len(set(names)) == len(names) == len(items) - context.evicted
        fresh = {item.item_id for item in context.items if item.in_tail}
        counts_items = not assembly.shows_documents and assembly.rules != "0.15"
        tailable = [item for item in items if isinstance(item, Message) or counts_items]
        assert fresh >= {name_of(item) for item in tailable[max(0, len(tailable) - tail) :]}
        order = [name_of(item) for item in items]
        rest = [name for name in names if not name.startswith("result")]
        assert rest == sorted(rest, key=order.index)
        check_left_out(context, order)
        check_calls(context)
        if not assembly.shows_documents:
            assert bool(context.system_note) == any(isinstance(item, Summary) for item in items)


@pytest.mark.parametrize("choice", CHOICES)
@given(items=conversations(), tail=st.integers(0, 4), budget_tokens=BUDGETS)
def test_strictly_paired_results_follow_their_calls(
    choice: str, items: list[Message | Summary], tail: int, budget_tokens: int
) -> None:
    assembly = strict(with_tail(choice, tail))
    check_pairs(assembly.assemble(items, [ContextRequest(budget_tokens, "ab")])[0])


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.name)
def test_results_follow_their_calls_in_recordings_of_every_format(choice: str, path: Path) -> None:
    for transcript in read_transcripts(path):
        for tail in (0, 1, 3, 64):
            assembly = with_tail(choice, tail)
            for context in assembly.assemble(
                transcript.messages, [ContextRequest(b, "seeds") for b in (20, 200, 10**6)]
            ):
                check_pairs(context)


@pytest.mark.skipif("LCM_DATASETS_DIR" not in os.environ, reason="it reads the agent transcripts")
@pytest.mark.parametrize("choice", CHOICES)
def test_results_follow_their_calls_in_agent_transcripts(choice: str) -> None:
    read = 0
    for file in recorded_files([Path(os.environ["LCM_DATASETS_DIR"]) / "agent_transcripts"]):
        with suppress(TranscriptError):  # formats that are not read
            for transcript in joined(read_pieces(file, reader_of(file))):
                read += 1
                assembly = with_tail(choice, 3)
                for context in assembly.assemble(
                    transcript.messages, [ContextRequest(b, "file") for b in (500, 8000, 10**9)]
                ):
                    check_calls(context)
                    if assembly.shows_documents or assembly.rules == "corrected":
                        check_pairs(context)
    assert read >= 40


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.name)
def test_everything_recorded_is_shown_where_it_fits(choice: str, path: Path) -> None:
    for transcript in read_transcripts(path):
        assembly = of_everything(choice) if chosen(choice).shows_documents else chosen(choice)
        [context] = assembly.assemble(transcript.messages, [ContextRequest(10**9)])
        assert context.evicted == 0
        assert all(isinstance(said["content"], str | list) for said in context.messages)
        for message, item in zip(transcript.messages, context.items, strict=True):
            words = message.content.split()
            shown = html.unescape(item.text) if assembly.shows_documents else item.text
            assert not words or words[0] in shown or words[0] in shown.replace("\\", "")


@pytest.mark.parametrize("choice", CHOICES)
@given(items=conversations())
def test_tokens_of_a_message_are_those_of_its_wording(choice: str, items: list[Message | Summary]) -> None:
    assembly = of_everything(choice)
    context = assembly.assemble(items, [ContextRequest(10**9)])[0]
    costs = {item.item_id: item.tokens for item in context.items}
    messages = [item for item in items if isinstance(item, Message)]
    counts = ScriptAware().count([assembly.rendered(message) for message in messages])
    assert counts == [costs[message.message_id] for message in messages]


@pytest.mark.parametrize("choice", CHOICES)
def test_nothing_is_made_of_nothing(choice: str) -> None:
    [context] = chosen(choice).assemble([], [ContextRequest(100)])
    assert (context.items, context.tokens, context.messages, context.evicted) == ((), 0, (), 0)
    assert chosen(choice).assemble([user("a")], []) == []


@pytest.mark.parametrize("choice", CHOICES)
@given(
    items=conversations(), tail=st.integers(0, 4), asks=st.lists(st.tuples(BUDGETS, PROMPTS), min_size=1, max_size=3)
)
def test_contexts_of_records_that_are_read_when_looked_at(
    choice: str, items: list[Message | Summary], tail: int, asks: list[Any]
) -> None:
    assembly = with_tail(choice, tail)
    wanted = [ContextRequest(*ask) for ask in asks]
    assert assembly.assemble(unread(items), wanted) == assembly.assemble(items, wanted)


def unread(items: list[Message | Summary]) -> ContextRecords[Message | Summary]:
    entries = [
        ContextEntry(place, "message" if isinstance(item, Message) else "summary", name_of(item), 1, None)
        for place, item in enumerate(items)
    ]
    return ContextRecords(entries, lambda some: [items[entry.ordinal] for entry in some])
