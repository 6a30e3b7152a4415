"""What of the evidence a context under a budget still holds, one value a judged query and budget.

Of the relevant messages of a query, the share that stands in the context assembled for it:

- `verbatim@B`: as the message itself, or within a recalled document that holds all of its words in a row, under a
  budget of B tokens;
- `summarised@B`: in the words of a summary or document that covers it: the ROUGE-L recall of the message in it is at
  least `rouge_threshold` (words in order; of single words a summary of anything has half);
- `reachable@B`: in neither, but expanding a summary of the context leads to it;
- `retained@B`: the sum of the three. What is missing was left out of the context, and only search finds it.
- `expansions@B`: how many summaries must be expanded, one below the other, to reach such a message from the context;
  `expansion_tokens@B`: what they then show, in tokens as stored. Means over the query's messages under a summary of the
  context; a query without one has no value.
- `context_tokens@B`: what the whole context costs, by the assembly's own estimator.

A context is that of the conversation that the query names, or of the one ingested last of those among which it was
asked: not of a distractor, nor of one that was pooled with them.
"""

import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import polars as pl
from rapidfuzz.distance import LCSseq

from eval.dataset.dataset import Dataset
from eval.measures.measure import QUERY_VALUES_SCHEMA, Measure, MemoryReading, SystemReading
from eval.measures.memory import rouge_words
from eval.measures.names import CONTEXT_COSTS, CONTEXT_MEASURES, Direction, kind_of
from lcm.checks import check_range
from lcm.memory.memory import Memory
from lcm.memory.system import System
from lcm.protocols.context import ContextRequest, MayLack
from lcm.records.context import Context, ContextItem
from lcm.records.query import Query
from lcm.transcript.passages import utterance

How = Literal["verbatim", "summarised", "reachable"]


@dataclass(frozen=True, slots=True)
class Retention(Measure):
    """Measures how much of the evidence a context still holds, at each of `budgets`."""

    subject = "answers"

    budgets: Sequence[int] = (1000, 2000, 4000, 8000, 16000, 32000)
    """Tokens; empty: nothing is assembled."""
    rouge_threshold: float = 0.5

    def __post_init__(self) -> None:
        check_range(self, "budgets", ge=1)
        check_range(self, "rouge_threshold", gt=0, le=1)

    @property
    def context_budgets(self) -> Sequence[int]:
        return self.budgets

    def value_names(self) -> list[str]:
        return [f"{name}@{budget}" for budget in self.budgets for name in CONTEXT_MEASURES]

    def direction(self, value: str) -> Direction:
        return "lower" if kind_of(value) in CONTEXT_COSTS else "higher"

    def depends_on(self, system: System) -> list[object]:
        """How contexts are assembled, and what is recalled into them."""
        return [system.assembly, *([system.ranking] if system.assembly.shows_documents else [])]

    def rows(self, reading: MemoryReading) -> pl.DataFrame:
        """Queries without evidence are passed over."""
        judged = [query for query in reading.queries if reading.evidence.get(query.query_id)]
        rows = [
            (query.query_id, f"{name}@{budget}", value)
            for query, budget, held in self.contexts(replace(reading, queries=judged))
            for name, value in held.shares(reading.evidence[query.query_id]).items()
        ]
        return pl.DataFrame(rows, schema=QUERY_VALUES_SCHEMA, orient="row")

    def notes(self, rows: pl.DataFrame, reading: SystemReading) -> tuple[str, ...]:
        """The fresh tail is always shown, whatever it costs."""
        costs = rows.filter(pl.col("measure").str.starts_with("context_tokens@")).with_columns(
            budget=pl.col("measure").str.split("@").list.last().cast(pl.Int64)
        )
        over = costs.filter(pl.col("value") > pl.col("budget")).group_by("budget", maintain_order=True).len()
        if over.is_empty():
            return ()
        told = ", ".join(f"{n} of {costs.filter(budget=budget).height} at {budget}" for budget, n in over.iter_rows())
        note = f"contexts that cost more than the budget of tokens: {told}; so does what they always show, as their "
        return (f"{note}fresh tail (assembly.fresh_tail_* or assembly.tail.*)",)

    def contexts(self, reading: MemoryReading) -> Iterator[tuple[Query, int, "HeldContext"]]:
        """The contexts of all queries of a reading, one for each budget."""
        memory, assembly = reading.memory, reading.memory.system.assembly
        is_own = assembly.reads_prompts or assembly.shows_documents
        recalled = memory.recalled(reading.ranked) if self.budgets and assembly.shows_documents else {}
        for conversation_id, queries in _by_conversation(memory, reading.queries, reading.dataset).items():
            asks = {
                (query.query_id, budget): ContextRequest(
                    budget, query.text if is_own else "", recalled.get(query.query_id, ()), query.asked_at
                )
                for query in (queries if is_own else queries[:1])  # else one context does for all
                for budget in self.budgets
            }
            if isinstance(assembly, MayLack):
                asks = {place: ask for place, ask in asks.items() if not assembly.lacks(ask)}
            lineage = _Lineage(memory, conversation_id, self.rouge_threshold)
            contexts = memory.assemble(conversation_id, list(asks.values()))
            held = {place: HeldContext(context, lineage) for place, context in zip(asks, contexts, strict=True)}
            for query in queries:
                for budget in self.budgets:
                    place = ((query if is_own else queries[0]).query_id, budget)
                    if place in held:
                        yield query, budget, held[place]


class Standing(NamedTuple):
    """How a message stands in a context."""

    how: How | None
    """As the measures have it; None: it does not."""
    path: tuple[str, ...] = ()
    """The summaries that were made of it, one of the next, up to the one that stands there; else all of them."""
    documents: tuple[str, ...] = ()
    """The documents there that stand for it."""


class _Lineage:
    """Which summaries stand above each message of a conversation, and whose words they keep."""

    def __init__(self, memory: Memory, conversation_id: str, rouge_threshold: float) -> None:
        self.conversation_id = conversation_id
        self._store, self._threshold = memory.store, rouge_threshold
        edges = memory.store.edges(conversation_id)
        self.above: dict[str, str] = dict(zip(edges["source_id"], edges["summary_id"], strict=True))
        """A message or summary -> the summary that was made of it."""
        self.expanded_tokens: dict[str, int] = dict(
            edges.group_by("summary_id").agg(pl.col("tokens").sum()).iter_rows()
        )
        """A summary -> the tokens that expanding it shows."""
        self._contents: dict[str, str] = {}
        self._covered: dict[tuple[str, str], bool] = {}

    def content(self, message_id: str) -> str:
        """What a message says: its words, or the calls that it makes."""
        if message_id not in self._contents:
            self._contents[message_id] = utterance(self._store.messages_by_id([message_id])[message_id])
        return self._contents[message_id]

    def covers(self, item_id: str, message_id: str, text: str | None = None) -> bool:
        """Whether the words of a summary or document keep enough of a message's.

        Args:
            text: the words; None = those of the summary, as stored.
        """
        key = (message_id, item_id)
        if key not in self._covered:
            kept = self._store.summaries_by_id([item_id])[item_id].content if text is None else text
            said = rouge_words(self.content(message_id))  # ROUGE-L recall: words in order
            share = LCSseq.similarity(said, rouge_words(kept)) / len(said) if said else 0.0
            self._covered[key] = share >= self._threshold
        return self._covered[key]


class HeldContext:
    """A context, and how the messages of its conversation stand in it."""

    def __init__(self, context: Context, lineage: _Lineage) -> None:
        self.context, self._lineage = context, lineage
        self._items = {item.item_id for item in context.items if item.text}  # without words: nothing of it is shown
        self._documents: dict[str, list[ContextItem]] = {}
        for item in context.items:
            for source in item.source_message_ids:
                self._documents.setdefault(source, []).append(item)

    @property
    def conversation_id(self) -> str:
        return self._lineage.conversation_id

    def standing(self, message_id: str) -> Standing:
        """How a message stands there."""
        if message_id in self._items:
            return Standing("verbatim")
        if shown := self._documents.get(message_id):
            return Standing(self._in_documents(message_id, shown), documents=tuple(one.item_id for one in shown))
        path = self._path(message_id)
        if not path or path[-1] not in self._items:
            return Standing(None, path)
        return Standing("summarised" if self._lineage.covers(path[-1], message_id) else "reachable", path)

    def shares(self, evidence: Sequence[str]) -> dict[str, float]:
        """The measures of a query, without the budget in their names."""
        standings = [self.standing(message_id) for message_id in evidence]
        values = {how: sum(one.how == how for one in standings) / len(evidence) for how in How.__args__}  # type: ignore[attr-defined]
        values["retained"] = sum(one.how is not None for one in standings) / len(evidence)
        values["context_tokens"] = float(self.context.tokens)
        if paths := [one.path for one in standings if one.how is not None and one.path]:
            shown = [sum(self._lineage.expanded_tokens[summary_id] for summary_id in path) for path in paths]
            values["expansions"] = sum(map(len, paths)) / len(paths)
            values["expansion_tokens"] = sum(shown) / len(paths)
        return values

    def _path(self, message_id: str) -> tuple[str, ...]:
        """The summaries from the message up to one that stands there, where one does; else all of them."""
        path, at = [], message_id
        while (upper := self._lineage.above.get(at)) is not None:
            path.append(upper)
            if upper in self._items:
                break
            at = upper
        return tuple(path)

    def _in_documents(self, message_id: str, documents: Sequence[ContextItem]) -> How:
        """How the best of the documents that stand for a message holds it."""
        content = _plain(self._lineage.content(message_id))
        if content and any(content in _plain(document.text) for document in documents):
            return "verbatim"
        is_covered = any(self._lineage.covers(document.item_id, message_id, document.text) for document in documents)
        return "summarised" if is_covered else "reachable"


def _plain(text: str) -> str:
    """Without escapes and breaks, which a context puts in."""
    return " ".join(html.unescape(text).split())


def _by_conversation(memory: Memory, queries: Sequence[Query], dataset: Dataset) -> dict[str, list[Query]]:
    if not queries:
        return {}
    stored = memory.store.conversations().sort("last_at", maintain_order=True)["conversation_id"].to_list()
    known, layout = set(stored), dataset.layout
    # By where a query comes from: nothing else was said around it, whatever lies beside it now.
    last: dict[str, str | None] = {}
    found: dict[str, list[Query]] = {}
    for query in queries:
        origin = dataset.origin(query)
        if origin not in last:
            own = known if layout is None else set(layout.conversations[origin])
            last[origin] = next((one for one in reversed(stored) if one in own), None)
        conversation_id = query.conversation_id if query.conversation_id in known else last[origin]
        if conversation_id is not None:
            found.setdefault(conversation_id, []).append(query)
    return found
