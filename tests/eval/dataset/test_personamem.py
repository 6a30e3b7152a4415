"""PersonaMem: the loader's rules on a small copy of the development part's format."""

import gzip
import json
from pathlib import Path

import pytest

from eval.dataset.personamem import Personamem
from lcm.transcript.parts import rebuild
from tests.support.releases import know

PERSONA = "[SYSTEM] Current user persona: Name: Ada\n\nAda sails."
DOCUMENTS = [
    {"id": "ada_0", "user_id": "ada", "timestamp": None,
     "content": f"{PERSONA}\n\n[USER] User: Hi.\n\nI sail.\n\n[ASSISTANT] Assistant: Where?\n\n[USER] User: At sea."},
    {"id": "bo_0", "user_id": "bo", "timestamp": None,
     "content": "[SYSTEM] Current user persona: Name: Bo\n\n[ASSISTANT] Code:\n[USER] is no\n\n[ASSISTANT] User: no"},
    {"id": "ada_1", "user_id": "ada", "timestamp": None,
     "content": f"{PERSONA}\n\n[USER] Plain words.\n\n[USER] User: User: twice"},
]  # fmt: skip
QUERIES = [
    {"id": "q1", "user_id": "ada", "gold_answers": ["(b) A boat.", "b"], "gold_ids": ["ada_0", "ada_1"],
     "query": "User: Ada\n\nWhat next?\n\n(a) A car.\n(b) A boat.\n(c) A (small) car.\n(d) A bus.",
     "meta": {"persona_id": "7", "question_type": "suggest_new_ideas", "topic": "sport",
              "retrieval_query": "User: Ada\n\nWhat next?"}},
    {"id": "q2", "user_id": "bo", "gold_answers": ["(a) Red", "a"], "gold_ids": ["bo_0"],
     "query": "Colour?\n\n(a) Red\n(b) Blue\n(c) Red\n(d) Green",
     "meta": {"persona_id": "8", "question_type": "recall_user_shared_facts", "topic": "art",
              "retrieval_query": "Colour?"}},
]  # fmt: skip

NAMES = ("small_documents.jsonl.gz", "small_queries.jsonl.gz")


def write_small_personamem(directory: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Fill the folder and make its files known ones; returns it as `dataset.directory` wants it."""
    for name, records in zip(NAMES, (DOCUMENTS, QUERIES), strict=True):
        (directory / name).write_bytes(gzip.compress("".join(json.dumps(r) + "\n" for r in records).encode()))
    return know(monkeypatch, Personamem, directory)


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A folder in PersonaMem's format whose digests are known."""
    return write_small_personamem(tmp_path, monkeypatch)


def test_a_context_is_a_workspace_a_document_a_session_and_a_marker_a_role(small: str) -> None:
    """What repeats the marker is cut off once."""
    dataset = Personamem(small).load()
    assert [(t.workspace_id, [(m.role, m.content) for m in t.messages]) for t in dataset.transcripts] == [
        (
            "ada",
            [
                ("system", "Current user persona: Name: Ada\n\nAda sails."),
                ("user", "Hi.\n\nI sail."),
                ("assistant", "Where?"),
                ("user", "At sea."),
                ("system", "Current user persona: Name: Ada\n\nAda sails."),
                ("user", "Plain words."),
                ("user", "User: twice"),
            ],
        ),
        (
            "bo",
            [
                ("system", "Current user persona: Name: Bo"),
                ("assistant", "Code:\n[USER] is no"),
                ("assistant", "User: no"),
            ],
        ),
    ]
    sessions = [message.session_id for t in dataset.transcripts for message in t.messages]
    assert [sessions.index(session) for session in sessions] == [0] * 4 + [4] * 3 + [7] * 3
    natives = {t.workspace_id: map(rebuild, t.messages) for t in dataset.transcripts}
    rebuilt = {name: "\n\n".join(f"[{one['role']}] {one['text']}" for one in said) for name, said in natives.items()}
    told = [(document["user_id"], document["content"]) for document in DOCUMENTS]
    assert rebuilt == {name: "\n\n".join(text for of, text in told if of == name) for name in ("ada", "bo")}


def test_queries_are_the_words_without_the_options_and_gold_ids_judge_nothing(small: str) -> None:
    dataset = Personamem(small).load()
    assert [(q.query_id, q.text, q.workspace_id, q.category) for q in dataset.queries] == [
        ("q1", "User: Ada\n\nWhat next?", "ada", "suggest_new_ideas"),
        ("q2", "Colour?", "bo", "recall_user_shared_facts"),
    ]
    assert [len(frame) for frame in (dataset.qrels, dataset.session_qrels, dataset.references)] == [0, 0, 0]


def test_options_name_their_letter_and_the_correct_one(small: str) -> None:
    dataset = Personamem(small).load()
    assert dataset.options.rows() == [
        ("q1", "a", "A car.", False),
        ("q1", "b", "A boat.", True),
        ("q1", "c", "A (small) car.", False),
        ("q1", "d", "A bus.", False),
        ("q2", "a", "Red", True),
        ("q2", "b", "Blue", False),
        ("q2", "c", "Red", False),
        ("q2", "d", "Green", False),
    ]
    assert dataset.notes == ("1 wrong options say word for word what the correct one says",)
