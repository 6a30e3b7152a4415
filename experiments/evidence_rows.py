"""Each document's evidence for each judged question of a kind of talk: made by the real components, kept on disk."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import takewhile
from pathlib import Path
from typing import cast

import numpy as np
import numpy.typing as npt
import polars as pl
import polars.selectors as cs
from system_parts import COMMON, key_of

from eval.dataset.dataset import Dataset
from eval.measures.coverage import ShownText, with_near_duplicates
from eval.replay.workspace_replay import Bulk
from lcm.memory.memory import Memory
from lcm.memory.system import System
from lcm.protocols.contract import contract_of
from lcm.protocols.retrieval import Batch, Expansion, Stage
from lcm.retrieval.embedder.cache import kept
from lcm.retrieval.frames import best_first
from lcm.retrieval.ranking.pipeline import Ranking, passed
from pipelines.config import building, composition

Numbers = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]
PLAIN = ("dense_score", "lexical_score")
"""Standard scores of the source; what is learnt must be worth more than their sum."""
_ROW = ("query_id", "document_id", "conversation_id", "session_id", "seq", "kind")
_DOCUMENT = (*_ROW[1:], "text", "role", "created_at", "source_message_ids")
BEHIND = ("crowding", "session_crowding", "near_duplicates")
"""Stages behind the fusion that decide, with the scores, which documents come first."""
_DEPTH = 20
"""Ranks that matter."""
HARD = 150
"""Documents of a question that are learnt from besides its evidence: the best by a plain sum of scores."""


@dataclass(frozen=True)
class Evidence:
    """The documents of a kind's judged questions: the rows of one question stand together."""

    kind: str
    columns: tuple[str, ...]
    values: npt.NDArray[np.float32]
    """Shape (rows, columns)."""
    questions: Places
    """Of each row."""
    judged: Places
    """Of each judged message its question, whether or not a document holds it."""
    covers: Places
    """Shape (n, 2): a row, and a judged message that its document stands for."""
    pieces: Places
    """Of each piece of evidence its question: of each judged message, then of each quotation that answers it."""
    holds: Places
    """Shape (n, 2): a row, and a piece that its document holds; of a message it stands for it."""
    ids: Sequence[str]
    """Of each question; so are the next two."""
    categories: npt.NDArray[np.str_]
    conversations: Places
    is_hard: npt.NDArray[np.bool_]
    """Of each row: among the `HARD` best of its question, before anything is learnt."""
    batches: Sequence["Asked"]
    """All rows, in order."""
    behind: Mapping[str, Stage | Expansion]
    """What the rows pass when they are scored."""

    def __len__(self) -> int:
        """How many questions."""
        return len(self.ids)

    @cached_property
    def is_evidence(self) -> npt.NDArray[np.bool_]:
        """Of each row: its document holds a piece of evidence."""
        found = np.zeros(len(self.questions), dtype=bool)
        found[self.holds[:, 0]] = True
        return found

    def of(self, columns: Sequence[str]) -> npt.NDArray[np.float32]:
        """The values of some columns."""
        return self.values[:, [self.columns.index(column) for column in columns]]

    def recalls(self, scores: Numbers, *cutoffs: int) -> dict[int, Numbers]:
        """Cutoff -> of each question the share of its judged messages that so many documents stand for."""
        of_row, counts, found = self._ranks(scores), np.bincount(self.judged, minlength=len(self)), {}
        for cutoff in cutoffs:
            is_found = np.zeros(len(self.judged), dtype=bool)
            is_found[self.covers[of_row[self.covers[:, 0]] < cutoff, 1]] = True
            found[cutoff] = np.bincount(self.judged, is_found, len(self)) / counts
        return found

    def _ranks(self, scores: Numbers) -> Places:
        """Of each row, from 0: its document's behind all stages, or that of the document which stands for it."""
        found = np.full(len(scores), _DEPTH)
        for asked in self.batches:
            frame = asked.rows.with_columns(score=pl.Series(scores[asked.first : asked.first + len(asked.rows)]))
            batch = cast(Batch, asked)  # those stages look at the documents alone
            for name, stage in self.behind.items():
                frame = passed(name, stage, frame, batch)
            ranked = best_first(frame).with_columns(rank=pl.int_range(pl.len()).over("query_id"))
            kept = cs.by_name("query_id", "document_id", "rank", "stands_for", require_all=False)
            shown = with_near_duplicates(ranked.filter(pl.col("rank") < _DEPTH).select(kept))
            best = shown.group_by("query_id", "document_id").agg(pl.col("rank").min())
            best = best.join(asked.rows, on=["query_id", "document_id"], how="inner")
            found[best["row"].to_numpy()] = best["rank"].to_numpy()
        return found


@dataclass(frozen=True, slots=True)
class Asked:
    """Questions that saw the same documents."""

    first: int
    """Number of the first of the rows."""
    rows: pl.DataFrame
    """Columns row, query_id, document_id, and what tells the turns apart."""
    documents: pl.DataFrame


def ranks(questions: Places, scores: Numbers) -> Places:
    """Of each row, from 0, among those of its question."""
    order = np.lexsort((-scores, questions))
    found = np.empty(len(scores), dtype=np.int64)
    found[order] = np.arange(len(scores)) - np.searchsorted(questions[order], questions[order])
    return found


@dataclass(slots=True)
class Recorder:
    """A stage that keeps what passes, and the documents as they were then."""

    columns: Sequence[str]
    rows: list[pl.DataFrame] = field(default_factory=list)
    documents: list[pl.DataFrame] = field(default_factory=list)

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        values = (pl.col(column).cast(pl.Float32).fill_nan(0).fill_null(0) for column in self.columns)
        number = pl.lit(len(self.rows)).alias("batch")
        self.rows.append(frame.select(number, *_ROW, *values))
        self.documents.append(batch.documents.select(number, *_DOCUMENT))
        return frame.with_columns(score=pl.lit(0.0))


def collected(
    kind: str,
    chosen: Sequence[str],
    folder: Path,
    system: Sequence[str] = ("system=unified",),
    columns: Sequence[str] | None = None,
    plain: Sequence[str] = ("dense_score", "words_passage", "words_window", "alike_sum"),
) -> Evidence:
    """The evidence of a kind, from the folder where the same components have made it of the same dataset before.

    Args:
        kind: what it is called.
        chosen: overrides that choose its dataset.
        folder: where the rows are kept.
        system: overrides that choose what makes the evidence: all stages before `fusion`.
        columns: what is kept of each row; None = all that stages say they make, and `PLAIN`.
        plain: those whose sum says which documents are hard.
    """
    config = composition.composed([*COMMON, *system, *chosen])
    dataset: Dataset = building.build(config, "dataset").load()
    memory: System = building.build(config, "memory")
    stages = _ranking(memory).stages
    before = Ranking(_ranking(memory).source, dict(takewhile(lambda item: item[0] != "fusion", stages.items())))
    memory = replace(memory, embedder=kept(memory.embedder), ranking=before)
    replay: Bulk = building.build(config, "replay")
    columns = tuple(columns or (*PLAIN, *evidence_columns(memory)))
    key = key_of([memory, replay], [dataset.digest, columns], Memory)
    rows, documents = (folder / f"{kind}-{key}-{part}.parquet" for part in ("rows", "documents"))
    if not rows.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        recorder = Recorder(columns)
        rank_judged(memory, replay, dataset, Ranking(before.source, {**before.stages, "record": recorder}))
        pl.concat(recorder.documents).write_parquet(documents)
        unfinished = rows.with_suffix(".part")
        pl.concat(recorder.rows).write_parquet(unfinished)
        unfinished.replace(rows)
    behind = {name: stage for name, stage in stages.items() if name in BEHIND}
    return _laid_out(kind, pl.read_parquet(rows), pl.read_parquet(documents), dataset, columns, plain, behind)


def evidence_columns(system: System) -> list[str]:
    """The columns that the stages of its ranking say they make."""
    return [column for stage in _ranking(system).stages.values() for column in contract_of(stage).makes]


def _ranking(system: System) -> Ranking:
    assert isinstance(system.ranking, Ranking)
    return system.ranking


def rank_judged(system: System, replay: Bulk, dataset: Dataset, ranking: Ranking) -> None:
    """Rank every judged question of a dataset over a system's memory, for what the ranking records."""
    judged = dataset.evidence()
    for workspace in dataset.workspaces:
        here = dataset.part([workspace])
        queries = [query for query in here.queries if query.query_id in judged]
        if not queries:
            continue
        with Memory.open(system) as memory:
            for asked in replay.play(memory, here.transcripts, queries):
                memory.rank(asked, ranking)


def _laid_out(
    kind: str,
    rows: pl.DataFrame,
    documents: pl.DataFrame,
    dataset: Dataset,
    columns: tuple[str, ...],
    plain: Sequence[str],
    behind: Mapping[str, Stage | Expansion],
) -> Evidence:
    judged = dataset.evidence()
    queries = {query.query_id: query for query in dataset.queries if query.query_id in judged}
    ids = list(dict.fromkeys([*rows["query_id"].unique(maintain_order=True), *queries]))
    number = {query_id: i for i, query_id in enumerate(ids)}
    place = {workspace: i for i, workspace in enumerate(dataset.workspaces)}
    rows = rows.with_row_index("row").with_columns(pl.col("row").cast(pl.Int64))
    questions = rows["query_id"].replace_strict(number, return_dtype=pl.Int64).to_numpy()
    messages = pl.DataFrame(
        [(query_id, message_id) for query_id in ids for message_id in dict.fromkeys(judged[query_id])],
        schema={"query_id": pl.String, "message_id": pl.String},
        orient="row",
    ).with_row_index("judged")
    sources = documents.select("batch", "document_id", message_id="source_message_ids")
    covers = (
        rows.select("row", "batch", "query_id", "document_id")
        .join(sources, on=["batch", "document_id"], how="inner")
        .explode("message_id")
        .join(messages, on=["query_id", "message_id"], how="inner")
        .unique(["row", "judged"], maintain_order=True)
    )
    judged_of = messages["query_id"].replace_strict(number, return_dtype=pl.Int64).to_numpy()
    covered = covers.select("row", "judged").cast(pl.Int64).to_numpy()
    quoted, held = _quoted(rows, documents, dataset, number)
    sums = rows.select(pl.sum_horizontal(pl.col(column).cast(pl.Float64) for column in plain)).to_series().to_numpy()
    of_batch = documents.partition_by("batch", as_dict=True, include_key=False)
    return Evidence(
        kind=kind,
        columns=columns,
        values=rows.select(columns).to_numpy(),
        questions=questions,
        judged=judged_of,
        covers=covered,
        pieces=np.concatenate([judged_of, quoted]),
        holds=np.concatenate([covered, held + np.array([0, len(judged_of)])]),
        ids=ids,
        categories=np.array([queries[query_id].category or "" for query_id in ids]),
        conversations=np.array([place[queries[query_id].workspace_id] for query_id in ids]),
        is_hard=ranks(questions, sums) < HARD,
        batches=[
            Asked(part["row"][0], part.select("row", *_ROW), of_batch[key])
            for key, part in rows.partition_by("batch", as_dict=True, maintain_order=True).items()
        ],
        behind=behind,
    )


def _quoted(
    rows: pl.DataFrame, documents: pl.DataFrame, dataset: Dataset, number: Mapping[str, int]
) -> tuple[Places, Places]:
    """Of each quotation its question; and, shape (n, 2), a row and a quotation that its document holds."""
    quotations = dataset.quotations.unique(["query_id", "evidence"], keep="first", maintain_order=True)
    quotations = quotations.filter(pl.col("query_id").is_in(list(number)))
    asked = rows.join(quotations, on="query_id", how="semi").select("row", "batch", "query_id", "document_id")
    texts = documents.join(asked, on=["batch", "document_id"], how="semi").select("batch", "document_id", "text")
    shown = {(batch, document_id): ShownText(text) for batch, document_id, text in texts.iter_rows()}
    of_query: dict[str, list[tuple[int, ShownText]]] = {}
    for row, batch, query_id, document_id in asked.iter_rows():
        of_query.setdefault(query_id, []).append((row, shown[batch, document_id]))
    held = [
        (row, place)
        for place, (query_id, quotation) in enumerate(quotations.select("query_id", "quotation").iter_rows())
        for row, text in of_query.get(query_id, ())
        if text.tokens_to(quotation) is not None
    ]
    questions = [number[query_id] for query_id in quotations["query_id"]]
    return np.array(questions, np.int64), np.array(held, np.int64).reshape(-1, 2)
