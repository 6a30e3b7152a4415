"""Folders as BEIR and MTEB publish them: every document a message, every query with its judgements.

Read are BEIR's own layout (corpus.jsonl, queries.jsonl, qrels/SPLIT.tsv), and MTEB's of today: each of corpus, queries,
qrels (or default), top_ranked and instruction a file or a folder of files by split, JSON Lines or Parquet, before which
the name of a subset may stand (`en-corpus`). Written is BEIR's, with top_ranked.jsonl and instruction.jsonl beside it.
"""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import ClassVar

import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]

from eval.dataset.card import Card, read_card, text_digest
from eval.dataset.collection import (
    CANDIDATES_SCHEMA,
    CORPUS_ID,
    CORPUS_SCHEMA,
    INSTRUCTIONS_SCHEMA,
    JUDGED_SCHEMA,
    QUERIES_SCHEMA,
    Collection,
)
from eval.dataset.dataset import Dataset, Draft, frame_of, opaque_id, text_message
from eval.dataset.files import Record, json_lines
from lcm import given_parquet
from lcm.clock import EPOCH
from lcm.derived import sum_of
from lcm.encoding import to_json
from lcm.errors import DatasetError
from lcm.files import written_whole
from lcm.given import is_given, opened_as_is
from lcm.records.conversation import Message, Transcript
from lcm.records.query import Query

_ENDINGS = (".jsonl", ".jsonl.gz", ".parquet", ".tsv")
_QREL = ("query-id", "corpus-id", "score")
ASKED_AT = EPOCH + timedelta(days=1)
"""After all was said: nothing in a collection is dated."""
_IDENTICAL = "queries have the id of a document, which is not ranked for them (dataset.ignore_identical_ids)"


@dataclass(frozen=True, slots=True)
class Beir:
    """The collection of one folder.

    A workspace is what a query may be answered with: the whole corpus, or the candidates that top_ranked names; queries
    with the same candidates share one. Times: none recorded. Judged unit: the document, which is a message here.
    """

    directory: str | None = None
    """With corpus, queries and qrels."""
    split: str = "test"
    """Of the qrels: test, dev, train; where there is one alone, that one."""
    subset: str | None = None
    """Of a folder that holds several, `en` for `en-corpus`."""
    instructions: bool = False
    """Ask `Instruct: INSTRUCTION`, a new line and `Query: QUERY` where the folder has an instruction for the query."""
    ignore_identical_ids: bool = True
    """Rank no document for a query of the same id, as BEIR does: in ArguAna and Quora the query is that document."""

    card: ClassVar[Card] = read_card("beir")

    def load(self) -> Dataset:
        if self.directory is None:
            raise DatasetError("dataset.directory names no folder: set it to one that holds corpus, queries and qrels")
        whole = read_beir(Path(self.directory).expanduser(), self.split, self.subset)
        draft = Draft()
        notes = draft.counts
        judged = whole.qrels.filter(pl.col("query_id").is_in(whole.queries["query_id"].implode()))
        judged = judged.filter(pl.col("document_id").is_in(whole.corpus["document_id"].implode()))
        notes["judgements name a query or document that is not there"] = len(whole.qrels) - len(judged)
        asked = whole.queries.join(judged, on="query_id", how="semi", maintain_order="left")
        notes[f"queries have no judgements in split {self.split} and are left out"] = len(whole.queries) - len(asked)
        candidates = _candidates(whole)
        if candidates is not None:
            offered = asked.filter(pl.col("query_id").is_in(list(candidates)))
            notes["queries have no candidates and are left out"] = len(asked) - len(offered)
            asked = offered
        native = {row["document_id"]: row for row in whole.corpus.iter_rows(named=True)}
        names: dict[tuple[str, ...], str] = {}
        of_query = dict.fromkeys(asked["query_id"], "corpus")
        workspaces: dict[str, Mapping[str, object]] = {"corpus": native} if candidates is None else {}
        for query_id, documents in ((one, candidates[one]) for one in of_query) if candidates else ():
            of_query[query_id] = names.setdefault(documents, f"candidates-{len(names)}")
            workspaces.setdefault(of_query[query_id], dict.fromkeys(documents))
        draft.transcripts += [_transcript(name, native, documents) for name, documents in workspaces.items()]
        identical = {one for one, place in of_query.items() if self.ignore_identical_ids and one in workspaces[place]}
        notes[_IDENTICAL] = len(identical)
        instructions = {} if whole.instructions is None else dict(whole.instructions.iter_rows())
        for query_id, text in asked.iter_rows():
            instruction = instructions.get(query_id) if self.instructions else None
            words = f"Instruct: {instruction}\nQuery: {text}" if instruction else text
            shown = (_message_id(query_id),) if query_id in identical else ()
            draft.queries.append(Query(query_id, words, ASKED_AT, of_query[query_id], shown_message_ids=shown))
        out = own = 0
        for query_id, document_id, relevance in judged.iter_rows():
            if query_id not in of_query:
                continue
            if document_id not in workspaces[of_query[query_id]]:
                out += relevance > 0
                continue
            draft.qrels.append((query_id, _message_id(document_id), max(relevance, 0)))
            own += relevance > 0 and query_id == document_id and query_id in identical
        notes["relevant documents are not among their query's candidates"] = out
        notes["relevant documents have the id of their query, and cannot be found"] = own
        protocol = (
            f"split={self.split} subset={self.subset} instructions={self.instructions} "
            f"ignore_identical_ids={self.ignore_identical_ids} unit=document"
        )
        return draft.dataset(self.card.name, protocol, text_digest(*map(sum_of, whole.files), protocol))


def _candidates(whole: Collection) -> dict[str, tuple[str, ...]] | None:
    """Query id -> the documents of the corpus that it may be answered with, in the corpus's order."""
    if whole.candidates is None:
        return None
    place = {document_id: number for number, document_id in enumerate(whole.corpus["document_id"])}
    sets: dict[tuple[str, ...], tuple[str, ...]] = {}  # most queries share theirs with others
    found = {}
    for query_id, documents in whole.candidates.iter_rows():
        given = tuple(documents)
        if given not in sets:
            sets[given] = tuple(sorted(place.keys() & set(given), key=place.__getitem__))
        found[query_id] = sets[given]
    return found


def _transcript(name: str, native: Mapping[str, Mapping[str, str]], documents: Iterable[str]) -> Transcript:
    session, messages = opaque_id("beir", name, "session"), list[Message]()
    for document_id in documents:
        title, words = native[document_id]["title"], native[document_id]["text"]
        document = {"_id": document_id, "title": title, "text": words}
        said = text_message(_message_id(document_id), session, " ".join(filter(None, (title, words))), document)
        messages.append(replace(said, envelope={**said.envelope, CORPUS_ID: document_id}))
    return Transcript(opaque_id("beir", name), tuple(messages), name)


def _message_id(document_id: str) -> str:
    """The ids of a collection may tell what is relevant."""
    return opaque_id("beir", document_id)


def read_beir(directory: Path, split: str = "test", subset: str | None = None) -> Collection:
    """Read the folder of a collection, DatasetError where something is missing or wrong.

    Args:
        split: of the qrels, and of all that lies in files by split; where there is one split alone, that one.
        subset: of an MTEB folder that holds several, `en` for `en-corpus`; or a folder with queries of its own.
    """
    found = _Folder(directory, split, subset)
    corpus, queries, qrels = found.rows("corpus"), found.rows("queries"), found.rows("qrels", "default")
    ranked, instructions = found.rows("top_ranked", is_needed=False), found.rows("instruction", is_needed=False)
    candidates = [(_words(row, "query-id"), [*map(str, row.get("corpus-ids", list))]) for row in ranked]
    told = [(_words(row, "query-id"), _words(row, "instruction")) for row in instructions]
    return Collection(
        corpus=_by_id(corpus, "document_id", CORPUS_SCHEMA),
        queries=_by_id(queries, "query_id", QUERIES_SCHEMA),
        qrels=_judged(qrels),
        candidates=frame_of(candidates, CANDIDATES_SCHEMA) if candidates else None,
        instructions=frame_of(told, INSTRUCTIONS_SCHEMA) if told else None,
        files=tuple(found.read),
    )


def write_beir(directory: Path, collection: Collection, split: str = "test") -> list[Path]:
    """Write a collection as BEIR lays one out; returns the files."""
    documents = collection.corpus.select(_id="document_id", title="title", text="text")
    files = {"corpus.jsonl": documents, "queries.jsonl": collection.queries.select(_id="query_id", text="text")}
    if collection.candidates is not None:
        ranked = collection.candidates.rename({"query_id": "query-id", "document_ids": "corpus-ids"})
        files["top_ranked.jsonl"] = ranked
    if collection.instructions is not None:
        files["instruction.jsonl"] = collection.instructions.rename({"query_id": "query-id"})
    for name, frame in files.items():
        with written_whole(directory / name) as file:
            for row in frame.iter_rows(named=True):
                file.write(f"{to_json(row)}\n".encode())
    text = io.StringIO()
    table = csv.writer(text, delimiter="\t", lineterminator="\n")
    table.writerow(_QREL)
    table.writerows(collection.qrels.select("query_id", "document_id", "relevance").iter_rows())
    qrels = directory / "qrels" / f"{split}.tsv"
    with written_whole(qrels) as file:
        file.write(text.getvalue().encode())
    return [*(directory / name for name in files), qrels]


class _Folder:
    """The tables of a folder, wherever its layout puts them."""

    def __init__(self, directory: Path, split: str, subset: str | None) -> None:
        self._directory, self._split, self._subset = directory, split, subset
        self.read: list[Path] = []

    def rows(self, *names: str, is_needed: bool = True) -> list[Record]:
        """All rows of the table that is there under one of these names."""
        files = next(filter(None, map(self._files, names)), [])
        if is_needed and not files:
            raise DatasetError(f"{self._directory} holds no {names[0]}{self._remedy(names[0])}")
        self.read += files
        return [row for file in files for row in _rows(file)]

    def _files(self, name: str) -> list[Path]:
        of_subset = () if self._subset is None else (f"{self._subset}-{name}", f"{self._subset}/{name}")
        for place in (self._directory / one for one in (*of_subset, name)):
            for ending in _ENDINGS:
                if is_given(file := place.with_name(place.name + ending), self._directory):
                    return [file]
            if place.is_dir():
                return self._of_split(place)
        return []

    def _of_split(self, folder: Path) -> list[Path]:
        """The files of the split that is asked for, or of the only one."""
        splits: dict[str, list[Path]] = {}
        for file in sorted(folder.iterdir()):
            if file.name.endswith(_ENDINGS) and is_given(file, self._directory):
                stem = re.sub(r"(-\d+-of-\d+)?(\.jsonl\.gz|\.\w+)$", "", file.name)
                splits.setdefault(stem, []).append(file)
        if self._split in splits:
            return splits[self._split]
        if len(splits) > 1:
            raise DatasetError(f"{folder} has no split {self._split!r}; dataset.split may be: {', '.join(splits)}")
        return next(iter(splits.values()), [])

    def _remedy(self, name: str) -> str:
        """What else there is: subsets."""
        if not self._directory.is_dir():
            return ": there is no such folder"
        names = (one.name.partition(".")[0] for one in sorted(self._directory.iterdir()))
        subsets = list(dict.fromkeys(one.removesuffix(f"-{name}") for one in names if one.endswith(f"-{name}")))
        subsets += [one.parent.name for one in sorted(self._directory.glob(f"*/{name}.*"))]
        if subsets:
            return f"; dataset.subset may be: {', '.join(subsets)}"
        return f": it must have {name}.jsonl, or a folder {name} of JSON Lines, Parquet or tab-separated files"


def _rows(file: Path) -> Iterator[Record]:
    if file.suffix not in (".parquet", ".tsv"):
        yield from json_lines(file, str(file))
        return
    try:
        if file.suffix == ".tsv":
            yield from _tsv(file)
        else:
            rows = (row for some in given_parquet.rows(file, DatasetError) for row in some.columns.to_pylist())
            yield from (Record(f"{file} row {number}", row) for number, row in enumerate(rows, start=1))
    except (UnicodeDecodeError, OSError, pa.ArrowException, csv.Error) as error:
        raise DatasetError(f"{file} cannot be read: {str(error).splitlines()[0]}") from error


def _tsv(file: Path) -> Iterator[Record]:
    """BEIR's qrels: a heading, then query, document and score; three fields that end in a number are no heading."""
    with io.TextIOWrapper(opened_as_is(file), "utf-8-sig", newline="") as lines:
        for number, row in enumerate(csv.reader(lines, delimiter="\t"), start=1):
            if not row or (number == 1 and not (len(row) == 3 and re.fullmatch(r"-?\d+", row[2].strip()))):
                continue
            if len(row) != 3:
                raise DatasetError(f"{file} line {number}: expected {', '.join(_QREL)} between tabs, got {row!r}")
            yield Record(f"{file} line {number}", dict(zip(_QREL, row, strict=True)))


def _words(row: Record, *keys: str) -> str:
    """What stands under the first of the keys that is there."""
    for key in keys:
        if (words := row.find_words(key)) is not None:
            return words
    raise DatasetError(f"{row.place}: it has no {' or '.join(keys)}, only {', '.join(row.fields) or 'nothing'}")


def _judged(rows: Iterable[Record]) -> pl.DataFrame:
    judged: dict[tuple[str, str], int] = {}
    for row in rows:
        pair, score = (_words(row, "query-id"), _words(row, "corpus-id")), row.fields.get("score")
        try:
            relevance = float(score)  # type: ignore[arg-type]
            is_whole = relevance == int(relevance)
        except (TypeError, ValueError, OverflowError):
            is_whole = False
        if not is_whole:
            raise DatasetError(f"{row.place}: score must be a whole number, got {score!r}")
        if judged.setdefault(pair, int(relevance)) != relevance:
            raise DatasetError(f"{row.place}: {pair[1]!r} is judged otherwise for query {pair[0]!r} before")
    return frame_of([(*pair, score) for pair, score in judged.items()], JUDGED_SCHEMA)


def _by_id(rows: Iterable[Record], column: str, schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """Rows under their ids: each id once."""
    found: dict[str, dict[str, str]] = {}
    for row in rows:
        name = _words(row, "_id", "id")
        if name in found:
            raise DatasetError(f"{row.place}: {name!r} stands there before: ids must be unique")
        found[name] = {column: name, "title": row.find_words("title") or "", "text": _words(row, "text")}
    return frame_of([[row[key] for key in schema] for row in found.values()], schema)
