"""Real recordings of every format, counted by plain Python as a line of jq would, and by the readers.

Every record comes back exactly after a trip through the store. Needs LCM_DATASETS_DIR.
"""

import gzip
import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from lcm.store.store import Store
from lcm.transcript.parts import rebuild_record, tool_calls
from lcm.transcript.reading import READERS, read_pieces, reader_of
from lcm.transcript.recorded_file import RecordedFile
from tests.lcm.store.contents import TOKENS

TRANSCRIPTS = Path(os.environ["LCM_DATASETS_DIR"]) / "agent_transcripts"
FORMATS = {
    "claude_code": ["claude_code/*.jsonl", "minimal_parser_cases/claude*", "multi_agent_fixtures/claude/**/*.jsonl"],
    "codex": ["minimal_parser_cases/codex*", "multi_agent_fixtures/codex/*"],
    "gemini": ["minimal_parser_cases/gemini*", "multi_agent_fixtures/gemini/*"],
    "openclaw": ["multi_agent_fixtures/openclaw/*", "multi_agent_fixtures/pi/*", "pi_session/*"],
    "chat": ["swe_agent/*.json"],
    "sharegpt": ["sharegpt/*"],
    "swe_agent": ["swe_agent/*.traj", "swe_agent/*.traj.gz"],
    "tau_bench": ["openai_chat_tools/*"],
}
AGENTS = ("claude_code", "codex", "gemini", "openclaw")
CASES = [
    (name, path) for name, globs in FORMATS.items() for pattern in globs for path in sorted(TRANSCRIPTS.glob(pattern))
]
FOREIGN = sorted(
    path
    for folder in ("copilot", "droid", "hermes", "kimi", "qwen")
    for path in (TRANSCRIPTS / "multi_agent_fixtures" / folder).rglob("*.json*")
) + sorted(
    path
    for folder in ("markdown_chat", "multi_party", "openai_chat_tools", "sharegpt", "swe_agent")
    for path in (TRANSCRIPTS / folder).glob("*")
)

NO_INSTANT = "an instant must be ISO 8601 text or an epoch number, got '[trimmed for fixture]'"
PUT_ASIDE = {
    "claude_code/edge_cases.jsonl": {
        11: "a record of type user needs a `message` object",  # it is the text "error"
        13: "a record must be a JSON object, got str",
        15: "a record must be a JSON object, got int",
        16: "a record must be a JSON object, got list",
    },
    "multi_agent_fixtures/claude/small.jsonl": dict.fromkeys((47, 49, 50, 55, 60, 62, 63, 65, 77, 78, 87), NO_INSTANT),
    "multi_agent_fixtures/codex/small.jsonl": dict.fromkeys(
        (28, 33, 39, 43, 49, 98, 103, 105, 114, 115, 116), NO_INSTANT
    ),
}
"""What is put aside, and why: lines broken on purpose, and messages whose instant was taken out of the fixture."""


class Counted(NamedTuple):
    roles: Counter[str]
    calls: int


def records(path: Path) -> list[tuple[str, int, Any]]:
    """Each record of a file, and of the files that belong to it, with its place; sessions are unfolded."""
    found = []
    beside = [*path.parent.glob(f"{path.stem}.meta.json"), *sorted(path.with_suffix("").rglob("*.json*"))]
    for part in [path, *beside]:
        text = (gzip.decompress(part.read_bytes()) if part.suffix == ".gz" else part.read_bytes()).decode()
        try:
            document = json.loads(text)
            values = document if isinstance(document, list) else unfolded(document)
        except json.JSONDecodeError:
            values = [json.loads(line) if line.strip() else None for line in text.split("\n")]
            if path.parent.name == "openai_chat_tools":
                values = [record for session in values if session for record in unfolded(session)]
        name = str(part.relative_to(TRANSCRIPTS))
        found += [(name, line, value) for line, value in enumerate(values, start=1) if value is not None]
    return found


def unfolded(session: dict[str, Any]) -> list[Any]:
    lists = {key: held for key, held in session.items() if isinstance(held, list) and held}
    return [session | dict.fromkeys(lists), *(element for held in lists.values() for element in held)]


def count_claude_code(found: list[Any]) -> Counted:
    told = [record for record in found if record.get("type") in ("user", "assistant")]
    contents = [record["message"].get("content") for record in told]
    blocks = [block for content in contents if isinstance(content, list) for block in content]
    return Counted(
        Counter(record["message"].get("role", record["type"]) for record in told),
        sum(isinstance(block, dict) and block["type"] == "tool_use" for block in blocks),
    )


CODEX_EVENTS = (
    "session_meta", "event_msg", "turn_context", "compacted", "world_state", "inter_agent_communication_metadata"
)  # fmt: skip


def count_codex(found: list[Any]) -> Counted:
    items = [record.get("payload", record) for record in found if record.get("type") not in CODEX_EVENTS]
    kinds = [item.get("type", "message") for item in items]
    outputs = sum(kind.endswith(("_output", "_result")) for kind in kinds)
    calls = sum(kind.endswith("_call") for kind in kinds)
    roles = Counter(item["role"] for item in items if "role" in item)
    others = calls + sum(kind in ("reasoning", "agent_message") for kind in kinds)
    return Counted(roles + Counter(assistant=others, tool=outputs), calls)


def count_gemini(found: list[Any]) -> Counted:
    names = {"user": "user", "gemini": "assistant", "model": "assistant"}
    told = [record for record in found if "content" in record or "parts" in record]
    return Counted(
        Counter(names.get(record.get("type", record.get("role")), "system") for record in told),
        sum(len(record.get("toolCalls", [])) for record in told),
    )


def count_openclaw(found: list[Any]) -> Counted:
    names = {"toolResult": "tool", "bashExecution": "assistant"}
    told = [record["message"] for record in found if record["type"] == "message"]
    blocks = [block for message in told if isinstance(message.get("content"), list) for block in message["content"]]
    return Counted(
        Counter(names.get(message["role"], message["role"]) for message in told),
        sum(block["type"] == "toolCall" for block in blocks),
    )


def count_chat(found: list[Any]) -> Counted:
    names = {"human": "user", "gpt": "assistant"}
    told = [record for record in found if "role" in record or "from" in record]
    return Counted(
        Counter(record.get("role") or names[record["from"]] for record in told),
        sum(len(record.get("tool_calls") or []) for record in told),
    )


COUNT: dict[str, Callable[[list[Any]], Counted]] = {
    "claude_code": count_claude_code,
    "codex": count_codex,
    "gemini": count_gemini,
    "openclaw": count_openclaw,
    **dict.fromkeys(("chat", "sharegpt", "swe_agent", "tau_bench"), count_chat),
}


def test_there_are_sessions_of_every_format() -> None:
    cases = Counter(name for name, _ in CASES)
    assert [cases[name] for name in FORMATS] == [11, 8, 8, 5, 2, 1, 12, 1]
    assert len(FOREIGN) > 30


def test_known_files_are_of_their_known_size() -> None:
    """The counting itself, once against figures of the datasets' own description."""
    known = {"sharegpt_test_7uOhOjo.json.gz": 916, "mini_local.traj.json": 6, "tau_airline_dev.jsonl.gz": 3136}
    counted = {
        path.name: COUNT[name]([value for *_, value in records(path)]).roles.total()
        for name, path in CASES
        if path.name in known
    }
    assert counted == known


def test_no_markup_is_among_the_words_of_a_reply() -> None:
    file = RecordedFile(next(path for name, path in CASES if name == "sharegpt"))
    said = [m for transcript in read_pieces(file, reader_of(file)) for m in transcript.messages]
    assert not any("</" in m.content or "<p>" in m.content for m in said if m.role == "assistant")


@pytest.mark.parametrize(("name", "path"), CASES, ids=[str(path.relative_to(TRANSCRIPTS)) for _, path in CASES])
def test_a_recorded_session_is_read_whole(name: str, path: Path) -> None:
    file = RecordedFile(path)
    reader = reader_of(file)
    assert reader.name == name
    with Store() as store:
        store.ingest_pieces(read_pieces(file, reader), TOKENS)
        messages = store.messages()
        names = store.conversations()["conversation_id"]
        events = [event for conversation_id in names for event in store.events(conversation_id)]
    lost = {(str(lost.path.relative_to(TRANSCRIPTS)), lost.line): lost.reason for lost in file.quarantine}
    found = records(path)
    assert lost == {
        (part, line): reason
        for part in dict.fromkeys(part for part, _, _ in found)
        for line, reason in PUT_ASIDE.get(part, {}).items()
    }
    kept = [record for part, line, record in found if (part, line) not in lost]
    assert len(messages) + len(events) + len(lost) == len(found)
    assert Counted(Counter(m.role for m in messages), sum(map(tool_calls, messages))) == COUNT[name](kept)
    given_back = [rebuild_record(message) for message in messages] + [event.native for event in events]
    assert Counter(map(json.dumps, given_back)) == Counter(map(json.dumps, kept))


@pytest.mark.parametrize("path", FOREIGN, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_no_agents_reader_takes_another_format(path: Path) -> None:
    file = RecordedFile(path)
    assert [reader.name for reader in READERS if reader.name in AGENTS and reader.detects(file)] == []
