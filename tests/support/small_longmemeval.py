"""Small copies of LongMemEval's formats, for tests: the development part's, and the published one."""

import gzip
import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eval.dataset.card import PinnedFile, Release
from eval.dataset.longmemeval import LongMemEval


def question(text: str, *sessions: str, origin: str = "longmemeval", kind: str = "multi-session") -> dict[str, Any]:
    return {
        "question": text,
        "answer": "the answer itself",
        "question_type": kind,
        "question_date": "2023/06/02 (Fri) 08:15",
        "answer_session_ids": list(sessions),
        "origin": origin,
    }


RECORD: dict[str, Any] = {
    "haystack_id": "hay1",
    "origin": "S, complete haystack",
    "haystack_session_ids": ["answer_2", "sharegpt_1", "answer_1", "answer_3"],
    "haystack_dates": [
        "2023/05/30 (Tue) 21:40",
        "2023/05/20 (Sat) 02:21",
        "2023/05/21 (Sun) 00:00",
        "2023/06/02 (Fri) 23:59",
    ],
    "haystack_sessions": [
        [
            {"role": "user", "content": "The mule is now called Otto", "has_answer": True},
            {"role": "assistant", "content": "Otto it is", "has_answer": True},
        ],
        [{"role": "assistant", "content": "A recipe for leek soup"}],
        [
            {"role": "user", "content": "Hello", "has_answer": False},
            {"role": "assistant", "content": "Good day", "has_answer": False},
            {"role": "user", "content": "My mule is called Max", "has_answer": True},
        ],
        [
            {"role": "user", "content": "Name a lake", "has_answer": False},
            {"role": "assistant", "content": "Ladoga", "has_answer": True},
        ],
    ],
    "questions": [
        question("What is the mule called?", "answer_1", "answer_2", kind="knowledge-update"),
        question("Which lake and which mule?", "answer_3", "answer_1"),
        question("Which lake?", "answer_3", kind="single-session-assistant"),
        question("Which soup?", "sharegpt_1", origin="added by its author", kind="single-session-added"),
        question("Which mule first?", "answer_1", origin="added by its author", kind="single-session-added"),
    ],
}
EVIDENCE_ONLY: dict[str, Any] = RECORD | {"haystack_id": "gpt4_2655b836"}


FILE = "haystacks.jsonl.gz"


def write_small_longmemeval(directory: Path, monkeypatch: pytest.MonkeyPatch, *records: dict[str, Any]) -> str:
    """Fill the folder with the haystacks, or those above, and make its file the known release; returns it as
    `dataset.directory` wants it."""
    path = directory / FILE
    lines = [json.dumps(record) for record in records or (EVIDENCE_ONLY, RECORD)]
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    pin = PinnedFile(path.name, hashlib.sha256(path.read_bytes()).hexdigest())
    small = Release("small", "one haystack", (pin,), is_told=False)
    monkeypatch.setattr(LongMemEval, "card", replace(LongMemEval.card, releases=(small,)))
    return str(directory)


def published(question_id: str, **changes: Any) -> dict[str, Any]:
    """A record as LongMemEval publishes it: a question with the haystack above."""
    asked = RECORD["questions"][0]
    return {
        "question_id": question_id,
        "question_type": asked["question_type"],
        "question": asked["question"],
        "answer": 2,
        "question_date": "2023/06/03 (Sat) 08:15",
        "haystack_dates": RECORD["haystack_dates"],
        "haystack_session_ids": RECORD["haystack_session_ids"],
        "haystack_sessions": RECORD["haystack_sessions"],
        "answer_session_ids": asked["answer_session_ids"],
    } | changes
