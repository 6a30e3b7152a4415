"""An arm that another system ranked: its recorded run, read from a TREC file, in the table beside ours."""

import logging
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from eval.dataset.collection import document_ids, read_trec_run
from eval.dataset.dataset import Dataset
from lcm.errors import DatasetError
from lcm.protocols.contract import Contract
from lcm.protocols.retrieval import Batch
from lcm.retrieval.ranking.pipeline import Ranking
from lcm.retrieval.source.indexes import CANDIDATE_SCHEMA

_log = logging.getLogger(__name__)
UNSEEN = "documents of a recorded run that the memory does not hold, or not yet when asked"


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """The rankings that a file holds, in trec_eval's order.

    Topics are the dataset's query ids, and a docno is the id that `lcm datasets write` gives a message. What stands for
    a message is the document of the memory that covers fewest others beside it; what the memory does not hold, or held
    only after the query was asked, is left out and counted.
    """

    file: str | None = None
    """A TREC run."""

    def ranking(self, dataset: Dataset) -> Ranking:
        """The run as a ranking over the memory of a dataset.

        Raises:
            DatasetError: if no file is named, or it answers none of the dataset's queries with any of its messages.
        """
        if self.file is None:
            raise DatasetError("arms.recorded.file names no file: set it to a TREC run of the same queries")
        path = Path(self.file).expanduser()
        run = read_trec_run(path)
        asked = {query.query_id: query for query in dataset.queries}
        message = {(place[0], name): place[1] for place, name in document_ids(dataset).items()}
        rows, unasked, unknown = [], set(), 0
        for query_id, docno, rank, _ in run.iter_rows():
            if (query := asked.get(query_id)) is None:
                unasked.add(query_id)
            elif (found := message.get((query.workspace_id, docno))) is None:
                unknown += 1
            elif found not in query.shown_message_ids:
                rows.append((query_id, found, rank))
        if not rows:
            raise DatasetError(
                f"{path} answers no query of dataset {dataset.name!r} with a message of it: its topics must be query "
                "ids and its docnos message ids, as `lcm datasets write` names them"
            )
        if unasked:
            _log.warning("%s: %d of its topics are no queries of %s", path, len(unasked), dataset.name)
        if unknown:
            _log.warning("%s: %d of its rows name no message that their query may be answered with", path, unknown)
        schema = {"query_id": pl.String, "message_id": pl.String, "rank": pl.Int64}
        return Ranking(RecordedSource(pl.DataFrame(rows, schema=schema, orient="row")))


@dataclass(frozen=True, slots=True)
class RecordedSource:
    """The source of a recorded run: of the visible documents those that stand for what was ranked."""

    run: pl.DataFrame
    """Columns query_id, message_id, rank: best first."""
    contract = Contract(asks=())

    def candidates(self, batch: Batch) -> pl.DataFrame:
        standing = (
            batch.documents.select("document_id", message_id="source_message_ids")
            .with_columns(covered=pl.col("message_id").list.len())
            .explode("message_id")
            .sort("covered", maintain_order=True)
            .unique("message_id", keep="first", maintain_order=True)
        )
        asked = batch.queries.select("query_id", "asked_at")
        ranked = asked.join(self.run, on="query_id", maintain_order="left_right")
        found = ranked.join(standing, on="message_id", maintain_order="left")
        if unseen := len(ranked) - len(found):
            batch.incidents[UNSEEN] += unseen
        frame = found.unique(["query_id", "document_id"], keep="first", maintain_order=True).select(
            "query_id", "asked_at", "document_id", score=1 / pl.col("rank")
        )
        return frame.match_to_schema(CANDIDATE_SCHEMA, missing_columns="insert")
