"""A dataset as other tools know it: a collection of documents, queries, and judgements of which document answers which.

TREC files are qrels (`topic iteration docno relevance`) and runs (`topic Q0 docno rank score tag`), a row a line.
Fields stand between blanks, so no id holds one. The order of a run is trec_eval's: by score, in single precision,
highest first; of equal scores the docno that sorts last comes first. The rank that a line names counts for nothing.
"""

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from urllib.parse import quote

import numpy as np
import polars as pl

from eval.dataset.card import text_digest
from eval.dataset.dataset import QRELS_SCHEMA, SESSION_QRELS_SCHEMA, Dataset, frame_of
from eval.questions.quotation import OF_OVERLAP
from lcm.errors import DatasetError
from lcm.files import written_whole
from lcm.given import read_whole
from lcm.records.conversation import Message
from lcm.transcript.passages import SAID
from lcm.writing.extraction.said import words_of

_TEXT, _PAIR = pl.String(), dict[str, pl.DataType](query_id=pl.String(), document_id=pl.String())
CORPUS_SCHEMA: dict[str, pl.DataType] = {"document_id": _TEXT, "title": _TEXT, "text": _TEXT}
QUERIES_SCHEMA: dict[str, pl.DataType] = {"query_id": _TEXT, "text": _TEXT}
JUDGED_SCHEMA: dict[str, pl.DataType] = {**_PAIR, "relevance": pl.Int64()}
CANDIDATES_SCHEMA: dict[str, pl.DataType] = {"query_id": _TEXT, "document_ids": pl.List(_TEXT)}
INSTRUCTIONS_SCHEMA: dict[str, pl.DataType] = {"query_id": _TEXT, "instruction": _TEXT}
TREC_RUN_SCHEMA: dict[str, pl.DataType] = {**_PAIR, "rank": pl.Int64(), "score": pl.Float64()}
_BYTE_ORDER_MARK = "\ufeff"  # at the start of a file it is no part of the text
_QREL, _RUN = ("topic", "iteration", "docno", "relevance"), ("topic", "Q0", "docno", "rank", "score", "tag")
CORPUS_ID = "corpus_id"
"""The key of an envelope that holds the id of the document which a message was made of."""
_BLANK, _BLANK_OR_PERCENT = re.compile(r"\s"), re.compile(r"[\s%]")


@dataclass(frozen=True, slots=True)
class Collection:
    """Documents, queries and judgements, as they stand in the files: ids are those of the files."""

    corpus: pl.DataFrame
    """Rows of `CORPUS_SCHEMA`; a document without a title has the empty one."""
    queries: pl.DataFrame
    """Rows of `QUERIES_SCHEMA`."""
    qrels: pl.DataFrame
    """Rows of `JUDGED_SCHEMA`; relevance 0 was judged and found not to be relevant."""
    candidates: pl.DataFrame | None = None
    """Rows of `CANDIDATES_SCHEMA`: what a query may be answered with; None = the whole corpus."""
    instructions: pl.DataFrame | None = None
    """Rows of `INSTRUCTIONS_SCHEMA`: what an embedder is told beside a query."""
    files: tuple[Path, ...] = field(default=(), compare=False)


def document_ids(dataset: Dataset) -> dict[tuple[str, str], str]:
    """(workspace, message id) -> the id of the message as a document.

    That is the id of the document that it was made of, else the message's own; where one id names different messages
    of two workspaces, `WORKSPACE/ID` stands for each. Where a message's own holds a blank, as the name of a file may,
    each blank of any is written %20, and % is %25.
    """
    named: dict[tuple[str, str], str] = {}
    words: dict[str, tuple[str, str]] = {}
    is_shared = is_own = False
    for workspace, message in _messages(dataset):
        document_id = str(message.envelope.get(CORPUS_ID) or message.message_id)
        said = _title_and_text(message)
        is_own |= CORPUS_ID not in message.envelope
        is_shared |= words.setdefault(document_id, said) != said
        named[workspace, message.message_id] = document_id
    if is_shared:
        named = {place: f"{place[0]}/{name}" for place, name in named.items()}
    if is_own and any(_BLANK.search(name) for name in named.values()):
        named = {place: _BLANK_OR_PERCENT.sub(lambda one: quote(one[0]), name) for place, name in named.items()}
    return named


def collection_of(dataset: Dataset) -> tuple[Collection, tuple[str, ...]]:
    """The dataset as documents, queries and judgements, and what of it that cannot say, a line each.

    A document is a message, in the words that `extraction=verbatim` makes of it. Where a query may not be answered with
    every document, because the others are of another workspace or were said after it was asked, its candidates say so.
    """
    names = document_ids(dataset)
    documents: dict[str, tuple[str, str]] = {}
    for workspace, message in _messages(dataset):
        documents.setdefault(names[workspace, message.message_id], _title_and_text(message))
    workspace_of = {query.query_id: query.workspace_id for query in dataset.queries}
    qrels = [
        (query_id, names[workspace_of[query_id], message_id], relevance)
        for query_id, message_id, relevance in dataset.qrels.select("query_id", "message_id", "relevance").iter_rows()
    ]
    candidates = list(_candidates(dataset, names))
    is_open = all(len(ids) == len(documents) for _, ids in candidates)
    queries = [(query.query_id, query.text) for query in dataset.queries]
    collection = Collection(
        corpus=frame_of([(name, *words) for name, words in documents.items()], CORPUS_SCHEMA),
        queries=frame_of(queries, QUERIES_SCHEMA),
        qrels=frame_of(qrels, JUDGED_SCHEMA),
        candidates=None if is_open else frame_of(candidates, CANDIDATES_SCHEMA),
    )
    return collection, _left_out(dataset)


def _messages(dataset: Dataset) -> Iterator[tuple[str, Message]]:
    for transcript in dataset.transcripts:
        for message in transcript.messages:
            yield transcript.workspace_id, message


def _title_and_text(message: Message) -> tuple[str, str]:
    if CORPUS_ID in message.envelope:
        native = message.envelope["native"]
        return native["title"], native["text"]
    return "", words_of(message, author_prefix=True, kinds=SAID)


def _candidates(dataset: Dataset, names: dict[tuple[str, str], str]) -> Iterator[tuple[str, list[str]]]:
    """Query id -> the documents of its workspace that were said when it was asked, in their order."""
    said: dict[str, list[tuple[datetime, str]]] = defaultdict(list)
    for transcript in dataset.transcripts:
        ids = (names[transcript.workspace_id, message.message_id] for message in transcript.messages)
        said[transcript.workspace_id] += zip(transcript.instants(), ids, strict=True)
    for query in dataset.queries:
        visible = (name for instant, name in said[query.workspace_id] if instant <= query.asked_at)
        yield query.query_id, list(visible)


def _left_out(dataset: Dataset) -> tuple[str, ...]:
    by_message = Counter(dataset.qrels.filter(pl.col("relevance") > 0)["query_id"])
    by_session = set(dataset.session_qrels["query_id"]) - by_message.keys()
    judged = by_message.keys() | by_session
    unjudged = sum(query.query_id not in judged for query in dataset.queries)
    notes = {
        f"{len(by_session)} queries are judged by session alone, which judgements of documents cannot say": by_session,
        f"{unjudged} queries have no judgements: most tools leave these out": unjudged,
        "who said what in which session and when is not in a collection": True,
    }
    return tuple(note for note, holds in notes.items() if holds)


def rejudged(dataset: Dataset, path: Path) -> Dataset:
    """The same transcripts and queries, judged as a file of TREC qrels says.

    Topics are query ids, and docnos the ids that `lcm datasets write` gives messages. Relevance below 0 counts as 0. A
    dataset that is judged by the file already stays as it is. Refused is a row that names what is not in the dataset,
    and a file that judges nothing relevant.
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
        digest=text_digest(dataset.digest, sha256),
        qrels=frame_of(rows, QRELS_SCHEMA),
        session_qrels=frame_of([], SESSION_QRELS_SCHEMA),
        repaired_qrels=None,
        notes=(*kept, f"judged by {path} in place of the dataset's own judgements"),
    )


def read_trec_qrels(path: Path) -> pl.DataFrame:
    """Rows of `JUDGED_SCHEMA`, in the order of the file; DatasetError where a line is none, or judges again."""
    judged: dict[tuple[str, str], int] = {}
    for number, (topic, _, docno, relevance) in _lines(path, _QREL):
        if (topic, docno) in judged:
            raise DatasetError(f"{path} line {number}: {docno!r} is judged for topic {topic!r} before: leave one out")
        judged[topic, docno] = int(_number(int, relevance, path, number, "relevance must be a whole number"))
    return frame_of([(*pair, relevance) for pair, relevance in judged.items()], JUDGED_SCHEMA)


def write_trec_qrels(path: Path, qrels: pl.DataFrame) -> None:
    """Write rows of `JUDGED_SCHEMA`; DatasetError, and nothing written, where an id holds a blank."""
    _check_pairs(qrels)
    rows = qrels.select("query_id", "document_id", "relevance").iter_rows()
    _write(path, (f"{topic} 0 {docno} {relevance}" for topic, docno, relevance in rows))


def read_trec_run(path: Path) -> pl.DataFrame:
    """Rows of `TREC_RUN_SCHEMA`: best first, as trec_eval orders them; queries in the order of the file. DatasetError
    where a line is none, or names a document of its topic again."""
    found: dict[str, dict[str, float]] = {}
    for number, (topic, _, docno, _, score, _) in _lines(path, _RUN):
        scores = found.setdefault(topic, {})
        if docno in scores:
            raise DatasetError(f"{path} line {number}: topic {topic!r} has {docno!r} before: leave one out")
        scores[docno] = _number(float, score, path, number, "score must be a number")
        if not np.isfinite(scores[docno]):
            raise DatasetError(f"{path} line {number}: score must be a finite number, got {score!r}")
    rows = [
        (topic, docno, rank, scores[docno])
        for topic, scores in found.items()
        for rank, docno in enumerate(trec_order(scores), start=1)
    ]
    return frame_of(rows, TREC_RUN_SCHEMA)


def write_trec_run(path: Path, run: pl.DataFrame, tag: str) -> bool:
    """Write rows of `TREC_RUN_SCHEMA` so that trec_eval finds each document at the rank that it has.

    Its own scores stand in the file. One that equals the score before it, where that would turn both around, is lowered
    by the least step of single precision. Where a later score is higher, 1 / rank stands in place of all.

    Returns:
        Whether its own scores are written.
    Raises:
        DatasetError: if an id or the tag holds a blank; nothing is written.
    """
    _check_pairs(run)
    check_ids([tag], "tag")
    ranked: dict[str, list[tuple[str, float]]] = {}
    for topic, docno, score in run.sort("rank", maintain_order=True).select("query_id", "document_id", "score").rows():
        ranked.setdefault(topic, []).append((docno, score))
    scores = [_falling(documents) for documents in ranked.values()]
    has_own = None not in scores
    _write(
        path,
        (
            f"{topic} Q0 {docno} {rank} {own[rank - 1] if has_own and own else 1 / rank!r} {tag}"
            for (topic, documents), own in zip(ranked.items(), scores, strict=True)
            for rank, (docno, _) in enumerate(documents, start=1)
        ),
    )
    return has_own


def _falling(documents: Sequence[tuple[str, float | None]]) -> list[float] | None:
    """Scores by which trec_eval finds the documents in this order; None where their own rise, or are no numbers."""
    told: list[float] = []
    own, last, before = np.float32(np.inf), np.float32(np.inf), b""
    for docno, score in documents:
        single = np.float32(np.nan if score is None else score)
        if score is None or not np.isfinite(single) or single > own:
            return None
        own = single
        if told and (single > last or (single == last and docno.encode() > before)):
            single = np.nextafter(last, np.float32(-np.inf))
            score = float(single)
        told.append(score)
        last, before = single, docno.encode()
    return told


def trec_order(scores: dict[str, float]) -> list[str]:
    """The documents of a query, as trec_eval orders them."""
    single = np.array(list(scores.values()), np.float64).astype(np.float32)
    by_docno = sorted(zip(single, scores, strict=True), key=lambda pair: pair[1].encode(), reverse=True)
    return [docno for _, docno in sorted(by_docno, key=lambda pair: -pair[0])]


def _check_pairs(rows: pl.DataFrame) -> None:
    for name in ("query", "document"):
        check_ids(rows[f"{name}_id"], f"{name} id")


def check_ids(ids: Sequence[str] | pl.Series, what: str) -> None:
    """Refuse ids that a field between blanks cannot hold; the message names the first, and how many there are."""
    bad = [one for one in dict.fromkeys(ids) if one.startswith(_BYTE_ORDER_MARK) or one.split() != [one]]
    if bad:
        more = f" and {len(bad) - 1} more" if len(bad) > 1 else ""
        raise DatasetError(
            f"a TREC file keeps its fields between blanks, and the {what} {bad[0]!r}{more} holds one, begins with "
            "a byte order mark, or is empty: give it an id without them, or write formats=beir alone"
        )


def _lines(path: Path, fields: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    try:
        text = read_whole(path, DatasetError).decode("utf-8-sig")
    except FileNotFoundError as error:
        raise DatasetError(f"{path}: no such file") from error
    except OSError as error:
        raise DatasetError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise DatasetError(f"{path} cannot be read as UTF-8 text: {error}") from error
    for number, line in enumerate(text.split("\n"), start=1):
        row = line.split()
        if not row:
            continue
        if len(row) != len(fields):
            raise DatasetError(
                f"{path} line {number}: expected {len(fields)} fields ({' '.join(fields)}), got {len(row)}"
            )
        yield number, row


def _number(kind: type, text: str, path: Path, number: int, wanted: str) -> int | float:
    try:
        value: int | float = kind(text)
    except ValueError as error:
        raise DatasetError(f"{path} line {number}: {wanted}, got {text!r}") from error
    return value


def _write(path: Path, lines: Iterator[str]) -> None:
    with written_whole(path) as file:
        for line in lines:
            file.write(f"{line}\n".encode())
