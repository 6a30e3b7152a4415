"""A recorded run stands in the table as what it was, ordered and found as ir-measures finds it."""

import logging
import random
from dataclasses import replace
from pathlib import Path

import ir_measures
import polars as pl
import pytest
from ir_measures import AP, RR, nDCG

from eval.arms import UNSEEN, RecordedRun
from eval.measures.retrieval import Retrieval
from lcm.errors import DatasetError
from tests.support.experiments import outcome
from tests.support.small_talk import dataset
from tests.support.workspaces import minute, system


def test_its_measures_are_those_of_ir_measures_over_the_file(tmp_path: Path) -> None:
    """Scores with ties and a rank column that says the contrary."""
    data, rng = dataset(), random.Random(0)
    names = [message.message_id for message in data.transcripts[0].messages]
    lines = [
        f"{query.query_id} Q0 {name} {40 - i} {rng.randrange(8)} theirs"
        for query in data.queries
        for i, name in enumerate(rng.sample(names, 40))
    ]
    path = tmp_path / "run"
    path.write_text("\n".join(lines))
    measures = {"retrieval": Retrieval(names=["nDCG@10", "MRR", "MAP"], levels=["message"])}
    found = outcome(data, system(), measures, {"theirs": RecordedRun(str(path))})
    ours = found.values.filter(arm="theirs")
    qrels: dict[str, dict[str, int]] = {}
    for query, message, relevance in data.qrels.iter_rows():
        qrels.setdefault(query, {})[message] = relevance
    read = list(ir_measures.read_trec_run(str(path)))
    for name, measure in (("nDCG@10", nDCG @ 10), ("MRR", RR), ("MAP", AP)):
        theirs = {one.query_id: one.value for one in ir_measures.iter_calc([measure], qrels, read)}
        assert dict(ours.filter(measure=name).select("query_id", "value").iter_rows()) == pytest.approx(theirs)
    assert UNSEEN not in found.incidents


def test_what_cannot_be_found_is_counted_and_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    whole = dataset()
    data = replace(whole, queries=(replace(whole.queries[0], asked_at=minute(2)), *whole.queries[1:]))
    path = tmp_path / "run"
    path.write_text("q0 Q0 m1 1 3 t\nq0 Q0 m50 2 2 t\nq0 Q0 nothing 3 1 t\nq99 Q0 m1 1 1 t\n")
    with caplog.at_level(logging.WARNING):
        found = outcome(data, system(), arms={"theirs": RecordedRun(str(path))})
    assert found.run.filter(pl.col("arm") == "theirs").height == 1  # m50 is said later
    assert found.incidents[UNSEEN] == 1
    assert "1 of its topics are no queries of small" in caplog.text
    assert "1 of its rows name no message" in caplog.text


def test_a_file_that_says_nothing_of_the_dataset_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("q99 Q0 m1 1 1 t\n")
    with pytest.raises(DatasetError, match="answers no query of dataset 'small'"):
        RecordedRun(str(tmp_path / "run")).ranking(dataset())
    with pytest.raises(DatasetError, match=r"arms\.recorded\.file names no file"):
        RecordedRun().ranking(dataset())
