"""`lcm datasets write`: a dataset and kept runs for other tools, and what these recorded back in the table."""

import json
from pathlib import Path

import ir_measures
import pytest
from ir_measures import AP, nDCG

from pipelines.cli import BAD_INPUT
from tests.pipelines.conftest import QUICK, Lcm

RUN = (*QUICK, "measures.retention.budgets=[]", "hydra.run.dir=first")


@pytest.mark.full
def test_a_run_is_written_measured_by_others_and_read_back_as_an_arm(lcm: Lcm) -> None:
    controls = [one for one in RUN if one != "arms=none"]
    first = lcm("evaluate", *controls)
    done = lcm("datasets", "write", "first", "to=out")
    assert done.code == 0, done.stderr
    assert "sample (evidence=original unit=message): 414 documents, 102 queries, 228 judgements" in done.stdout
    out = done.place / "out"
    summary = first.summary
    qrels = list(ir_measures.read_trec_qrels(str(out / "qrels.trec")))
    for arm in ("system", "bm25", "dense"):
        run = list(ir_measures.read_trec_run(str(out / "runs" / f"first.{arm}.trec")))
        told = summary["measures"] if arm == "system" else summary["arms"][arm]
        theirs = ir_measures.calc_aggregate([nDCG @ 10, AP], qrels, run)
        assert theirs[nDCG @ 10] == pytest.approx(told["nDCG@10"]["value"])
        assert theirs[AP] == pytest.approx(told["MAP"]["value"])
    again = [one for one in RUN if one not in ("arms=none", "hydra.run.dir=first")]
    file = f"arms.recorded.file={out / 'runs' / 'first.dense.trec'}"
    for number, of in enumerate(((), ("dataset=beir", f"dataset.directory={out}"))):
        folder = done.place / f"again{number}"
        assert lcm("evaluate", *again, *of, "arms=recorded_run", file, f"hydra.run.dir={folder.name}").code == 0
        recorded = json.loads((folder / "summary.json").read_text())["arms"]["recorded"]
        assert recorded["nDCG@10"] == summary["arms"]["dense"]["nDCG@10"]


def test_judgements_of_a_file_stand_in_place_of_the_datasets_own(lcm: Lcm, tmp_path: Path) -> None:
    assert lcm("datasets", "write", "to=out").code == 0
    lines = (tmp_path / "here" / "out" / "qrels.trec").read_text().splitlines()
    (tmp_path / "here" / "some.qrels").write_text("\n".join(lines[:7]))
    done = lcm("evaluate", *RUN, "judgements=some.qrels")
    assert done.summary["counts"]["judged_queries"] == len({line.split()[0] for line in lines[:7]})
    assert "judgements=" in done.summary["dataset"]["protocol"]
    refused = lcm("evaluate", *QUICK, "judgements=nowhere.qrels")
    assert refused.code == BAD_INPUT
    assert "nowhere.qrels: no such file" in refused.stderr


def test_what_cannot_be_written_is_told_in_one_line(lcm: Lcm, tmp_path: Path) -> None:
    place = tmp_path / "here"
    place.mkdir()
    (place / "full").mkdir()
    (place / "full" / "file").touch()
    cases = {
        ("write",): "to=FOLDER is missing",
        ("write", "to=full"): "to=full holds something already: name a new folder",
        ("write", "to=new", "formats=beir,csv"): "formats must be some of beir, trec, got 'csv'",
        ("write", "nowhere", "to=new"): "nowhere is not a complete run",
    }
    for arguments, told in cases.items():
        done = lcm("datasets", *arguments)
        assert (done.code, done.stdout) == (BAD_INPUT, "")
        assert told in done.stderr
    assert not (place / "new").exists()
    lines = '{"_id": "q 1", "text": "what?"}\n'
    collection = place / "blank"
    (collection / "qrels").mkdir(parents=True)
    (collection / "queries.jsonl").write_text(lines)
    (collection / "corpus.jsonl").write_text('{"_id": "d", "text": "that"}\n')
    (collection / "qrels" / "test.tsv").write_text("q 1\td\t1\n")
    done = lcm("datasets", "write", "dataset=beir", "dataset.directory=blank", "to=new")
    assert done.code == BAD_INPUT
    assert "the query id 'q 1' holds one" in done.stderr
    assert not (place / "new").exists()
    assert lcm("datasets", "write", "dataset=beir", "dataset.directory=blank", "to=new", "formats=beir").code == 0
    assert (place / "new" / "qrels" / "test.tsv").read_text() == "query-id\tcorpus-id\tscore\nq 1\td\t1\n"
