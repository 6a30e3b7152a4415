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


def _asked(number: int, content: str, index: str, anchor: str = "") -> Json:
    dated = {"time_anchor": anchor} if anchor else {}
    return (
        {"role": "user", "id": number, "content": content} | dated | {"index": index, "question_type": "main_question"}
    )


def _told(number: int, content: str) -> Json:
    return {"role": "assistant", "id": number, "content": content}


NATIVE: tuple[tuple[Json, ...], ...] = (
    (_asked(0, "I keep bees ->-> 1,2", "1,2", "November-05-2023"), _told(1, "Write a ->-> b for the arrow")),
    (_asked(2, "How many hives?\nTell me.  ->-> 1,N/A (no bullet)", "1,N/A"), _told(3, "Four")),
    (_asked(4, "Five hives now", "2,1", "March-15-2024"), _told(5, "Noted")),
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
