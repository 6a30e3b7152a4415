"""Small answers and recovered turns."""

from datetime import timedelta
from typing import Any

from lcm.records.query import Recalled
from lcm.retrieval.embedder.hashing import Hashing
from lcm.retrieval.recovery.fetch import RawTurnRecovery
from lcm.retrieval.recovery.question import TemporalQueries, TemporalQuery
from lcm.retrieval.terms import Terms
from tests.support.workspaces import minute

NOW = minute(60)
DIM = 384


def turn(text: str = "", name: str = "t", score: float = 0.5, age_s: float = 0.0, **fields: Any) -> Recalled:
    return Recalled(
        name,
        text,
        "message",
        (f"{name}:said",),
        NOW - timedelta(seconds=age_s),
        score,
        score,
        is_recovered=True,
        **fields,
    )


def turns(*texts: str, **fields: Any) -> list[Recalled]:
    return [turn(text, f"t{i}", **fields) for i, text in enumerate(texts)]


def summary(score: float = 0.5, confidence: float = 0.0, name: str = "s", **fields: Any) -> Recalled:
    return Recalled(name, "", "summary", ("m",), NOW, score, score, confidence=confidence, **fields)


def overlay(**parts: Any) -> RawTurnRecovery:
    return RawTurnRecovery(Hashing(dim=DIM), **parts)


def read(question: str) -> TemporalQuery:
    return TemporalQueries().read(question, Terms())
