"""A file's judgements in place of a dataset's own."""

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from eval.dataset.collection import rejudged
from eval.dataset.dataset import SESSION_QRELS_SCHEMA
from lcm.errors import DatasetError
from tests.support.small_talk import dataset


def test_the_file_alone_says_what_is_relevant(tmp_path: Path) -> None:
    (tmp_path / "qrels").write_text("q0 0 m3 2\nq0 0 m4 0\nq1 0 m5 -1\n")
    overlap = "questions share 0.50 of their content words with their evidence"
    before = replace(dataset(), notes=("read in 3 parts", overlap))
    found = rejudged(before, tmp_path / "qrels")
    assert found.qrels.rows() == [("q0", "m3", 2), ("q0", "m4", 0), ("q1", "m5", 0)]
    assert found.session_qrels.equals(pl.DataFrame(schema=SESSION_QRELS_SCHEMA))
    assert found.evidence() == {"q0": ["m3"]}
    assert found.digest != before.digest
    assert found.protocol.startswith(f"{before.protocol} judgements=")
    assert found.transcripts == before.transcripts
    judged_by = f"judged by {tmp_path / 'qrels'} in place of the dataset's own judgements"
    assert found.notes == ("read in 3 parts", judged_by)  # the overlap was that with other evidence
    assert rejudged(found, tmp_path / "qrels") is found


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("q99 0 m3 1\n", "judges query 'q99', which dataset 'small' does not ask"),
        ("q0 0 m999 1\n", "judges 'm999' for query 'q0', which is no message of its workspace"),
        ("q0 0 m3 0\n", "judges nothing relevant"),
    ],
)
def test_what_the_dataset_has_not_is_refused(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "qrels").write_text(text)
    with pytest.raises(DatasetError, match=told):
        rejudged(dataset(), tmp_path / "qrels")
