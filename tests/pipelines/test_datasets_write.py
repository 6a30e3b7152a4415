"""`lcm datasets write`: a dataset and kept runs for other tools, and what these recorded back in the table."""

from pathlib import Path

import ir_measures
import pytest
from ir_measures import AP, nDCG

from eval.run import read_summary
from pipelines.cli import BAD_INPUT
from tests.pipelines.conftest import QUICK, Finished, Lcm
from tests.support.looked_at import NO_CONTEXTS, copied


def test_a_run_is_written_measured_by_others_and_read_back_as_an_arm(
    lcm: Lcm, compared: Finished, tmp_path: Path
) -> None:
    out = copied(compared, tmp_path) / "sample"
    summary = read_summary(compared.place / "first")
    qrels = list(ir_measures.read_trec_qrels(str(out / "qrels.trec")))
    assert len(qrels) == 228
    for arm in ("system", "bm25", "dense"):
        run = list(ir_measures.read_trec_run(str(out / "runs" / f"first.{arm}.trec")))
        told = summary["measures"] if arm == "system" else summary["arms"][arm]
        theirs = ir_measures.calc_aggregate([nDCG @ 10, AP], qrels, run)
        assert theirs[nDCG @ 10] == pytest.approx(told["nDCG@10"]["value"])
        assert theirs[AP] == pytest.approx(told["MAP"]["value"])
    quick = [one for one in QUICK if one != "arms=none"]
    recorded = ("arms=recorded_run", "arms.recorded.file=sample/runs/first.dense.trec", "hydra.run.dir=of_files")
    done = lcm("evaluate", *quick, NO_CONTEXTS, "dataset=beir", "dataset.directory=sample", *recorded)
    assert done.code == 0, done.stderr
    again = read_summary(done.place / "of_files")["arms"]["recorded"]
    assert again["nDCG@10"] == summary["arms"]["dense"]["nDCG@10"]


def test_an_id_that_a_format_cannot_hold_is_told(lcm: Lcm, tmp_path: Path) -> None:
    collection = tmp_path / "here" / "blank"
    (collection / "qrels").mkdir(parents=True)
    (collection / "queries.jsonl").write_text('{"_id": "q 1", "text": "what?"}\n')
    (collection / "corpus.jsonl").write_text('{"_id": "d", "text": "that"}\n')
    (collection / "qrels" / "test.tsv").write_text("q 1\td\t1\n")
    written = ("datasets", "write", "dataset=beir", "dataset.directory=blank", "to=new")
    done = lcm(*written)
    assert done.code == BAD_INPUT
    assert "the query id 'q 1' holds one" in done.stderr
    assert not (done.place / "new").exists()
    assert lcm(*written, "formats=beir").code == 0
    assert (done.place / "new" / "qrels" / "test.tsv").read_text() == "query-id\tcorpus-id\tscore\nq 1\td\t1\n"
