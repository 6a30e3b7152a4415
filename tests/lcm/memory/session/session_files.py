"""Session files to write, and with what to listen to them."""

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lcm.memory.session import MessagePreparer, SessionRules
from lcm.records.conversation import Message
from lcm.store.store import Store
from lcm.token_estimator import Utf16Units
from lcm.transcript.rendering import rendered

NOW = datetime(2026, 2, 1, tzinfo=UTC)
HEADER = {"type": "session", "version": 3, "id": "file-1", "timestamp": "2026-01-05T09:00:00.000Z", "cwd": "/w"}


def preparer(**rules: Any) -> MessagePreparer:
    return MessagePreparer(replace(SessionRules(), **rules), Utf16Units(), rendered)


def entry(name: str, parent: str | None, text: str, role: str = "user") -> dict[str, Any]:
    message: dict[str, Any] = {"role": role, "content": text}
    said_at = "2026-01-05T09:00:01.000Z"
    return {"type": "message", "id": name, "parentId": parent, "timestamp": said_at, "message": message}


def chain(*texts: str, parent: str | None = None, prefix: str = "e") -> list[dict[str, Any]]:
    """Entries that follow each other, the ids made of a prefix and the text."""
    names = [f"{prefix}-{text}" for text in texts]
    return [entry(name, before, text) for name, before, text in zip(names, [parent, *names], texts, strict=False)]


def write(path: Path, entries: Sequence[dict[str, Any]], at_ms: int = 1_767_600_000_000) -> Path:
    path.write_text("".join(json.dumps(item) + "\n" for item in [HEADER, *entries]), encoding="utf-8")
    os.utime(path, ns=(at_ms * 1_000_000,) * 2)
    return path


def said(store: Store, conversation_id: str) -> list[str]:
    return [message.content for message in store.messages(conversation_id)]


def shown(store: Store, conversation_id: str) -> list[str]:
    """The words in the context."""
    return [record.content for record in store.context_records(conversation_id) if isinstance(record, Message)]
