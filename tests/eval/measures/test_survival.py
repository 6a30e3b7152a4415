"""What survives of facts: five states that are all there is, under budgets and through cycles of compaction."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval.dataset.dataset import QRELS_SCHEMA, Dataset
from eval.measures.session_play import played
from eval.measures.shown_facts import (
    SaidMessage,
    last_messages,
    oracle_selection,
    said_message,
    truncated,
    whole_history,
)
from eval.measures.survival import STATES, SURVIVAL_SCHEMA, Survival
from lcm.compaction.facts.ledger import Ledger
from lcm.compaction.facts.standing import standings
from lcm.compaction.lossless.lossless import Lossless
from lcm.context.assembly.lossless import Lossless as LosslessAssembly
from lcm.memory.system import System
from lcm.records.conversation import Part, Transcript
from lcm.records.summary import SummaryRequest, SummaryResult
from lcm.token_estimator.utf16_units import Utf16Units
from tests.support.workspaces import system, transcript

TOKENS = Utf16Units()
LINES = (
    "The request timeout is 30 s and Tuva owns it.",
    "Noted. I opened src/app/main.py and looked around in it for a while.",
    "Never push to the main branch on Fridays.",
    "Understood, so that day is a quiet one for all of us here.",
    "The notes are at https://example.org/notes/2026.",
    "I read them all, from the beginning to the very end of them.",
    "The request timeout is 60 s now.",
    "Changed it everywhere that it stood, and looked once more.",
)


class Silent:
    """A summarizer that keeps nothing of what it reads."""

    def summarize(self, requests: Sequence[SummaryRequest], *, incidents: Counter[str]) -> list[SummaryResult]:
        return [SummaryResult("They talked.", 0.5, "silent") for _ in requests]


def folding(leaf_chunk_tokens: int = 60) -> System:
    """Folds all but the last two messages: after a turn where these are larger than a chunk, and when it is told to."""
    compaction = Lossless(
        Silent(), TOKENS, fresh_tail_count=2, leaf_chunk_tokens=leaf_chunk_tokens, min_leaf_tokens=0, leaf_min_fanout=2
    )
    return system(compaction=compaction, assembly=LosslessAssembly(TOKENS, fresh_tail_count=2))


def dataset(*transcripts: Transcript) -> Dataset:
    return Dataset("tiny", "tiny", "0", transcripts, (), pl.DataFrame(schema=QRELS_SCHEMA))


def measured(survival: Survival, by: System, *transcripts: Transcript) -> pl.DataFrame:
    return survival.of_system(by, dataset(*transcripts or [transcript(LINES)]), incidents=Counter())


def heard(lines: Sequence[str]) -> tuple[Ledger, list[SaidMessage]]:
    messages = transcript(lines).messages
    ledger = Ledger.of(messages)
    return ledger, [said_message(one, ledger.stated[one.message_id]) for one in messages]


def values(rows: pl.DataFrame, **where: object) -> dict[str, float]:
    return dict(rows.filter(**where).select("measure", "value").iter_rows())  # type: ignore[arg-type]


def test_the_shares_of_the_states_are_all_there_is() -> None:
    rows = measured(Survival((20, 60, 500), 3), folding())
    of_states = rows.filter(pl.col("measure").is_in(STATES))
    sums = of_states.group_by("arm", "budget", "cycle", "kind").agg(pl.col("value").sum(), pl.len())
    assert sums["len"].unique().to_list() == [len(STATES)]
    assert sums["value"].to_list() == pytest.approx([1.0] * len(sums))
    assert rows.schema == SURVIVAL_SCHEMA


def test_the_whole_history_retains_all() -> None:
    found = values(measured(Survival((500,), 3), folding()), arm="whole_history", kind="all", cycle=3)
    assert found["retained"] == 1
    sent = [line if place % 2 == 0 else f'[{{"type":"text","text":"{line}"}}]' for place, line in enumerate(LINES)]
    assert found["context_tokens"] == sum(TOKENS.count(sent)), "an assistant's words are sent as a block"


def test_what_a_summary_does_not_keep_is_recoverable() -> None:
    """A leaf stands for the first three messages: one expansion shows them."""
    rows = measured(Survival((500,), 1), folding())
    found = values(rows, arm="system", kind="rule", cycle=1)
    assert (found["recoverable"], found["retained"], found["facts"]) == (1, 0, 1)
    assert found["steps"] == 1
    for stop in played(folding(), transcript(LINES), 1):
        edges = stop.memory.store.edges("talk")
        (leaf,) = edges.filter(source_id="talk:2")["summary_id"]
        assert edges.filter(summary_id=leaf)["source_id"].to_list() == ["talk:0", "talk:1", "talk:2"]
        assert found["recall_tokens"] == edges.filter(summary_id=leaf)["tokens"].sum()
    assert values(rows, arm="system", kind="number", cycle=1)["retained"] == 1  # the last value is in the tail


def test_without_a_store_behind_it_what_is_not_shown_is_missing() -> None:
    found = values(measured(Survival((20,), 1), folding()), arm="last_n", kind="rule", cycle=1)
    assert (found["missing"], found["recoverable"]) == (1, 0)


def test_an_outdated_value_is_stale_where_the_history_is_cut() -> None:
    found = values(measured(Survival((20,), 1), folding()), arm="truncate", kind="number", cycle=1)
    assert found["stale"] == 1


def test_a_session_is_read_at_equal_stops_or_after_every_turn() -> None:
    def stops(cycles: int | None) -> list[int]:
        return sorted(measured(Survival((500,), cycles), folding())["cycle"].unique())

    assert stops(2) == [1, 2]
    assert stops(99) == stops(None) == [1, 2, 3, 4]  # turns


def test_a_stop_knows_what_was_said_by_then_alone() -> None:
    stops = [
        (len(stop.said), len(stop.ledger.stated), [one.message_id for one in stop.next_turn])
        for stop in played(folding(), transcript(LINES), 2)
    ]
    assert stops == [(4, 4, ["talk:4", "talk:5"]), (8, 8, [])]


def test_only_a_forced_stop_compacts_what_no_trigger_would() -> None:
    for cycles, summaries in ((1, True), (None, False)):
        for stop in played(folding(10_000), transcript(LINES), cycles):
            assert bool(stop.memory.store.summaries("talk")) == summaries


def test_what_compaction_by_force_meets_is_counted_once() -> None:
    """`Silent` loses the one rule, once, in the first of three compactions."""
    incidents = Counter[str]()
    Survival((500,), 3).of_system(folding(10_000), dataset(transcript(LINES)), incidents=incidents)
    assert incidents["a summary lost rules of the user"] == 1


def test_equal_sessions_give_equal_rows() -> None:
    survival = Survival((20, 500), 2)
    assert measured(survival, folding()).equals(measured(survival, folding()))


def test_the_section_tells_the_end_of_each_conversation() -> None:
    rows = measured(Survival((500,), 2), folding(), transcript(LINES, "one"), transcript(LINES[:2], "two"))
    section = Survival().section(rows)
    assert section.keys() == {"system@500", "last_n@500", "truncate@500", "oracle@500", "whole_history"}
    assert section["whole_history"]["retained"]["n"] == 2
    at_end = rows.filter(arm="system", kind="all", measure="facts").sort("cycle").group_by("conversation_id").last()
    assert section["system@500"]["facts"]["value"] == at_end["value"].mean()


def test_a_conversation_without_facts_has_no_rows() -> None:
    assert measured(Survival((500,), 1), folding(), transcript(["hm", "yes"])).is_empty()
    assert Survival().section(pl.DataFrame(schema=SURVIVAL_SCHEMA)) == {}


def test_what_cannot_be_measured_is_refused() -> None:
    with pytest.raises(ValueError, match="cycles must be"):
        Survival(cycles=0)
    with pytest.raises(ValueError, match=r"budgets\[0\] must be"):
        Survival(budgets=[0])
    assert not Survival(budgets=()).is_measured(folding(), dataset())


@settings(max_examples=60)
@given(st.lists(st.sampled_from(LINES), min_size=1, max_size=10), st.integers(1, 200), st.integers(0, 200))
def test_more_tokens_of_history_never_retain_less(lines: list[str], budget: int, more: int) -> None:
    ledger, said = heard(lines)

    def retained(budget: int) -> int:
        shown = last_messages(said, budget)
        assert shown.tokens <= budget
        return Counter(standings(ledger, shown.message_ids, shown.texts).values())["retained"]

    assert retained(budget) <= retained(budget + more)


@settings(max_examples=60)
@given(st.lists(st.sampled_from(LINES), min_size=1, max_size=10), st.integers(1, 200))
def test_the_oracle_keeps_the_budget_and_truncation_the_beginning(lines: list[str], budget: int) -> None:
    ledger, said = heard(lines)
    chosen = oracle_selection(said, ledger, budget)
    assert chosen.tokens <= budget
    cut = truncated(said, budget)
    assert list(cut.message_ids) == [one.message_id for one in said][: len(cut.message_ids)]
    if budget >= whole_history(said).tokens:
        assert cut.message_ids == whole_history(said).message_ids


def test_a_system_that_leaves_a_session_out_has_no_stops() -> None:
    by = folding()
    left_out = replace(by, session=replace(by.session, ignore_patterns=["talk"]))
    assert list(played(left_out, transcript(LINES), 2)) == []


def test_the_arms_pay_for_a_message_what_a_context_pays() -> None:
    """Calls are sent as blocks, and so is what the agent thought."""
    thought = Part("reasoning", "Where is it?", metadata={"raw": {"type": "thinking", "thinking": "Where is it?"}})
    raw = {"type": "toolCall", "id": "1", "name": "read", "arguments": {"path": "src/app/main.py"}}
    call = Part(
        "tool", tool_call_id="1", tool_name="read", tool_input='{"path":"src/app/main.py"}', metadata={"raw": raw}
    )
    said = list(transcript(LINES[:3]).messages)
    said[1] = replace(said[1], parts=(thought, Part("text", said[1].content), call))
    result = Part("tool", "Empty.", tool_call_id="1", tool_name="read")
    said[2] = replace(said[2], role="tool", content="Empty.", parts=(result,))
    rows = measured(Survival((5000,), None), system(assembly=LosslessAssembly(TOKENS)), Transcript("talk", tuple(said)))
    costs = dict(rows.filter(kind="all", measure="context_tokens").sort("cycle").select("arm", "value").iter_rows())
    assert costs["system"] == costs["whole_history"] == costs["last_n"] > sum(TOKENS.count(LINES[:3]))


def test_filler_is_what_states_nothing() -> None:
    _, (first, second) = heard(["It rained again. Tuva wrote to us. It rained.", "Tuva has the key."])
    assert first.filler_tokens == TOKENS.count(["It rained again. It rained."])[0]
    assert second.filler_tokens == 0


def test_contexts_over_their_budget_are_told() -> None:
    survival = Survival((5, 4000), 1)
    over, tail = survival.notes(measured(survival, folding()))
    assert "1 of 1 at 5 (on average " in over
    assert "4,000" not in over
    assert "in 1 of the contexts over their budget what is always shown" in tail


def test_contexts_that_compaction_made_larger_are_told() -> None:
    """A summary costs more than the two short messages that it stands for."""
    survival = Survival((4000,), 1)
    rows = measured(survival, folding(), transcript(LINES[:4]))
    cost = values(rows, arm="system", kind="all")["context_tokens"]
    assert cost > values(rows, arm="whole_history", kind="all")["context_tokens"]
    (note,) = survival.notes(rows)
    assert f"whole history: 1 of 1 at 4,000 (on average {cost:,.0f});" in note
    assert survival.notes(measured(survival, folding())) == []


def test_contexts_without_a_summary_are_told() -> None:
    survival = Survival((4000,), 1)
    rows = measured(survival, system(assembly=LosslessAssembly(TOKENS, fresh_tail_count=1)))
    assert survival.notes(rows) == [
        "survival: no context held a summary: compaction made none, or no budget let one in"
    ]
    folded = measured(survival, folding())
    assert folded.filter(measure="summaries")["value"].sum() > 0
    assert not any("no context held" in note for note in survival.notes(folded))


def test_what_costs_just_the_budget_fits() -> None:
    ledger, said = heard(LINES)
    last, tokens = said[-1], said[-1].tokens + said[-2].tokens
    assert last_messages(said, tokens).message_ids == (last.message_id, said[-2].message_id)
    assert last_messages(said, tokens - 1).message_ids == (last.message_id,)
    assert truncated(said, said[0].tokens).message_ids == (said[0].message_id,)
    whole = whole_history(said).tokens
    assert set(oracle_selection(said, ledger, whole).message_ids) >= {said[4].message_id, said[6].message_id}
