"""Retrieval measures, at the level of messages and of sessions.

A document covers the messages that it stands for, and those of near duplicates that a ranking leaves out in its favour
(a run's `stands_for`). At message level k and every place counts *documents*, and a relevant message stands where the
first document that covers it stands. Of several in one document the most relevant stands there and each other one a
place further, as does what follows where that place is taken; what is not relevant beside them costs tokens, no place.
So where a document is a message, these are trec_eval's places.

- `recall@k`: the fraction of the relevant messages that the first k documents cover.
- `recall_any@k`: 1 if they cover at least one (a hit rate; some papers call this recall).
- `recall_all@k`: 1 if they cover all.
- `recall_capped@k`: the relevant messages that they cover, over the number of relevant messages or k, whichever is
  smaller: at most 1, so that a query with more than k can be answered in full. LMEB's R_cap@k.
- `nDCG@k`: trec_eval's, over the first k places.
- `nDCG_longmemeval@k`: LongMemEval's own: binary relevance, and rank 2 weighs as much as rank 1.
- `MRR`, `MAP`: over the whole ranking, as deep as the run goes.
- `tokens@k`: the tokens of the first k documents: what that recall costs.
- `recall`, `tokens`: without a cutoff, over all that was returned.
- `recall@Bt`: the share of the evidence that is found by reading until B tokens are spent: the documents in order,
  whole, the first that no longer fits as far as it does, and none behind it.

For `recall@Bt` evidence that is quoted is found when what is read of one document that stands for its message holds the
quotation. A judged message without a quotation is found when what is read holds its words, as far as any document that
stands for it does: a passage of a long message is not the message, all its passages are. A summary or another document
that tells of its messages in other words counts for them when it is read whole, as for `recall@k`, and so does what is
read in place of a near duplicate; for a quotation they count where they repeat it. It is of messages alone, in the
tokens of `tokens@k`, and where nothing is quoted never above `recall`.

Of an arm that is a ceiling (`RunReading.reachable`) each measure but `tokens` and `judged` is of the best order of the
documents that could be ranked, each with the near duplicates that any arm lets it stand for, so that no arm passes it;
its tokens are of what it ranks.

Where a dataset has its evidence corrected too, `repaired.recall@10` is the same by that.

Where the qrels hold messages that were judged and are not relevant, as those of a judged pool do, there is also

- `judged@k`: the fraction of the messages of the first k documents that anybody judged, for each k above; others count
  as not relevant.

At session level (`session.recall@5`) a session stands where its first document stands, and k counts sessions.

A mean is over the queries that are judged at its level: at message level those with judged messages, at session level
also those whose evidence is known by session only, and tokens are of all of them. The other queries are counted, never
averaged.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
import polars as pl
import polars.selectors as cs

from eval.dataset.dataset import Dataset
from eval.measures.coverage import (
    best_units,
    covered_by,
    evidence_counts,
    most_within,
    placed_by_document,
    readings,
    recall_within,
    units_of,
    with_near_duplicates,
)
from eval.measures.measure import QUERY_VALUES_SCHEMA, Measure, RunReading, SystemReading
from eval.measures.names import REPAIRED, SYSTEM_ARM, Direction
from lcm.errors import LcmError
from lcm.retrieval.frames import KeptBeside

Level = Literal["message", "session"]
_NAME = re.compile(
    r"(recall|recall_any|recall_all|recall_capped|nDCG|nDCG_longmemeval|tokens)@[1-9]\d*"
    r"|recall@[1-9]\d*t|recall|tokens|MRR|MAP"
)
_BUDGET = re.compile(r"recall@(\d+)t")
_Numbers = npt.NDArray[np.float64]
_Places = npt.NDArray[np.int64]

DEFAULT_NAMES = (
    "recall@5", "recall@10", "recall_any@5", "recall_any@10", "recall_all@5", "recall_all@10",
    "nDCG@10", "MRR", "MAP", "tokens@5", "tokens@10", "recall", "tokens",
    "recall@1000t", "recall@2000t", "recall@4000t",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Retrieval(Measure):
    """Measures rankings against the qrels, at the level of messages, sessions, or both."""

    subject = "rankings"
    of_arms = True

    names: Sequence[str] = DEFAULT_NAMES
    levels: Sequence[Level] = ("message", "session")

    def __post_init__(self) -> None:
        bad = [name for name in self.names if not _NAME.fullmatch(name)]
        if bad or not self.names:
            raise ValueError(
                f"names: unknown measure {bad[0] if bad else ''!r}; choose from: recall@k, recall_any@k, recall_all@k, "
                "recall_capped@k, nDCG@k, nDCG_longmemeval@k, tokens@k, recall@Bt (k, B >= 1), recall, tokens, MRR, MAP"
            )
        if not self.levels or set(self.levels) - {"message", "session"}:
            raise ValueError(f"levels must be some of message, session, got {list(self.levels)!r}")

    def value_names(self) -> list[str]:
        tokens = [name for name in self.names if name.startswith("tokens")]
        of_messages = [*self._within(), *(f"judged@{k}" for k in self._cutoffs())] if "message" in self.levels else []
        return [*(_prefix(level) + name for level in self.levels for name in self._leveled()), *tokens, *of_messages]

    def _leveled(self) -> list[str]:
        """Those that every level has."""
        return [name for name in self.names if not name.startswith("tokens") and not _BUDGET.fullmatch(name)]

    def _within(self) -> dict[str, int]:
        """Those of messages alone, under a budget -> that budget."""
        return {name: int(found[1]) for name in self.names if (found := _BUDGET.fullmatch(name))}

    def _cutoffs(self) -> list[int]:
        ranks = (name.partition("@")[2] for name in self.names)
        return sorted({int(k) for k in ranks if k.isdecimal()})

    def giving(self, value: str) -> Self:
        name = value.removeprefix(_prefix("session"))
        level: Level = "message" if name == value else "session"
        return replace(self, names=(name,), levels=(level,)) if name in self.names else self

    def direction(self, value: str) -> Direction:
        return "lower" if value.startswith("tokens") else "higher"

    def rows(self, reading: RunReading) -> pl.DataFrame:
        """One value a judged query and measure, 0 where the arm answered nothing; `repaired.` stands before what is
        measured by corrected evidence, where the dataset has some."""
        repaired = reading.dataset.repaired_qrels
        values = self._of_run(reading, reading.dataset)
        if repaired is None:
            return values
        again = self._of_run(reading, replace(reading.dataset, qrels=repaired))
        again = again.filter(~pl.col("measure").str.starts_with("tokens"))
        return pl.concat([values, again.with_columns(measure=REPAIRED + pl.col("measure"))])

    def _of_run(self, reading: RunReading, dataset: Dataset) -> pl.DataFrame:
        known = _judged_of(dataset)
        workspace, sessions, judgements, judged = known.workspace, known.sessions, known.judgements, known.queries
        ranked = (
            reading.run.select("query_id", "document_id", "rank", cs.by_name("stands_for", require_all=False))
            .join(judged["session"], on="query_id", how="semi", maintain_order="left")
            .join(workspace, on="query_id", how="left", maintain_order="left")
        )
        covered = covered_by(with_near_duplicates(ranked), reading.documents, sessions)
        reachable = None if reading.reachable is None else _in_any_order(reading.reachable, workspace)
        within_reach = (
            None if reachable is None else covered_by(with_near_duplicates(reachable), reading.documents, sessions)
        )
        frames = [pl.DataFrame(schema=QUERY_VALUES_SCHEMA)]
        for level in self.levels:
            if within_reach is not None:
                units = best_units(within_reach, level, judgements[level])
            elif level == "message":
                units = placed_by_document(covered, judgements[level])
            else:
                units = units_of(covered, level, judged[level])
            frames += self._level(level, units, judgements[level], judged[level])
        sized = _sized(ranked, reading.documents)
        frames += self._tokens(sized, judged["session"])
        if "message" in self.levels and (within := self._within()):
            if reading.evidence_text is None:
                raise LcmError(
                    f"{next(iter(within))} needs the words of the documents, which only `lcm evaluate` has: name "
                    "another measure"
                )
            if reachable is None or within_reach is None:
                frames.append(recall_within(within, sized, covered, reading.evidence_text, dataset))
            else:
                first = _sized(reachable, reading.documents).with_columns(before=0)
                ends = readings(first, within_reach, reading.evidence_text, dataset)
                frames.append(most_within(within, ends, evidence_counts(dataset)))
        if "message" in self.levels and says_what_was_judged(dataset):
            looked_at = dataset.qrels.select("query_id", "relevance", unit="message_id")
            frames += self._judged(units_of(covered, "message", judged["message"]), looked_at)
        return pl.concat(frames)

    def notes(self, rows: pl.DataFrame, reading: SystemReading) -> tuple[str, ...]:
        """A cutoff that takes in a whole haystack measures nothing; where nothing is judged, nothing is cut off."""
        dataset = reading.dataset
        if judged_queries(dataset).is_empty():
            return ()
        sizes = reading.documents.group_by("workspace_id").agg(
            message=pl.len(), session=pl.col("session_id").n_unique()
        )
        of_workspace = {workspace: (messages, sessions) for workspace, messages, sessions in sizes.iter_rows()}
        haystacks = [of_workspace.get(workspace, (0, 0)) for workspace in dataset.workspaces]
        units = {"message": ("documents", "a measure"), "session": ("sessions", "a session measure")}
        found = [*self._unjudged(rows)]
        for place, (level, (unit, measure)) in enumerate(units.items()):
            counted = {k: sum(haystack[place] <= k for haystack in haystacks) for k in self._cutoffs()}
            small = {k: n for k, n in counted.items() if n and level in self.levels}
            if small:
                told = ", ".join(f"{n} of {len(haystacks)} no more than {k}" for k, n in small.items())
                at = ", ".join(f"@{k}" for k in small)
                found.append(f"small workspaces, by their {unit}: {told}; {measure} {at} can take in all")
        return tuple(found)

    def _level(
        self, level: Level, units: pl.DataFrame, qrels: pl.DataFrame, judged: pl.DataFrame
    ) -> list[pl.DataFrame]:
        hits, names = _hits(units, qrels, judged), _by_depth(self._leveled())
        values = np.array([hits.value(name, level) for name in names]).reshape(-1)
        return [_columns([_prefix(level) + name for name in names], values, judged)]

    def _unjudged(self, values: pl.DataFrame) -> tuple[str, ...]:
        """How much of what the system found nobody has judged, where the judgements say so."""
        k = max(self._cutoffs(), default=0)
        share = values.filter(arm=SYSTEM_ARM, measure=f"judged@{k}")["value"].mean()
        if not isinstance(share, float) or share == 1:
            return ()
        told = (
            f"nobody judged {1 - share:.1%} of what the system's first {k} documents cover: it counts as not relevant"
        )
        return (told,)

    def _judged(self, units: pl.DataFrame, looked_at: pl.DataFrame) -> list[pl.DataFrame]:
        """A query for which nothing was found has no row."""
        known = units.join(looked_at, on=["query_id", "unit"], how="left", maintain_order="left")
        return [
            known.filter(pl.col("rank") <= k)
            .group_by("query_id", maintain_order=True)
            .agg(pl.lit(f"judged@{k}").alias("measure"), value=pl.col("relevance").is_not_null().mean())
            for k in self._cutoffs()
        ]

    def _tokens(self, sized: pl.DataFrame, judged: pl.DataFrame) -> list[pl.DataFrame]:
        cutoffs = {name: name.partition("@")[2] for name in self.names if name.partition("@")[0] == "tokens"}
        totals = sized.group_by("query_id").agg(
            (pl.col("tokens").filter(pl.col("rank") <= int(k)) if k else pl.col("tokens")).sum().alias(name)
            for name, k in cutoffs.items()
        )
        found = judged.join(totals, on="query_id", how="left", maintain_order="left")
        values = found.select(pl.col(list(cutoffs)).cast(pl.Float64).fill_null(0.0)).to_numpy()
        return [_columns(list(cutoffs), values.T.reshape(-1), judged)]


def _by_depth(names: Sequence[str]) -> list[str]:
    """LongMemEval's own first, then what looks equally deep together: the order of rows."""
    depths = {name: name.partition("@")[2] if name.startswith("recall") else "" for name in names}
    found = list(dict.fromkeys(depths[name] for name in names if not name.startswith("nDCG_l")))
    return sorted(names, key=lambda name: -1 if name.startswith("nDCG_l") else found.index(depths[name]))


def _prefix(level: Level) -> str:
    return "" if level == "message" else f"{level}."


def judged_queries(dataset: Dataset) -> pl.DataFrame:
    """The column query_id: every query with evidence, be it known by message or by session."""
    return _judged_queries(dataset)


def _judged_queries_of(dataset: Dataset) -> pl.DataFrame:
    return (
        pl.concat([qrels.select("query_id", "relevance") for qrels in (dataset.qrels, dataset.session_qrels)])
        .filter(pl.col("relevance") > 0)
        .select("query_id")
        .unique(maintain_order=True)
    )


_judged_queries = KeptBeside(_judged_queries_of, 16)


def says_what_was_judged(dataset: Dataset) -> bool:
    """Whether the judgements tell messages that were looked at and are not relevant from those nobody looked at."""
    return bool((dataset.qrels["relevance"] == 0).any())


def workspace_of_query(dataset: Dataset) -> pl.DataFrame:
    """Columns query_id, workspace_id."""
    rows = [(query.query_id, query.workspace_id) for query in dataset.queries]
    return pl.DataFrame(rows, schema={"query_id": pl.String, "workspace_id": pl.String}, orient="row")


def session_of_message(dataset: Dataset) -> pl.DataFrame:
    """Columns workspace_id, message_id, session_id."""
    frames = [
        pl.DataFrame(
            {
                "workspace_id": pl.repeat(
                    transcript.workspace_id, len(transcript.messages), dtype=pl.String, eager=True
                ),
                "message_id": pl.Series([message.message_id for message in transcript.messages], dtype=pl.String),
                "session_id": pl.Series([message.session_id for message in transcript.messages], dtype=pl.String),
            }
        )
        for transcript in dataset.transcripts
    ]
    schema = {"workspace_id": pl.String, "message_id": pl.String, "session_id": pl.String}
    return pl.concat([pl.DataFrame(schema=schema), *frames], rechunk=True)


def _in_any_order(reachable: pl.DataFrame, workspace: pl.DataFrame) -> pl.DataFrame:
    """With workspace_id and rank, which tells documents of a query apart, no more."""
    return reachable.with_columns(rank=pl.int_range(1, pl.len() + 1).over("query_id")).join(
        workspace, on="query_id", maintain_order="left"
    )


def _sized(ranked: pl.DataFrame, documents: pl.DataFrame) -> pl.DataFrame:
    sizes = documents.select("workspace_id", "document_id", "tokens")
    return ranked.join(sizes, on=["workspace_id", "document_id"], how="left", maintain_order="left")


def _columns(measures: Sequence[str], values: _Numbers, judged: pl.DataFrame) -> pl.DataFrame:
    """The rows of several measures, one behind the other, each with a value for every judged query."""
    names = pl.Series(measures, dtype=pl.String)[np.repeat(np.arange(len(measures)), len(judged))]
    ids = pl.concat([judged["query_id"]] * len(measures)) if measures else judged["query_id"].clear()
    return pl.DataFrame({"query_id": ids, "measure": names, "value": values}, schema=QUERY_VALUES_SCHEMA)


@dataclass(frozen=True, slots=True)
class _Hits:
    """The relevant units that an arm found, by the numbers of their queries: what the measures of a level are made of.

    Equal to ir-measures, which a test holds them against, and all queries at once.
    """

    query: _Places
    """Of each hit, ascending; best first within a query."""
    rank: _Places
    position: _Places
    relevance: _Numbers
    relevant: _Places
    """How many units are relevant, of each query."""
    ideal: tuple[_Places, _Places, _Numbers]
    """Query, position and relevance of all that is relevant, most relevant first."""

    def value(self, name: str, level: Level) -> _Numbers:
        """The value of each judged query; 0 where nothing was found."""
        kind, _, k = name.partition("@")
        match kind:
            case "MRR":
                best = np.zeros(len(self.relevant))
                np.maximum.at(best, self.query, 1 / self.position)
                return best
            case "MAP":
                nth = np.arange(len(self.query)) - np.searchsorted(self.query, self.query) + 1
                return self._share(self._sum(self.query, nth / self.position), self.relevant)
            case "nDCG":
                return self._share(*(self._dcg(int(k), *of) for of in (self._found, self.ideal)))
            case "nDCG_longmemeval":
                return self._ndcg_longmemeval(int(k))
        within = self.rank if level == "message" else self.position
        found = self._sum(self.query[within <= int(k)] if k else self.query)
        match kind:
            case "recall_any":
                return np.asarray(found > 0, np.float64)
            case "recall_all":
                return np.asarray((found == self.relevant) & (found > 0), np.float64)
            case "recall_capped":
                return np.minimum(self._share(found, np.minimum(self.relevant, int(k))), 1.0)
        return self._share(found, self.relevant)

    @property
    def _found(self) -> tuple[_Places, _Places, _Numbers]:
        return self.query, self.position, self.relevance

    def _sum(self, queries: _Places, weights: _Numbers | None = None) -> _Numbers:
        return np.asarray(np.bincount(queries, weights, len(self.relevant)), np.float64)

    @staticmethod
    def _share(part: _Numbers, whole: npt.NDArray[Any]) -> _Numbers:
        shares: _Numbers = np.divide(part, whole, out=np.zeros(len(part)), where=whole > 0)
        return shares

    def _dcg(self, k: int, query: _Places, position: _Places, relevance: _Numbers) -> _Numbers:
        is_seen = position <= k
        return self._sum(query[is_seen], relevance[is_seen] / np.log2(position[is_seen] + 1))

    def _ndcg_longmemeval(self, k: int) -> _Numbers:
        """DCG = rel_1 + rel_2 + rel_3 / log2(3) + ... + rel_k / log2(k), over that of the ideal.

        Relevance is 0 or 1. A position weighs 1 / log2(position) where trec_eval takes 1 / log2(position + 1); the
        first weighs 1.
        Source: LongMemEval, src/retrieval/eval_utils.py, commit 6a92d1a.
        """
        weights = 1 / np.maximum(np.log2(np.arange(1, k + 1)), 1)
        is_seen = self.position <= k
        ideal = np.concatenate([[0.0], np.cumsum(weights)])[np.minimum(self.relevant, k)]
        return self._share(self._sum(self.query[is_seen], weights[self.position[is_seen] - 1]), ideal)


def _hits(units: pl.DataFrame, judgements: pl.DataFrame, judged: pl.DataFrame) -> _Hits:
    """What of the units of an arm is relevant.

    Args:
        units: query_id, unit, rank, position.
        judgements: query_id, unit, relevance above 0.
        judged: query_id, which get numbers in this order.
    """
    numbered = judgements.join(judged.with_row_index("query"), on="query_id")
    found = units.join(numbered, on=["query_id", "unit"]).sort("query", "position")
    ideal = numbered.sort("query", "relevance", descending=[False, True])
    at = ideal["query"].to_numpy().astype(np.int64)
    nth = np.arange(len(at)) - np.searchsorted(at, at) + 1
    return _Hits(
        query=found["query"].to_numpy().astype(np.int64),
        rank=found["rank"].to_numpy().astype(np.int64),
        position=found["position"].to_numpy().astype(np.int64),
        relevance=found["relevance"].to_numpy().astype(np.float64),
        relevant=np.bincount(at, minlength=len(judged)),
        ideal=(at, nth, ideal["relevance"].to_numpy().astype(np.float64)),
    )


class _Judged:
    """What a dataset judges, laid out once for all arms and points of a sweep: by level."""

    def __init__(self, dataset: Dataset) -> None:
        self.workspace = workspace_of_query(dataset)
        self.sessions = session_of_message(dataset)
        qrels = dataset.qrels.filter(pl.col("relevance") > 0)
        through_messages = qrels.join(self.workspace, on="query_id").join(
            self.sessions, on=["workspace_id", "message_id"]
        )
        session_qrels = pl.concat(
            [
                through_messages.select("query_id", "session_id", "relevance"),
                dataset.session_qrels.filter(pl.col("relevance") > 0),
            ]
        )
        self.judgements = {
            "message": qrels.select("query_id", "relevance", unit="message_id"),
            "session": session_qrels.group_by("query_id", unit="session_id").agg(pl.col("relevance").max()),
        }
        """query_id, unit, relevance above 0."""
        self.queries = {
            "message": qrels.select("query_id").unique(maintain_order=True),
            "session": judged_queries(dataset),
        }
        """query_id, each once."""


_judged_of = KeptBeside(_Judged, 4)
