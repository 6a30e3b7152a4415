"""What lies behind the rankings of one run: where evidence was lost, what contexts held, how talk was folded.

The memories of the run are asked again, as they stood when questions were asked. It takes about as long as the ranking
did; what the stage cache holds is not made again.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple

import polars as pl

from eval.experiment.workspace import WorkspaceEvaluator
from eval.ladder.explanation import best_documents, found_by, ladders
from eval.ladder.losses import FOUND, LATE, NO_MISS, Asked, Traced, asked_again, judged_messages, said_messages
from eval.measures.measure import MemoryReading
from eval.measures.retention import Retention
from lcm.memory.memory import Memory
from lcm.records.context import Context
from lcm.records.query import Query
from lcm.records.summary import Summary
from lcm.retrieval.ranking.pipeline import RANKED_SCHEMA

ABSENT = "absent"
"""Of a message that a context does not hold in any way."""


class StoredDocument(NamedTuple):
    """A document as a memory holds it, which need not be what was said, or when."""

    text: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Rung:
    """One step of a ladder: what a stage did with the best document of a message."""

    stage: str
    rank: int | None
    score: float | None
    told: str
    reason: str = ""
    """Why, as far as the stage tells."""


@dataclass(frozen=True, slots=True)
class MessageLadder:
    """How a ranking treated one judged message."""

    message_id: str
    place: str
    """As in `eval.ladder.losses`."""
    rungs: tuple[Rung, ...]
    document_id: str | None = None
    """The one whose steps these are; None where the memory has none."""

    @property
    def lost_at(self) -> str | None:
        return None if self.place in (FOUND, *NO_MISS) else self.place


@dataclass(frozen=True, slots=True)
class ShownContext:
    """A context of a query, and how it holds the query's evidence."""

    conversation_id: str
    context: Context
    states: tuple[str, ...]
    """`verbatim`, `summarised`, `reachable`, or `ABSENT`: as `eval.measures.retention` has them."""


@dataclass(frozen=True, slots=True)
class FoldedConversation:
    """A conversation as its memory holds it: its summaries, and what stands in its context now."""

    conversation_id: str
    workspace_id: str
    summaries: tuple[Summary, ...]
    entries: tuple[tuple[str, str, int], ...]
    """`message` or `summary`, id, tokens: in order."""


@dataclass(slots=True)
class Insight:
    """All of it, of one run."""

    places: pl.DataFrame
    """query_id, category, message_id, place: every judged message once."""
    ladders: dict[str, list[MessageLadder]] = field(default_factory=dict)
    """Query id -> its judged messages."""
    contexts: dict[str, list[ShownContext]] = field(default_factory=dict)
    """Query id -> one a budget."""
    folded: dict[tuple[str, str], FoldedConversation] = field(default_factory=dict)
    """By workspace and conversation, as it was when it was last asked about."""

    documents: dict[tuple[str, str], StoredDocument] = field(default_factory=dict)
    """By workspace and document, as they were when the last question was asked."""

    def lost(self, query_id: str) -> str | None:
        """The stage that lost most of a query's evidence; None where nothing was lost, or nobody judged it."""
        found = Counter(one.lost_at for one in self.ladders.get(query_id, ()) if one.lost_at is not None)
        return max(sorted(found), key=lambda place: found[place]) if found else None

    def losses(self) -> dict[str, int]:
        """Place -> how many judged messages; `found` and `late` first, then what lost most."""
        counts = Counter(self.places["place"].to_list())
        first = {name: counts.pop(name) for name in (FOUND, LATE) if name in counts}
        return first | dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


_BUDGETS = (2000, 8000)
"""Tokens of the contexts that are shown, unless the run measures others."""
_MOST_BUDGETS = 3


def insight_of(
    evaluator: WorkspaceEvaluator, progress: Callable[[int], None], look: Callable[[Traced], None] = lambda _: None
) -> Insight:
    """Ask the memories of a run again.

    Args:
        progress: told how many queries were looked at.
        look: told of everything that is asked beside a judged query.
    """
    dataset = evaluator.dataset
    judged = judged_messages(dataset)
    found = Insight(pl.DataFrame())
    places = []
    for workspace in dataset.workspaces:
        here = judged.filter(workspace_id=workspace)
        said = said_messages(dataset, workspace)
        for asked in asked_again(evaluator, workspace):
            is_judged = not {query.query_id for query in asked.queries}.isdisjoint(here["query_id"])
            for traced in asked.traced() if is_judged else ():
                places.append(traced.places(here, said))
                look(traced)
                for query_id, ladder in _ladders(traced, here, places[-1]):
                    found.ladders.setdefault(query_id, []).append(ladder)
            for query, shown in _contexts(asked, evaluator):
                found.contexts.setdefault(query.query_id, []).append(shown)
            for one in _folded(asked.memory, workspace):  # that of the last question stays
                found.folded[workspace, one.conversation_id] = one
            found.documents |= _stored(asked.memory, workspace)
            progress(len(asked.queries))
    empty = pl.DataFrame(schema={"query_id": pl.String(), "message_id": pl.String(), "place": pl.String()})
    told = pl.concat([empty, *(part.select(empty.columns) for part in places)])
    found.places = judged.join(told, on=["query_id", "message_id"], how="inner", maintain_order="left")
    return found


def _ladders(traced: Traced, judged: pl.DataFrame, places: pl.DataFrame) -> Iterator[tuple[str, MessageLadder]]:
    """Of each judged message the steps of the document that tells what became of it."""
    covers = traced.covered(judged)
    wanted = covers.select("query_id", "document_id").unique(maintain_order=True)
    rows = ladders(traced, wanted)
    best = {(query, message): name for query, message, name in best_documents(rows, covers, places).iter_rows()}
    steps: dict[tuple[str, str], list[dict[str, Any]]] = {}
    branches: dict[tuple[str, str], list[str]] = {}
    found = found_by(traced, wanted).select("query_id", "document_id", "branch", "rank")
    for query_id, document_id, branch, rank in found.iter_rows():
        branches.setdefault((query_id, document_id), []).append(f"{branch} {rank}")
    for row in rows.iter_rows(named=True):
        steps.setdefault((row["query_id"], row["document_id"]), []).append(row)
    for query_id, message_id, place in places.select("query_id", "message_id", "place").iter_rows():
        document_id = best.get((query_id, message_id))
        key = query_id, document_id or ""
        rungs = tuple(_rungs(steps.get(key, ()), branches.get(key, ())))
        yield query_id, MessageLadder(message_id, place, rungs, document_id)


def _rungs(rows: Sequence[Mapping[str, Any]], branches: Sequence[str]) -> Iterator[Rung]:
    for row in rows:
        words = row["event"]
        rank = None if row["score"] is None else row["rank"]  # before the first scores, rows are in no order
        if words in ("rose", "fell"):
            words = f"{words} from {row['rank_before']}"
        if row["event"] == "added" and branches:
            words = f"found by {', '.join(branches)}"
        if row["stood_for_by"]:
            words = f"a near duplicate of {row['stood_for_by']}"
        like = f"like {row['like_id']}" if row["like_id"] and not row["stood_for_by"] else ""
        yield Rung(row["stage"], rank, row["score"], words, "; ".join(filter(None, (row["reason"], like))))


def _contexts(asked: Asked, evaluator: WorkspaceEvaluator) -> Iterator[tuple[Query, ShownContext]]:
    measure = next((one for one in evaluator.measures.values() if isinstance(one, Retention)), Retention())
    budgets = [one for one in _BUDGETS if one in measure.budgets] or measure.budgets[:_MOST_BUDGETS] or _BUDGETS
    memory = asked.memory
    queries = [query for query in asked.queries if evaluator.evidence.get(query.query_id)]
    ranked = pl.DataFrame(schema=RANKED_SCHEMA)
    if queries and memory.system.assembly.shows_documents:
        ranked = memory.rank(queries, asked.ranking)
    reading = MemoryReading(memory, queries, ranked, evaluator.evidence, evaluator.dataset)
    for query, _, held in replace(measure, budgets=budgets).contexts(reading):
        states = tuple(held.standing(one).how or ABSENT for one in evaluator.evidence[query.query_id])
        yield query, ShownContext(held.conversation_id, held.context, states)


def _stored(memory: Memory, workspace: str) -> dict[tuple[str, str], StoredDocument]:
    told = memory.documents.select("document_id", "text", "created_at").iter_rows()
    return {(workspace, document_id): StoredDocument(text, at) for document_id, text, at in told}


def _folded(memory: Memory, workspace: str) -> Iterator[FoldedConversation]:
    """The conversations of a memory that have summaries."""
    for conversation_id in memory.store.conversations()["conversation_id"]:
        summaries = memory.store.summaries(conversation_id)
        if summaries:
            entries = [(one.item_type, one.item_id, one.tokens) for one in memory.store.context(conversation_id)]
            yield FoldedConversation(conversation_id, workspace, tuple(summaries), tuple(entries))
