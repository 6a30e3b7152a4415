"""Parquet that others give: the same rows, in pieces, and refused before it becomes what nobody could hold."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eval.dataset.beir import Beir
from lcm.errors import DatasetError, LimitError, TranscriptError
from lcm.given_parquet import rows
from lcm.limits import UNPACKED_RATIO
from lcm.records.conversation import Message, Transcript
from lcm.transcript.parquet import write_parquet
from lcm.transcript.reading import read_transcripts
from tests.support.read_questions import read_questions

N = 100_000
ONCE = pa.array(np.zeros(N, np.int32))
REFUSED = r"becomes more than [\d,]+ bytes when it is unpacked, 200 for each.*LCM_MAX_UNPACKED_RATIO raises the limit"


def named_often(text: str) -> pa.Array:
    """One text, which N values name."""
    return pa.DictionaryArray.from_arrays(ONCE, pa.array([text]))


def one_list(values: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values)


BOMBS: dict[str, Callable[[], dict[str, Any]]] = {
    "a long text in every row": lambda: {"role": named_often("user"), "content": named_often("a" * 100_000)},
    "a long text in every entry of a list": lambda: {"role": ["user"], "content": one_list(named_often("a" * 100_000))},
    "a list of zeros": lambda: {"role": ["user"], "content": one_list(pa.array(np.zeros(20_000_000, np.int32)))},
    "one long text": lambda: {"role": ["user"], "content": ["a" * 80_000_000]},
}


@pytest.fixture(autouse=True)
def memory_is_given_back() -> Iterator[None]:
    yield
    pa.default_memory_pool().release_unused()


def bomb(path: Path, name: str) -> Path:
    pq.write_table(pa.table(BOMBS[name]()), path, compression="zstd", dictionary_pagesize_limit=2**20)
    assert path.stat().st_size < 100_000
    return path


@pytest.mark.parametrize("name", BOMBS)
def test_a_small_file_that_becomes_a_huge_one_is_refused(name: str, tmp_path: Path) -> None:
    path = bomb(tmp_path / "bomb.parquet", name)
    with pytest.raises(LimitError, match=rf"bomb.parquet: {REFUSED}"):
        list(rows(path))


def test_millions_of_rows_of_a_small_file_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "many.parquet"
    monkeypatch.setattr("lcm.given._ANY_BYTES", N * 64 - 1)
    pq.write_table(pa.table({"role": named_often(""), "content": named_often("")}), path)
    with pytest.raises(LimitError, match=REFUSED):
        list(rows(path))
    monkeypatch.setenv(UNPACKED_RATIO.variable, "100000")
    assert sum(some.columns.num_rows for some in rows(path)) == N


def test_every_door_that_reads_parquet_refuses_it(tmp_path: Path) -> None:
    path = bomb(tmp_path / "corpus.parquet", "a long text in every row")
    with pytest.raises(TranscriptError, match=REFUSED):
        read_transcripts(path)
    with pytest.raises(DatasetError, match=REFUSED):
        read_questions(path)
    with pytest.raises(DatasetError, match=REFUSED):
        Beir(directory=str(tmp_path)).load()


def test_rows_are_what_was_written(tmp_path: Path) -> None:
    held = [
        {
            "text": f"{i}" * (i % 7),
            "none": None,
            "number": i,
            "instant": datetime(2020, 1, 1, tzinfo=UTC),
            "decimal": Decimal("1.5"),
            "bytes": b"123",
            "texts": [f"s{i}", None],
            "objects": [{"a": "xxx", "b": [1, 2]}, {"a": None, "b": []}] if i % 3 else None,
        }
        for i in range(1200)
    ]
    path = tmp_path / "a.parquet"
    pq.write_table(pa.Table.from_pylist(held), path)
    assert [row for some in rows(path) for row in some.columns.to_pylist()] == held


def test_long_rows_come_in_several_batches(tmp_path: Path) -> None:
    said = tuple(Message(f"t:{i}", "user", f"{i} " + "x" * 40_000, "s") for i in range(500))
    path = tmp_path / "t.parquet"
    write_parquet([Transcript("t", said)], path)
    assert pq.ParquetFile(path).metadata.num_row_groups <= 2
    sizes = [some.n_bytes for some in rows(path)]
    assert sum(sizes) > 500 * 40_000
    assert max(sizes) <= 4 * 2**20
