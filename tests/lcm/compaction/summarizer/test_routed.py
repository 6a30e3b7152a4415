import logging
from collections import Counter
from dataclasses import replace

import pytest

from lcm.compaction.summarizer.extractive import Centroid
from lcm.compaction.summarizer.t5 import T5, Routed
from lcm.errors import AuthError, ModelError
from lcm.records.summary import SummaryRequest
from lcm.retrieval.embedder.hashing import Hashing
from tests.lcm.compaction.contexts import Stub

TURNS = ("The goats are out.", "The kettle broke.", "The goats are back.")
PLAIN = SummaryRequest("\n".join(TURNS), 64, turns=TURNS, technicality=0.59)
TECHNICAL = replace(PLAIN, technicality=0.6)


def test_refused_credentials_are_a_result_and_the_model_is_asked_no_more(caplog: pytest.LogCaptureFixture) -> None:
    abstractive, incidents = Stub(lambda _: "", AuthError("the key is refused")), Counter[str]()
    routed = Routed(Centroid(Hashing()), abstractive)
    with caplog.at_level(logging.WARNING):
        results = routed.summarize([PLAIN, TECHNICAL, TECHNICAL], incidents=incidents)
        results += routed.summarize([TECHNICAL, PLAIN], incidents=incidents)
    refused = AuthError, "the key is refused"
    assert [one.failure and (type(one.failure), str(one.failure)) for one in results] == [
        *(None, refused, refused),
        *(refused, None),
    ]
    assert abstractive.batches == [2]
    assert len(caplog.records) == 1
    assert incidents == {"abstractive was refused: no summary": 3}


def test_a_refusal_that_is_raised_counts_as_one() -> None:
    class Refusing:
        def summarize(self, requests: object, *, incidents: Counter[str]) -> list[object]:
            raise AuthError("the key is refused")

    routed = Routed(Centroid(Hashing()), Refusing())  # type: ignore[arg-type]
    (result,) = routed.summarize([TECHNICAL], incidents=Counter())
    assert isinstance(result.failure, AuthError)


def test_another_failure_is_stood_in_for_each_time() -> None:
    abstractive = Stub(lambda _: "", ModelError("busy"))
    routed = Routed(Centroid(Hashing()), abstractive)
    incidents = Counter[str]()
    for _ in range(2):
        (result,) = routed.summarize([TECHNICAL], incidents=incidents)
        assert (result.failure, result.method) == (None, "extractive")
    assert len(abstractive.requests) == 2
    assert incidents == {"abstractive gave no summary: extractive stood in": 2}


@pytest.mark.parametrize(
    ("routed", "reads_admission", "is_routing"),
    [
        (Routed(Centroid(Hashing()), None), False, False),
        (Routed(Centroid(Hashing()), Stub(str)), True, True),
        (Routed(Centroid(Hashing()), Stub(str), threshold=0), False, False),
        (Routed(Centroid(Hashing()), T5()), True, False),
        (Routed(Centroid(Hashing()), T5("folder")), True, True),
    ],
)
def test_scores_matter_where_there_is_a_choice(routed: Routed, reads_admission: bool, is_routing: bool) -> None:
    assert (routed.reads_admission, routed.is_routing) == (reads_admission, is_routing)
