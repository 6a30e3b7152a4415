"""A small workspace with documents of every kind, scope class and durability, and questions that tell them apart."""

from datetime import datetime, timedelta
from typing import Any

from lcm.memory.memory import Memory
from lcm.records.document import Document
from lcm.records.query import Query
from lcm.store.store import Store
from lcm.token_estimator import Utf16Units
from tests.support.workspaces import START, minute, system, transcript

ASKED_AT = START + timedelta(days=3)
SCOPES = ("agent:ada", "global")
OWN = "talk:session 0"
"""The session that questions are asked in."""
NEAR = (
    "the kettle in the kitchen broke",
    "the kettle in the blue kitchen",
    "a kettle, a kitchen",
    "the kitchen has a kettle",
)
FAR = "zebras gallop"
"""Near to no question."""
DREAM = "I dreamed of a kettle in the kitchen, number {}"
PLACES = 20
"""Messages of each session."""


def workspace() -> Memory:
    store = Store(":memory:")
    for name in ("talk", "other"):
        store.ingest(transcript([NEAR[i % 4] for i in range(2 * PLACES)], name), Utf16Units())
        store.set_extracted(name, 2 * PLACES)
    store.add_documents([*_said(), *_summaries(), *_guidance(), *_authored(), *_dreams()])
    return Memory(system(), store)


def questions() -> list[Query]:
    """In a session and out of one, by scopes and without, of other scripts, of dreams, and of nothing."""
    texts = (
        ("own", "where is the kettle of the kitchen", OWN, SCOPES),
        ("own, of one user", "where is the kettle of the kitchen", OWN, None),
        ("own, again", "a broken kettle", OWN, SCOPES),
        ("elsewhere", "where is the kettle of the kitchen", "other:session 0", SCOPES),
        ("of nobody", "where is the kettle of the kitchen", None, SCOPES),
        ("accents", "le café du kettle kitchen", OWN, SCOPES),
        ("no spaces", "台所のやかん kettle kitchen", OWN, SCOPES),
        ("dream", "did I dream of the kettle in the kitchen?", OWN, SCOPES),
        ("new", "where is the kettle of the kitchen", "tomorrow", SCOPES),
        ("vague", "The kettle in the kitchen broke, in short", "talk:session 1", SCOPES),
        ("nothing", "", OWN, SCOPES),
    )
    return [
        Query(name, text, ASKED_AT, session_id=session_id, scopes=scopes) for name, text, session_id, scopes in texts
    ]


def _document(document_id: str, text: str, at: datetime, **fields: Any) -> Document:
    """Of nobody, unless its fields say whose it is."""
    blank = {"source_message_ids": (), "conversation_id": "", "session_id": ""}
    return Document(document_id=document_id, text=text, created_at=at, **(blank | fields))


def _said() -> list[Document]:
    """One document a message; of the other conversation some in the scope that everybody reads, some not durable."""
    special = {1: "LE CAFE, kettle kitchen", 2: "台所のやかん kettle kitchen"}
    return [
        _document(
            f"{name} {i}",
            special.get(i, f"{NEAR[i % 4]} number {i}"),
            minute(60 * i),
            source_message_ids=(f"{name}:{i}",),
            conversation_id=name,
            session_id=f"{name}:session {i // PLACES}",
            scope="global" if name == "other" and i % 2 else "agent:ada",
            role="user",
            access_count=i % 5,
            is_durable=name == "talk" or i % 4 > 0,
            hop_targets=(f"far {i}",) if i < 2 else (),
        )
        for name in ("talk", "other")
        for i in range(2 * PLACES)
    ]


def _summaries() -> list[Document]:
    of = {"conversation_id": "talk", "session_id": "talk:session 1", "kind": "summary", "scope": "agent:ada"}
    return [
        _document(
            f"summary {i}",
            f"The kettle in the kitchen broke, in short {i}",
            minute(90),
            source_message_ids=(f"talk:{i}",),
            confidence=confidence,
            decay_rate=1 - confidence,
            **of,
        )
        for i, confidence in enumerate((0.9, 0.1, 0.5))
    ]


def _guidance() -> list[Document]:
    of = {"conversation_id": "other", "session_id": "other:session 0", "kind": "guidance", "scope": "agent:ada"}
    return [
        _document(
            f"rule {i}",
            f"Never touch the kettle in the kitchen, rule {i}",
            minute(i),
            source_message_ids=(f"other:{i}",),
            authority=0.5,
            **of,
        )
        for i in range(10)
    ]


def _authored() -> list[Document]:
    """Ten near to the questions, each pointing to one that is not, which points on to the next."""
    near = [(f"near {i}", f"The kitchen and its kettle, chapter {i}", (f"far {i}", "nowhere")) for i in range(10)]
    far = [(f"far {i}", f"{FAR} {i}", (f"far {(i + 1) % 10}",)) for i in range(10)]
    return [
        _document(name, text, START - timedelta(days=9), kind="authored", authority=1.0, hop_targets=targets)
        for name, text, targets in near + far
    ]


def _dreams() -> list[Document]:
    return [_document(f"dream {i}", DREAM.format(i), START, kind="dream", scope="agent:ada") for i in range(9)]
