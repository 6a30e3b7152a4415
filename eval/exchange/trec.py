"""TREC files: qrels (`topic iteration docno relevance`) and runs (`topic Q0 docno rank score tag`), a row a line.

Fields stand between blanks, so no id holds one. The order of a run is trec_eval's: by score, in single precision,
highest first; of equal scores the docno that sorts last comes first. The rank that a line names counts for nothing.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from eval.exchange.collection import JUDGED_SCHEMA
from lcm.errors import DatasetError
from lcm.files import written_whole
from lcm.given import read_whole

TREC_RUN_SCHEMA: dict[str, pl.DataType] = {
    "query_id": pl.String(),
    "document_id": pl.String(),
    "rank": pl.Int64(),
    "score": pl.Float64(),
}
_BYTE_ORDER_MARK = "\ufeff"  # at the start of a file it is no part of the text
_QREL, _RUN = ("topic", "iteration", "docno", "relevance"), ("topic", "Q0", "docno", "rank", "score", "tag")


def read_trec_qrels(path: Path) -> pl.DataFrame:
    """Rows of `JUDGED_SCHEMA`, in the order of the file.

    Raises:
        DatasetError: naming the line that is none, or that judges again what a line before it judges.
    """
    judged: dict[tuple[str, str], int] = {}
    for number, (topic, _, docno, relevance) in _lines(path, _QREL):
        if (topic, docno) in judged:
            raise DatasetError(f"{path} line {number}: {docno!r} is judged for topic {topic!r} before: leave one out")
        judged[topic, docno] = int(_number(int, relevance, path, number, "relevance must be a whole number"))
    rows = [(topic, docno, relevance) for (topic, docno), relevance in judged.items()]
    return pl.DataFrame(rows, schema=JUDGED_SCHEMA, orient="row")


def write_trec_qrels(path: Path, qrels: pl.DataFrame) -> None:
    """Write rows of `JUDGED_SCHEMA`.

    Raises:
        DatasetError: if an id holds a blank; nothing is written.
    """
    check_ids(qrels["query_id"], "query id")
    check_ids(qrels["document_id"], "document id")
    rows = qrels.select("query_id", "document_id", "relevance").iter_rows()
    _write(path, (f"{topic} 0 {docno} {relevance}" for topic, docno, relevance in rows))


def read_trec_run(path: Path) -> pl.DataFrame:
    """Rows of `TREC_RUN_SCHEMA`: best first, as trec_eval orders them; queries in the order of the file.

    Raises:
        DatasetError: naming the line that is none, or that names a document of its topic again.
    """
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
    return pl.DataFrame(rows, schema=TREC_RUN_SCHEMA, orient="row")


def write_trec_run(path: Path, run: pl.DataFrame, tag: str) -> bool:
    """Write rows of `TREC_RUN_SCHEMA` so that trec_eval finds each document at the rank that it has.

    Its own scores stand in the file. One that equals the score before it, where that would turn both around, is lowered
    by the least step of single precision. Where a later score is higher, 1 / rank stands in place of all.

    Returns:
        Whether its own scores are written.
    Raises:
        DatasetError: if an id or the tag holds a blank; nothing is written.
    """
    check_ids(run["query_id"], "query id")
    check_ids(run["document_id"], "document id")
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


def check_ids(ids: Sequence[str] | pl.Series, what: str) -> None:
    """Refuse ids that a field between blanks cannot hold.

    Raises:
        DatasetError: naming the first, and how many there are.
    """
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
