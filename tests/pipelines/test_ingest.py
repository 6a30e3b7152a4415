"""`lcm ingest`: files and folders of any format into a store or a Parquet file, with what was put aside."""

import json
from pathlib import Path

import pytest

from eval.datasets.sample import bundled_directory
from lcm.store.store import Store
from lcm.transcript.reading import read_transcripts
from pipelines.cli import BAD_INPUT
from tests.conftest import ROOT
from tests.pipelines.conftest import Lcm

SAMPLE = bundled_directory() / "transcripts"
RECORDINGS = ROOT / "tests" / "recordings"
HELLO = json.dumps({"role": "user", "content": "hello"})


def row(said: str, name: str) -> list[str]:
    """The cells of the file's line of the table."""
    (line,) = [line for line in said.splitlines() if name in line and "│" in line]
    return [cell.strip() for cell in line.strip("│").split("│")]


def test_a_file_goes_into_a_store_and_is_counted(lcm: Lcm) -> None:
    finished = lcm("ingest", str(SAMPLE / "assistant.jsonl"), "into=memory.db")
    assert finished.code == 0
    (transcript,) = read_transcripts(SAMPLE / "assistant.jsonl")
    roles = [message.role for message in transcript.messages]
    counts = [1, len(roles), *(roles.count(role) for role in ("system", "user", "assistant", "tool"))]
    calls = sum(
        part.part_type == "tool" and part.tool_input is not None for m in transcript.messages for part in m.parts
    )
    expected = [*counts, calls, len(transcript.events), 0, len(roles)]
    assert row(finished.stdout, "assistant.jsonl")[1:] == ["chat", *map(str, expected)]
    with Store(finished.place / "memory.db") as store:
        assert [m.message_id for m in store.messages()] == [m.message_id for m in transcript.messages]
        assert store.events("assistant") == list(transcript.events)
    assert row(lcm("ingest", str(SAMPLE / "assistant.jsonl"), "into=memory.db").stdout, "assistant.jsonl")[-1] == "0"
    assert not list(finished.place.glob("*quarantine*"))


def test_a_folder_of_many_formats_goes_in_whole(lcm: Lcm) -> None:
    finished = lcm("ingest", str(RECORDINGS), "into=memory.db")
    assert finished.code == 0
    for path in RECORDINGS.iterdir():
        assert row(finished.stdout, path.name)[1] == path.name.partition(".")[0]
    with Store(finished.place / "memory.db") as store:
        assert len(store.conversations()) > len(list(RECORDINGS.iterdir()))


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


def test_files_of_one_name_in_a_folder_stay_two(lcm: Lcm, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / "logs" / name).mkdir(parents=True)
        (tmp_path / "logs" / name / "talk.jsonl").write_text(HELLO)
    finished = lcm("ingest", str(tmp_path / "logs"), "into=memory.db")
    with Store(finished.place / "memory.db") as store:
        assert store.conversations()["conversation_id"].to_list() == ["a/talk", "b/talk"]


def test_what_is_no_transcript_is_passed_over_in_a_folder_and_refused_by_name(lcm: Lcm, tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "README.md").write_text("# Notes\n")
    (tmp_path / "logs" / "talk.jsonl").write_text(HELLO)
    finished = lcm("ingest", str(tmp_path / "logs"), "into=memory.db")
    assert finished.code == 0
    assert "passed over: " in finished.stderr
    finished = lcm("ingest", str(tmp_path / "logs" / "README.md"), "into=memory.db")
    assert finished.code == BAD_INPUT
    assert "lcm reads: chat, claude_code, codex," in finished.stderr


def test_a_transcript_that_changed_is_refused_and_the_store_stays(lcm: Lcm, tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl"
    path.write_text(HELLO)
    lcm("ingest", str(path), "into=memory.db")
    path.write_text(HELLO.replace("hello", "goodbye"))
    finished = lcm("ingest", str(path), "into=memory.db")
    assert finished.code == BAD_INPUT
    assert "not taken in: conversation 'talk': message 1 is stored as 'talk:1', but" in finished.stderr


def test_parquet_of_messages_goes_out_and_in_again(lcm: Lcm) -> None:
    finished = lcm("ingest", str(RECORDINGS), "into=messages.parquet")
    assert finished.code == 0
    again = lcm("ingest", "messages.parquet", "into=again.db")
    assert again.code == 0
    direct = lcm("ingest", str(RECORDINGS), "into=direct.db")
    with Store(again.place / "again.db") as one, Store(direct.place / "direct.db") as other:
        keys = other.conversations()["conversation_id"].to_list()
        assert sorted(one.conversations()["conversation_id"].to_list()) == sorted(keys)
        for key in keys:
            assert one.messages(key) == other.messages(key)
            assert one.events(key) == other.events(key)


def test_a_parquet_file_takes_a_conversation_from_one_file_only(lcm: Lcm, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps({"conversation_id": "x", "messages": [json.loads(HELLO)]}))
    finished = lcm("ingest", str(tmp_path / "a.jsonl"), str(tmp_path / "b.jsonl"), "into=messages.parquet")
    assert finished.code == BAD_INPUT
    assert f"{tmp_path}/b.jsonl: conversation 'x' is also in {tmp_path}/a.jsonl; leave one out" in finished.stderr
    assert not list(finished.place.glob("messages*"))


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["x.jsonl"], "into=FILE is missing"),
        (["nowhere.jsonl", "into=a.db"], "nowhere.jsonl: no such file or folder"),
        (["into=a.db"], "no file to take in"),
        (["x.jsonl", "into=a.db", "strict=maybe"], "strict must be true or false, got 'maybe'"),
        (["x.jsonl", "into=a.db", "form=chat"], "no such key: 'form'; choose from: into, format, strict"),
        (["x.jsonl", "into=a.db", "format=tape"], "does not read the transcript format 'tape'; choose one of: auto,"),
        (["x.jsonl", "into=a.db", "token_estimator=tape"], "token_estimator"),
    ],
)
def test_a_wrong_command_is_one_line(lcm: Lcm, arguments: list[str], error: str) -> None:
    lcm("--version")  # makes the folder
    finished = lcm("ingest", *(str(SAMPLE / "ryokou.json") if word == "x.jsonl" else word for word in arguments))
    assert finished.code == BAD_INPUT
    assert error in finished.stderr
    assert finished.stderr.count("\n") == 1
    assert not (finished.place / "a.db").exists()


def test_help_names_every_format(lcm: Lcm) -> None:
    said = lcm("ingest", "--help").stdout
    for name in ("chat", "claude_code", "codex", "gemini", "openclaw", "parquet", "sharegpt", "swe_agent", "tau_bench"):
        assert name in said
