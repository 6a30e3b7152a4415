"""A small workspace with documents of every kind, scope class and durability, and questions that tell them apart."""

from datetime import timedelta

from lcm.memory.memory import Memory
from lcm.records.document import Document
from lcm.records.query import Query
from lcm.store.store import Store
from lcm.token_estimator.utf16_units import Utf16Units
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


def _said() -> list[Document]:
    """One document a message; of the other conversation some in the scope that everybody reads, some not durable."""
    found = []
    for name in ("talk", "other"):
        for i in range(2 * PLACES):
            text = f"{NEAR[i % 4]} number {i}"
            if i == 1:
                text = "LE CAFE, kettle kitchen"
            elif i == 2:
                text = "台所のやかん kettle kitchen"
            found.append(
                Document(
                    document_id=f"{name} {i}",
                    text=text,
                    source_message_ids=(f"{name}:{i}",),
                    conversation_id=name,
                    session_id=f"{name}:session {i // PLACES}",
                    created_at=minute(60 * i),
                    scope="global" if name == "other" and i % 2 else "agent:ada",
                    role="user",
                    access_count=i % 5,
                    is_durable=name == "talk" or i % 4 > 0,
                    hop_targets=(f"far {i}",) if i < 2 else (),
                )
            )
    return found


def _summaries() -> list[Document]:
    return [
        Document(
            document_id=f"summary {i}",
            text=f"The kettle in the kitchen broke, in short {i}",
            source_message_ids=(f"talk:{i}",),
            conversation_id="talk",
            session_id="talk:session 1",
            created_at=minute(90),
            kind="summary",
            scope="agent:ada",
            confidence=confidence,
            decay_rate=1 - confidence,
        )
        for i, confidence in enumerate((0.9, 0.1, 0.5))
    ]


def _guidance() -> list[Document]:
    return [
        Document(
            document_id=f"rule {i}",
            text=f"Never touch the kettle in the kitchen, rule {i}",
            source_message_ids=(f"other:{i}",),
            conversation_id="other",
            session_id="other:session 0",
            created_at=minute(i),
            kind="guidance",
            scope="agent:ada",
            authority=0.5,
        )
        for i in range(10)
    ]


def _authored() -> list[Document]:
    """Ten near to the questions, each pointing to one that is not, which points on to the next."""
    near = [(f"near {i}", f"The kitchen and its kettle, chapter {i}", (f"far {i}", "nowhere")) for i in range(10)]
    far = [(f"far {i}", f"{FAR} {i}", (f"far {(i + 1) % 10}",)) for i in range(10)]
    return [
        Document(
            document_id=document_id,
            text=text,
            source_message_ids=(),
            conversation_id="",
            session_id="",
            created_at=START - timedelta(days=9),
            kind="authored",
            authority=1.0,
            hop_targets=targets,
        )
        for document_id, text, targets in near + far
    ]


def _dreams() -> list[Document]:
    return [
        Document(
            document_id=f"dream {i}",
            text=DREAM.format(i),
            source_message_ids=(),
            conversation_id="",
            session_id="",
            created_at=START,
            kind="dream",
            scope="agent:ada",
        )
        for i in range(9)
    ]
