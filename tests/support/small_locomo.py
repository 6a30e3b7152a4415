"""A small copy of LoCoMo's format, for tests: one conversation and the two lists of corrections."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest

from eval.dataset.card import PinnedFile, Release
from eval.dataset.locomo import Locomo

RECORD = {
    "sample_id": "conv-1",
    "conversation": {
        "speaker_a": "Ada",
        "speaker_b": "Bo",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [
            {"speaker": "Ada", "dia_id": "D1:1", "text": "Look at my dog", "blip_caption": "a dog by a wall"},
            {"speaker": "Bo", "dia_id": "D1:2", "text": "Lovely"},
        ],
        "session_2_date_time": "9:05 am on 10 May, 2023",
        "session_2": [{"speaker": "Ada", "dia_id": "D2:1", "text": "He ate a shoe"}],
        "session_3_date_time": "9:05 am on 11 May, 2023",
    },
    "qa": [
        {"question": "What did the dog eat?", "category": 4, "evidence": ["D2:1"], "answer": "a shoe"},
        {"question": "Both?", "category": 1, "evidence": ["D1:1; D2:1"], "answer": "yes"},
        {"question": "Which cat?", "category": 5, "evidence": ["D1:1"], "adversarial_answer": "none"},
        {"question": "Wrongly cited", "category": 2, "evidence": ["D1:2", "D9:9"], "answer": "x"},
    ],
}
REFINED = RECORD | {
    "qa": [
        {
            "question": "What did the dog eat?",
            "answer": ["a shoe", "one of Ada's shoes"],
            "evidence": ["D2:1"],
            "category": 4,
            "is_multi_modality": False,
        },
        {
            "question": "When was it said?",
            "answer": [2023],
            "evidence": ["D2:1"],
            "category": 2,
            "is_multi_modality": True,
        },
    ]
}
"""As LoCoMo_refined asks of the same conversation: each answer a list of whole right ones."""
CONVERSATIONS, FIXES_FILE, AUDIT_FILE = "talks.json", "fixes.json", "errors.json"
FIXES = [{"sample_id": "conv-1", "qa_index": 1, "evidence_normalised": ["D1:1", "D2:1"]}]
AUDIT = [
    {"sample_id": "conv-1", "qa_index": 3, "error_type": "WRONG_CITATION", "correct_evidence": ["D2:1"]},
    {"sample_id": "conv-1", "qa_index": 0, "error_type": "AMBIGUOUS", "correct_evidence": ["D1:1"]},
]


def write_small_locomo(directory: Path, monkeypatch: pytest.MonkeyPatch, *records: object) -> str:
    """Fill the folder with the records, or the one above, and make its files the known release; returns it as
    `dataset.directory` wants it."""
    pins = []
    for name, content in ((CONVERSATIONS, records or [RECORD]), (FIXES_FILE, FIXES), (AUDIT_FILE, AUDIT)):
        (directory / name).write_text(json.dumps(content))
        pins.append(PinnedFile(name, hashlib.sha256((directory / name).read_bytes()).hexdigest()))
    small = Release("small", "one conversation", tuple(pins), is_told=False)
    monkeypatch.setattr(Locomo, "card", replace(Locomo.card, releases=(small,)))
    return str(directory)
