"""`lcm ingest`: files and folders of any format into a store or a Parquet file, with what was put aside."""

import gzip
import json
import os
import re
from pathlib import Path

import pytest

from eval.dataset.sample import bundled_directory
from lcm.store.store import Store
from lcm.transcript.parts import rebuild_record
from lcm.transcript.reading import read_transcripts
from pipelines.cli import BAD_INPUT
from tests.conftest import ROOT
from tests.pipelines.conftest import Lcm

SAMPLE = bundled_directory() / "transcripts"
RECORDINGS = ROOT / "tests" / "recordings"
IMPORTS = """
from collections.abc import Iterator

from lcm.errors import TranscriptError
from lcm.records.conversation import Event, Message
from lcm.transcript.fields import native_id, recorded_instant
from lcm.transcript.reader import RecordedItem
from lcm.transcript.recorded_file import RecordedFile
"""
HELLO = json.dumps({"role": "user", "content": "hello"})


def row(said: str, name: str) -> list[str]:
    """The cells of the file's row of the table; a long path goes on in the lines below."""
    rows: list[list[str]] = []
    for line in said.splitlines():
        cells = [cell.strip() for cell in line.strip("│").split("│")]
        if line.startswith("│") and any(cells[1:]):
            rows.append(cells)
        elif line.startswith("│"):
            rows[-1][0] += cells[0]
    (found,) = [row for row in rows if name in row[0]]
    return found


def test_a_file_goes_into_a_store_and_is_counted(lcm: Lcm) -> None:
    finished = lcm("ingest", str(SAMPLE / "assistant.jsonl"), "into=memory.db")
    assert finished.code == 0
    (transcript,) = read_transcripts(SAMPLE / "assistant.jsonl")
    roles = [message.role for message in transcript.messages]
    counts = [1, len(roles), *(roles.count(role) for role in ("system", "user", "assistant", "tool"))]
    recorded = map(json.loads, (SAMPLE / "assistant.jsonl").read_text().splitlines())
    calls = sum(len(said.get("tool_calls") or []) for session in recorded for said in session["messages"])
    expected = [*counts, calls, len(transcript.events), 0, len(roles)]
    assert row(finished.stdout, "assistant.jsonl")[1:] == ["chat", *map(str, expected)]
    with Store(finished.place / "memory.db") as store:
        assert [m.message_id for m in store.messages()] == [m.message_id for m in transcript.messages]
        assert store.events("assistant") == list(transcript.events)
    assert row(lcm("ingest", str(SAMPLE / "assistant.jsonl"), "into=memory.db").stdout, "assistant.jsonl")[-1] == "0"
    assert not list(finished.place.glob("*quarantine*"))


def test_bad_lines_are_put_aside_told_and_listed(lcm: Lcm, tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl"
    path.write_text("\n".join([HELLO, "{", HELLO, *["oops"] * 30]))
    finished = lcm("ingest", str(path), "into=memory.db")
    assert finished.code == 0
    assert row(finished.stdout, "talk.jsonl")[3] == "2"
    assert f"put aside: {path}:2: not JSON" in finished.stderr
    assert finished.stderr.count("put aside: ") == 20
    assert "31 put aside in all: memory.db.quarantine.jsonl" in finished.stderr
    listed = [json.loads(line) for line in (finished.place / "memory.db.quarantine.jsonl").read_text().splitlines()]
    assert [entry["line"] for entry in listed] == [2, *range(4, 34)]
    assert all(entry["path"] == str(path) and entry["reason"].startswith("not JSON") for entry in listed)


def test_strictly_a_bad_line_refuses_its_file_whole_and_no_other(lcm: Lcm, tmp_path: Path) -> None:
    bad, good = tmp_path / "bad.jsonl", tmp_path / "good.jsonl"
    bad.write_text("\n".join([HELLO] * 1200 + ["{"]))
    good.write_text(HELLO)
    finished = lcm("ingest", str(bad), str(good), "into=memory.db", "strict=true")
    assert finished.code == BAD_INPUT
    assert f"not taken in: {bad}:1201: not JSON" in finished.stderr
    with Store(finished.place / "memory.db") as store:
        assert [m.message_id for m in store.messages()] == ["good:1"]


def test_a_transcript_that_changed_is_refused_and_the_store_stays(lcm: Lcm, tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl"
    path.write_text(HELLO)
    lcm("ingest", str(path), "into=memory.db")
    path.write_text(HELLO.replace("hello", "goodbye"))
    finished = lcm("ingest", str(path), "into=memory.db")
    assert finished.code == BAD_INPUT
    assert "talk.jsonl: conversation 'talk': message 1 is stored as 'talk:1', but" in finished.stderr


def test_of_two_files_that_claim_one_id_the_second_is_read_without_it(lcm: Lcm, tmp_path: Path) -> None:
    def session(name: str, said: str) -> str:
        return json.dumps({"conversation_id": name, "messages": [{"role": "user", "content": said}]})

    (tmp_path / "a.jsonl").write_text(session("boat", "It is red."))
    (tmp_path / "b.jsonl").write_text("\n".join([session("boat", "It is blue."), session("cat", "It is grey.")]))
    finished = lcm("ingest", str(tmp_path / "a.jsonl"), str(tmp_path / "b.jsonl"), "into=memory.db")
    assert finished.code == BAD_INPUT
    told = f"left out: {tmp_path}/b.jsonl: conversation 'boat' is also in {tmp_path}/a.jsonl: name one of the two files"
    assert [line for line in finished.stderr.splitlines() if "boat" in line] == [f"lcm: warning: {told}"]
    assert row(finished.stdout, "b.jsonl")[2] == "1"
    with Store(finished.place / "memory.db") as store:
        assert [message.content for message in store.messages()] == ["It is red.", "It is grey."]
    again = lcm("ingest", str(tmp_path / "b.jsonl"), "into=memory.db")
    assert f"left out: {tmp_path}/b.jsonl: conversation 'boat': message 1 is stored as 'boat:1', but" in again.stderr


def test_a_folder_of_many_formats_goes_in_whole_and_by_parquet_of_messages_too(lcm: Lcm) -> None:
    """All of them, though some tell the same talk."""
    direct = lcm("ingest", str(RECORDINGS), "into=direct.db", "copies=all")
    assert direct.code == 0
    for path in RECORDINGS.iterdir():
        assert row(direct.stdout, path.name)[1] == path.name.partition(".")[0]
    assert lcm("ingest", str(RECORDINGS), "into=messages.parquet", "copies=all").code == 0
    again = lcm("ingest", "messages.parquet", "into=again.db", "copies=all")
    assert again.code == 0
    with Store(again.place / "again.db") as one, Store(direct.place / "direct.db") as other:
        keys = other.conversations()["conversation_id"].to_list()
        assert sorted(one.conversations()["conversation_id"].to_list()) == sorted(keys)
        assert len(keys) > len(list(RECORDINGS.iterdir()))
        for key in keys:
            assert one.messages(key) == other.messages(key)
            assert one.events(key) == other.events(key)


def test_messages_in_branches_are_told(lcm: Lcm) -> None:
    log = lcm("ingest", str(RECORDINGS / "gemini.log.jsonl"), "into=memory.db")
    assert "branches that were left: 1, with 1 message\n" in log.stdout
    assert "branches that were left" not in lcm("ingest", str(RECORDINGS / "gemini.json"), "into=other.db").stdout


def test_a_parquet_file_takes_a_conversation_from_one_file_only(lcm: Lcm, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps({"conversation_id": "x", "messages": [json.loads(HELLO)]}))
    finished = lcm("ingest", str(tmp_path / "a.jsonl"), str(tmp_path / "b.jsonl"), "into=messages.parquet")
    assert finished.code == BAD_INPUT
    assert (
        f"{tmp_path}/b.jsonl: conversation 'x' is also in {tmp_path}/a.jsonl: name one of the two files"
        in finished.stderr
    )
    assert not list(finished.place.glob("messages*"))


SPOKEN = {"type": "user", "sessionId": "s1", "message": {"role": "user", "content": "hello"}}


def test_a_session_that_records_usage_is_told_how_far_the_estimate_is_off(lcm: Lcm, tmp_path: Path) -> None:
    said = {"role": "assistant", "content": "a" * 13, "usage": {"prompt_tokens": 500, "completion_tokens": 20}}
    (tmp_path / "talk.jsonl").write_text("\n".join([HELLO, json.dumps(said)]))
    for estimator, stored in (("weighted", 10), ("recorded", 20)):
        finished = lcm("ingest", str(tmp_path / "talk.jsonl"), f"into={estimator}.db", f"token_estimator={estimator}")
        assert "output tokens as recorded, of 1 of the messages: 20; estimated: 10 (-50%)" in finished.stdout
        with Store(finished.place / f"{estimator}.db") as store:
            assert [entry.tokens for entry in store.context("talk")] == [2, stored]
    assert "recorded" not in lcm("ingest", str(SAMPLE / "assistant.jsonl"), "into=other.db").stdout


def test_events_are_counted_over_all_pieces(lcm: Lcm, tmp_path: Path) -> None:
    (tmp_path / "talk.jsonl").write_text("\n".join(map(json.dumps, [SPOKEN, {"type": "mode"}] * 700)))
    counted = row(lcm("ingest", str(tmp_path / "talk.jsonl"), "into=memory.db").stdout, "talk.jsonl")
    assert counted == ["talk.jsonl", "claude_code", "1", "700", "0", "700", "0", "0", "0", "700", "0", "700"]


def test_the_sub_agents_of_a_folder_are_taken_in_with_their_session(lcm: Lcm, tmp_path: Path) -> None:
    subagents = tmp_path / "logs" / "s1" / "subagents"
    subagents.mkdir(parents=True)
    agent = SPOKEN | {"isSidechain": True, "agentId": "a"}
    (subagents / "agent-a.jsonl.gz").write_bytes(gzip.compress(json.dumps(agent).encode()))
    (subagents / "agent-a.meta.json").write_text('{"agentType": "Explore"}')
    (tmp_path / "logs" / "s1.jsonl").write_text(json.dumps(SPOKEN))
    finished = lcm("ingest", str(tmp_path / "logs"), "into=memory.db")
    assert row(finished.stdout, "s1.jsonl")[1:4] == ["claude_code", "2", "2"]
    assert finished.stderr.count("\n") == 1
    assert "s1.jsonl: no message says when it was said" in finished.stderr
    with Store(finished.place / "memory.db") as store:
        assert store.conversations()["conversation_id"].to_list() == ["s1", "s1/agent-a"]


def test_of_a_folder_other_things_and_its_own_files_are_passed_over(lcm: Lcm) -> None:
    place = lcm("--version").place
    for name, content in {
        "README.md": "# Notes\n", "settings.json": '{"theme": "dark"}', "agent-a.meta.json": '{"agentType": "x"}',
        "empty.jsonl": "", "copilot.jsonl": '{"type": "session.start", "data": {}}',
    }.items():  # fmt: skip
        (place / name).write_text(content)
    for folder in ("a", "b"):
        (place / folder).mkdir()
        (place / folder / "talk.jsonl").write_text(f"{HELLO}\n{{\n")
    for more in ([], [], ["format=chat"]):
        finished = lcm("ingest", str(place), "into=memory.db", *more)
        assert finished.code == 0
        passed_over = [line for line in finished.stderr.splitlines() if "passed over: " in line]
        assert len(passed_over) == 5
        assert all(re.search(": (if it holds|copy it|put it back|write what)", line) for line in passed_over)
        assert "lcm reads: chat" not in finished.stderr
        assert "not taken in" not in finished.stderr
    with Store(place / "memory.db") as store:
        assert store.conversations()["conversation_id"].to_list() == ["a/talk", "b/talk"]
    refused = lcm("ingest", "README.md", "into=memory.db")
    assert refused.code == BAD_INPUT
    assert "lcm reads: chat, chatgpt, claude_ai, claude_code," in refused.stderr


def test_where_nothing_is_taken_in_nothing_is_left_behind(lcm: Lcm, tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "README.md").write_text("# Notes\n")
    for into in ("memory.db", "messages.parquet"):
        finished = lcm("ingest", str(tmp_path / "logs"), f"into={into}")
        assert finished.code == BAD_INPUT
        assert "lcm: nothing was taken in; lcm reads: chat, chatgpt, claude_ai" in finished.stderr
        assert list(finished.place.iterdir()) == []
    assert lcm("ingest", str(RECORDINGS / "chat.jsonl"), "into=memory.db").code == 0
    assert lcm("ingest", str(tmp_path / "logs"), "into=memory.db").code == BAD_INPUT
    assert (finished.place / "memory.db").exists()


def test_a_reader_of_ones_own_is_named_by_its_class(lcm: Lcm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs" / "extending.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL)
    (code,) = (block for block in blocks if "class LogbookReader" in block)
    (tmp_path / "own_logbook.py").write_text(f"{IMPORTS}\n\n{code}")
    monkeypatch.syspath_prepend(str(tmp_path))
    lines = [{"ts": "2026-01-05T09:00:00Z", "who": "Ada", "say": "Cast off"}, {"mark": 1}, {"ts": "noon", "say": "x"}]
    (tmp_path / "trip.log").write_text("\n".join(map(json.dumps, lines)))
    named = ("ingest", str(tmp_path / "trip.log"), "into=memory.db", "format=own_logbook.LogbookReader")
    refused = lcm(*named)
    assert refused.code == BAD_INPUT
    assert "trust=[own_logbook]" in refused.stderr
    finished = lcm(*named, "trust=[own_logbook]")
    assert finished.code == 0
    assert "put aside: " in finished.stderr
    with Store(finished.place / "memory.db") as store:
        (message,) = store.messages("trip")
        assert (message.author, message.content, rebuild_record(message)) == ("Ada", "Cast off", lines[0])
        assert [event.native for event in store.events("trip")] == [lines[1]]
    finished = lcm("ingest", str(tmp_path / "trip.log"), "into=other.db", "format=nowhere.Reader", "trust=[nowhere]")
    assert finished.code == BAD_INPUT
    assert "'nowhere.Reader' names no class" in finished.stderr
    (tmp_path / "own_other.py").write_text("class Other:\n    name = 'other'\n")
    finished = lcm("ingest", str(tmp_path / "trip.log"), "into=other.db", "format=own_other.Other", "trust=[own_other]")
    assert finished.code == BAD_INPUT
    assert "own_other.Other is no TranscriptReader: it lacks detects, read" in finished.stderr


TORN = {
    "gzip": gzip.compress(HELLO.encode(), mtime=0)[:20],
    "line": HELLO[:-5].encode(),
    "parquet": b"PAR1" + b"\0" * 40,
}


@pytest.mark.parametrize("content", TORN.values(), ids=TORN)
def test_a_torn_transcript_in_a_folder_is_a_failure(lcm: Lcm, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "torn").write_bytes(content)
    (tmp_path / "logs" / "talk.jsonl").write_text(HELLO)
    finished = lcm("ingest", str(tmp_path / "logs"), "into=memory.db")
    assert finished.code == BAD_INPUT
    assert f"not taken in: {tmp_path}/logs/torn: " in finished.stderr
    assert row(finished.stdout, "talk.jsonl")[-1] == "1"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "an empty file"),
        ('{"role": "user", "content": "x", "timestamp": "noon"}', "holds nothing that can be read"),
    ],
)
def test_a_file_that_gives_nothing_is_not_taken_in(lcm: Lcm, tmp_path: Path, content: str, told: str) -> None:
    path = tmp_path / "logs" / "void.jsonl"
    path.parent.mkdir()
    path.write_text(content)
    finished = lcm("ingest", str(path), "into=memory.db")
    assert finished.code == BAD_INPUT
    assert f"not taken in: {path}: {told}: copy it anew if it should hold a session" in finished.stderr
    assert finished.stderr.count(f"put aside: {path}:1: ") == bool(content)
    assert not (finished.place / "memory.db").exists()
    assert (finished.place / "memory.db.quarantine.jsonl").exists() == bool(content)
    assert lcm("ingest", str(path.parent), "into=messages.parquet").code == BAD_INPUT


def listed(place: Path, name: str = "memory.db") -> list[tuple[str, int]]:
    lines = (place / f"{name}.quarantine.jsonl").read_text().splitlines()
    return [(Path(entry["path"]).name, entry["line"]) for entry in map(json.loads, lines)]


def test_the_listing_keeps_what_was_put_aside_of_other_files(lcm: Lcm, tmp_path: Path) -> None:
    one, other = tmp_path / "here" / "one.jsonl", tmp_path / "other.jsonl"
    place = lcm("--version").place
    for path in (one, other):
        path.write_text(f"{HELLO}\n{{\n")
        lcm("ingest", str(path), "into=memory.db")
    one.write_text(f"{HELLO}\n{{\n{{\n")
    lcm("ingest", str(one), "into=memory.db", "strict=true")
    assert listed(place) == [("one.jsonl", 2), ("other.jsonl", 2)]  # refused, so what was taken in before stands
    lcm("ingest", "one.jsonl", "into=memory.db")
    assert listed(place) == [("other.jsonl", 2), ("one.jsonl", 2), ("one.jsonl", 3)]
    for path in (one, other):
        path.write_text(HELLO)
        lcm("ingest", str(path), "into=memory.db")
    assert not (place / "memory.db.quarantine.jsonl").exists()


def test_a_file_name_that_is_not_utf_8_stops_nothing(lcm: Lcm, tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    odd = os.fsencode(tmp_path / "logs") + b"/caf\xe9.jsonl"
    Path(os.fsdecode(odd)).write_text(f"{HELLO}\n{{\n")
    Path(os.fsdecode(odd + b".md")).write_text("# Notes\n")
    (tmp_path / "logs" / "talk.jsonl").write_text(HELLO)
    finished = lcm("ingest", str(tmp_path / "logs"), "into=memory.db")
    assert finished.code == 0
    assert row(finished.stdout, "caf\ufffd.jsonl")[3] == row(finished.stdout, "talk.jsonl")[3] == "1"
    assert "passed over: " in finished.stderr
    (entry,) = map(json.loads, (finished.place / "memory.db.quarantine.jsonl").read_text().splitlines())
    assert os.fsencode(entry["path"]) == odd
    finished = lcm("ingest", os.fsdecode(odd + b".none"), "into=memory.db")
    assert finished.code == BAD_INPUT
    assert "caf\ufffd.jsonl.none: no such file or folder" in finished.stderr


def test_session_rules_leave_sessions_out_and_note_large_files(lcm: Lcm) -> None:
    rules = ("session.ignore_patterns=['ryo*']", "session.large_file_threshold_tokens=200")
    finished = lcm("ingest", str(SAMPLE), "into=memory.db", *rules)
    assert finished.code == 0
    with Store(finished.place / "memory.db") as store:
        assert "ryokou" not in store.conversations()["conversation_id"].to_list()
        large = [message for message in store.messages() if message.files]
    assert large
    assert all(file.file_id in message.content for message in large for file in message.files)
    again = lcm("ingest", str(SAMPLE), "into=memory.db", *rules)
    assert [row(again.stdout, name)[-1] for name in ("assistant.jsonl", "coding.jsonl")] == ["0", "0"]
