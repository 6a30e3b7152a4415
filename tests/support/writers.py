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


def chatgpt(folder: Path, talk: Talk) -> Path:
    nodes = {
        f"n{n}": {
            "id": f"n{n}",
            "message": {
                "id": f"n{n}",
                "author": {"role": turn.role},
                "create_time": turn.at.timestamp(),
                "content": {"content_type": "text", "parts": [turn.words]},
                "recipient": "all",
            },
            "parent": f"n{n - 1}" if n else None,
        }
        for n, turn in enumerate(talk)
    }
    return lines(folder / "conversations.json", [{"mapping": nodes, "current_node": f"n{len(talk) - 1}", "id": "s"}])


def claude_ai(folder: Path, talk: Talk) -> Path:
    named = {"user": "human", "assistant": "assistant"}
    messages = [
        {
            "uuid": f"u{n}",
            "sender": named[turn.role],
            "content": [{"type": "text", "text": turn.words}],
            "created_at": turn.iso,
            "parent_message_uuid": f"u{n - 1}" if n else "00000000-0000-4000-8000-000000000000",
        }
        for n, turn in enumerate(talk)
    ]
    return lines(folder / "conversations.json", [{"uuid": "s", "name": "", "chat_messages": messages}])


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


def cline(folder: Path, talk: Talk) -> Path:
    said = [
        {"role": turn.role, "content": [{"type": "text", "text": turn.words if n else f"<task>{turn.words}</task>"}]}
        for n, turn in enumerate(talk)
    ]
    shown = [
        {"ts": turn.ms, "type": "say", "say": "text", "text": turn.words, "conversationHistoryIndex": n - 1}
        for n, turn in enumerate(talk)
    ]
    lines(folder / "17" / "ui_messages.json", shown)
    lines(folder / "17" / "api_conversation_history.json", said)
    return folder


def codex(folder: Path, talk: Talk) -> Path:
    def item(turn: Turn) -> dict[str, Any]:
        kind = "input_text" if turn.role == "user" else "output_text"
        content = [{"type": kind, "text": turn.words}]
        payload = {"type": "message", "role": turn.role, "content": content}
        return {"timestamp": turn.iso, "type": "response_item", "payload": payload}

    header = {"timestamp": talk[0].iso, "type": "session_meta", "payload": {"id": "s"}}
    return lines(folder / "rollout.jsonl", header, *map(item, talk))


def cursor(folder: Path, talk: Talk) -> Path:
    """Cursor tells when the user asked, to the minute, and of replies nothing."""

    def record(turn: Turn) -> dict[str, Any]:
        asked = (
            f"<timestamp>{turn.at:%A, %b %d, %Y, %I:%M %p} (UTC)</timestamp>\n<user_query>\n{turn.words}\n</user_query>"
        )
        text = asked if turn.role == "user" else turn.words
        return {"role": turn.role, "message": {"content": [{"type": "text", "text": text}]}}

    return lines(folder / "s.jsonl", *map(record, talk), {"type": "turn_ended", "status": "success"})


def gemini(folder: Path, talk: Talk) -> Path:
    header = {"sessionId": "s", "projectHash": "p", "startTime": talk[0].iso}
    named = {"user": "user", "assistant": "gemini"}
    said = (
        {"id": f"m{n}", "timestamp": turn.iso, "type": named[turn.role], "content": turn.words}
        for n, turn in enumerate(talk)
    )
    return lines(folder / "session.jsonl", header, *said)


def langchain(folder: Path, talk: Talk) -> Path:
    named = {"user": "human", "assistant": "ai"}
    said = (
        {"type": named[turn.role], "data": {"content": turn.words, "additional_kwargs": {"timestamp": turn.iso}}}
        for turn in talk
    )
    return lines(folder / "history.json", list(said))


def openhands(folder: Path, talk: Talk) -> Path:
    named = {"user": "user", "assistant": "agent"}
    for n, turn in enumerate(talk):
        message = {"role": turn.role, "content": [{"type": "text", "text": turn.words}]}
        event = {"id": f"e{n}", "timestamp": turn.iso, "source": named[turn.role], "llm_message": message}
        lines(folder / "s" / "events" / f"event-{n:05}-e{n}.json", event | {"kind": "MessageEvent"})
    return folder


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


def opencode(folder: Path, talk: Talk) -> Path:
    storage = folder / "storage"
    session = {"id": "ses_1", "projectID": "p", "title": "A", "time": {"created": talk[0].ms}}
    lines(storage / "session" / "p" / "ses_1.json", session)
    for n, turn in enumerate(talk):
        message = {"id": f"msg_{n}", "sessionID": "ses_1", "role": turn.role, "time": {"created": turn.ms}}
        part = {"id": f"prt_{n}", "sessionID": "ses_1", "messageID": f"msg_{n}", "type": "text", "text": turn.words}
        lines(storage / "message" / "ses_1" / f"msg_{n}.json", message)
        lines(storage / "part" / f"msg_{n}" / f"prt_{n}.json", part)
    return folder


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
    for one in (
        *(chat, chatgpt, claude_ai, claude_code, cline, codex, cursor, gemini, goose, langchain, openclaw, opencode),
        *(openhands, parquet, sharegpt, swe_agent, tau_bench),
    )
}
"""By the name of the reader."""
