"""A small talk of two, written as each format writes it."""

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl


class Turn(NamedTuple):
    """What one of the two says, and how long after the beginning."""

    role: str
    words: str
    minute: int

    @property
    def at(self) -> datetime:
        return datetime(2026, 9, 1, 8, tzinfo=UTC) + timedelta(minutes=self.minute)

    @property
    def iso(self) -> str:
        return self.at.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    @property
    def ms(self) -> int:
        return int(self.at.timestamp() * 1000)


Talk = Sequence[Turn]
Write = Callable[[Path, Talk], Path]
"""Writes a talk below a folder; gives the file or folder to read."""


def lines(path: Path, *records: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    return path


def chatted(talk: Talk) -> list[dict[str, Any]]:
    return [{"role": turn.role, "content": turn.words, "timestamp": turn.iso} for turn in talk]


def chat(folder: Path, talk: Talk) -> Path:
    return lines(folder / "talk.jsonl", *chatted(talk))


def claude_code(folder: Path, talk: Talk) -> Path:
    records = (
        {
            "type": turn.role,
            "uuid": f"u{n}",
            "sessionId": "s",
            "timestamp": turn.iso,
            "message": {"role": turn.role, "content": [{"type": "text", "text": turn.words}]},
        }
        for n, turn in enumerate(talk)
    )
    return lines(folder / "s.jsonl", *records)


def codex(folder: Path, talk: Talk) -> Path:
    def item(turn: Turn) -> dict[str, Any]:
        kind = "input_text" if turn.role == "user" else "output_text"
        content = [{"type": kind, "text": turn.words}]
        payload = {"type": "message", "role": turn.role, "content": content}
        return {"timestamp": turn.iso, "type": "response_item", "payload": payload}

    header = {"timestamp": talk[0].iso, "type": "session_meta", "payload": {"id": "s"}}
    return lines(folder / "rollout.jsonl", header, *map(item, talk))


def gemini(folder: Path, talk: Talk) -> Path:
    header = {"sessionId": "s", "projectHash": "p", "startTime": talk[0].iso}
    named = {"user": "user", "assistant": "gemini"}
    said = (
        {"id": f"m{n}", "timestamp": turn.iso, "type": named[turn.role], "content": turn.words}
        for n, turn in enumerate(talk)
    )
    return lines(folder / "session.jsonl", header, *said)


def goose(folder: Path, talk: Talk) -> Path:
    said = (
        {
            "id": f"m{n}",
            "role": turn.role,
            "created": turn.ms // 1000,
            "content": [{"type": "text", "text": turn.words}],
        }
        for n, turn in enumerate(talk)
    )
    return lines(folder / "20260901_1.jsonl", {"working_dir": "/w", "description": "A talk"}, *said)


def openclaw(folder: Path, talk: Talk) -> Path:
    header = {"type": "session", "version": 3, "id": "s", "timestamp": talk[0].iso, "cwd": "/w"}
    entries = (
        {
            "type": "message",
            "id": f"e{n}",
            "parentId": f"e{n - 1}" if n else None,
            "timestamp": turn.iso,
            "message": {"role": turn.role, "content": [{"type": "text", "text": turn.words}]},
        }
        for n, turn in enumerate(talk)
    )
    return lines(folder / "s.jsonl", header, *entries)


def parquet(folder: Path, talk: Talk) -> Path:
    path = folder / "talk.parquet"
    pl.DataFrame([{"role": turn.role, "content": turn.words, "timestamp": turn.at} for turn in talk]).write_parquet(
        path
    )
    return path


def sharegpt(folder: Path, talk: Talk) -> Path:
    named = {"user": "human", "assistant": "gpt"}
    turns = [{"from": named[turn.role], "value": turn.words, "timestamp": turn.iso} for turn in talk]
    return lines(folder / "talk.json", {"id": "s", "conversations": turns})


def swe_agent(folder: Path, talk: Talk) -> Path:
    return lines(folder / "fix.traj", {"history": chatted(talk), "trajectory": [], "info": {}})


def tau_bench(folder: Path, talk: Talk) -> Path:
    return lines(folder / "tasks.jsonl", {"task_id": 1, "trial": 0, "reward": 1.0, "info": {}, "traj": chatted(talk)})


WRITERS: dict[str, Write] = {
    one.__name__: one
    for one in (chat, claude_code, codex, gemini, goose, openclaw, parquet, sharegpt, swe_agent, tau_bench)
}
"""By the name of the reader."""
