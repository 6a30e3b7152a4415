"""What Claude Code keeps beside a session: results that are too long for a line, sub-agents, journals."""

import json
from pathlib import Path
from typing import Any

import pytest

from lcm.errors import TranscriptError
from lcm.store.doctor import scan
from lcm.store.store import Store
from lcm.transcript.claude_code import ClaudeCodeReader
from lcm.transcript.folders import recorded_files
from lcm.transcript.large_files import file_text, intercepted
from lcm.transcript.parts import rebuild_record
from lcm.transcript.reading import Copies, joined, read_pieces, reader_of
from lcm.transcript.recorded_file import RecordedFile
from lcm.transcript.rendering import agent_messages
from lcm.transcript.session_folder import beside
from tests.lcm.store.contents import TOKENS
from tests.lcm.transcript.recordings import rebuilt, write

READER = ClaudeCodeReader()
WHOLE = "\n".join(f"line {number}: the mast is {number} feet" for number in range(200))
SHOWN = (
    "<persisted-output>\nOutput too large (5KB). Full output saved to: {}\n\n"
    "Preview (first 2KB):\nline 0\n</persisted-output>"
)
LONG = (
    "Error: result (3,984 characters) exceeds maximum allowed tokens. Output has been saved to {}.\nFormat: JSON array"
)


def result(content: Any, uuid: str = "r1", **fields: Any) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": "t1", "content": content}
    message = {"role": "user", "content": [block, {"type": "text", "text": "so"}]}
    at = "2026-01-05T09:00:02Z"
    return {"type": "user", "sessionId": "s1", "uuid": uuid, "timestamp": at, "message": message} | fields


def shown(name: str, how: str = SHOWN) -> str:
    return how.format(f"/home/ada/.claude/projects/-boat/s1/tool-results/{name}")


def saved(folder: Path, name: str, text: str = WHOLE) -> Path:
    path = folder / "s1" / "tool-results" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def read(path: Path, *, strict: bool = False) -> tuple[dict[str, Any], RecordedFile]:
    file = RecordedFile(path, strict=strict)
    return {found.conversation_id: found for found in joined(read_pieces(file, READER))}, file


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t1.txt", shown("t1.txt")),
        ("mcp-boat.mast-17.txt", shown("mcp-boat.mast-17.txt", LONG)),
        ("t1.txt", shown("t1.txt").replace("/", "\\")),
        ("t1.txt", [{"type": "text", "text": shown("t1.txt")}, {"type": "text", "text": ""}]),
    ],
)
def test_a_result_that_was_saved_beside_is_read_whole_and_its_record_comes_back(tmp_path, name, content):
    record = result(content)
    path = saved(tmp_path, name)
    transcripts, file = read(write(tmp_path / "s1.jsonl", record))
    (message,) = transcripts["s1"].messages
    assert message.content == f"{WHOLE}\nso"
    assert rebuilt(transcripts["s1"]) == [json.dumps(record)]
    assert WHOLE in str(agent_messages(message)[0]).replace("\\n", "\n")
    assert (file.read_along, file.doubts, file.quarantine) == ([path], [], [])
    assert file.bytes_read == file.path.stat().st_size + len(WHOLE)
    with Store() as store:
        store.ingest(transcripts["s1"], TOKENS)
        assert {check.status for check in scan(store._connection)} == {"pass"}
        assert store.messages("s1") == [message]


def test_a_whole_result_is_a_large_file_where_it_is_too_long(tmp_path: Path) -> None:
    saved(tmp_path, "t1.txt")
    transcripts, _ = read(write(tmp_path / "s1.jsonl", result(shown("t1.txt"))))
    large = intercepted(transcripts["s1"].messages[0], 100, TOKENS, lambda *_: "About masts.", every_tool_result=True)
    (noted,) = large.files
    assert file_text(large, noted) == WHOLE
    assert "line 7" not in large.content
    assert rebuild_record(large) == result(shown("t1.txt"))


def test_what_is_not_there_is_told_and_its_beginning_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records = [result(shown(f"{name}.txt"), name) for name in ("gone", "torn", "huge", "out")]
    (tmp_path / "elsewhere.txt").write_text("secret")
    saved(tmp_path / "project", "torn.txt").write_bytes(b"\xff\xfe")
    saved(tmp_path / "project", "huge.txt")
    saved(tmp_path / "project", "out.txt").unlink()
    (tmp_path / "project" / "s1" / "tool-results" / "out.txt").symlink_to(tmp_path / "elsewhere.txt")
    monkeypatch.setattr("lcm.transcript.session_folder.MAX_LINE_BYTES", 1000)
    path = write(tmp_path / "project" / "s1.jsonl", *records)
    transcripts, file = read(path, strict=True)
    assert all("line 0" in message.content for message in transcripts["s1"].messages)
    assert "secret" not in str(transcripts)
    assert file.doubts[0] == (
        f"{path}: only the beginning of a tool's result: tool-results/gone.txt is not there, and so 3 more"
    )


@pytest.mark.parametrize(
    "content",
    [
        "He wrote: <persisted-output> saved to: s1/tool-results/t1.txt",
        "<persisted-output>\nsaved to: /tmp/elsewhere/t1.txt\n",
        "<persisted-output>\nsaved to: s1/tool-results/../../t1.txt\n",
        {"saved to": "tool-results/t1.txt"},
        None,
    ],
)
def test_a_result_that_speaks_of_one_is_as_it_was(tmp_path: Path, content: Any) -> None:
    saved(tmp_path, "t1.txt")
    (tmp_path / "t1.txt").write_text("secret")
    record = result(content)
    transcripts, _ = read(write(tmp_path / "s1.jsonl", record))
    assert WHOLE not in transcripts["s1"].messages[0].content
    assert [event.native for event in transcripts["s1"].events] == [{"file": "t1.txt", "text": WHOLE}]


def test_what_no_result_names_is_an_event_or_put_aside(tmp_path: Path) -> None:
    saved(tmp_path, "hook-1-stdout.txt", "hooked")
    saved(tmp_path, "page.pdf").write_bytes(b"%PDF\xff")
    transcripts, file = read(path := write(tmp_path / "s1.jsonl", result("short")))
    (event,) = transcripts["s1"].events
    assert (event.kind, event.native, event.after) == (
        "tool-results", {"file": "hook-1-stdout.txt", "text": "hooked"}, 1
    )  # fmt: skip
    assert [(aside.path.name, aside.reason) for aside in file.quarantine] == [
        ("page.pdf", "a file that is not UTF-8 text: invalid start byte")
    ]
    with pytest.raises(TranscriptError, match=r"page\.pdf:1-end"):
        read(path, strict=True)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A session with sub-agents in three places, one of which has a long result, and a workflow's journal."""
    inner = tmp_path / "s1" / "subagents" / "workflows" / "wf_1"
    for name, folder in (("a", inner.parent.parent), ("b", inner), ("c", tmp_path / "s1" / "deeper")):
        agent: dict[str, Any] = {"isSidechain": True, "agentId": name}
        write(folder / f"agent-{name}.jsonl", result(shown("t9.txt") if name == "b" else "few", f"{name}1", **agent))
        write(folder / f"agent-{name}.meta.json", {"agentType": "Explore", "description": f"look at {name}"})
    write(inner / "journal.jsonl", {"type": "started", "agentId": "b"}, {"type": "result", "agentId": "b"})
    saved(tmp_path, "t9.txt")
    write(tmp_path / "s1.jsonl", result("none"))
    return tmp_path


def test_folder_and_file_give_the_same_wherever_sub_agents_lie(project: Path) -> None:
    by_file, file = read(project / "s1.jsonl")
    (found,) = recorded_files([project])
    assert joined(read_pieces(found, reader_of(found))) == list(by_file.values())
    assert {name: transcript.title for name, transcript in by_file.items()} == {
        "s1": None, "s1/agent-a": "look at a", "s1/agent-b": "look at b", "s1/agent-c": "look at c"
    }  # fmt: skip
    assert by_file["s1/agent-b"].messages[0].content == f"{WHOLE}\nso"
    assert [event.kind for event in by_file["s1"].events] == ["started", "result"]
    assert sorted(file.read_along) == sorted(beside(project / "s1.jsonl"))
    assert len(file.read_along) == len(set(file.read_along)) == 8


def test_a_sub_agent_by_itself_finds_the_results_of_its_session(project: Path) -> None:
    together, _ = read(project / "s1.jsonl")
    alone, _ = read(project / "s1" / "subagents" / "workflows" / "wf_1" / "agent-b.jsonl")
    assert alone == {"s1/agent-b": together["s1/agent-b"]}


def test_no_link_leads_out_of_the_session(project: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    write(elsewhere / "agent-x.jsonl", result("secret", "x1", isSidechain=True, agentId="x"))
    (project / "s1" / "subagents" / "linked").symlink_to(elsewhere)
    (project / "s1" / "subagents" / "agent-y.jsonl").symlink_to(elsewhere / "agent-x.jsonl")
    assert list(read(project / "s1.jsonl")[0]) == ["s1", "s1/agent-c", "s1/agent-a", "s1/agent-b"]


@pytest.mark.parametrize("names", [("s1", "s2"), ("s2", "s1")])
def test_a_fork_has_the_whole_result_of_the_session_that_saved_it(tmp_path: Path, names: tuple[str, str]) -> None:
    saved(tmp_path, "t1.txt")
    files = [RecordedFile(write(tmp_path / f"{one}.jsonl", result(shown("t1.txt"), sessionId=one))) for one in names]
    copies = Copies()
    first, other = (joined(read_pieces(file, READER, copies=copies))[0] for file in files)
    assert [message.content for message in first.messages] == [f"{WHOLE}\nso"]
    assert [event.native for event in other.events] == [result(shown("t1.txt"), sessionId=names[1])]
    assert [file.doubts for file in files] == [[], []]


def test_a_copy_is_known_where_its_result_is_not_there(tmp_path: Path) -> None:
    saved(tmp_path, "t1.txt")
    paths = [write(tmp_path / "s1.jsonl", result(shown("t1.txt")), result("one", "r2"))]
    paths += [write(tmp_path / "b" / "s2.jsonl", result(shown("t1.txt"), sessionId="s2"), result("two", "r2"))]
    copies, files = Copies(), [RecordedFile(path) for path in paths]
    first, other = (joined(read_pieces(file, READER, copies=copies))[0] for file in files)
    assert [message.content for message in first.messages] == [f"{WHOLE}\nso", "one\nso"]
    assert [message.content for message in other.messages] == ["two\nso"]
    assert [file.copies for file in files] == [0, 1]


def test_no_folder_beyond_the_sessions_is_looked_into(tmp_path: Path) -> None:
    (tmp_path / "tool-results").mkdir()
    (tmp_path / "tool-results" / "t1.txt").write_text("secret")
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "linked").symlink_to(tmp_path)
    records = [result(f"<persisted-output>\nsaved to: /a/{one}/tool-results/t1.txt\n", one) for one in ("..", "linked")]
    transcripts, file = read(write(tmp_path / "project" / "s1.jsonl", *records))
    assert "secret" not in str(transcripts)
    assert len(file.doubts) == 1
