"""A dataset with the judgements of a file in place of its own."""

import hashlib
from dataclasses import replace
from pathlib import Path

import polars as pl

from eval.dataset.collected import document_ids
from eval.dataset.dataset import QRELS_SCHEMA, SESSION_QRELS_SCHEMA, Dataset
from eval.exchange.trec import read_trec_qrels
from eval.questions.overlap import OF_OVERLAP
from lcm.errors import DatasetError
from lcm.given import read_whole


def rejudged(dataset: Dataset, path: Path) -> Dataset:
    """The same transcripts and queries, judged as a file of TREC qrels says.

    Topics are query ids, and docnos the ids that `lcm datasets write` gives messages. Relevance below 0 counts as 0. A
    dataset that is judged by the file already stays as it is.

    Raises:
        DatasetError: if a row names what is not in the dataset, or nothing is judged relevant.
    """
    rows_of_file = read_trec_qrels(path)
    sha256 = hashlib.sha256(read_whole(path, DatasetError)).hexdigest()
    judged = f" judgements={sha256[:12]}"
    if dataset.protocol.endswith(judged):
        return dataset
    workspace = {query.query_id: query.workspace_id for query in dataset.queries}
    message = {(place[0], name): place[1] for place, name in document_ids(dataset).items()}
    rows = []
    for query_id, docno, relevance in rows_of_file.iter_rows():
        if query_id not in workspace:
            raise DatasetError(f"{path} judges query {query_id!r}, which dataset {dataset.name!r} does not ask")
        if (workspace[query_id], docno) not in message:
            raise DatasetError(
                f"{path} judges {docno!r} for query {query_id!r}, which is no message of its workspace in dataset "
                f"{dataset.name!r}"
            )
        rows.append((query_id, message[workspace[query_id], docno], max(relevance, 0)))
    if not any(relevance for _, _, relevance in rows):
        raise DatasetError(f"{path} judges nothing relevant: there is nothing to measure retrieval by")
    kept = [note for note in dataset.notes if not note.endswith(OF_OVERLAP)]
    return replace(
        dataset,
        protocol=f"{dataset.protocol}{judged}",
        digest=hashlib.sha256(f"{dataset.digest}\n{sha256}".encode()).hexdigest(),
        qrels=pl.DataFrame(rows, schema=QRELS_SCHEMA, orient="row"),
        session_qrels=pl.DataFrame(schema=SESSION_QRELS_SCHEMA),
        repaired_qrels=None,
        notes=(*kept, f"judged by {path} in place of the dataset's own judgements"),
    )
