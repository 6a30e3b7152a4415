"""lossless-claw's vectors of sessions: session files, turns, rollover, large files, configuration."""

import math
import os
import re
import tempfile
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lcm.javascript import utf16_length
from lcm.memory.session import (
    Exploration,
    MessagePreparer,
    SessionRules,
    follow_host,
    live_message,
    matches,
)
from lcm.memory.session_bootstrap import bootstrap
from lcm.records.conversation import LargeFile, Message
from lcm.records.summary import Summary
from lcm.store.conversations import open_session
from lcm.store.store import Store
from lcm.store.summaries import insert_summary, read_context
from lcm.transcript.large_files import (
    compacted,
    extension,
    file_blocks,
    file_ids_in,
    file_reference,
    file_text,
    tool_output_reference,
)
from lcm.transcript.parts import rebuild
from lcm.transcript.rendering import rendered, stored_content, stored_parts
from tests.golden.components import component, fields_of
from tests.golden.originals.lossless_claw_settings import resolve
from tests.golden.originals.session_turns import ingest, ingest_turn

NOW = datetime(2026, 2, 1, tzinfo=UTC)
SESSION_ID = "session"
NAMES = {
    "ignore_session_patterns": "ignore_patterns",
    "stateless_session_patterns": "stateless_patterns",
    "skip_stateless_sessions": "skip_stateless",
    "large_file_token_threshold": "large_file_threshold_tokens",
    "prune_heartbeat_ok": "prune_heartbeats",
}
"""The vectors' name of a rule -> ours, where they differ."""
CHECKPOINT = """
    last_seen_size=size last_seen_mtime_ms=mtime_ms last_processed_offset=offset last_processed_entry_hash=entry_hash
"""


def rules(config: dict[str, Any]) -> SessionRules:
    preset: SessionRules = component("session=lossless_claw", "session")
    given = {NAMES.get(key, key): value for key, value in config.items()}
    for key, below in (("bootstrap_max_tokens", 0), ("new_session_retain_depth", -1)):
        if key in given:  # whatever is less means the same, and a fraction is rounded down
            given[key] = math.floor(max(given[key], below))
    return replace(preset, **given)


def preparer(config: dict[str, Any]) -> MessagePreparer:
    return MessagePreparer(rules(config), component("system=lossless_claw", "token_estimator"), rendered)


def session_patterns(case: dict[str, Any]) -> dict[str, bool]:
    return {"matches": matches(case["pattern"], case["session_key"])}


def config_resolution(case: dict[str, Any]) -> dict[str, Any]:
    return resolve(case["env"], case["plugin"])


def large_file_blocks(case: dict[str, Any]) -> dict[str, Any]:
    text = case["content"]
    return {
        "blocks": [
            {
                "start": utf16_length(text[: block.start]),
                "end": utf16_length(text[: block.stop]),
                "attributes": dict(block.attributes),
                **fields_of(block, "file_name=name mime_type text=body"),
            }
            for block in file_blocks(text)
        ]
    }


def large_file_refs(case: dict[str, Any]) -> dict[str, Any]:
    if case["op"] == "extension":
        return {"extension": extension(case.get("file_name"), case.get("mime_type"))}
    if case["op"] == "extract_file_ids":
        return {"file_ids": file_ids_in(case["content"])}
    named = (case.get("file_name"), case.get("mime_type"), case["byte_size"], case["summary"])
    of_file = dict(zip(("name", "mime_type", "byte_size", "exploration_summary"), named, strict=True))
    file = LargeFile(file_id=case["file_id"], ordinal=0, position=0, **of_file)
    if case["op"] == "file_reference":
        return {"text": file_reference(file)}
    return {"text": tool_output_reference(file, case["tool_name"])}


def exploration_summary(case: dict[str, Any]) -> dict[str, str]:
    return {
        "summary": Exploration().explore(case["content"], case["file_name"], case["mime_type"], incidents=Counter())
    }


def large_file_interception(case: dict[str, Any]) -> dict[str, Any]:
    listening = preparer({"large_file_token_threshold": case["large_file_token_threshold"]})
    message = listening.prepared(live_message(case["message"], SESSION_ID, message_id="message"))
    labels = {file.file_id: f"FILE_{number}" for number, file in enumerate(message.files, start=1)}
    shown = {
        "role": message.role,
        "content": stored_content(message),
        "files": [
            {
                "label": file.file_id,
                "id_ok": re.fullmatch(r"file_[0-9a-f]{16}", file.file_id) is not None,
                "storage_basename": f"{file.file_id}.{extension(file.name, file.mime_type)}",
                "stored": len(file_text(message, file).encode()) == file.byte_size,
                **fields_of(file, "file_name=name mime_type byte_size exploration_summary"),
            }
            for file in message.files
        ],
        "parts": [
            {
                **fields_of(part, "part_type text_content=text tool_call_id tool_name tool_output"),
                "metadata": dict(part.metadata),
            }
            for part in stored_parts(rebuild(compacted(message)))
        ],
    }
    return _labelled(shown, labels)


def bootstrap_reconciliation(case: dict[str, Any]) -> dict[str, Any]:
    listening = preparer(case["config"])
    results: list[dict[str, Any]] = []
    with Store(opened_at=NOW) as store, tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "session.jsonl"
        for step in case["steps"]:
            session_key = step.get("session_key", "")
            if step["op"] in ("write", "append"):
                with path.open("w" if step["op"] == "write" else "a", encoding="utf-8") as file:
                    file.write("\n".join(step["lines"]) + "\n")
                os.utime(path, ns=(step["mtime_ms"] * 1_000_000,) * 2)
                results.append({"file_size": path.stat().st_size})
            elif step["op"] == "ingest":
                said = live_message(step["message"], SESSION_ID, NOW)
                results.append({"ingested": ingest(store, [said], listening, NOW, SESSION_ID, session_key) == 1})
            else:
                done = bootstrap(store, path, listening, NOW, SESSION_ID, session_key)
                checkpoint = done.checkpoint
                results.append(
                    {
                        **fields_of(done, "bootstrapped=is_bootstrapped imported_messages reason"),
                        "checkpoint": checkpoint and fields_of(checkpoint, CHECKPOINT),
                        "message_count": len(store.messages()),
                    }
                )
        messages = store.messages()
        rows = [
            {"seq": seq, "role": said.role, "content": stored_content(said), "part_count": len(said.parts)}
            for seq, said in enumerate(messages, start=1)
        ]
        return {
            "steps": results,
            "messages": rows,
            "context_item_count": len(store.context(SESSION_ID)) if messages else 0,
        }


def after_turn_ingest(case: dict[str, Any]) -> dict[str, Any]:
    """Messages that are visible; the original deletes the others and counts anew."""
    listening = preparer({})
    counts = []
    with Store(opened_at=NOW) as store:
        visible: list[Message] = []
        for turn in case["turns"]:
            ingest_turn(
                store,
                [live_message(native, SESSION_ID, NOW) for native in turn["messages"]],
                listening,
                NOW,
                SESSION_ID,
                pre_prompt_message_count=turn["pre_prompt_message_count"],
                auto_compaction_summary=turn.get("auto_compaction_summary"),
                is_heartbeat=turn.get("is_heartbeat", False),
            )
            visible = [record for record in store.context_records(SESSION_ID) if isinstance(record, Message)]
            counts.append(len(visible))
        rows = [
            {"seq": place, "role": said.role, "content": stored_content(said)}
            for place, said in enumerate(visible, start=1)
        ]
    return {"message_count_after_each_turn": counts, "messages": rows}


def session_lifecycle(case: dict[str, Any]) -> dict[str, Any]:
    listening = preparer(case["config"])
    everyone = preparer({})
    session_id, key = case["session_id"], case["session_key"]
    with Store(opened_at=NOW) as store:
        for number, item in enumerate(case["initial_context"]):
            if item["type"] == "message":
                said = live_message({"role": "user", "content": f"m{number}"}, session_id, NOW)
                ingest(store, [said], everyone, NOW, session_id, key)
            else:
                _put_summary(store, session_id, key, number, item["depth"])
        for number, step in enumerate(case["steps"]):
            if step["op"] in ("before_reset", "session_end"):
                follow_host(store, listening.rules, NOW, step["op"], session_id, {**step, "session_key": key})
            else:
                said = live_message({"role": "user", "content": f"after {number}"}, step["session_id"], NOW)
                ingest(store, [said], listening, NOW, step["session_id"], key)
        with store.writing() as connection:
            conversations = connection.execute(
                "SELECT conversation_id, session_id, session_key, active, archived_at FROM conversations ORDER BY 1"
            ).fetchall()
            context = read_context(connection, 1)
        return {
            "conversations": [
                {
                    "conversation_id": number,
                    "session_id": own_id,
                    "session_key": own_key.partition("#")[0],
                    "active": active,
                    "archived": int(archived_at is not None),
                }
                for number, own_id, own_key, active, archived_at in conversations
            ],
            "context": [
                {"ordinal": place, "item_type": entry.item_type, "depth": entry.depth}
                for place, entry in enumerate(context)
            ],
            "summary_rows": len(store.summaries()),
            "message_rows": len(store.messages()),
        }


def _put_summary(store: Store, session_id: str, key: str, number: int, depth: int) -> None:
    with store.writing() as connection:
        session = open_session(connection, session_id, key, NOW)
        kind = "condensed" if depth else "leaf"
        insert_summary(connection, session.conversation, Summary(f"S{number}", key, kind, depth, "said", 1, NOW))
        connection.execute(
            "INSERT INTO context_items (conversation_id, ordinal, item_type, summary_id) VALUES (?, ?, 'summary', ?)",
            (session.conversation, (number + 1) * 1024, f"S{number}"),
        )


def _labelled(value: Any, labels: dict[str, str]) -> Any:
    if isinstance(value, str):
        for file_id, label in labels.items():
            value = value.replace(file_id, label)
        return value
    if isinstance(value, list):
        return [_labelled(element, labels) for element in value]
    if isinstance(value, dict):
        return {key: _labelled(element, labels) for key, element in value.items()}
    return value
