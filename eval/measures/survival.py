"""What survives of a conversation's facts in the contexts that compaction and assembly leave of it.

Facts are found by rules, no model (`lcm.compaction.facts`): each with its last true value. A conversation is taken in
turn by turn, alone; at each of `cycles` stops it is compacted by force, so that what was said first goes through that
many compactions. There, under each budget, each fact is exactly one of:

- `retained`: it stands in the context as said, its last value with it;
- `recoverable`: it does not, but expanding a summary of the context or a search for the words around it leads to a
  message that states it; `steps` and `recall_tokens` are means over such facts, of the cheaper way;
- `missing`: nothing leads to it, or nothing stands in the context and behind it is no store, as of the control arms;
- `mutated`: another value stands, one that it never had, or its words distorted;
- `stale`: a value stands that it had before, and the last one is gone.

`facts` is how many there are, `summaries` how many stand in the context, `context_tokens` what it costs,
`filler_tokens` what those of its sentences cost that state no fact. The arms beside the system see the raw history:
`whole_history`, without a budget; `last_n`, its newest messages; `truncate`, its beginning; `oracle`, the messages that
state most facts a token.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import polars as pl

from eval.dataset.dataset import Dataset
from eval.measures.means import Entry, Means
from eval.measures.measure import Measure, SystemReading
from eval.measures.names import SYSTEM_ARM
from eval.measures.recall_ways import DEFAULT_RECALL, RecallWays
from eval.measures.session_play import SessionStop, played
from eval.measures.shown_facts import (
    ShownWords,
    filler_tokens,
    last_messages,
    oracle_selection,
    shown_by,
    truncated,
    whole_history,
)
from lcm.checks import check_range
from lcm.compaction.facts.ledger import Subject, standings
from lcm.compaction.facts.reading import KINDS
from lcm.memory.system import System
from lcm.protocols.contract import contract_of
from lcm.records.summary import Summary

State = Literal["retained", "recoverable", "missing", "mutated", "stale"]
STATES: tuple[State, ...] = State.__args__  # type: ignore[attr-defined]
ALL_KINDS = "all"
SURVIVAL_SCHEMA: dict[str, pl.DataType] = {
    "arm": pl.String(),
    "budget": pl.Int64(),
    "cycle": pl.Int64(),
    "kind": pl.String(),
    "conversation_id": pl.String(),
    "measure": pl.String(),
    "value": pl.Float64(),
}
"""`budget` is null where there is none, `kind` a kind of fact, or `all`."""


@dataclass(frozen=True, slots=True)
class Survival(Measure):
    """Tells what became of each fact, under each of `budgets`, after each of `cycles`."""

    subject = "system"
    plays_sessions = True

    budgets: Sequence[int] = (1000, 2000, 4000, 8000, 16000, 32000)
    """Tokens of a context."""
    cycles: int | None = 5
    """Compactions by force on the way, after equal numbers of turns, the last at the end; None = contexts are read
    after every turn, and compaction's own triggers alone decide."""

    def __post_init__(self) -> None:
        check_range(self, "budgets", ge=1)
        check_range(self, "cycles", ge=1, is_whole=True, or_null=True)

    def is_measured(self, system: System, dataset: Dataset) -> bool:
        return bool(self.budgets)

    def rows(self, reading: SystemReading) -> pl.DataFrame:
        """Take in every conversation: rows of `SURVIVAL_SCHEMA`."""
        rows = []
        for transcript in reading.dataset.transcripts:
            for stop in played(reading.system, transcript, self.cycles):
                rows += [
                    (arm, budget, stop.number, kind, stop.conversation_id, measure, value)
                    for arm, budget, values in self._read(stop)
                    for (kind, measure), value in values.items()
                ]
                if not stop.next_turn:  # the memory counts from its beginning on
                    reading.incidents.update(stop.memory.incidents)
        return pl.DataFrame(rows, schema=SURVIVAL_SCHEMA, orient="row")

    def section(self, rows: pl.DataFrame, means: Means) -> dict[str, dict[str, Entry]]:
        """Means over conversations at their end, all kinds together: `arm@budget` -> measure -> entry."""
        at_end = rows.filter(
            pl.col("kind") == ALL_KINDS, pl.col("cycle") == pl.col("cycle").max().over("conversation_id")
        )
        named = pl.when(pl.col("budget").is_null()).then("arm").otherwise(pl.format("{}@{}", "arm", "budget"))
        return means.of_conversations(at_end.with_columns(arm=named))

    def notes(self, rows: pl.DataFrame, reading: SystemReading) -> list[str]:
        """Where the system's contexts hold no summary, and where they cost more than they may."""
        own = rows.filter(pl.col("arm") == SYSTEM_ARM, pl.col("kind") == ALL_KINDS)
        if own.is_empty():
            return []
        at_end = own.filter(pl.col("cycle") == pl.col("cycle").max().over("conversation_id"))
        notes = []
        if not own.filter(measure="summaries")["value"].sum():
            notes.append("survival: no context held a summary: compaction made none, or no budget let one in")
            notes += _why_nothing_folded(reading, rows)
        costs = at_end.filter(measure="context_tokens").sort("budget")
        if told := _told(costs, pl.col("value") > pl.col("budget")):
            notes.append(
                f"survival: contexts of the system that cost more than their budget of tokens, as no arm's does: {told}"
            )
        folded = at_end.filter(pl.col("measure") == "summaries", pl.col("value") > 0)
        whole = rows.filter(arm="whole_history", kind=ALL_KINDS, measure="context_tokens")
        keys = ["conversation_id", "cycle"]
        beside = costs.join(whole.select(*keys, whole="value"), on=keys, maintain_order="left")
        is_folded = beside.join(folded, on=[*keys, "budget"], how="semi", maintain_order="left")
        if told := _told(is_folded, pl.col("value") > pl.col("whole"), of=costs):
            notes.append(
                f"survival: contexts that compaction made larger than their whole history: {told}; what stands around "
                "a summary costs more than a few short messages did"
            )
        others = beside.filter(pl.col("value") > pl.col("budget"), pl.col("value") <= pl.col("whole"))
        if not others.is_empty():
            notes.append(
                f"survival: in {len(others)} of the contexts over their budget what is always shown, as a fresh tail, "
                "costs that much (compaction.fresh_tail_count, assembly.fresh_tail_*, assembly.tail.*)"
            )
        return notes

    def _read(self, stop: SessionStop) -> Iterator[tuple[str, int | None, Mapping[tuple[str, str], float]]]:
        """Arm, budget, and the values of each kind and of all."""
        if not stop.ledger.facts:
            return
        reading = _StopReading(stop)
        items = stop.memory.store.context_records(stop.conversation_id)
        for budget, context in zip(self.budgets, stop.contexts(self.budgets), strict=True):
            summaries = {one.summary_id for one in items if isinstance(one, Summary)}
            standing = {item.item_id for item in context.items if item.item_id in summaries}
            yield SYSTEM_ARM, budget, reading.values(shown_by(context, items), standing)
            yield "last_n", budget, reading.values(last_messages(stop.said, budget))
            yield "truncate", budget, reading.values(truncated(stop.said, budget))
            yield "oracle", budget, reading.values(oracle_selection(stop.said, stop.ledger, budget))
        yield "whole_history", None, reading.values(whole_history(stop.said))


def _why_nothing_folded(reading: SystemReading, rows: pl.DataFrame) -> Iterator[str]:
    if contract_of(reading.system.compaction).is_off:
        yield "survival: compaction=none is chosen, which folds nothing: try compaction=lossless assembly=lossless"
        return
    why = []
    longest = max(len(one.messages) for one in reading.dataset.transcripts)
    tail = getattr(reading.system.compaction, "fresh_tail_count", 0)
    if tail >= longest:
        why.append(f"compaction.fresh_tail_count={tail} keeps all {longest} messages of the longest conversation")
    threshold = getattr(reading.system.compaction, "threshold_tokens", None)
    if threshold is not None:
        most = rows.filter(arm="whole_history", measure="context_tokens")["value"].to_numpy().max()
        why.append(f"the largest history has {most:,.0f} of the {threshold:,} tokens that trigger a sweep")
    if why:
        yield f"survival: {'; '.join(why)}"


def _told(costs: pl.DataFrame, is_so: pl.Expr, of: pl.DataFrame | None = None) -> str:
    """Of how many contexts under each budget that is so, and what these cost.

    Args:
        of: all contexts, where the others are left out.
    """
    all_of = dict((costs if of is None else of).group_by("budget").len().iter_rows())
    counts = costs.filter(is_so).group_by("budget", maintain_order=True).agg(pl.len(), pl.col("value").mean())
    told = (f"{n} of {all_of[budget]} at {budget:,} (on average {mean:,.0f})" for budget, n, mean in counts.iter_rows())
    return ", ".join(told)


@dataclass(slots=True)
class _StopReading:
    """The facts of a conversation at one stop, and the ways back to them."""

    stop: SessionStop
    ways: RecallWays = field(init=False)

    def __post_init__(self) -> None:
        said = {one.message_id: one for one in self.stop.said}
        self.ways = RecallWays(self.stop.memory, self.stop.conversation_id, DEFAULT_RECALL, said)

    def values(self, shown: ShownWords, summaries: set[str] | None = None) -> dict[tuple[str, str], float]:
        """Kind and measure -> value.

        Args:
            summaries: those that stand in the context; None = it has no store behind it.
        """
        ledger = self.stop.ledger
        states: dict[Subject, State] = dict(standings(ledger, shown.message_ids, shown.texts))
        costs: dict[str, list[tuple[int, int]]] = defaultdict(list)
        if summaries is not None:
            for subject in [one for one, how in states.items() if how == "missing"]:
                fact = ledger.facts[subject]
                if (way := self.ways.best(fact.message_ids, [fact.cue], summaries)) is not None:
                    states[subject] = "recoverable"
                    for kind in (subject[0], ALL_KINDS):
                        costs[kind].append((way.steps, way.tokens))
        values: dict[tuple[str, str], float] = {}
        for kind in (ALL_KINDS, *KINDS):
            found = Counter(how for (of, _), how in states.items() if kind in (of, ALL_KINDS))
            if total := found.total():
                assert found.keys() <= set(STATES)
                values |= {(kind, state): found[state] / total for state in STATES}
                values[kind, "facts"] = total
            if paid := costs.get(kind):
                values[kind, "steps"] = sum(steps for steps, _ in paid) / len(paid)
                values[kind, "recall_tokens"] = sum(tokens for _, tokens in paid) / len(paid)
        if summaries is not None:
            values[ALL_KINDS, "summaries"] = len(summaries)
        values[ALL_KINDS, "context_tokens"] = shown.tokens
        values[ALL_KINDS, "filler_tokens"] = filler_tokens(shown, self.ways.said)
        return values
