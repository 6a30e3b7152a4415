"""Each document's evidence for each judged question of a kind of talk: made by the real components, kept on disk."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import takewhile
from pathlib import Path
from typing import cast

import numpy as np
import numpy.typing as npt
import polars as pl
from system_parts import COMMON

from eval.cache.fingerprint import Fingerprint, digest
from eval.dataset.dataset import Dataset
from eval.replay.bulk import Bulk
from lcm.memory.memory import Memory
from lcm.memory.system import System
from lcm.protocols.retrieval import Batch, Expansion, Stage
from lcm.retrieval.embedder.kept import kept
from lcm.retrieval.ranking.pipeline import Ranking
from lcm.retrieval.ranking.stages.crowding import Crowding
from pipelines.config import building, composition

Numbers = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]
PLAIN = ("dense_score", "lexical_score")
"""Standard scores of the source; what is learnt must be worth more than their sum."""
TURN = ("conversation_id", "session_id", "seq", "kind")
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
    ids: Sequence[str]
    """Of each question; so are the next two."""
    categories: npt.NDArray[np.str_]
    conversations: Places
    is_hard: npt.NDArray[np.bool_]
    """Of each row: among the `HARD` best of its question, before anything is learnt."""
    turns: pl.DataFrame
    """Of each row what tells which turn it is a passage of."""
    crowding: Crowding | None
    """What becomes of the scores of further passages of one turn; None = nothing."""

    def __len__(self) -> int:
        """How many questions."""
        return len(self.ids)

    @cached_property
    def is_evidence(self) -> npt.NDArray[np.bool_]:
        """Of each row: its document stands for a judged message."""
        found = np.zeros(len(self.questions), dtype=bool)
        found[self.covers[:, 0]] = True
        return found

    def of(self, columns: Sequence[str]) -> npt.NDArray[np.float32]:
        """The values of some columns."""
        return self.values[:, [self.columns.index(column) for column in columns]]

    def recalls(self, scores: Numbers, cutoff: int) -> Numbers:
        """Of each question the share of its judged messages that the first `cutoff` documents stand for."""
        is_first = self._ranks(scores)[self.covers[:, 0]] < cutoff
        is_found = np.zeros(len(self.judged), dtype=bool)
        is_found[self.covers[is_first, 1]] = True
        shares: Numbers = np.bincount(self.judged, is_found, len(self)) / np.bincount(self.judged, minlength=len(self))
        return shares

    def _ranks(self, scores: Numbers) -> Places:
        if self.crowding is None:
            return ranks(self.questions, scores)
        no_batch = cast(Batch, None)  # of which it reads nothing
        crowded = self.crowding(self.turns.with_columns(score=pl.Series(scores)), no_batch)
        return ranks(self.questions, crowded["score"].to_numpy())


def ranks(questions: Places, scores: Numbers) -> Places:
    """Of each row, from 0, among those of its question."""
    order = np.lexsort((-scores, questions))
    found = np.empty(len(scores), dtype=np.int64)
    found[order] = np.arange(len(scores)) - np.searchsorted(questions[order], questions[order])
    return found


@dataclass(slots=True)
class Recorder:
    """A stage that keeps what passes, and what messages the documents stood for then."""

    columns: Sequence[str]
    frames: list[pl.DataFrame] = field(default_factory=list)

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        found = frame.select(
            "query_id",
            *TURN,
            "document_id",
            *(pl.col(c).cast(pl.Float32).fill_nan(0).fill_null(0) for c in self.columns),
        )
        sources = batch.documents.select("document_id", message_ids="source_message_ids")
        self.frames.append(found.join(sources, on="document_id", how="inner", maintain_order="left"))
        return frame.with_columns(score=pl.lit(0.0))


def collected(
    kind: str,
    chosen: Sequence[str],
    folder: Path,
    system: Sequence[str] = ("system=unified",),
    columns: Sequence[str] | None = None,
    plain: Sequence[str] = ("words", "meaning", "alike"),
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
    memory = replace(memory, embedder=kept(memory.embedder))
    replay: Bulk = building.build(config, "replay")
    columns = tuple(columns or (*PLAIN, *evidence_columns(memory)))
    fingerprint = Fingerprint()
    inputs = [fingerprint.of(memory), fingerprint.of(replay), dataset.digest, columns]
    file = folder / f"{kind}-{digest(inputs, {*fingerprint.modules, Memory.__module__})[:16]}.parquet"
    if not file.is_file():
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_suffix(".part")
        _recorded(memory, replay, dataset, columns).write_parquet(part)
        part.replace(file)
    crowding = next((one for one in _ranking(memory).stages.values() if isinstance(one, Crowding)), None)
    return _laid_out(kind, pl.read_parquet(file), dataset, columns, plain, crowding)


def evidence_columns(system: System) -> list[str]:
    """The columns that the stages before the fusion say they make."""
    return [column for stage in _stages(_ranking(system)).values() for column in getattr(stage, "makes", ())]


def _ranking(system: System) -> Ranking:
    assert isinstance(system.ranking, Ranking)
    return system.ranking


def _stages(ranking: Ranking) -> dict[str, Stage | Expansion]:
    return dict(takewhile(lambda item: item[0] != "fusion", ranking.stages.items()))


def _recorded(system: System, replay: Bulk, dataset: Dataset, columns: Sequence[str]) -> pl.DataFrame:
    judged = dataset.evidence()
    recorder = Recorder(columns)
    ranking = _ranking(system)
    recording = Ranking(ranking.source, {**_stages(ranking), "record": recorder})
    for workspace in dataset.workspaces:
        here = dataset.part([workspace])
        queries = [query for query in here.queries if query.query_id in judged]
        if not queries:
            continue
        with Memory.open(system) as memory:
            for asked in replay.play(memory, here.transcripts, queries):
                memory.rank(asked, recording)
    return pl.concat(recorder.frames)


def _laid_out(
    kind: str,
    rows: pl.DataFrame,
    dataset: Dataset,
    columns: tuple[str, ...],
    plain: Sequence[str],
    crowding: Crowding | None,
) -> Evidence:
    judged = dataset.evidence()
    queries = [query for query in dataset.queries if query.query_id in judged]
    number = {query.query_id: i for i, query in enumerate(queries)}
    place = {workspace: i for i, workspace in enumerate(dataset.workspaces)}
    rows = rows.with_columns(
        question=pl.col("query_id").replace_strict(number, return_dtype=pl.Int64)
    ).sort("question", maintain_order=True).with_row_index("row")  # fmt: skip
    messages = pl.DataFrame(
        [(number[query_id], message_id) for query_id, of_one in judged.items() for message_id in dict.fromkeys(of_one)],
        schema={"question": pl.Int64, "message_ids": pl.String},
        orient="row",
    ).with_row_index("judged")
    covers = rows.select("row", "question", "message_ids").explode("message_ids").join(
        messages, on=["question", "message_ids"], how="inner"
    )  # fmt: skip
    questions = rows["question"].to_numpy()
    sums = rows.select(pl.sum_horizontal(pl.col(c).cast(pl.Float64) for c in plain)).to_series().to_numpy()
    turns = rows.select("query_id", *TURN)
    return Evidence(
        kind=kind,
        columns=columns,
        values=rows.select(columns).to_numpy(),
        questions=questions,
        judged=messages["question"].to_numpy(),
        covers=covers.select("row", "judged").cast(pl.Int64).to_numpy(),
        ids=list(number),
        categories=np.array([query.category or "" for query in queries]),
        conversations=np.array([place[query.workspace_id] for query in queries]),
        is_hard=ranks(questions, sums) < HARD,
        turns=turns,
        crowding=crowding if turns.is_duplicated().any() else None,
    )
