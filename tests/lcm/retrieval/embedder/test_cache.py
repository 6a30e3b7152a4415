"""The cache never changes a row, computes each text once, and survives processes and damage."""

import logging
import pickle
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from lcm.errors import StoreError
from lcm.faults import counting
from lcm.protocols.models import TextKind, Vectors
from lcm.retrieval.embedder.cache import CachedEmbedder
from lcm.retrieval.embedder.hashing import Hashing

TEXTS = [f"text number {i}" for i in range(600)]


class Counting:
    """Hashing that remembers what it was asked."""

    def __init__(self, seed: int = 0, stop_after: int | None = None) -> None:
        self.inner = Hashing(seed=seed)
        self.name, self.dim = self.inner.name, self.inner.dim
        self.asked: list[str] = []
        self.stop_after = stop_after

    def windows(self, texts: Sequence[str]) -> list[list[str]]:
        return self.inner.windows(texts)

    def embed(self, texts: Sequence[str], kind: TextKind) -> Vectors:
        if self.stop_after is not None and len(self.asked) + len(texts) > self.stop_after:
            raise KeyboardInterrupt
        self.asked += texts
        return self.inner.embed(texts, kind)


def computed_again(directory: Path, texts: list[str]) -> list[str]:
    """The texts whose rows a cache does not give."""
    embedder = Counting()
    with CachedEmbedder(embedder, directory) as cached:
        cached.embed(texts, "document")
    return embedder.asked


def test_rows_are_bit_equal_off_cold_partly_warm_and_warm(tmp_path: Path) -> None:
    off = Hashing().embed(TEXTS, "document").tobytes()
    CachedEmbedder(Hashing(), tmp_path / "part").embed(TEXTS[::3], "document")
    for directory in ("cold", "part", "cold"):
        with CachedEmbedder(Hashing(), tmp_path / directory) as cached:
            assert cached.embed(TEXTS, "document").tobytes() == off
    assert cached.embed([], "document").shape == (0, 384)


def test_each_text_is_computed_once(tmp_path: Path) -> None:
    embedder, done = Counting(), []
    cached = CachedEmbedder(embedder, tmp_path, progress=done.append)
    rows = cached.embed(["a", "b", "a", "\ud800", "b"], "document")
    assert embedder.asked == ["a", "b", "\ud800"]
    assert rows[0].tobytes() == rows[2].tobytes()
    assert (cached.hits, cached.misses, sum(done)) == (2, 3, 5)
    cached.embed(["b", "c"], "document")
    assert embedder.asked == ["a", "b", "\ud800", "c"]
    assert (cached.hits, cached.misses, sum(done)) == (3, 4, 7)


def test_kinds_and_embedders_do_not_mix(tmp_path: Path) -> None:
    first, second = Counting(seed=0), Counting(seed=1)
    CachedEmbedder(first, tmp_path).embed(["a"], "document")
    CachedEmbedder(first, tmp_path).embed(["a"], "query")
    row = CachedEmbedder(second, tmp_path).embed(["a"], "document")
    assert first.asked == ["a", "a"]
    assert row.tobytes() == Hashing(seed=1).embed(["a"], "document").tobytes()


def test_an_interrupted_run_resumes(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        CachedEmbedder(Counting(stop_after=512), tmp_path).embed(TEXTS, "document")
    assert computed_again(tmp_path, TEXTS) == TEXTS[512:]


@pytest.mark.parametrize(
    "damage",
    [
        "substr(vector, 1, 100)",
        "zeroblob(1540)",
        "'words'",
        "(SELECT vector FROM embedding WHERE rowid = 2)",  # another text's row
    ],
)
def test_a_damaged_row_is_computed_again(tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: str) -> None:
    with CachedEmbedder(Hashing(), tmp_path) as cached:
        cached.embed(TEXTS[:9], "document")
    with closing(sqlite3.connect(cached.path)) as connection, connection:
        connection.execute(f"UPDATE embedding SET vector = {damage} WHERE rowid = 1")
    embedder = Counting()
    with caplog.at_level(logging.WARNING), counting(incidents := Counter[str]()):
        rows = CachedEmbedder(embedder, tmp_path).embed(TEXTS[:9], "document")
    assert incidents == {"damaged embeddings": 1}
    assert rows.tobytes() == Hashing().embed(TEXTS[:9], "document").tobytes()
    assert embedder.asked == TEXTS[:1]
    assert "1 damaged rows in the embedding cache" in caplog.text
    assert computed_again(tmp_path, TEXTS[:9]) == []


@pytest.mark.parametrize("where", ["header", "middle", "cut"])
def test_a_damaged_file_is_begun_again(tmp_path: Path, caplog: pytest.LogCaptureFixture, where: str) -> None:
    with CachedEmbedder(Hashing(), tmp_path) as cached:
        cached.embed(TEXTS, "document")
    content = bytearray(cached.path.read_bytes())
    if where == "header":
        content[:100] = b"\xff" * 100
    elif where == "middle":
        content[4096:] = b"\xff" * (len(content) - 4096)
    else:
        del content[len(content) // 2 :]
    cached.path.write_bytes(content)
    with caplog.at_level(logging.WARNING), counting(incidents := Counter[str]()), cached:
        assert cached.embed(TEXTS, "document").tobytes() == Hashing().embed(TEXTS, "document").tobytes()
    assert incidents == {"damaged embedding cache": 1}
    assert "is damaged" in caplog.text
    assert computed_again(tmp_path, TEXTS) == []


def test_a_folder_that_cannot_hold_the_cache_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"^the embedding cache cannot be used: [^\n]*$"):
        CachedEmbedder(Hashing(), tmp_path / "file").embed(["a"], "query")


def test_threads_share_one_cache(tmp_path: Path) -> None:
    cached = CachedEmbedder(Hashing(), tmp_path)
    with ThreadPoolExecutor(4) as threads:
        rows = list(threads.map(lambda i: cached.embed(TEXTS[i : i + 99], "document").tobytes(), range(0, 400, 50)))
    assert rows == [Hashing().embed(TEXTS[i : i + 99], "document").tobytes() for i in range(0, 400, 50)]
    assert cached.hits + cached.misses == 8 * 99
    assert pickle.loads(pickle.dumps(cached)).embed(TEXTS[:2], "document").tobytes() == rows[0][: 2 * 4 * 384]


WRITE = """
import sys
from pathlib import Path
from lcm.retrieval.embedder.cache import CachedEmbedder
from lcm.retrieval.embedder.hashing import Hashing
texts = [f"text {i}" for i in range(int(sys.argv[2]))]
cached = CachedEmbedder(Hashing(), Path(sys.argv[1]), progress=lambda n: print(n, flush=True))
rows = cached.embed(texts, "document")
assert rows.tobytes() == Hashing().embed(texts, "document").tobytes()
"""


def writer(directory: Path, count: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITE, str(directory), str(count)], stdout=subprocess.PIPE, text=True
    )


@pytest.mark.slow
def test_two_processes_fill_one_cache_and_one_that_is_killed_leaves_whole_rows(tmp_path: Path) -> None:
    killed, other = writer(tmp_path, 100_000), writer(tmp_path, 3000)
    assert killed.stdout is not None
    for _ in range(3):  # three batches are written, the next is on its way
        killed.stdout.readline()
    killed.kill()
    killed.communicate(timeout=60)
    other.communicate(timeout=60)
    assert other.returncode == 0
    texts = [f"text {i}" for i in range(3500)]
    assert set(computed_again(tmp_path, texts)) <= set(texts[3000:])
    with CachedEmbedder(Hashing(), tmp_path) as cached:
        assert cached.embed(texts, "document").tobytes() == Hashing().embed(texts, "document").tobytes()
    with closing(sqlite3.connect(cached.path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
