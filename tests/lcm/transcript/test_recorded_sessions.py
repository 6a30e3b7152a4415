"""Real sessions: read, stored, and given back to the last byte of every line. Needs LCM_DATASETS_DIR."""

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

from lcm.store.store import Store
from lcm.transcript.openclaw import rebuild_entry
from lcm.transcript.parts import rebuild
from lcm.transcript.reading import read_transcripts
from tests.lcm.store.contents import TOKENS

FOLDERS = ("multi_agent_fixtures/openclaw", "multi_agent_fixtures/pi", "pi_session")


def recorded_sessions() -> list[Path]:
    transcripts = Path(os.environ["LCM_DATASETS_DIR"]) / "agent_transcripts"
    return sorted(path for folder in FOLDERS for path in (transcripts / folder).iterdir())


def message_lines(path: Path) -> list[Any]:
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    entries = [json.loads(line) for line in data.decode().split("\n") if line]
    return [entry for entry in entries if entry["type"] == "message"]


@pytest.mark.parametrize("path", recorded_sessions(), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_recorded_session_comes_back_exactly(path: Path) -> None:
    (transcript,) = read_transcripts(path)
    recorded = message_lines(path)
    assert len(recorded) > 0
    with Store() as store:
        assert store.ingest(transcript, TOKENS) == len(recorded)
        assert store.ingest(transcript, TOKENS) == 0
        stored = store.messages(transcript.conversation_id)
    assert stored == list(transcript.messages)
    assert [json.dumps(rebuild(m)) for m in stored] == [json.dumps(entry["message"]) for entry in recorded]
    assert [json.dumps(rebuild_entry(m)) for m in stored] == [json.dumps(entry) for entry in recorded]
