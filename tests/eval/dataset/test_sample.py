"""The bundled sample: what its README promises."""

from collections import Counter
from pathlib import Path

import pytest

from eval.dataset.sample import Sample
from lcm.errors import DatasetError


def test_the_sample_is_as_large_as_promised() -> None:
    dataset = Sample().load()
    assert len(dataset.transcripts) == 4
    assert sum(len(t.messages) for t in dataset.transcripts) == 414
    assert len(dataset.queries) == 102
    judged = set(dataset.qrels["query_id"])
    assert {q.category for q in dataset.queries if q.query_id not in judged} == {"unanswerable"}


def test_evidence_existed_when_it_was_asked_for() -> None:
    dataset = Sample().load()
    asked = {query.query_id: query for query in dataset.queries}
    said = {m.message_id: (t.workspace_id, m.created_at) for t in dataset.transcripts for m in t.messages}
    for query_id, message_id, _ in dataset.qrels.iter_rows():
        workspace, created_at = said[message_id]
        assert workspace == asked[query_id].workspace_id
        assert created_at <= asked[query_id].asked_at


def test_some_queries_are_asked_midway_and_again_later() -> None:
    dataset = Sample().load()
    last = {t.workspace_id: t.messages[-1].created_at for t in dataset.transcripts}
    assert sum(query.asked_at < last[query.workspace_id] for query in dataset.queries) >= 8
    assert max(Counter(query.text for query in dataset.queries).values()) > 1


def test_a_changed_copy_is_refused(tmp_path: Path) -> None:
    (tmp_path / "queries.jsonl").write_text("{}")
    with pytest.raises(DatasetError, match="is not the pinned file"):
        Sample(str(tmp_path)).load()
