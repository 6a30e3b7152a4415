"""A ranking that a page shows beside others, of a run's system or of one of its control arms; recall by how far one
reads in it; and what lies behind it: where evidence was lost, what contexts held, how talk was folded.

For that the memories of the run are asked again, as they stood when questions were asked. It takes about as long as the
ranking did; what the stage cache holds is not made again.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple

import polars as pl

from eval.experiment.outcome import ALIGNED
from eval.experiment.workspace import WorkspaceEvaluator
from eval.ladder.explanation import best_documents, found_by, ladders
from eval.ladder.losses import FOUND, LATE, NO_MISS, Asked, Traced, asked_again, judged_messages, said_messages
from eval.measures.measure import MemoryReading
from eval.measures.names import ANSWER_HEADLINE, RANKING_MEASURES, SYSTEM_ARM, kind_of
from eval.measures.retention import Retention
from eval.run import Run
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


_USUAL = ("recall@10", "nDCG@10", "MRR", "recall_all@10", "recall@2000t", "tokens@10")
_MOST = 8
_OF_CONTEXTS = "retained"
_NO_GUIDE = ("oracle", "random", "last_n", "whole_history")
"""Arms that bound what is possible, and from whose rankings nothing is learnt."""


@dataclass(frozen=True, slots=True)
class ShownRanking:
    """What one system answered to every question, and what that is worth."""

    name: str
    values: pl.DataFrame
    """query_id, measure, value."""
    ranking: pl.DataFrame
    """query_id, workspace_id, document_id, rank, score, source_message_ids, twin_message_ids, tokens; empty where the
    rankings are not at hand. Twins are the near duplicates that a document stands for."""
    directions: Mapping[str, str] = field(default_factory=dict)
    """Measure -> `higher` or `lower`."""
    insight: Insight | None = None
    """What lies behind the ranking, where its memories were asked again."""

    def judged(self, queries: pl.DataFrame) -> pl.DataFrame:
        """Those of some queries that have a value of a ranking: what an external memory left unanswered, or answered
        with what nobody can judge, has none. All of them, where no ranking was measured."""
        names = self.values["measure"].unique().to_list()
        of_rankings = [name for name in names if kind_of(name) in RANKING_MEASURES]
        if not of_rankings and ALIGNED not in names:
            return queries
        valued = self.values.filter(pl.col("measure").is_in(of_rankings))
        return queries.join(valued, on="query_id", how="semi", maintain_order="left")


def columns_of_run(run: Run, insight: Insight | None = None, *, with_arms: bool = True) -> list[ShownRanking]:
    """The system of a run, under the run's name, and the control arms that another ranking can be learnt from."""
    read = run.arms if with_arms else run.frame
    values = _shown(read("per_query", ["arm", "query_id", "measure", "value"])).filter(pl.col("value").is_finite())
    ranked = _ranked(run, with_arms)
    arms = [arm for arm in values["arm"].unique(maintain_order=True) if arm != SYSTEM_ARM]
    return [
        ShownRanking(
            run.name if arm == SYSTEM_ARM else arm,
            values.filter(arm=arm).select("query_id", "measure", "value"),
            ranked.filter(arm=arm).drop("arm"),
            run.directions,
            insight if arm == SYSTEM_ARM else None,
        )
        for arm in (SYSTEM_ARM, *(arms if with_arms else ()))
    ]


def _shown(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows of the arms that a page shows."""
    return rows.filter(~pl.col("arm").is_in(_NO_GUIDE))


def shown_measures(columns: Sequence[ShownRanking]) -> list[str]:
    """The measures that questions are sorted by: those of every table, as far as they were measured, what answers are
    worth, and what contexts retain; those of sessions, where only sessions are judged."""
    known = list(dict.fromkeys(name for column in columns for name in column.values["measure"].unique()))
    usual = [next((name for name in (one, f"session.{one}") if name in known), None) for one in _USUAL]
    contexts = sorted((name for name in known if kind_of(name) == _OF_CONTEXTS), key=_budget)
    answers = [name for name in ANSWER_HEADLINE if name in known]
    return [name for name in (*usual, *answers, *contexts) if name is not None][:_MOST] or sorted(known)[:_MOST]


def queries_of(run: Run) -> pl.DataFrame:
    """The questions of a run: query_id, workspace_id, conversation_id, category, text, asked_at, evidence."""
    wanted = ["query_id", "workspace_id", "category", "text", "evidence"]
    table = run.frame("queries", wanted, ["conversation_id", "asked_at"])
    return _filled(table, {"conversation_id": pl.String(), "asked_at": pl.String()})


def _filled(table: pl.DataFrame, schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """With a column of nulls for each that it lacks."""
    return table.with_columns(
        pl.lit(None, dtype=kind).alias(name) for name, kind in schema.items() if name not in table.columns
    )


_RANKING_SCHEMA: dict[str, pl.DataType] = {
    "arm": pl.String(),
    "workspace_id": pl.String(),
    "query_id": pl.String(),
    "document_id": pl.String(),
    "rank": pl.Int64(),
    "score": pl.Float64(),
    "source_message_ids": pl.List(pl.String()),
    "twin_message_ids": pl.List(pl.String()),
    "tokens": pl.Int64(),
}


def _ranked(run: Run, with_arms: bool) -> pl.DataFrame:
    """Rows of `_RANKING_SCHEMA`; none where the folder does not hold the rankings."""
    if not all((run.folder / name).is_file() for name in ("run.parquet", "documents.parquet")):
        return pl.DataFrame(schema=_RANKING_SCHEMA)
    columns = ["arm", "workspace_id", "query_id", "document_id", "rank", "score"]
    ranked = _shown((run.arms if with_arms else run.frame)("run", columns, ["stands_for"]))
    documents = run.frame("documents", ["workspace_id", "document_id", "source_message_ids"], ["tokens"])
    joined = ranked.join(documents, on=["workspace_id", "document_id"], how="left", maintain_order="left")
    if "stands_for" in ranked.columns:
        twins = _twins(ranked, documents)
        joined = joined.join(twins, on=["arm", "query_id", "document_id"], how="left", maintain_order="left")
    return _filled(joined, _RANKING_SCHEMA).select(list(_RANKING_SCHEMA))


def _twins(run: pl.DataFrame, documents: pl.DataFrame) -> pl.DataFrame:
    """The messages of the near duplicates that a document stands for."""
    return (
        run.filter(pl.col("stands_for").list.len() > 0)
        .explode("stands_for")
        .join(documents, left_on=["workspace_id", "stands_for"], right_on=["workspace_id", "document_id"])
        .group_by("arm", "query_id", "document_id")
        .agg(twin_message_ids=pl.col("source_message_ids").explode())
    )


def _budget(measure: str) -> float:
    budget = measure.partition("@")[2]
    return float(budget) if budget.isdigit() else float("inf")


_RANKS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 40)
_TOKENS = (250, 500, 1000, 2000, 4000, 8000, 16000)

Curves = dict[str, list[tuple[float, float]]]
"""Name -> points: how far one reads, mean recall."""


def rank_curves(columns: Sequence[ShownRanking], queries: pl.DataFrame) -> Curves:
    """Of each ranking the mean share of a question's evidence within so many ranks, over the questions of which it has
    a value; empty where none is at hand.

    Args:
        queries: with their evidence; those without are passed over.
    """
    return _curves(columns, queries, "rank", _RANKS)


def token_curves(columns: Sequence[ShownRanking], queries: pl.DataFrame) -> Curves:
    """The same by the tokens of documents that are read whole, in order."""
    return _curves([column for column in columns if column.ranking["tokens"].count()], queries, "read", _TOKENS)


def _curves(columns: Sequence[ShownRanking], queries: pl.DataFrame, far: str, steps: Sequence[int]) -> Curves:
    found: Curves = {}
    for column in columns:
        asked = column.judged(queries).select("query_id", message_id="evidence")
        evidence = asked.explode("message_id").drop_nulls().unique()
        of_query = evidence.group_by("query_id").agg(n=pl.len())
        if column.ranking.is_empty() or of_query.is_empty():
            continue
        ranking = column.ranking.sort("query_id", "rank").with_columns(read=pl.col("tokens").cum_sum().over("query_id"))
        held = pl.concat_list(pl.col(name).fill_null([]) for name in ("source_message_ids", "twin_message_ids"))
        reached = (
            ranking.select("query_id", far, message_id=held)
            .explode("message_id")
            .join(evidence, on=["query_id", "message_id"])
            .group_by("query_id", "message_id")
            .agg(far=pl.col(far).min())
            .join(of_query, on="query_id")
            .with_columns(share=1 / pl.col("n"))
        )
        last = int(ranking[far].max() or 0)  # type: ignore[arg-type]
        shown = [step for step in steps if step <= last] or [steps[0]]
        totals = [float(reached.filter(pl.col("far") <= step)["share"].sum()) for step in shown]
        found[column.name] = [(step, total / len(of_query)) for step, total in zip(shown, totals, strict=True)]
    return found
