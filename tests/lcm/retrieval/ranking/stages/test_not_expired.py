"""What has expired is dropped."""

from datetime import timedelta

from lcm.retrieval.ranking.stages.selection import NotExpired
from tests.golden.components import documents_batch
from tests.lcm.retrieval.decay.frames import NOW, rows

A_MOMENT = timedelta(milliseconds=1)


def test_a_document_expires_at_its_instant_and_each_query_sees_its_own_time() -> None:
    frame = rows(valid_until=[NOW - A_MOMENT, NOW, NOW + A_MOMENT, None], score=[0.1, 0.2, 0.3, 0.4])
    assert NotExpired()(frame, documents_batch([]))["document_id"].to_list() == ["d2", "d3"]
    frame = rows(query_id=["q", "r"], document_id=["d", "d"], asked_at=[NOW - A_MOMENT, NOW], valid_until=[NOW, NOW])
    assert NotExpired()(frame, documents_batch([]))["query_id"].to_list() == ["q"]
