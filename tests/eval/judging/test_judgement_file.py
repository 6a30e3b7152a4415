"""Judgements stay what they were, whenever the process that wrote them ended."""

import dataclasses
import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.judging.judgements import Judgement, JudgementFile
from lcm.errors import LcmError


def judged(query: str, document: str, relevance: int | None, judge: str = "ada", state: str = "judged") -> Judgement:
    return Judgement(query, document, relevance, judge, "human", state, "2026-01-01T00:00:00.000Z")  # type: ignore[arg-type]


def test_the_last_word_of_each_judge_stands(tmp_path: Path) -> None:
    file = JudgementFile(tmp_path)
    file.add([judged("q", "a", 2), judged("q", "b", 0), judged("q", "a", 0, "bo")])
    file.add([judged("q", "a", 1), judged("q", "b", None, state="withdrawn"), judged("q", "c", None, state="skipped")])
    for one in (file, JudgementFile(tmp_path)):
        assert {pair: found.relevance for pair, found in one.of("ada").items()} == {("q", "a"): 1, ("q", "c"): None}
        assert {pair: found.relevance for pair, found in one.of("bo").items()} == {("q", "a"): 0}
        assert one.judges() == {"ada": "human", "bo": "human"}
    assert len(file.path.read_text().splitlines()) == 6  # nothing is rewritten


@given(st.integers(min_value=0))
def test_a_file_cut_anywhere_keeps_every_whole_line(cut: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = JudgementFile(Path(folder))
        file.add(judged("q", name, 1) for name in "abc")
        content = file.path.read_bytes()
        torn = content[: cut % len(content)]
        file.path.write_bytes(torn)
        again = JudgementFile(Path(folder))
        whole = torn.count(b"\n") + torn.endswith(b"}")  # an editor may leave out the end of the last line
        assert [one.document_id for one in again] == list("abc")[:whole]
        again.add([judged("q", "d", 0)])
        assert [one.document_id for one in JudgementFile(Path(folder))] == [*list("abc")[:whole], "d"]


GOOD = dataclasses.asdict(Judgement("q", "d", 1, "a", "human"))


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ([], "list indices"),
        ({}, "'query_id'"),
        (GOOD | {"relevance": -1}, ">= 0"),
        (GOOD | {"kind": "cat"}, "kind must be one of: file, human, model"),
        (GOOD | {"state": "skipped"}, "relevance must be null unless"),
        (GOOD | {"query_id": 7}, "query_id must be text"),
    ],
    ids=str,
)
def test_a_line_that_is_no_judgement_is_named(tmp_path: Path, line: object, told: str) -> None:
    JudgementFile(tmp_path).add([judged("q", "a", 2)])
    with (tmp_path / "judgements.jsonl").open("a") as file:
        file.write(f"{json.dumps(line)}\n")
    with pytest.raises(LcmError, match=r"line 2 is no judgement") as caught:
        JudgementFile(tmp_path)
    assert told in str(caught.value)
