"""Real recordings of every format: every record, as `json.loads` reads it, comes back from the store exactly.

Needs LCM_DATASETS_DIR.
"""

import gzip
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from lcm.store.store import Store
from lcm.transcript.parts import rebuild_record
from lcm.transcript.reading import read_pieces, reader_of
from lcm.transcript.recorded_file import RecordedFile
from tests.lcm.store.contents import TOKENS
from tests.lcm.transcript.test_odd_records import unfolded

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
CASES = [
    (name, path) for name, globs in FORMATS.items() for pattern in globs for path in sorted(TRANSCRIPTS.glob(pattern))
]

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


def test_there_are_sessions_of_every_format() -> None:
    cases = Counter(name for name, _ in CASES)
    assert [cases[name] for name in FORMATS] == [11, 8, 8, 5, 2, 1, 12, 1]


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
    given_back = [rebuild_record(message) for message in messages] + [event.native for event in events]
    assert Counter(map(json.dumps, given_back)) == Counter(map(json.dumps, kept))
