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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import polars as pl

from eval.dataset.dataset import Dataset
from eval.measures.measure import QUERY_VALUES_SCHEMA, Direction, Measure, MemoryReading, SystemReading
from eval.measures.memory import rouge
from eval.measures.names import CONTEXT_COSTS, CONTEXT_MEASURES, kind_of
from lcm.checks import check_range
from lcm.memory.memory import Memory
from lcm.memory.system import System
from lcm.protocols.context import ContextRequest, MayLack
from lcm.records.context import Context, ContextItem
from lcm.records.query import Query, Recalled
from lcm.transcript.passages import utterance


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
        memory, evidence = reading.memory, reading.evidence
        judged = [query for query in reading.queries if evidence.get(query.query_id)]
        recalled: Mapping[str, Sequence[Recalled]] = {}
        if self.budgets and memory.system.assembly.shows_documents:
            recalled = memory.recalled(reading.ranked)
        rows = [
            (query.query_id, f"{name}@{budget}", value)
            for query, budget, context, lineage in self._contexts(memory, judged, reading.dataset, recalled)
            for name, value in lineage.shares(context, evidence[query.query_id]).items()
        ]
        return pl.DataFrame(rows, schema=QUERY_VALUES_SCHEMA, orient="row")

    def contexts(self, reading: MemoryReading) -> Iterator[tuple[Query, Context, "Lineage"]]:
        """The contexts of all queries of a reading, one for each budget, and what stands above their messages."""
        memory = reading.memory
        shows = memory.system.assembly.shows_documents
        recalled = memory.recalled(reading.ranked) if self.budgets and shows else {}
        for query, _, context, lineage in self._contexts(memory, reading.queries, reading.dataset, recalled):
            yield query, context, lineage

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

    def _contexts(
        self, memory: Memory, queries: Sequence[Query], dataset: Dataset, recalled: Mapping[str, Sequence[Recalled]]
    ) -> Iterator[tuple[Query, int, Context, "Lineage"]]:
        for conversation_id, asked in _by_conversation(memory, queries, dataset).items():
            yield from self._conversation(memory, conversation_id, asked, recalled)

    def _conversation(
        self,
        memory: Memory,
        conversation_id: str,
        queries: Sequence[Query],
        recalled: Mapping[str, Sequence[Recalled]],
    ) -> Iterator[tuple[Query, int, Context, "Lineage"]]:
        assembly = memory.system.assembly
        is_own = assembly.reads_prompts or assembly.shows_documents
        lineage = Lineage(memory, conversation_id, self.rouge_threshold)
        asks = {
            (query.query_id, budget): ContextRequest(
                budget, query.text if is_own else "", recalled.get(query.query_id, ()), query.asked_at
            )
            for query in (queries if is_own else queries[:1])  # else one context does for all
            for budget in self.budgets
        }
        if isinstance(assembly, MayLack):
            asks = {place: ask for place, ask in asks.items() if not assembly.lacks(ask)}
        contexts = dict(zip(asks, memory.assemble(conversation_id, list(asks.values())), strict=True))
        for query in queries:
            for budget in self.budgets:
                place = ((query if is_own else queries[0]).query_id, budget)
                if place in contexts:
                    yield query, budget, contexts[place], lineage


class Standing(NamedTuple):
    """How a message stands in a context."""

    how: Literal["verbatim", "summarised", "reachable"] | None
    """As the measures have it; None: it does not."""
    path: tuple[str, ...] = ()
    """The summaries that were made of it, one of the next, up to the one that stands there; else all of them."""
    documents: tuple[str, ...] = ()
    """The documents there that stand for it."""


@dataclass(slots=True)
class Lineage:
    """Which summaries stand above each message, and whose words they keep."""

    memory: Memory
    conversation_id: str
    rouge_threshold: float
    above: dict[str, str] = field(default_factory=dict)
    """A message or summary -> the summary that was made of it."""
    expanded_tokens: dict[str, int] = field(default_factory=dict)
    """A summary -> the tokens that expanding it shows."""
    covered: dict[tuple[str, str], bool] = field(default_factory=dict)
    contents: dict[str, str] = field(default_factory=dict)
    """A message -> what it says: its words, or the calls that it makes."""

    def __post_init__(self) -> None:
        edges = self.memory.store.edges(self.conversation_id)
        self.above = dict(zip(edges["source_id"], edges["summary_id"], strict=True))
        self.expanded_tokens = dict(edges.group_by("summary_id").agg(pl.col("tokens").sum()).iter_rows())

    def shares(self, context: Context, evidence: Sequence[str]) -> dict[str, float]:
        found = {"verbatim": 0, "summarised": 0, "reachable": 0}
        expansions, tokens = [], []
        for standing in self.standings(context, evidence):
            if standing.how is not None:
                found[standing.how] += 1
                if standing.path:
                    expansions.append(len(standing.path))
                    tokens.append(sum(self.expanded_tokens[summary_id] for summary_id in standing.path))
        values = {name: count / len(evidence) for name, count in found.items()}
        values |= {"retained": sum(found.values()) / len(evidence), "context_tokens": float(context.tokens)}
        if expansions:
            values["expansions"] = sum(expansions) / len(expansions)
            values["expansion_tokens"] = sum(tokens) / len(tokens)
        return values

    def standings(self, context: Context, message_ids: Sequence[str]) -> Iterator[Standing]:
        """How each of these messages stands in a context."""
        items = {item.item_id for item in context.items if item.text}  # without words: nothing of it is shown
        documents: dict[str, list[ContextItem]] = {}
        for item in context.items:
            for source in item.source_message_ids:
                documents.setdefault(source, []).append(item)
        for message_id in message_ids:
            path = self._path(message_id, items)
            if message_id in items:
                yield Standing("verbatim")
            elif shown := documents.get(message_id):
                named = tuple(document.item_id for document in shown)
                yield Standing(self._in_documents(message_id, shown), documents=named)
            elif path and path[-1] in items:
                is_covered = self._is_covered(message_id, path[-1])
                yield Standing("summarised" if is_covered else "reachable", tuple(path))
            else:
                yield Standing(None, tuple(path))

    def _path(self, message_id: str, items: set[str]) -> list[str]:
        """The summaries from the message up to one that stands in the context, where one does; else all of them."""
        path, at = [], message_id
        while (upper := self.above.get(at)) is not None:
            path.append(upper)
            if upper in items:
                break
            at = upper
        return path

    def _in_documents(
        self, message_id: str, documents: Sequence[ContextItem]
    ) -> Literal["verbatim", "summarised", "reachable"]:
        """How the best of the documents that stand for a message holds it."""
        content = _plain(self._content(message_id))
        if content and any(content in _plain(document.text) for document in documents):
            return "verbatim"
        is_covered = any(self._covers(message_id, document.item_id, document.text) for document in documents)
        return "summarised" if is_covered else "reachable"

    def _is_covered(self, message_id: str, summary_id: str) -> bool:
        if (message_id, summary_id) in self.covered:
            return self.covered[message_id, summary_id]
        words = self.memory.store.summaries_by_id([summary_id])[summary_id].content
        return self._covers(message_id, summary_id, words)

    def _covers(self, message_id: str, item_id: str, words: str) -> bool:
        """Whether the words of a summary or document keep enough of a message's."""
        key = (message_id, item_id)
        if key not in self.covered:
            content = self._content(message_id)
            self.covered[key] = rouge([words], [[content]])["rougeL_recall"][0] >= self.rouge_threshold
        return self.covered[key]

    def _content(self, message_id: str) -> str:
        if message_id not in self.contents:
            self.contents[message_id] = utterance(self.memory.store.messages_by_id([message_id])[message_id])
        return self.contents[message_id]


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
