"""Collections survive the folder that they are written to, and are read from every published layout."""

import gzip
import json
import tempfile
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.dataset.beir import read_beir, write_beir
from eval.dataset.collection import Collection
from lcm.errors import DatasetError
from tests.support.small_collection import collection

WORDS = st.text(st.characters(blacklist_categories=("Cs",)), max_size=12)
IDS = st.text(st.characters(blacklist_categories=("Cs", "Cc")), min_size=1, max_size=6)


@st.composite
def collections(draw: st.DrawFn) -> Collection:
    documents = draw(st.lists(IDS, min_size=1, max_size=5, unique=True))
    asked = draw(st.lists(IDS, min_size=1, max_size=4, unique=True))
    pairs = st.tuples(st.sampled_from(asked), st.sampled_from(documents))
    judged = draw(st.dictionaries(pairs, st.integers(0, 3), min_size=1, max_size=6))
    some = st.lists(st.sampled_from(documents), min_size=1, unique=True)
    return collection(
        [(one, draw(WORDS), draw(WORDS)) for one in documents],
        [(one, draw(WORDS)) for one in asked],
        [(*pair, grade) for pair, grade in judged.items()],
        draw(st.none() | st.lists(some, min_size=1, max_size=1).map(lambda ids: [(asked[0], ids[0])])),
        draw(st.none() | WORDS.filter(bool).map(lambda words: [(asked[0], words)])),
    )


def same(one: Collection, other: Collection) -> bool:
    for name in ("corpus", "queries", "qrels", "candidates", "instructions"):
        ours, theirs = getattr(one, name), getattr(other, name)
        if (ours is None) != (theirs is None) or (ours is not None and not ours.equals(theirs)):
            return False
    return True


@given(collections())
def test_a_collection_is_read_as_it_was_written(whole: Collection) -> None:
    with tempfile.TemporaryDirectory() as folder:
        files = write_beir(Path(folder), whole)
        read = read_beir(Path(folder))
        assert same(read, whole)
        assert set(read.files) == set(files)


SMALL = collection(
    [("d1", "Kettle", "It is broken."), ("d2", "", "Ada drinks tea.")],
    [("q1", "What is broken?"), ("q2", "What does Ada drink?")],
    [("q1", "d1", 1), ("q1", "d2", 0), ("q2", "d2", 2)],
    [("q1", ["d1"]), ("q2", ["d1", "d2"])],
    [("q1", "Find the fault")],
)
CORPUS = [{"id": name, "title": title or None, "text": text} for name, title, text in SMALL.corpus.iter_rows()]
QUERIES = [{"id": name, "text": text} for name, text in SMALL.queries.iter_rows()]
QRELS = [
    {"query-id": query, "corpus-id": document, "score": score} for query, document, score in SMALL.qrels.iter_rows()
]
RANKED = [{"query-id": "q1", "corpus-ids": ["d1"]}, {"query-id": "q2", "corpus-ids": ["d1", "d2"]}]
HEADING = "query-id\tcorpus-id\tscore\n"
INSTRUCTIONS = [{"query-id": "q1", "instruction": "Find the fault"}]


def lines(path: Path, rows: list[dict[str, object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(f"{json.dumps(row)}\n" for row in rows)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)


def parquet(path: Path, rows: list[dict[str, object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pl.DataFrame(rows).write_parquet(path)


def mteb_parquet(folder: Path) -> None:
    """Folders of shards by split, relevance as a float."""
    for name, rows in (("corpus", CORPUS), ("queries", QUERIES), ("top_ranked", RANKED), ("instruction", INSTRUCTIONS)):
        parquet(folder / name / "test-00000-of-00001.parquet", rows)
    for number, rows in enumerate((QRELS[:1], QRELS[1:])):
        parquet(
            folder / "default" / f"test-0000{number}-of-00002.parquet", [r | {"score": float(r["score"])} for r in rows]
        )


def hub_beir(folder: Path) -> None:
    """Each table named as its only split; ids beside `_id`."""
    lines(folder / "corpus" / "corpus-00000-of-00001.jsonl.gz", [{"_id": r["id"], **r, "id": None} for r in CORPUS])
    lines(folder / "queries.jsonl", QUERIES)
    lines(folder / "qrels" / "dev.jsonl", QRELS)
    lines(folder / "top_ranked.jsonl", RANKED)
    lines(folder / "instruction.jsonl", INSTRUCTIONS)


def of_a_subset(folder: Path) -> None:
    for name, rows in (("corpus", CORPUS), ("queries", QUERIES), ("qrels", QRELS), ("top_ranked", RANKED)):
        lines(folder / f"en-{name}" / "test.jsonl", rows)
        lines(folder / f"de-{name}" / "test.jsonl", rows[:1])
    lines(folder / "en-instruction" / "test.jsonl", INSTRUCTIONS)


def without_a_heading(folder: Path) -> None:
    """One corpus, a folder of queries a subset, no heading above the judgements."""
    lines(folder / "corpus.jsonl", CORPUS)
    lines(folder / "en" / "queries.jsonl", QUERIES)
    (folder / "en" / "qrels.tsv").write_text("q1\td1\t1\nq1\td2\t0\nq2\td2\t2\n")
    lines(folder / "en" / "top_ranked.jsonl", RANKED)
    lines(folder / "en" / "instruction.jsonl", INSTRUCTIONS)


@pytest.mark.parametrize(
    ("write", "subset"), [(mteb_parquet, None), (hub_beir, None), (of_a_subset, "en"), (without_a_heading, "en")]
)
def test_every_published_layout_is_the_same_collection(
    tmp_path: Path, write: Callable[[Path], None], subset: str | None
) -> None:
    write(tmp_path)
    assert same(read_beir(tmp_path, subset=subset), SMALL)


def test_what_is_missing_is_told_with_what_is_there(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="holds no corpus: there is no such folder"):
        read_beir(tmp_path / "nowhere")
    with pytest.raises(DatasetError, match=r"holds no corpus: it must have corpus\.jsonl"):
        read_beir(tmp_path)
    of_a_subset(tmp_path)
    with pytest.raises(DatasetError, match=r"holds no corpus; dataset\.subset may be: de, en"):
        read_beir(tmp_path)
    (tmp_path / "en-qrels" / "train.jsonl").write_text("")
    (tmp_path / "en-qrels" / "notes.txt").write_text("no table")
    with pytest.raises(DatasetError, match=r"has no split 'dev'; dataset\.split may be: test, train"):
        read_beir(tmp_path, split="dev", subset="en")
    (tmp_path / "en-qrels").rename(tmp_path / "elsewhere")
    with pytest.raises(DatasetError, match="holds no qrels"):
        read_beir(tmp_path, subset="en")


@pytest.mark.parametrize(
    ("file", "text", "told"),
    [
        ("corpus.jsonl", '{"_id": "d1", "text": "a"}\n' * 2, "record 2: 'd1' stands there before"),
        ("corpus.jsonl", '{"name": "d1"}\n', "record 1: it has no _id or id, only name"),
        ("queries.jsonl", '{"_id": "q1"}\n', "record 1: it has no text, only _id"),
        ("queries.jsonl", "[]\n", r"record 1: must be an object, got \[\]"),
        ("queries.jsonl", "{\n", "record 1: is not JSON"),
        ("qrels/test.tsv", f"{HEADING}q1\td1\n", "line 2: expected query-id, corpus-id, score"),
        ("qrels/test.tsv", f"{HEADING}q1\td1\thalf\n", "line 2: score must be a whole number"),
        ("qrels/test.tsv", f"{HEADING}q1\td1\t1\nq1\td2\t0.5\n", "line 3: score must be a whole number"),
        ("qrels/test.tsv", "q1\td1\t1\nq1\td1\t0\n", "line 2: 'd1' is judged otherwise for query 'q1' before"),
    ],
)
def test_a_row_that_is_wrong_is_named_with_its_line(tmp_path: Path, file: str, text: str, told: str) -> None:
    write_beir(tmp_path, SMALL)
    (tmp_path / file).write_text(text)
    with pytest.raises(DatasetError, match=told):
        read_beir(tmp_path)
