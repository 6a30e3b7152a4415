"""What a pool holds: the best of each branch, more of whom and when a query names, and what stands beside the best."""

from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from lcm.memory.memory import Memory
from lcm.records.conversation import Message, Transcript
from lcm.records.query import Query
from lcm.retrieval.ranking.evidence.text_evidence import Pool
from lcm.retrieval.ranking.pipeline import Ranking
from lcm.retrieval.source.indexes import POOLED, Hybrid
from tests.lcm.refusals import assert_refused
from tests.support.workspaces import system

STARTED = datetime(2023, 5, 1, 12, tzinfo=UTC)
ALONE = {"whole_documents": 0, "best": 1, "speakers": 0, "times": 0, "neighbours": 0}


def pool(question: str, **settings: int) -> set[int] | None:
    """The numbers of the messages of a talk that are in the pool; None of one that is looked at as a whole.

    Two people in turn, a message a day; the third asks for the kettle.
    """
    said = ["tea", "goats", "the kettle", "rain", "a lamp", "the river", "tea again", "snow"]
    messages = tuple(
        Message(f"m{i}", "user", text, "s", STARTED + timedelta(days=i), author=("Ada", "Bo")[i % 2])
        for i, text in enumerate(said)
    )
    with Memory.open(system()) as memory:
        memory.ingest(Transcript("talk", messages))
        source = Pool(Hybrid(), **(ALONE | settings))
        (batch,) = memory.batches([Query("q", question, STARTED + timedelta(days=100))], Ranking(source))
        found = source.candidates(batch)
        if POOLED not in found.columns:
            return None
        assert found[POOLED].all()
        numbers = dict(zip(memory.documents["document_id"], range(len(said)), strict=True))
        assert found["document_id"].is_unique().all()
        return {numbers[one] for one in found["document_id"]}


@pytest.mark.parametrize(
    ("question", "settings", "expected"),
    [
        ("kettle", {}, {2}),
        ("kettle", {"neighbours": 1}, {1, 2, 3}),
        ("kettle of Bo", {"speakers": 50}, {1, 2, 3, 5, 7}),
        ("kettle of Ada and Bo", {"speakers": 50}, {2}),
        ("kettle on 6 May 2023", {"times": 50}, {2, 5}),
        ("kettle", {"whole_documents": 7}, {2}),
        ("kettle", {"whole_documents": 8}, None),
    ],
)
def test_a_pool_holds_what_a_query_asks_for(question: str, settings: dict[str, int], expected: set[int] | None) -> None:
    assert pool(question, **settings) == expected


def test_settings_out_of_range_are_refused() -> None:
    assert_refused(partial(Pool, Hybrid()), "be >= 1", best=0)
    assert_refused(partial(Pool, Hybrid()), "be >= 0", times=-1)
