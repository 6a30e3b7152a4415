"""Small workspaces for tests: transcripts, queries, and systems that need no model."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import cycle

from lcm.memory.memory import Memory
from lcm.memory.system import System
from lcm.records.conversation import Message, Part, Transcript
from lcm.records.document import Document
from lcm.records.query import Query
from lcm.retrieval.embedder.hashing import Hashing
from lcm.retrieval.fusion import WeightedSum
from lcm.retrieval.ranking.pipeline import Ranking
from lcm.retrieval.ranking.stages.scores import InverseDistance, Sigmoid
from lcm.retrieval.ranking.stages.selection import Limit
from lcm.retrieval.source.indexes import Hybrid
from lcm.retrieval.text_index import Fts5
from lcm.retrieval.vector_index.exact import Exact
from lcm.store.store import Store
from lcm.token_estimator import Utf16Units
from lcm.writing.extraction.said import Verbatim

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


YEARS_LATER = START + timedelta(days=1000)
"""When questions about a long life are asked."""

NOUNS = ("kettle", "garden", "meeting", "goats", "invoice", "database", "bicycle", "kitchen", "lamp", "river")
VERBS = ("broke", "moved", "opened", "painted", "lost", "migrated", "repaired")

REMARKABLE: tuple[tuple[str, dict[str, object]], ...] = (
    ("The kettle broke near the garden, said Ada", {"importance": 0.95}),
    ("The kettle broke near the garden, Ada said", {"importance": 0.9}),
    ("The kettle broke near a garden, said Ada", {"importance": 0.1}),
    ("I don't recall that the kettle broke near the garden", {}),
    ("Do you remember that the kettle broke near the garden?", {}),
    ("Hello, the kettle broke near the garden", {}),
    ("The kettle in the garden is out of order until spring", {"valid_until": YEARS_LATER - timedelta(days=1)}),
    ("The kettle in the garden is under repair until autumn", {"valid_until": YEARS_LATER + timedelta(days=1)}),
    ("The kettle in the garden will break tomorrow", {"created_at": YEARS_LATER + timedelta(days=3)}),
    ("A long report about the harbour: " + "cranes and ships, " * 40, {}),
    ("A longer report about the harbour: " + "cranes and ships, " * 120, {}),
    ("Ada likes the harbour", {}),
    ("proj:atlas keeps the kettle in the garden", {"importance": 0.9}),
    ("proj:atlas lost the invoice of the kettle", {"decay_tier": "peripheral"}),
    ("proj:atlas waits for a kettle", {"valid_until": YEARS_LATER - timedelta(days=1)}),
    ("Deploy to myenv:production by hand", {}),
    ("scope:lab has a kettle too", {}),
    ("An exception in the database: a bug, said Bo", {}),
    ("The quokka photographs arrived from Perth", {}),
    ("台所のやかんが壊れた", {}),
    ("You never remember that the kettle broke near the garden", {}),
)
"""Words of documents, and in which fields they are no ordinary ones."""


def lived_in(ordinary: int = 60) -> Memory:
    """A workspace whose documents span minutes to years, used and unused, of every tier and both temporal types.

    The documents are written by hand, for extraction makes none that was ever used.
    """
    words = [f"Note {i}: the {NOUNS[i % 10]} {VERBS[i % 7]} near the {NOUNS[i * 3 % 10]}" for i in range(ordinary)]
    own: list[dict[str, object]] = [{} for _ in words]
    for i, (text, fields) in enumerate(REMARKABLE):
        words.insert(3 * i + 2, text)
        own.insert(3 * i + 2, fields)
    said = transcript(words)
    store = Store(":memory:")
    store.ingest(said, Utf16Units())
    store.add_documents(
        Document(**(life | fields | {"document_id": f"d{i}", "text": message.content}))  # type: ignore[arg-type]
        for i, (message, life, fields) in enumerate(zip(said.messages, lives(said), own, strict=True))
    )
    store.set_extracted(said.conversation_id, len(said.messages))
    return Memory(system(), store)


def lives(said: Transcript) -> list[dict[str, object]]:
    """The fields of a document a message, every combination of age, use and rating sooner or later."""
    ages_days = cycle((900.0, 400.0, 120.0, 60.0, 30.0, 14.0, 5.0, 1.0, 0.2, 0.01, 0.0))
    accesses = cycle((0, 1, 3, 12))
    importances = cycle((0.7, 0.2, 0.95, 0.5, 0.8))
    tiers = cycle(("working", "working", "core", "peripheral", "core", "working", "peripheral"))
    kinds = cycle(("static", "static", "dynamic"))
    return [
        {
            "source_message_ids": (message.message_id,),
            "conversation_id": said.conversation_id,
            "session_id": message.session_id,
            "created_at": YEARS_LATER - timedelta(days=age),
            "valid_from": START,
            "access_count": count,
            "last_accessed_at": YEARS_LATER - timedelta(days=age / 3) if count else None,
            "importance": importance,
            "confidence": 0.9 - importance / 4,
            "decay_tier": tier,
            "temporal_type": kind,
            "tokens": 10,
        }
        for message, age, count, importance, tier, kind in zip(
            said.messages, ages_days, accesses, importances, tiers, kinds, strict=False
        )
    ]


def questions() -> list[Query]:
    """Of a workspace that was lived in: plain ones, with a tag, about a fault, of no word that is there."""
    texts = (
        ("kettle broke near the garden", "manual"),
        ("who moved the goats near the river", "auto"),
        ("proj:atlas kettle", "manual"),
        ("scope:lab", "manual"),
        ("env:prod", "manual"),
        ("cranes in the harbour", "manual"),
        ("database error", "manual"),
        ("database error", "cli"),
        ("database error", "auto"),
        ("uokka photogr", "manual"),
    )
    return [Query(f"q{i}", text, YEARS_LATER, caller=caller) for i, (text, caller) in enumerate(texts)]  # type: ignore[arg-type]
