"""Small workspaces for tests: transcripts, queries, and systems that need no model."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from lcm.embedder.hashing import Hashing
from lcm.extraction.verbatim import Verbatim
from lcm.fusion.weighted_sum import WeightedSum
from lcm.memory import System
from lcm.ranking.inverse_distance import InverseDistance
from lcm.ranking.limit import Limit
from lcm.ranking.pipeline import Ranking
from lcm.ranking.sigmoid import Sigmoid
from lcm.records import Message, Part, Query, Transcript
from lcm.source.hybrid import Hybrid
from lcm.text_index.fts5 import Fts5
from lcm.tokens import Utf16Units
from lcm.vector_index.exact import Exact

START = datetime(2026, 1, 1, tzinfo=UTC)

LINES = (
    "The kettle in the blue kitchen is broken",
    "I moved the meeting with Ada to Thursday",
    "My sister keeps three goats near the river",
    "The database migration failed with a timeout",
    "来週の火曜日に東京で会議があります",
    "Ada prefers green tea, never coffee",
    "We painted the kitchen wall yellow",
    "The goats escaped on Thursday evening",
)


def minute(n: int) -> datetime:
    return START + timedelta(minutes=n)


def transcript(lines: Sequence[str] = LINES, name: str = "talk", workspace_id: str = "default") -> Transcript:
    """Two people in turn, a line a minute, a new session every four lines."""
    return Transcript(
        conversation_id=name,
        workspace_id=workspace_id,
        messages=tuple(
            Message(
                message_id=f"{name}:{i}",
                role="assistant" if i % 2 else "user",
                content=line,
                session_id=f"{name}:session {i // 4}",
                created_at=minute(i),
                author="Bo" if i % 2 else "Ada",
                parts=(Part("text", text=line),),
            )
            for i, line in enumerate(lines)
        ),
    )


def queries(texts: Sequence[str] = ("kitchen", "goats on Thursday", "東京で会議")) -> list[Query]:
    """Asked a day later, when everything has been said."""
    return [Query(f"q{i}", text, minute(24 * 60)) for i, text in enumerate(texts)]


def ranking() -> Ranking:
    return Ranking(
        source=Hybrid(),
        stages={
            "dense_score": InverseDistance(),
            "lexical_score": Sigmoid(),
            "fusion": WeightedSum(),
            "limit": Limit(),
        },
    )


def system(**parts: object) -> System:
    """A system without a model; `parts` replace its own."""
    settings: dict[str, object] = {
        "embedder": Hashing(),
        "vector_index": Exact(),
        "text_index": Fts5(),
        "token_estimator": Utf16Units(),
        "extraction": Verbatim(),
        "ranking": ranking(),
    }
    return System(**(settings | parts))  # type: ignore[arg-type]
