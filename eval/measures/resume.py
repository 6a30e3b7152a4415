"""What an agent spends to have at hand what its next turns need, with compaction and assembly as configured.

The probes lie in the transcript itself: facts that an assistant's message mentions again, word for word as they were
stated before (`lcm.compaction.facts`), and that nobody has told it within the same turn. A conversation is taken in
turn by turn, alone, and compacted by force `tasks` times on the way; what lies between two of these is a task. Before
each turn, under each budget, a probe is

- at hand, if the context holds the fact, or something that was read in the same task does;
- recalled, by the cheaper of two ways: expanding summaries of the context down to the message, or searching, first by
  what the fact is about, then by the words around its mention, then by each of these alone, and reading what was found;
- lost, if neither leads there.

`at_hand`, `recalled` and `lost` are shares of the probes, `rounds` the calls of recall tools a probe, `recall_tokens`
what they show a probe, `context_tokens` the mean context, and `task_tokens` what a task costs in all: its contexts, one
a turn, and its recall. Beside the system stand `last_n`, the newest messages without recall, and `whole_history`.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import polars as pl

from eval.dataset.dataset import Dataset
from eval.measures.means import Entry, Means
from eval.measures.measure import Measure, SystemReading
from eval.measures.names import SYSTEM_ARM
from eval.measures.recall_ways import DEFAULT_RECALL, RecallWays
from eval.measures.session_play import SessionStop, played
from eval.measures.shown_facts import last_messages, shown_by
from lcm.checks import check_range
from lcm.compaction.facts.finding import statements_of
from lcm.compaction.facts.ledger import Fact, Shown, cue_of, holds_words
from lcm.compaction.facts.reading import content_words, folded, is_result, read_message
from lcm.memory.system import System
from lcm.records.conversation import Transcript
from lcm.records.summary import Summary
from lcm.transcript.passages import utterance

RESUME_SCHEMA: dict[str, pl.DataType] = {
    "arm": pl.String(),
    "budget": pl.Int64(),
    "conversation_id": pl.String(),
    "measure": pl.String(),
    "value": pl.Float64(),
}
"""`budget` is null where there is none."""
LAST_N, WHOLE_HISTORY = "last_n", "whole_history"
_KEY_WORDS = 4


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


@dataclass(frozen=True, slots=True)
class Resume(Measure):
    """Counts the rounds and tokens that bring back what the next turns need, under each of `budgets`."""

    subject = "system"
    plays_sessions = True

    budgets: Sequence[int] = (2000, 8000, 32000)
    """Tokens of a context."""
    tasks: int = 5
    """Parts of a conversation, of equal numbers of turns; before each but the first, compaction is forced."""

    def __post_init__(self) -> None:
        check_range(self, "budgets", ge=1)
        check_range(self, "tasks", ge=1, is_whole=True)

    def is_measured(self, system: System, dataset: Dataset) -> bool:
        return bool(self.budgets)

    def rows(self, reading: SystemReading) -> pl.DataFrame:
        """Take in every conversation: rows of `RESUME_SCHEMA`; one that mentions nothing again has none."""
        rows = []
        for transcript in reading.dataset.transcripts:
            for (arm, budget), values in self._of(reading.system, transcript, reading.incidents).items():
                rows += [(arm, budget, transcript.conversation_id, name, value) for name, value in values.items()]
        return pl.DataFrame(rows, schema=RESUME_SCHEMA, orient="row")

    def section(self, rows: pl.DataFrame, means: Means) -> dict[str, dict[str, Entry]]:
        """Means over conversations: `arm@budget` -> measure -> entry."""
        named = pl.when(pl.col("budget").is_null()).then("arm").otherwise(pl.format("{}@{}", "arm", "budget"))
        return means.of_conversations(rows.with_columns(arm=named))

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
        items = stop.memory.store.context_records(stop.conversation_id)
        summaries = {one.summary_id for one in items if isinstance(one, Summary)}
        ways = RecallWays(stop.memory, stop.conversation_id, DEFAULT_RECALL, {one.message_id: one for one in stop.said})
        for budget, context in zip(self.budgets, stop.contexts(self.budgets), strict=True):
            words = shown_by(context, items)
            shown = Shown(stop.ledger, words.message_ids, words.texts)
            standing = summaries & {item.item_id for item in context.items}
            _serve(spent[SYSTEM_ARM, budget], probes, shown, words.tokens, ways, standing)
            words = last_messages(stop.said, budget)
            shown = Shown(stop.ledger, words.message_ids, words.texts)
            _serve(spent[LAST_N, budget], probes, shown, words.tokens)
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


def _serve(
    spent: _Spent,
    probes: Sequence[Probe],
    shown: Shown,
    context_tokens: int,
    ways: RecallWays | None = None,
    summaries: Collection[str] = (),
) -> None:
    """Have each probe's fact at hand, and count what that takes; without ways back what is not shown is lost."""
    spent.turns += 1
    spent.context_tokens += context_tokens
    for fact, cues in probes:
        if shown.standing(fact) == "retained" or not spent.read.isdisjoint(fact.message_ids):
            spent.found["at_hand"] += 1
            continue
        way = None if ways is None else ways.best(fact.message_ids, cues, summaries)
        if way is None:
            spent.found["lost"] += 1
            continue
        spent.found["recalled"] += 1
        spent.rounds += way.steps
        spent.recall_tokens += way.tokens
        spent.read.update(way.message_ids)
