"""What survives of facts: five states that are all there is, under budgets and through cycles of compaction."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval.dataset.dataset import QRELS_SCHEMA, Dataset
from eval.measures.means import Means
from eval.measures.measure import SystemReading
from eval.measures.session_play import (
    SaidMessage,
    last_messages,
    oracle_selection,
    played,
    said_message,
    truncated,
    whole_history,
)
from eval.measures.sessions import STATES, SURVIVAL_SCHEMA, Survival
from lcm.compaction.facts.ledger import Ledger, standings
from lcm.compaction.lossless.lossless import Lossless
from lcm.context.assembly.lossless import Lossless as LosslessAssembly
from lcm.memory.system import System
from lcm.records.conversation import Part, Transcript
from lcm.records.summary import SummaryRequest, SummaryResult
from lcm.token_estimator import Utf16Units
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
    return survival.rows(SystemReading(by, dataset(*transcripts or [transcript(LINES)])))


def heard(lines: Sequence[str]) -> tuple[Ledger, list[SaidMessage]]:
    messages = transcript(lines).messages
    ledger = Ledger.of(messages)
    return ledger, [said_message(one, ledger.stated[one.message_id]) for one in messages]


def values(rows: pl.DataFrame, **where: object) -> dict[str, float]:
    return dict(rows.filter(**where).select("measure", "value").iter_rows())  # type: ignore[arg-type]


def test_the_shares_of_the_states_are_all_there_is_and_equal_sessions_give_equal_rows() -> None:
    survival = Survival((20, 60, 500), 3)
    rows = measured(survival, folding())
    of_states = rows.filter(pl.col("measure").is_in(STATES))
    sums = of_states.group_by("arm", "budget", "cycle", "kind").agg(pl.col("value").sum(), pl.len())
    assert sums["len"].unique().to_list() == [len(STATES)]
    assert sums["value"].to_list() == pytest.approx([1.0] * len(sums))
    assert rows.schema == SURVIVAL_SCHEMA
    assert rows.equals(measured(survival, folding()))


def test_the_whole_history_retains_all_and_a_cut_one_misses_or_is_stale() -> None:
    """No store stands behind the arms that cut, so what they do not show is missing."""
    rows = measured(Survival((20, 500), 3), folding()).filter(cycle=3)
    found = values(rows, arm="whole_history", kind="all")
    assert found["retained"] == 1
    sent = [line if place % 2 == 0 else f'[{{"type":"text","text":"{line}"}}]' for place, line in enumerate(LINES)]
    assert found["context_tokens"] == sum(TOKENS.count(sent)), "an assistant's words are sent as a block"
    last = values(rows, arm="last_n", kind="rule", budget=20)
    assert (last["missing"], last["recoverable"]) == (1, 0)
    assert values(rows, arm="truncate", kind="number", budget=20)["stale"] == 1


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


def test_a_session_is_read_at_equal_stops_or_after_every_turn() -> None:
    def stops(cycles: int | None) -> list[int]:
        return sorted(measured(Survival((500,), cycles), folding())["cycle"].unique())

    assert stops(2) == [1, 2]
    assert stops(99) == stops(None) == [1, 2, 3, 4]  # turns


def test_a_stop_knows_what_was_said_by_then_and_only_a_forced_one_compacts_what_no_trigger_would() -> None:
    stops = [
        (len(stop.said), len(stop.ledger.stated), [one.message_id for one in stop.next_turn])
        for stop in played(folding(), transcript(LINES), 2)
    ]
    assert stops == [(4, 4, ["talk:4", "talk:5"]), (8, 8, [])]
    for cycles, summaries in ((1, True), (None, False)):
        for stop in played(folding(10_000), transcript(LINES), cycles):
            assert bool(stop.memory.store.summaries("talk")) == summaries
    by = folding()
    left_out = replace(by, session=replace(by.session, ignore_patterns=["talk"]))
    assert list(played(left_out, transcript(LINES), 2)) == []


def test_what_compaction_by_force_meets_is_counted_once() -> None:
    """`Silent` loses the one rule, once, in the first of three compactions."""
    incidents = Counter[str]()
    Survival((500,), 3).rows(SystemReading(folding(10_000), dataset(transcript(LINES)), incidents))
    assert incidents["a summary lost rules of the user"] == 1


def test_the_section_gives_the_end_of_each_conversation_that_states_something() -> None:
    talks = (transcript(LINES, "one"), transcript(LINES[:2], "two"), transcript(["hm", "yes"], "three"))
    rows = measured(Survival((500,), 2), folding(), *talks)
    assert set(rows["conversation_id"]) == {"one", "two"}
    section = Survival().section(rows, Means())
    assert section.keys() == {"system@500", "last_n@500", "truncate@500", "oracle@500", "whole_history"}
    assert section["whole_history"]["retained"]["n"] == 2
    at_end = rows.filter(arm="system", kind="all", measure="facts").sort("cycle").group_by("conversation_id").last()
    assert section["system@500"]["facts"]["value"] == at_end["value"].mean()
    assert Survival().section(rows.clear(), Means()) == {}


def test_what_cannot_be_measured_is_refused() -> None:
    with pytest.raises(ValueError, match="cycles must be"):
        Survival(cycles=0)
    with pytest.raises(ValueError, match=r"budgets\[0\] must be"):
        Survival(budgets=[0])
    assert not Survival(budgets=()).is_measured(folding(), dataset())


@settings(max_examples=60)
@given(st.lists(st.sampled_from(LINES), min_size=1, max_size=10), st.integers(1, 200), st.integers(0, 200))
def test_arms_keep_their_budget_and_more_tokens_of_history_never_retain_less(
    lines: list[str], budget: int, more: int
) -> None:
    ledger, said = heard(lines)

    def retained(budget: int) -> int:
        shown = last_messages(said, budget)
        assert shown.tokens <= budget
        return Counter(standings(ledger, shown.message_ids, shown.texts).values())["retained"]

    assert retained(budget) <= retained(budget + more)
    assert oracle_selection(said, ledger, budget).tokens <= budget
    cut, whole = truncated(said, budget), whole_history(said)
    assert list(cut.message_ids) == [one.message_id for one in said][: len(cut.message_ids)]
    assert budget < whole.tokens or cut.message_ids == whole.message_ids


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


def test_contexts_over_their_budget_enlarged_or_without_a_summary_are_noted() -> None:
    """A summary of two short messages costs more than these."""
    narrow, wide = Survival((5, 4000), 1), Survival((4000,), 1)
    whole = SystemReading(folding(), dataset(transcript(LINES)))
    over, tail = narrow.notes(measured(narrow, folding()), whole)
    assert "1 of 1 at 5 (on average " in over
    assert "4,000" not in over
    assert "in 1 of the contexts over their budget what is always shown" in tail
    rows = measured(wide, folding(), transcript(LINES[:4]))
    cost = values(rows, arm="system", kind="all")["context_tokens"]
    assert cost > values(rows, arm="whole_history", kind="all")["context_tokens"]
    (note,) = wide.notes(rows, whole)
    assert f"whole history: 1 of 1 at 4,000 (on average {cost:,.0f});" in note
    assert list(wide.notes(measured(wide, folding()), whole)) == []
    loose = system(assembly=LosslessAssembly(TOKENS, fresh_tail_count=1))
    assert list(wide.notes(measured(wide, loose), replace(whole, system=loose))) == [
        "survival: no context held a summary: compaction made none, or no budget let one in",
        "survival: compaction=none is chosen, which folds nothing: try compaction=lossless assembly=lossless",
    ]


def test_what_costs_just_the_budget_fits_and_filler_is_what_states_nothing() -> None:
    ledger, said = heard(LINES)
    last, tokens = said[-1], said[-1].tokens + said[-2].tokens
    assert last_messages(said, tokens).message_ids == (last.message_id, said[-2].message_id)
    assert last_messages(said, tokens - 1).message_ids == (last.message_id,)
    assert truncated(said, said[0].tokens).message_ids == (said[0].message_id,)
    whole = whole_history(said).tokens
    assert set(oracle_selection(said, ledger, whole).message_ids) >= {said[4].message_id, said[6].message_id}
    _, (first, second) = heard(["It rained again. Tuva wrote to us. It rained.", "Tuva has the key."])
    assert (first.filler_tokens, second.filler_tokens) == (TOKENS.count(["It rained again. It rained."])[0], 0)
