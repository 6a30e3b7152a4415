"""TREC files are read and written exactly, in the order of trec_eval."""

import re
import tempfile
from collections.abc import Callable
from pathlib import Path

import ir_measures
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ir_measures import RR

from eval.dataset.collection import (
    JUDGED_SCHEMA,
    TREC_RUN_SCHEMA,
    read_trec_qrels,
    read_trec_run,
    trec_order,
    write_trec_qrels,
    write_trec_run,
)
from lcm.errors import DatasetError

IDS = st.text(st.characters(blacklist_categories=("Cs", "Cc", "Z")), min_size=1, max_size=6).filter(
    lambda one: len(one.split()) == 1 and not one.startswith("\ufeff")
)
SCORES = st.floats(-1e6, 1e6, allow_nan=False, width=32) | st.sampled_from([0.0, 1.0, 1.0 + 1e-12])


@given(st.dictionaries(st.tuples(IDS, IDS), st.integers(-2, 4), max_size=12))
def test_qrels_are_read_as_they_were_written(judged: dict[tuple[str, str], int]) -> None:
    frame = pl.DataFrame([(*pair, grade) for pair, grade in judged.items()], schema=JUDGED_SCHEMA, orient="row")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "qrels"
        write_trec_qrels(path, frame)
        assert read_trec_qrels(path).equals(frame)


@given(st.dictionaries(IDS, st.dictionaries(IDS, SCORES, min_size=1, max_size=8), max_size=4))
def test_a_run_keeps_its_ranks_whatever_its_scores(found: dict[str, dict[str, float]]) -> None:
    """Its scores too, wherever they fall; of equal ones that trec_eval would turn around, one is lowered by a step."""
    rows = [
        (topic, docno, rank, score)
        for topic, scores in found.items()
        for rank, (docno, score) in enumerate(scores.items(), start=1)
    ]
    frame = pl.DataFrame(rows, schema=TREC_RUN_SCHEMA, orient="row")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run"
        has_own = write_trec_run(path, frame, "ours")
        read = read_trec_run(path)
    assert read.drop("score").equals(frame.drop("score"))
    falls = [(np.diff(np.float32(list(scores.values()))) <= 0).all() for scores in found.values()]
    assert has_own == all(falls)
    if has_own:
        assert read["score"].to_list() == pytest.approx(frame["score"].to_list(), rel=1e-5, abs=1e-40)
    if all(trec_order(scores) == list(scores) for scores in found.values()):
        assert read.equals(frame)


def test_equal_scores_are_told_apart_by_the_least_step(tmp_path: Path) -> None:
    """a, b, c of one score: trec_eval would take c first."""
    rows = [("q", name, rank, 0.5) for rank, name in enumerate("abc", start=1)]
    assert write_trec_run(tmp_path / "run", pl.DataFrame(rows, schema=TREC_RUN_SCHEMA, orient="row"), "ours")
    read = read_trec_run(tmp_path / "run")
    step = 2**-25
    assert read["score"].to_list() == [0.5, 0.5 - step, 0.5 - 2 * step]


@given(st.dictionaries(IDS, SCORES, min_size=2, max_size=6))
def test_the_order_is_the_one_of_trec_eval(scores: dict[str, float]) -> None:
    """The reciprocal rank of each document, were it the only relevant one."""
    for rank, docno in enumerate(trec_order(scores), start=1):
        (found,) = ir_measures.iter_calc([RR], {"q": {docno: 1}}, {"q": scores})
        assert found.value == 1 / rank


def test_blanks_in_ids_are_told_and_nothing_is_written(tmp_path: Path) -> None:
    qrels = pl.DataFrame([("q 1", "d", 1), ("q 2", "d", 1)], schema=JUDGED_SCHEMA, orient="row")
    with pytest.raises(DatasetError, match=r"the query id 'q 1' and 1 more holds one"):
        write_trec_qrels(tmp_path / "qrels", qrels)
    run = pl.DataFrame([("q", "a\tb", 1, 1.0)], schema=TREC_RUN_SCHEMA, orient="row")
    with pytest.raises(DatasetError, match=r"the document id 'a\\tb' holds one"):
        write_trec_run(tmp_path / "run", run, "tag")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("read", "text", "told"),
    [
        (read_trec_run, "q Q0 d 1 0.5\n", "line 1: expected 6 fields (topic Q0 docno rank score tag), got 5"),
        (read_trec_run, "\nq Q0 d 1 high t\n", "line 2: score must be a number, got 'high'"),
        (read_trec_run, "q Q0 d 1 nan t\n", "line 1: score must be a finite number, got 'nan'"),
        (read_trec_run, "q Q0 d 1 1 t\nq Q0 d 2 .5 t\n", "line 2: topic 'q' has 'd' before: leave one out"),
        (read_trec_qrels, "q d 1\n", "line 1: expected 4 fields"),
        (read_trec_qrels, "q 0 d 1\nq 0 e much\n", "line 2: relevance must be a whole number, got 'much'"),
        (read_trec_qrels, "q 0 d 1\nq 0 d 0\n", "line 2: 'd' is judged for topic 'q' before"),
        (read_trec_qrels, b"\xff\xfe", "cannot be read as UTF-8 text"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, read: Callable[[Path], object], text: str | bytes, told: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(DatasetError, match=rf"^{re.escape(str(path))}:? {re.escape(told)}"):
        read(path)
    with pytest.raises(DatasetError, match=f"^{tmp_path / 'nofile'}: no such file$"):
        read(tmp_path / "nofile")
    with pytest.raises(DatasetError, match="cannot be read: Is a directory"):
        read(tmp_path)
