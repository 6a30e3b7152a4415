"""BEAM's published forms, written small or from records of its development part."""

import gzip
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from eval.dataset.beam import Beam
from tests.support.releases import know

Json = dict[str, Any]

NATIVE: tuple[tuple[Json, ...], ...] = (
    (
        {
            "role": "user",
            "id": 0,
            "content": "I keep bees ->-> 1,2",
            "time_anchor": "November-05-2023",
            "index": "1,2",
            "question_type": "main_question",
        },
        {"role": "assistant", "id": 1, "content": "Write a ->-> b for the arrow"},
    ),
    (
        {
            "role": "user",
            "id": 2,
            "content": "How many hives?\nTell me.  ->-> 1,N/A (no bullet)",
            "index": "1,N/A",
            "question_type": "main_question",
        },
        {"role": "assistant", "id": 3, "content": "Four"},
    ),
    (
        {
            "role": "user",
            "id": 4,
            "content": "Five hives now",
            "time_anchor": "March-15-2024",
            "index": "2,1",
            "question_type": "main_question",
        },
        {"role": "assistant", "id": 5, "content": "Noted"},
    ),
)
"""Three groups of messages: two in the first batch, one in the second."""

QUESTIONS: Mapping[str, list[Json]] = {
    "abstention": [{"question": "Which queen?", "ideal_response": "unknown"}],
    "knowledge_update": [
        {"question": "How many hives?", "source_chat_ids": {"original_info": [3], "updated_info": [4]}},
        {"question": "Nothing cited", "source_chat_ids": None},
    ],
    "event_ordering": [{"question": "In which order?", "source_chat_ids": [0, [4, 3], [[0]]]}],
    "summarization": [{"question": "Sum it up", "ideal_summary": "Bees, then more hives.", "source_chat_ids": []}],
    "temporal_reasoning": [{"question": "When?", "source_chat_ids": {"first": [2, 77], "then": [[78], 77]}}],
}
RECORD: Json = {
    "conversation_id": "beam-100K-1",
    "size": "100K",
    "topic": {"title": "Secret beekeeping plan"},
    "chat": [
        {"batch_number": 1, "time_anchor": None, "turns": [list(NATIVE[0]), list(NATIVE[1])]},
        {"batch_number": 2, "time_anchor": None, "turns": [list(NATIVE[2])]},
    ],
    "probing_questions": QUESTIONS,
}


def write_lines(directory: Path, size: str = "100K", **changes: object) -> Path:
    """One conversation in a file as those of the development part."""
    record = RECORD | {"conversation_id": f"beam-{size}-1", "size": size} | changes
    path = directory / f"beam_{size}_dev.jsonl.gz"
    path.write_bytes(gzip.compress((json.dumps(record) + "\n").encode()))
    return path


def write_folders(directory: Path, records: Iterable[Json], truncated: Mapping[str, list[Json]] | None = None) -> Path:
    """The conversations as in the repository; `truncated`: conversation -> its shortened chat."""
    for record in records:
        size, number = record["conversation_id"].split("-")[1:]
        place = directory / "chats" / size / number
        (place / "probing_questions").mkdir(parents=True)
        for path, value, indent in (
            ("chat.json", record["chat"], 2),
            ("topic.json", record["topic"], 4),
            ("probing_questions/probing_questions.json", record["probing_questions"], 4),
        ):
            (place / path).write_text(json.dumps(value, indent=indent), encoding="utf-8")
        if record["conversation_id"] in (truncated or {}):
            shortened = (truncated or {})[record["conversation_id"]]
            (place / "chat_trunecated.json").write_text(json.dumps(shortened), encoding="utf-8")
    return directory


def write_parquet(directory: Path, name: str, records: Iterable[Json]) -> Path:
    """The conversations as on Hugging Face: a batch is flat, and questions are a Python literal."""
    rows = [
        {
            "conversation_id": record["conversation_id"].rpartition("-")[2],
            "conversation_seed": record["topic"],
            "chat": [
                [message for group in batch["turns"] for message in group] if "turns" in batch else batch
                for batch in record["chat"]
            ],
            "probing_questions": repr(dict(record["probing_questions"])),
        }
        for record in records
    ]
    path = directory / "data" / name
    path.parent.mkdir(exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


def write_small_beam(directory: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Two sizes in two forms; returns the folder as `dataset.directory` wants it."""
    shorter = [{**RECORD["chat"][0], "turns": [list(NATIVE[0])]}]
    several = [RECORD, RECORD | {"conversation_id": "beam-100K-2"}]
    write_folders(directory, several, {"beam-100K-1": shorter})
    (directory / "another").mkdir()
    write_parquet(directory / "another", "table.parquet", several[1:])
    write_lines(directory, "500K")
    return know(monkeypatch, Beam, directory)
