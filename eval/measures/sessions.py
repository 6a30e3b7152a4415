"""Measures that play sessions: what survives of facts, what getting them back costs, and how long turns wait.

Facts are found by rules, no model (`lcm.compaction.facts`): each with its last true value.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

import numpy as np
import polars as pl

from eval.dataset.dataset import Dataset
from eval.measures.means import Entry, Means
from eval.measures.measure import Measure, SystemReading
from eval.measures.names import SYSTEM_ARM
from eval.measures.session_play import (
    RecallWay,
    RecallWays,
    SessionStop,
    ShownWords,
    filler_tokens,
    last_messages,
    oracle_selection,
    played,
    shown_by,
    truncated,
    whole_history,
)
from eval.replay.workspace_replay import turns
from lcm.checks import check_range
from lcm.compaction.facts.finding import statements_of
from lcm.compaction.facts.ledger import Fact, Shown, Subject, cue_of, holds_words, standings
from lcm.compaction.facts.reading import KINDS, content_words, folded, is_result, read_message
from lcm.compaction.scheduling import Asynchronous
from lcm.memory.memory import Memory
from lcm.memory.system import System
from lcm.protocols.contract import contract_of
from lcm.records.conversation import Transcript
from lcm.records.summary import Summary
from lcm.transcript.passages import utterance

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
RESUME_SCHEMA = {name: SURVIVAL_SCHEMA[name] for name in ("arm", "budget", "conversation_id", "measure", "value")}
LAST_N, WHOLE_HISTORY = "last_n", "whole_history"
SYNCHRONOUS, ASYNCHRONOUS = "synchronous", "asynchronous"
WAITING_SCHEMA: dict[str, pl.DataType] = {
    "arm": pl.String(),
    "conversation_id": pl.String(),
    "turn": pl.Int64(),
    "waited_seconds": pl.Float64(),
    "context_tokens": pl.Int64(),
    "is_compacted": pl.Boolean(),
    "dropped": pl.Int64(),
    "unfinished": pl.Int64(),
}
"""A row a turn: how long it waited, the context that it found, and what became of plans at it. `unfinished` counts
those under way after it, of the last turn of a conversation."""
_KEY_WORDS = 4
_PERCENTILES = (50, 95, 99)
_DROPPED = "background compaction"
"""Begins the name of each incident of that kind."""


def _at_end(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.filter(kind=ALL_KINDS).filter(pl.col("cycle") == pl.col("cycle").max().over("conversation_id"))


class _Contexts(Measure):
    """A measure of the contexts of sessions, under each of its `budgets`; without one it is off."""

    __slots__ = ()
    subject = "system"
    plays_sessions = True
    budgets: Sequence[int]

    def is_measured(self, system: System, dataset: Dataset) -> bool:
        return bool(self.budgets)

    def section(self, rows: pl.DataFrame, means: Means) -> dict[str, dict[str, Entry]]:
        """Means over conversations, at their end and of all kinds together: `arm@budget` -> measure -> entry."""
        named = pl.when(pl.col("budget").is_null()).then("arm").otherwise(pl.format("{}@{}", "arm", "budget"))
        return means.of_conversations(rows.with_columns(arm=named))


@dataclass(frozen=True, slots=True)
class Survival(_Contexts):
    """What survives of a conversation's facts in the contexts that compaction and assembly leave of it.

    A conversation is taken in turn by turn, alone; at each of `cycles` stops it is compacted by force, so that what was
    said first goes through that many compactions. There, under each of `budgets`, each fact is exactly one of:

    - `retained`: it stands in the context as said, its last value with it;
    - `recoverable`: it does not, but expanding a summary of the context or a search for the words around it leads to a
      message that states it; `steps` and `recall_tokens` are means over such facts, of the cheaper way;
    - `missing`: nothing leads to it, or nothing stands in the context and behind it is no store, as of the control
      arms;
    - `mutated`: another value stands, one that it never had, or its words distorted;
    - `stale`: a value stands that it had before, and the last one is gone.

    `facts` is how many there are, `summaries` how many stand in the context, `context_tokens` what it costs,
    `filler_tokens` what those of its sentences cost that state no fact. The arms beside the system see the raw history:
    `whole_history`, without a budget; `last_n`, its newest messages; `truncate`, its beginning; `oracle`, the messages
    that state most facts a token.
    """

    budgets: Sequence[int] = (1000, 2000, 4000, 8000, 16000, 32000)
    """Tokens of a context."""
    cycles: int | None = 5
    """Compactions by force on the way, after equal numbers of turns, the last at the end; None = contexts are read
    after every turn, and compaction's own triggers alone decide."""

    def __post_init__(self) -> None:
        check_range(self, "budgets", ge=1)
        check_range(self, "cycles", ge=1, is_whole=True, or_null=True)

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
        return _Contexts.section(self, _at_end(rows), means)

    def notes(self, rows: pl.DataFrame, reading: SystemReading) -> Iterator[str]:
        """Where the system's contexts hold no summary, and where they cost more than they may."""
        own = rows.filter(arm=SYSTEM_ARM, kind=ALL_KINDS)
        if own.is_empty():
            return
        if not own.filter(measure="summaries")["value"].sum():
            yield "survival: no context held a summary: compaction made none, or no budget let one in"
            yield from _why_nothing_folded(reading, rows)
        keys = ["conversation_id", "cycle"]
        whole = rows.filter(arm=WHOLE_HISTORY, kind=ALL_KINDS, measure="context_tokens").select(*keys, whole="value")
        at_end = _at_end(own)
        costs = at_end.filter(measure="context_tokens").sort("budget").join(whole, on=keys, maintain_order="left")
        if told := _costing(costs, costs.filter(pl.col("value") > pl.col("budget"))):
            beside = "as no arm's does"
            yield f"survival: contexts of the system that cost more than their budget of tokens, {beside}: {told}"
        with_summary = at_end.filter(pl.col("measure") == "summaries", pl.col("value") > 0)
        is_folded = costs.join(with_summary, on=[*keys, "budget"], how="semi", maintain_order="left")
        if told := _costing(costs, is_folded.filter(pl.col("value") > pl.col("whole"))):
            yield (
                f"survival: contexts that compaction made larger than their whole history: {told}; what stands around "
                "a summary costs more than a few short messages did"
            )
        others = costs.filter(pl.col("value") > pl.col("budget"), pl.col("value") <= pl.col("whole"))
        if not others.is_empty():
            yield (
                f"survival: in {len(others)} of the contexts over their budget what is always shown, as a fresh tail, "
                "costs that much (compaction.fresh_tail_count, assembly.fresh_tail_*, assembly.tail.*)"
            )

    def _read(self, stop: SessionStop) -> Iterator[tuple[str, int | None, Mapping[tuple[str, str], float]]]:
        """Arm, budget, and the values of each kind and of all."""
        if not stop.ledger.facts:
            return
        ways, items = RecallWays(stop), stop.memory.store.context_records(stop.conversation_id)
        summaries = {one.summary_id for one in items if isinstance(one, Summary)}
        for budget, context in zip(self.budgets, stop.contexts(self.budgets), strict=True):
            standing = {item.item_id for item in context.items if item.item_id in summaries}
            yield SYSTEM_ARM, budget, _survived(stop, shown_by(context, items), ways, standing)
            yield LAST_N, budget, _survived(stop, last_messages(stop.said, budget))
            yield "truncate", budget, _survived(stop, truncated(stop.said, budget))
            yield "oracle", budget, _survived(stop, oracle_selection(stop.said, stop.ledger, budget))
        yield WHOLE_HISTORY, None, _survived(stop, whole_history(stop.said))


def _survived(
    stop: SessionStop, shown: ShownWords, ways: RecallWays | None = None, summaries: Collection[str] = ()
) -> dict[tuple[str, str], float]:
    """Kind and measure -> value.

    Args:
        ways: back to what is not shown; None = there is no store behind it.
    """
    facts = stop.ledger.facts
    states: dict[Subject, State] = dict(standings(stop.ledger, shown.message_ids, shown.texts))
    paid: dict[Subject, RecallWay] = {}
    if ways is not None:
        for subject in (one for one, how in states.items() if how == "missing"):
            of = facts[subject]
            if (way := ways.best(of.message_ids, [of.cue], summaries)) is not None:
                paid[subject] = way
    states |= dict.fromkeys(paid, "recoverable")
    values: dict[tuple[str, str], float] = {}
    for kind in (ALL_KINDS, *KINDS):
        of_kind = [subject for subject in states if kind in (subject[0], ALL_KINDS)]
        if not of_kind:
            continue
        found = Counter(states[subject] for subject in of_kind)
        assert found.keys() <= set(STATES)
        values |= {(kind, state): found[state] / len(of_kind) for state in STATES}
        values[kind, "facts"] = len(of_kind)
        if costs := [paid[subject] for subject in of_kind if subject in paid]:
            values[kind, "steps"] = sum(way.steps for way in costs) / len(costs)
            values[kind, "recall_tokens"] = sum(way.tokens for way in costs) / len(costs)
    if ways is not None:
        values[ALL_KINDS, "summaries"] = len(summaries)
    values[ALL_KINDS, "context_tokens"] = shown.tokens
    values[ALL_KINDS, "filler_tokens"] = filler_tokens(shown, {one.message_id: one for one in stop.said})
    return values


def _why_nothing_folded(reading: SystemReading, rows: pl.DataFrame) -> Iterator[str]:
    compaction = reading.system.compaction
    if contract_of(compaction).is_off:
        yield "survival: compaction=none is chosen, which folds nothing: try compaction=lossless assembly=lossless"
        return
    why = []
    longest = max(len(one.messages) for one in reading.dataset.transcripts)
    tail = getattr(compaction, "fresh_tail_count", 0)
    if tail >= longest:
        why.append(f"compaction.fresh_tail_count={tail} keeps all {longest} messages of the longest conversation")
    threshold = getattr(compaction, "threshold_tokens", None)
    if threshold is not None:
        most = rows.filter(arm=WHOLE_HISTORY, measure="context_tokens")["value"].to_numpy().max()
        why.append(f"the largest history has {most:,.0f} of the {threshold:,} tokens that trigger a sweep")
    if why:
        yield f"survival: {'; '.join(why)}"


def _costing(costs: pl.DataFrame, some: pl.DataFrame) -> str:
    """How many of all contexts under each budget are some of them, and what these cost."""
    all_of = dict(costs.group_by("budget").len().iter_rows())
    counts = some.group_by("budget", maintain_order=True).agg(pl.len(), pl.col("value").mean())
    told = (f"{n} of {all_of[budget]} at {budget:,} (on average {mean:,.0f})" for budget, n, mean in counts.iter_rows())
    return ", ".join(told)


class Probe(NamedTuple):
    """A fact that the next turn mentions again."""

    fact: Fact
    cues: tuple[str, ...]
    """What an agent would search for that lacks it, one after another."""


@dataclass(slots=True)
class _Spent:
    """What one arm has spent on a conversation under one budget."""

    turns: int = 0
    context_tokens: int = 0
    recall_tokens: int = 0
    rounds: int = 0
    found: Counter[str] = field(default_factory=Counter)
    """How many probes were at_hand, recalled, lost."""
    read: set[str] = field(default_factory=set)
    """The messages that were read in this task."""

    def values(self, tasks: int) -> dict[str, float]:
        probes = self.found.total()
        shares = {how: self.found[how] / probes for how in ("at_hand", "recalled", "lost")}
        return shares | {
            "rounds": self.rounds / probes,
            "recall_tokens": self.recall_tokens / probes,
            "task_tokens": (self.context_tokens + self.recall_tokens) / tasks,
            "context_tokens": self.context_tokens / self.turns,
            "probes": probes,
        }

    def serve(
        self,
        stop: SessionStop,
        probes: Sequence[Probe],
        words: ShownWords,
        ways: RecallWays | None = None,
        summaries: Collection[str] = (),
    ) -> None:
        """Have each probe's fact at hand, and count what that takes; without ways back what is not shown is lost."""
        shown = Shown(stop.ledger, words.message_ids, words.texts)
        self.turns += 1
        self.context_tokens += words.tokens
        for fact, cues in probes:
            if shown.standing(fact) == "retained" or not self.read.isdisjoint(fact.message_ids):
                self.found["at_hand"] += 1
                continue
            way = None if ways is None else ways.best(fact.message_ids, cues, summaries)
            self.found["lost" if way is None else "recalled"] += 1
            if way is not None:
                self.rounds += way.steps
                self.recall_tokens += way.tokens
                self.read.update(way.message_ids)


@dataclass(frozen=True, slots=True)
class Resume(_Contexts):
    """What an agent spends to have at hand what its next turns need, under each of `budgets`.

    The probes lie in the transcript itself: facts that an assistant's message mentions again, word for word as they
    were stated before, and that nobody has told it within the same turn. A conversation is taken in turn by turn,
    alone, and compacted by force `tasks` times on the way; what lies between two of these is a task. Before each turn a
    probe is

    - at hand, if the context holds the fact, or something that was read in the same task does;
    - recalled, by the cheaper of two ways: expanding summaries of the context down to the message, or searching, first
      by what the fact is about, then by the words around its mention, then by each of these alone, and reading what was
      found;
    - lost, if neither leads there.

    `at_hand`, `recalled` and `lost` are shares of the probes, `rounds` the calls of recall tools a probe,
    `recall_tokens` what they show a probe, `context_tokens` the mean context, and `task_tokens` what a task costs in
    all: its contexts, one a turn, and its recall. Beside the system stand `last_n`, the newest messages without recall,
    and `whole_history`.
    """

    budgets: Sequence[int] = (2000, 8000, 32000)
    """Tokens of a context."""
    tasks: int = 5
    """Parts of a conversation, of equal numbers of turns; before each but the first, compaction is forced."""

    def __post_init__(self) -> None:
        check_range(self, "budgets", ge=1)
        check_range(self, "tasks", ge=1, is_whole=True)

    def rows(self, reading: SystemReading) -> pl.DataFrame:
        """Take in every conversation: rows of `RESUME_SCHEMA`; one that mentions nothing again has none."""
        rows = [
            (arm, budget, transcript.conversation_id, name, value)
            for transcript in reading.dataset.transcripts
            for (arm, budget), values in self._of(reading.system, transcript, reading.incidents).items()
            for name, value in values.items()
        ]
        return pl.DataFrame(rows, schema=RESUME_SCHEMA, orient="row")

    def notes(self, rows: pl.DataFrame, reading: SystemReading) -> list[str]:
        """Where there is nothing to bring back."""
        if not rows.is_empty():
            return []
        return ["resume: no assistant mentions again what was said before, so there was nothing to bring back"]

    def _of(
        self, system: System, transcript: Transcript, incidents: Counter[str]
    ) -> dict[tuple[str, int | None], dict[str, float]]:
        spent: dict[tuple[str, int | None], _Spent] = defaultdict(_Spent)
        task = 0
        for stop in played(system, transcript, self.tasks, stops_at_turns=True):
            if stop.number != task:
                task = stop.number
                for one in spent.values():
                    one.read.clear()
            if stop.next_turn:
                self._before_next_turn(stop, spent)
            else:
                incidents.update(stop.memory.incidents)
        return {of: one.values(max(1, task)) for of, one in spent.items() if one.found.total()}

    def _before_next_turn(self, stop: SessionStop, spent: dict[tuple[str, int | None], _Spent]) -> None:
        probes = list(probes_of(stop))
        ways, items = RecallWays(stop), stop.memory.store.context_records(stop.conversation_id)
        summaries = {one.summary_id for one in items if isinstance(one, Summary)}
        for budget, context in zip(self.budgets, stop.contexts(self.budgets), strict=True):
            standing = summaries & {item.item_id for item in context.items}
            spent[SYSTEM_ARM, budget].serve(stop, probes, shown_by(context, items), ways, standing)
            spent[LAST_N, budget].serve(stop, probes, last_messages(stop.said, budget))
        whole = spent[WHOLE_HISTORY, None]
        whole.turns += 1
        whole.context_tokens += sum(one.tokens for one in stop.said)
        whole.found["at_hand"] += len(probes)


def probes_of(stop: SessionStop) -> Iterator[Probe]:
    """What the next turn mentions again and nobody has told within it, each once, in the order of mention."""
    told, seen = "", set()
    for message in stop.next_turn:
        read = read_message(message)
        if message.role != "assistant" or is_result(message):
            told += f" {folded(read.said.text)} {folded(read.brought.text)} "
            continue
        for statement in map(stop.ledger.known, statements_of(read)):
            fact = stop.ledger.facts.get((statement.kind, statement.key))
            if fact is None or statement.value not in ("", fact.value) or fact.subject in seen:
                continue
            seen.add(fact.subject)
            if not holds_words(told, folded(statement.said)):
                around = cue_of(statement, utterance(message))
                about = " ".join(content_words(fact.key)[:_KEY_WORDS]) if fact.value else ""
                yield Probe(fact, tuple(dict.fromkeys(filter(None, (about, around, *around.split())))))


@dataclass(frozen=True, slots=True)
class Waiting(Measure):
    """How long turns wait for compaction, with and without the background, where scheduling is asynchronous.

    Each conversation is taken in turn by turn, alone, once for each of two arms: `asynchronous`, with the system's own
    thresholds, and `synchronous`, where every turn waits. Time is that which `scheduling.replayed` simulates, so that
    every run gives the same numbers. Over all turns of all conversations:

    - `mean`, `p50`, `p95`, `p99`, `max`: seconds that a turn waited; `share`: of the turns that waited at all;
    - `context_tokens`: of the largest context; `compacted`: how many times what was planned was written;
    - `dropped`: plans that came to nothing; `unfinished`: those that had not ended when the conversation did.
    """

    subject = "system"
    needs = "scheduling=asynchronous and a compaction, as compaction=lossless"

    def is_measured(self, system: System, dataset: Dataset) -> bool:
        return not (contract_of(system.scheduling).is_off or contract_of(system.compaction).is_off)

    def rows(self, reading: SystemReading) -> pl.DataFrame:
        """Take in every conversation twice: rows of `WAITING_SCHEMA`; none where it is not measured."""
        system, rows = reading.system, []
        if isinstance(system.scheduling, Asynchronous) and not contract_of(system.compaction).is_off:
            waiting = replace(system, scheduling=replace(system.scheduling, hard_threshold=0.0))
            rows = [
                (arm, *row)
                for arm, one in {SYNCHRONOUS: waiting, ASYNCHRONOUS: system}.items()
                for transcript in reading.dataset.transcripts
                for row in _turns(one, transcript, reading.incidents)
            ]
        return pl.DataFrame(rows, schema=WAITING_SCHEMA, orient="row")

    def section(self, rows: pl.DataFrame, means: Means) -> dict[str, dict[str, Entry]] | None:
        """Arm -> what was waited for -> entry; `n` is the number of turns."""
        told = rows.group_by("arm", maintain_order=True)
        return {
            str(arm): {name: {"value": value, "n": len(of), "low": None, "high": None} for name, value in _waited(of)}
            for (arm,), of in told
        } or None

    def notes(self, rows: pl.DataFrame, reading: SystemReading) -> list[str]:
        """Where nothing ever waited, or nothing was ready in time, no number tells what the background is worth."""
        if rows.is_empty():
            return []
        if not rows["waited_seconds"].max():
            why = "none made a summary due (the soft threshold is the trigger of compaction)"
            return [f"waiting: no turn waited, in the background or not: {why}, or scheduling.replayed takes no time"]
        behind = rows.filter(arm=ASYNCHRONOUS)
        if behind["is_compacted"].any():
            return []
        plans = behind.select((pl.col("unfinished") + pl.col("dropped")).sum()).item()
        remedy = "messages without dates take no time; set scheduling.replayed.seconds_a_turn"
        return [f"waiting: of {plans:,} plans in the background none was ready before its talk ended: {remedy}"]


def _turns(system: System, transcript: Transcript, incidents: Counter[str]) -> Iterator[tuple[object, ...]]:
    name, said = transcript.conversation_id, list(turns(transcript.messages))
    if not system.session.writes(name, name):
        return
    with Memory.open(system, "") as memory:
        dropped = 0
        for number, turn in enumerate(said, 1):
            report = memory.take_turn(name, turn)
            unfinished = len(memory.settle()) if number == len(said) else 0
            before, dropped = dropped, sum(n for what, n in memory.incidents.items() if what.startswith(_DROPPED))
            done = report.is_compacted, dropped - before, unfinished
            yield name, number, report.waited_seconds, report.tokens_before, *done
        incidents.update(memory.incidents)


def _waited(rows: pl.DataFrame) -> Iterator[tuple[str, float]]:
    waited, context_tokens = rows["waited_seconds"].to_numpy(), rows["context_tokens"].to_numpy()
    yield "mean", float(waited.mean())
    yield from ((f"p{q}", float(np.percentile(waited, q))) for q in _PERCENTILES)
    yield "max", float(waited.max())
    yield "share", float((waited > 0).mean())
    yield "context_tokens", float(context_tokens.max())
    counts = {"compacted": "is_compacted", "dropped": "dropped", "unfinished": "unfinished"}
    yield from ((name, float(rows[column].sum())) for name, column in counts.items())
