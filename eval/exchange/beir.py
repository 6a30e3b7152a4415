"""A folder as BEIR and MTEB publish one: corpus, queries, qrels, and what a query may be answered with.

Read are BEIR's own layout (corpus.jsonl, queries.jsonl, qrels/SPLIT.tsv), and MTEB's of today: each of corpus, queries,
qrels (or default), top_ranked and instruction a file or a folder of files by split, JSON Lines or Parquet, before which
the name of a subset may stand (`en-corpus`). Written is BEIR's, with top_ranked.jsonl and instruction.jsonl beside it.
"""

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]

from eval.exchange.collection import (
    CANDIDATES_SCHEMA,
    CORPUS_SCHEMA,
    INSTRUCTIONS_SCHEMA,
    JUDGED_SCHEMA,
    QUERIES_SCHEMA,
    Collection,
)
from lcm import given_parquet
from lcm.encoding import to_json
from lcm.errors import DatasetError
from lcm.files import written_whole
from lcm.given import is_given, opened, opened_as_is

_ENDINGS = (".jsonl", ".jsonl.gz", ".parquet", ".tsv")
_QREL = ("query-id", "corpus-id", "score")


def read_beir(directory: Path, split: str = "test", subset: str | None = None) -> Collection:
    """Read the folder of a collection.

    Args:
        split: of the qrels, and of all that lies in files by split; where there is one split alone, that one.
        subset: of an MTEB folder that holds several, `en` for `en-corpus`; or a folder with queries of its own.
    Raises:
        DatasetError: naming what is missing, or the line that is wrong.
    """
    found = _Folder(directory, split, subset)
    corpus, queries = found.rows("corpus"), found.rows("queries")
    qrels, ranked, instructions = found.qrels(), found.optional("top_ranked"), found.optional("instruction")
    return Collection(
        corpus=_by_id(corpus, "document_id", CORPUS_SCHEMA),
        queries=_by_id(queries, "query_id", QUERIES_SCHEMA),
        qrels=qrels,
        candidates=None if ranked is None else _frame(_told(ranked, "corpus-ids", _ids), CANDIDATES_SCHEMA),
        instructions=None if instructions is None else _instructions(instructions),
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


Row = tuple[str, Mapping[str, Any]]
"""Where a row stands, and what it holds."""


class _Folder:
    """The tables of a folder, wherever its layout puts them."""

    def __init__(self, directory: Path, split: str, subset: str | None) -> None:
        self._directory, self._split, self._subset = directory, split, subset
        self.read: list[Path] = []

    def rows(self, name: str) -> list[Row]:
        """All rows of a table.

        Raises:
            DatasetError: if there is none.
        """
        rows = self.optional(name)
        if rows is None:
            raise DatasetError(f"{self._directory} holds no {name}{self._remedy(name)}")
        return rows

    def optional(self, name: str) -> list[Row] | None:
        """All rows of a table, or None."""
        files = self._files(name)
        self.read += files
        return [row for file in files for row in _rows(file)] if files else None

    def qrels(self) -> pl.DataFrame:
        """Rows of `JUDGED_SCHEMA`.

        Raises:
            DatasetError: if there are none, or one is wrong.
        """
        files = self._files("qrels") or self._files("default")
        if not files:
            raise DatasetError(f"{self._directory} holds no qrels{self._remedy('qrels')}")
        self.read += files
        judged: dict[tuple[str, str], int] = {}
        for file in files:
            for place, row in _rows(file):
                query_id, document_id, score = (_value(place, row, key) for key in _QREL)
                pair = str(query_id), str(document_id)
                if judged.setdefault(pair, _whole(place, score)) != _whole(place, score):
                    raise DatasetError(f"{place}: {pair[1]!r} is judged otherwise for query {pair[0]!r} before")
        return pl.DataFrame([(*pair, score) for pair, score in judged.items()], schema=JUDGED_SCHEMA, orient="row")

    def _files(self, name: str) -> list[Path]:
        for place in self._places(name):
            for ending in _ENDINGS:
                if is_given(file := place.with_name(place.name + ending), self._directory):
                    return [file]
            if place.is_dir():
                return self._of_split(place)
        return []

    def _places(self, name: str) -> Iterator[Path]:
        if self._subset is not None:
            yield self._directory / f"{self._subset}-{name}"
            yield self._directory / self._subset / name
        yield self._directory / name

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


def _rows(file: Path) -> Iterator[Row]:
    """The rows of a file, each with its place."""
    try:
        if file.suffix == ".parquet":
            rows = (row for some in given_parquet.rows(file, DatasetError) for row in some.columns.to_pylist())
            yield from ((f"{file} row {n}", row) for n, row in enumerate(rows, 1))
        elif file.suffix == ".tsv":
            yield from _tsv(file)
        else:
            yield from _json_lines(file)
    except (UnicodeDecodeError, OSError, pa.ArrowException, csv.Error) as error:
        raise DatasetError(f"{file} cannot be read: {str(error).splitlines()[0]}") from error


def _json_lines(file: Path) -> Iterator[Row]:
    with opened(file, DatasetError) as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line.decode("utf-8-sig"))
            except ValueError as error:
                raise DatasetError(f"{file} line {number}: not JSON ({error})") from error
            if not isinstance(row, dict):
                raise DatasetError(f"{file} line {number}: expected an object, got {type(row).__name__}")
            yield f"{file} line {number}", row


def _tsv(file: Path) -> Iterator[Row]:
    """BEIR's qrels: a heading, then query, document and score; three fields that end in a number are no heading."""
    with io.TextIOWrapper(opened_as_is(file), "utf-8-sig", newline="") as lines:
        for number, row in enumerate(csv.reader(lines, delimiter="\t"), start=1):
            if not row or (number == 1 and not (len(row) == 3 and re.fullmatch(r"-?\d+", row[2].strip()))):
                continue
            if len(row) != 3:
                raise DatasetError(f"{file} line {number}: expected {', '.join(_QREL)} between tabs, got {row!r}")
            yield f"{file} line {number}", dict(zip(_QREL, row, strict=True))


def _value(place: str, row: Mapping[str, Any], *keys: str) -> Any:
    """What stands under the first of the keys that is there.

    Raises:
        DatasetError: if none is.
    """
    for key in keys:
        if row.get(key) is not None:
            return row[key]
    raise DatasetError(f"{place}: it has no {' or '.join(keys)}, only {', '.join(row) or 'nothing'}")


def _whole(place: str, value: Any) -> int:
    try:
        number = float(value)
        if number == int(number):
            return int(number)
    except (TypeError, ValueError, OverflowError):
        pass
    raise DatasetError(f"{place}: score must be a whole number, got {value!r}")


def _by_id(rows: Sequence[Row], column: str, schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """Rows under their ids: each id once."""
    found: dict[str, dict[str, Any]] = {}
    for place, row in rows:
        name = str(_value(place, row, "_id", "id"))
        if name in found:
            raise DatasetError(f"{place}: {name!r} stands there before: ids must be unique")
        found[name] = {column: name, "title": str(row.get("title") or ""), "text": str(_value(place, row, "text"))}
    return _frame([[row[key] for key in schema] for row in found.values()], schema)


def _told(rows: Sequence[Row], key: str, read: Any = str) -> list[tuple[str, Any]]:
    return [(str(_value(place, row, "query-id")), read(_value(place, row, key))) for place, row in rows]


def _instructions(rows: Sequence[Row]) -> pl.DataFrame:
    return _frame(_told(rows, "instruction"), INSTRUCTIONS_SCHEMA)


def _ids(values: Any) -> list[str]:
    return list(map(str, values))


def _frame(rows: Sequence[Sequence[Any]], schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
    return pl.DataFrame(list(rows), schema=dict(schema), orient="row")
