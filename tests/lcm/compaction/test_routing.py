"""Which summarizer a cluster reaches, and what refused credentials stop."""

from dataclasses import dataclass, replace
from typing import Any

import pytest

from lcm.compaction.clustering import Clustering
from lcm.compaction.guidance.protected import NoGuidance
from lcm.compaction.summarizer.extractive import Centroid
from lcm.compaction.summarizer.t5 import Routed
from lcm.errors import AuthError
from lcm.memory.memory import Memory
from lcm.memory.system import System
from lcm.protocols.writing import Admission, Assessment
from lcm.records.rules import VersionedRules
from lcm.retrieval.embedder.hashing import Hashing
from lcm.token_estimator import Utf16Units
from pipelines.config import building, composition
from tests.lcm.compaction.contexts import Stub, compacted, conversation
from tests.support.workspaces import system, transcript

EMBEDDER = Hashing()
TECHNICAL = """Fixed `lcm/store/store.py`: KeyError in open() line {n}, error E{n}04.
We set `timeout={n}` in config{n}.yaml.
```python
def f{n}(x: int) -> int:
    return call{n}(x)
```
$ pytest -q tests/test_{n}.py; commit a1b2c3d{n}f https://example.com/issue/{n}"""
PLAIN = "We went to the river again on day {n}, and the goats were there."


@dataclass(frozen=True, slots=True)
class UsersAlone:
    """Scores what users say, nothing else, as a gate for users does."""

    score: float

    def assess(self, candidate: Any, vector: Any, neighbours: Any, messages: Any, now: Any, *, incidents: Any) -> Any:
        return Assessment(True, "said", self.score if messages[-1].role == "user" else None)


def clustering(routed: Routed, **fields: Any) -> Clustering:
    return Clustering(routed, NoGuidance(), Utf16Units(), EMBEDDER, **{"session_token_budget": 200, **fields})


def asked(said: str, admission: Admission, rules: VersionedRules = "corrected") -> list[float]:
    """The technicality of what the abstractive summarizer is asked for, of a dialogue of 12 and 12."""
    abstractive = Stub(lambda _: "a short summary")
    compaction = clustering(Routed(Centroid(EMBEDDER), abstractive), rules=rules, min_turns=0)
    talk = transcript([said.format(n=i) if i % 2 == 0 else f"Done, number {i} works now." for i in range(24)])
    parts: System = replace(system(), admission=admission, compaction=compaction)
    with Memory.open(parts) as memory:
        reports = [memory.take_turn("talk", talk.messages[i : i + 2]) for i in range(0, 24, 2)]
        assert any(report.is_compacted for report in reports)
    return [request.technicality for request in abstractive.requests]


def test_a_technical_dialogue_reaches_the_abstractive_summarizer_and_a_plain_one_does_not() -> None:
    gate = building.build(composition.composed(["system=libravdb", "embedder=hashing"]), "admission")
    technical = asked(TECHNICAL, gate)
    assert technical
    assert min(technical) >= 0.6
    assert asked(PLAIN, gate) == []


def test_among_all_turns_those_without_a_score_count_as_none() -> None:
    """1.0 of every other turn: about 0.5 of all."""
    assert asked(TECHNICAL, UsersAlone(1.0), "1.4.4") == []


@pytest.mark.parametrize(("score", "is_routed"), [(0.6, True), (0.59, False)])
def test_the_threshold_is_the_mean_of_the_scores_that_there_are(score: float, is_routed: bool) -> None:
    found = asked(PLAIN, UsersAlone(score))
    assert bool(found) == is_routed
    assert found == [pytest.approx(score)] * len(found)


def test_without_a_score_nothing_is_technical() -> None:
    abstractive = Stub(lambda _: "a short summary")
    compaction = clustering(Routed(Centroid(EMBEDDER), abstractive, threshold=0.01), min_turns=0)
    assert compacted(conversation([PLAIN.format(n=n) for n in range(20)]), compaction).is_compacted
    assert abstractive.requests == []


def test_refused_credentials_end_the_run_and_are_told_and_the_model_is_asked_once() -> None:
    abstractive = Stub(lambda _: "", AuthError("the key is refused"))
    compaction = clustering(Routed(Centroid(EMBEDDER), abstractive, threshold=0.0), min_turns=0, target_cluster_size=5)
    store = conversation([PLAIN.format(n=n) for n in range(20)])
    for _ in range(2):
        report = compacted(store, compaction)
        assert (report.reason, report.has_failed_auth, report.is_compacted) == ("provider auth failure", True, False)
    assert abstractive.batches == [1]
    assert store.summaries() == []
