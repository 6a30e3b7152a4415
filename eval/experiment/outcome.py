"""What an experiment found, as frames: how concentrated answers are, which queries of an external memory have a value,
and how all of it becomes a run."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import polars as pl

from eval.configuration import config_hash
from eval.dataset.dataset import Dataset
from eval.experiment.workspace import WorkspaceResult
from eval.external.ranking import External
from eval.external.reading import HOW
from eval.measures.means import ALL, Entry, entry
from eval.measures.measure import QUERY_VALUES_SCHEMA, REPORT_TOKENS, Measure
from eval.measures.names import CONTEXT_COSTS, CONTEXT_MEASURES, EXTERNAL_MEMORY, HAS_NO_NUMBER, SYSTEM_ARM, Direction
from eval.run import CONTROLS, EMBEDDING, QUERY_SCHEMA, Run, parquet
from lcm.errors import LcmError
from lcm.memory.system import System
from lcm.protocols.models import AnswersInParts
from lcm.records.document import ACTIONS
from lcm.redaction import redacted
from lcm.retrieval.embedder.cache import CachedEmbedder

_LAST_FILES: dict[str, tuple[object, bytes]] = {}
"""Table of the run that was written last -> what it was made of, and its file: points of a sweep share what is asked
and what control arms answer, and coding whole histories as Parquet takes longer than to rank."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The results of an experiment: run, documents, values of measures and their means, as frames."""

    system_run: pl.DataFrame
    """What the system ranked: arm, workspace_id, query_id, document_id, rank (1-based), score, index_tier (the width
    that answered, of an index with several), stands_for (ids of near duplicates that were left out in its favour),
    related (id and score of documents that are shown with it and ranked nowhere)."""
    control_run: pl.DataFrame
    """Likewise what the control arms ranked; one object for points of a sweep that share it, as `control_values`."""
    served: pl.DataFrame
    """Rows of `SERVED_SCHEMA`, the system first: how concentrated the answers of each arm are."""
    documents: pl.DataFrame
    """workspace_id, document_id, source_message_ids, tokens: every document that a run names, or whose
    near duplicate it names."""
    system_values: pl.DataFrame
    """arm, query_id, measure, value: of every measure of queries."""
    control_values: pl.DataFrame
    """Likewise of the control arms."""
    means: pl.DataFrame
    """arm, group, measure, value, n, low, high."""
    confidence: float
    """Of the intervals: percentile bootstrap over queries."""
    frames: Mapping[str, pl.DataFrame]
    """Measure of something else than queries -> its rows."""
    sections: Mapping[str, Mapping[str, Any]]
    """Such a measure -> what the summary tells of it."""
    timing: Mapping[str, Mapping[str, Any]]
    """Measure of time -> what the summary tells of it: two equal runs may differ here."""
    decisions: pl.DataFrame
    """workspace_id beside the store's decisions: what became of every candidate that was judged."""
    counts: Mapping[str, float]
    """workspaces, messages, documents, queries, judged and unjudged queries; of datasets laid into other haystacks also
    the messages that stood when a query was asked, on average; where something compacts, contexts, and how many of them
    were compacted."""
    incidents: Mapping[str, int]
    """What failed and was survived, by name and times."""
    flags: tuple[str, ...]
    """What a reader of the numbers must know."""
    seconds: Mapping[str, float]
    """Wall time by phase."""
    spent: Mapping[str, float] = field(default_factory=dict)
    """Requests, texts, tokens and price of vectors that a server gave, and texts whose vectors were cached: two equal
    runs may differ here."""
    directions: Mapping[str, Direction] = field(default_factory=dict)
    """Measure of queries -> which way it is better; higher where none is told."""

    @property
    def run(self) -> pl.DataFrame:
        """What each arm ranked, the system first."""
        return pl.concat([self.system_run, self.control_run])

    @property
    def values(self) -> pl.DataFrame:
        """The values of each arm, the system's first."""
        return pl.concat([self.system_values, self.control_values])


def write_run(
    folder: Path,
    outcome: Outcome,
    dataset: Dataset,
    resolved: Mapping[str, Any],
    config_text: str,
    seconds: Mapping[str, float],
    asked: Mapping[str, Any] = MappingProxyType({}),
) -> dict[str, Any]:
    """Write a run, and return its summary.

    What may differ between two equal runs stands under `timing` in the summary, or in environment.json.

    Args:
        resolved: the settings that the numbers depend on.
        config_text: all settings.
        asked: `overrides`, what was asked for, and `changed`, what of that is not the default; empty where nobody
            composed the configuration.
    """
    run = Run.begin(folder)
    run.write("run", outcome.system_run)
    run.write("documents", outcome.documents)
    run.write("per_query", _directed(outcome.system_values, outcome.directions))
    run.write("measures", outcome.means)
    run.write("decisions", outcome.decisions)
    for name, frame in outcome.frames.items():
        run.write(name, frame)
    controls = outcome.control_values
    run.write("queries", _file_once("queries", dataset, lambda: _queries(dataset)))
    run.write(f"{CONTROLS}run", _file_once(f"{CONTROLS}run", outcome.control_run, lambda: outcome.control_run))
    directed = _file_once(f"{CONTROLS}per_query", controls, lambda: _directed(controls, outcome.directions))
    run.write(f"{CONTROLS}per_query", directed)
    means = _by_arm_and_group(outcome.means)
    summary = {
        "dataset": dataset.identity(),
        "config_hash": config_hash(resolved),
        **asked,
        "counts": dict(outcome.counts),
        "served": {row.pop("arm"): row for row in outcome.served.iter_rows(named=True)},
        "decisions": _by_action(outcome.decisions),
        **{name: dict(section) for name, section in outcome.sections.items()},
        "incidents": dict(outcome.incidents),
        "notes": list(dataset.notes),
        "flags": list(outcome.flags),
        "interval": {"kind": "percentile bootstrap over queries", "confidence": outcome.confidence},
        "measures": means.get((SYSTEM_ARM, ALL), {}),
        "arms": {arm: told for (arm, group), told in means.items() if group == ALL and arm != SYSTEM_ARM},
        "categories": {group: means.get((SYSTEM_ARM, group), {}) for _, group in means if group != ALL},
        "timing": {
            **{f"{name}_ms": dict(section) for name, section in outcome.timing.items()},
            "seconds": {**outcome.seconds, **seconds},
            **({EMBEDDING: dict(outcome.spent)} if outcome.spent else {}),
        },
    }
    return run.finish(summary, config_text, seconds.get("total", 0.0))


def _queries(dataset: Dataset) -> pl.DataFrame:
    """The queries, and the ids of the messages that are their evidence: what two runs are compared by."""
    evidence = dataset.evidence()
    rows = [
        (
            *(q.workspace_id, q.query_id, q.conversation_id, q.category, q.text, q.asked_at),
            *(dataset.origin(q), evidence.get(q.query_id, [])),
        )
        for q in dataset.queries
    ]
    return pl.DataFrame(rows, schema={**QUERY_SCHEMA, "evidence": pl.List(pl.String())}, orient="row")


def _by_action(decisions: pl.DataFrame) -> dict[str, int]:
    """How often each action was decided; empty where nothing was judged."""
    found = dict(decisions.group_by("action").len().iter_rows())
    return {action: found[action] for action in ACTIONS if action in found}


def _by_arm_and_group(means: pl.DataFrame) -> dict[tuple[str, str], dict[str, Entry]]:
    found: dict[tuple[str, str], dict[str, Entry]] = {}
    for row in means.iter_rows(named=True):
        found.setdefault((row["arm"], row["group"]), {})[row["measure"]] = entry(row)
    return found


def _file_once(name: str, origin: object, made: Callable[[], pl.DataFrame]) -> bytes:
    """The file of a table, that of the last run where it is made of the very same thing."""
    if name not in _LAST_FILES or _LAST_FILES[name][0] is not origin:
        _LAST_FILES[name] = origin, parquet(made())
    return _LAST_FILES[name][1]


def _directed(values: pl.DataFrame, directions: Mapping[str, Direction]) -> pl.DataFrame:
    """With the way in which each measure is better."""
    way = pl.col("measure").replace_strict(directions, default="higher", return_dtype=pl.String)
    return values.with_columns(direction=way)


def embedding_price(system: System, documents: pl.DataFrame, dataset: Dataset) -> dict[str, float]:
    """Estimate the tokens of all documents and queries, and what their vectors cost, each asked for once; empty where
    no price is known."""
    tokens = int(documents["tokens"].sum()) + sum(REPORT_TOKENS.count([query.text for query in dataset.queries]))
    price = _price(system, tokens)
    return {} if price is None else {"embedding_tokens": tokens, "embedding_price": price}


def embedding_spent(system: System, spent: Mapping[str, int]) -> dict[str, float]:
    """Add the price, where it is known, to the requests, texts and tokens that this run spent on vectors."""
    price = _price(system, spent.get("tokens", 0))
    return {**spent, **({} if price is None else {"price": price})}


def _price(system: System, tokens: int) -> float | None:
    embedder = system.embedder.embedder if isinstance(system.embedder, CachedEmbedder) else system.embedder
    return embedder.price(tokens) if isinstance(embedder, AnswersInParts) else None


_MOST = 10
SERVED_SCHEMA: dict[str, pl.DataType] = {
    "arm": pl.String(),
    "k": pl.Int64(),
    "places": pl.Int64(),
    "documents": pl.Int64(),
    "top_10_share": pl.Float64(),
}
"""`k`: the most documents of one answer; `places`: of all answers together; `documents`: how many different ones took
them; `top_10_share`: of the places, in (0, 1], those of the ten documents that took most."""


def served(run: pl.DataFrame) -> pl.DataFrame:
    """Rows of `SERVED_SCHEMA`, one an arm that served anything, in the order of the run.

    Whatever a ranking returns counts as served, down to its own last rank. Documents of two workspaces are two.

    Args:
        run: columns arm, workspace_id, document_id, rank (1-based, without gaps).
    """
    each = run.group_by("arm", "workspace_id", "document_id", maintain_order=True).agg(
        k=pl.col("rank").max(), places=pl.len()
    )
    return (
        each.group_by("arm", maintain_order=True)
        .agg(
            pl.col("k").max(),
            pl.col("places").sum(),
            documents=pl.len(),
            top_10_share=pl.col("places").top_k(_MOST).sum() / pl.col("places").sum(),
        )
        .cast(pl.Schema(SERVED_SCHEMA))
    )


ALIGNED = "aligned"
"""The measure: the share of the texts that a query was answered with of which it is known for which messages they
stand."""
_OF_CONTEXTS = [name for name in CONTEXT_MEASURES if name not in CONTEXT_COSTS]
"""The measures that depend on the messages which a context's texts stand for."""
_STANDING = pl.sum_horizontal("named", "exact", "near")
_TEXTS = pl.sum_horizontal("named", "exact", "near", "none", "foreign", "early")


def refuse_sessions(system: System, measures: Mapping[str, Measure]) -> None:
    """Refuse measures that play sessions themselves, of ours, where an external memory is to be measured.

    Raises:
        LcmError: naming the first.
    """
    for name, measure in measures.items() if isinstance(system.ranking, External) else ():
        if measure.plays_sessions:
            raise LcmError(
                f"measures={name} plays sessions itself, and would measure this system's own assembly, not the "
                "external memory: leave it out"
            )


def asked_of(results: Sequence[WorkspaceResult]) -> pl.DataFrame | None:
    """What was asked of an external memory, in all workspaces: rows of `ASKED_SCHEMA`; None: the system is none."""
    asked = [one.external.asked for one in results if one.external is not None]
    return pl.concat(asked) if asked else None


def with_value(rows: pl.DataFrame, asked: pl.DataFrame, *, by_messages: bool) -> pl.DataFrame:
    """The rows of queries that have a value.

    Args:
        by_messages: whether the value depends on the messages that texts stand for.
    """
    without = [*unanswered(asked), *(unjudged(asked) if by_messages else [])]
    of_contexts = _unjudged_contexts(asked).join(pl.DataFrame({"name": _OF_CONTEXTS}), how="cross")
    of_nobody = of_contexts.select("query_id", measure=pl.format("{}@{}", "name", "unjudged_budgets"))
    return rows.filter(~pl.col("query_id").is_in(without)).join(
        of_nobody, on=["query_id", "measure"], how="anti", maintain_order="left"
    )


def without_answer(asked: pl.DataFrame | None) -> int:
    """How many queries came to none."""
    return 0 if asked is None else len(unanswered(asked))


def unanswered(asked: pl.DataFrame) -> list[str]:
    """The queries that came to no answer: nothing is known of what the memory would have said."""
    return asked.filter(pl.col("fault").is_not_null())["query_id"].to_list()


def unjudged(asked: pl.DataFrame) -> list[str]:
    """The queries that were answered with texts of which none could be aligned: whether they hold the evidence nobody
    can say."""
    return asked.filter(pl.col("fault").is_null(), pl.col("none") > 0, _STANDING == 0)["query_id"].to_list()


def _unjudged_contexts(asked: pl.DataFrame) -> pl.DataFrame:
    """query_id and budget of the contexts of whose texts none could be aligned: what they hold nobody can say."""
    return asked.select("query_id", "unjudged_budgets").explode("unjudged_budgets").drop_nulls()


def aligned_values(asked: pl.DataFrame) -> pl.DataFrame:
    """Rows of `QUERY_VALUES_SCHEMA`: of each query that was answered with any text."""
    told = asked.filter(pl.col("fault").is_null(), _TEXTS > 0)
    return told.select("query_id", measure=pl.lit(ALIGNED), value=1 - pl.col("none") / _TEXTS).select(
        list(QUERY_VALUES_SCHEMA)
    )


def flags_of_external(results: Sequence[WorkspaceResult]) -> Iterator[str]:
    """What a reader of the numbers must know of an external memory, a line each."""
    recorded = [one.external for one in results if one.external is not None]
    if (asked := asked_of(results)) is None:
        return
    name = " ".join(filter(None, recorded[0].told[:2])) or "(it does not say its name)"
    covered = pl.concat([one.brought["source_message_ids"].list.len() for one in recorded])
    notes = [f"says: {'; '.join(recorded[0].told.notes)}"] if recorded[0].told.notes else []
    lines = (*_of_queries(asked), *notes, *_of_texts(asked, covered), *_of_numbers(asked))
    yield from (f"{EXTERNAL_MEMORY} {name} {line}" for line in lines)


def _of_queries(asked: pl.DataFrame) -> Iterator[str]:
    faulted = asked.filter(pl.col("fault").is_not_null())
    if len(faulted) == len(asked):
        first = next((f": {_line(one)}" for one in faulted["detail"].drop_nulls()), "")
        yield f"answered none of {len(asked):,} queries and {HAS_NO_NUMBER}{first}"
        return
    yield f"answered {len(asked) - len(faulted):,} of {len(asked):,} queries"
    if len(faulted):
        kinds = faulted.group_by("fault").agg(times=pl.len(), detail=pl.col("detail").drop_nulls().first())
        rows = kinds.sort("times", "fault", descending=[True, False]).iter_rows()
        why = ", ".join(f"{times:,} {kind}{_first(kind, detail)}" for kind, times, detail in rows)
        yield f"gave no answer to {len(faulted):,}, which have no value, not 0: {why}; means are of the others"
    if without := len(unjudged(asked)):
        all_of_it = f", and the ranking {HAS_NO_NUMBER}" if without + len(faulted) == len(asked) else ""
        told = f"answered {without:,} queries with nothing that could be aligned: they are unjudged and have no value"
        yield f"{told}{all_of_it}"
    if contexts := len(_unjudged_contexts(asked)):
        yield f"gave {contexts:,} contexts of which nothing could be aligned: what they retain is unjudged"
    if partly := asked.filter(pl.col("none") > 0, _STANDING > 0).height:
        yield f"answered {partly:,} queries with some texts that could not be aligned: a lower bound of their recall"


def _first(kind: str, detail: str | None) -> str:
    """The first reason that was given for a fault of a kind."""
    told = _line(detail or "").removeprefix(f"{kind}: ")
    return f" ({told})" if told else ""


def _line(told: str) -> str:
    """What a memory said, on one line that no terminal obeys, without what looks like a key."""
    plain = " ".join(redacted(told).split())
    return "".join(one if one.isprintable() else "\ufffd" for one in plain)


def _of_numbers(asked: pl.DataFrame) -> Iterator[str]:
    """True where every answer of the memory had fewer texts than were asked for."""
    answered = asked.filter(pl.col("fault").is_null(), pl.col("could_give") > 0)
    if len(answered) and (answered["given"] < answered["could_give"]).all():
        most, wanted = (max(answered[name]) for name in ("given", "could_give"))
        yield f"gave {most} texts at most, never the {wanted} asked for: what is measured @{wanted} is @{most}"


def _of_texts(asked: pl.DataFrame, covered: pl.Series) -> Iterator[str]:
    """
    Args:
        covered: of each text that was returned, how many messages it stands for.
    """
    sums = asked.select(pl.col(HOW).sum()).row(0, named=True)
    if not (total := sum(sums.values())):
        return
    standing = sums["named"] + sums["exact"] + sums["near"]
    yield (
        f"returned {total:,} texts, of which {standing:,} stand for messages ({standing / total:.1%}): "
        f"{sums['named']:,} named, {sums['exact']:,} by their words, {sums['near']:,} nearly; "
        f"{sums['none']:,} could not be aligned"
    )
    if sums["foreign"] or sums["early"]:
        yield (
            f"returned {sums['foreign']:,} texts of another workspace and {sums['early']:,} that were not added yet: "
            "it is not reset between workspaces; they count as wrong"
        )
    many = covered.filter(covered > 1)
    if len(many):
        yield (
            f"returned {len(many):,} texts of {len(covered):,} that stand for several messages, "
            f"{sum(many) / len(many):.1f} on average: finding one counts for each, so recall grows with their size; "
            "nDCG and tokens@k tell that cost"
        )
