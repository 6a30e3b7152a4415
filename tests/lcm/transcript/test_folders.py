"""Which files of folders are taken for transcripts, and what they are called."""

import gzip
import json
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from lcm.transcript.folders import is_passed_over, recorded_files
from lcm.transcript.reading import READERS, read_pieces, reader_of
from lcm.transcript.recorded_file import RecordedFile

CHAT = json.dumps({"role": "user", "content": "hello"})
SPOKEN = json.dumps({"type": "user", "sessionId": "s1", "message": {"role": "user", "content": "hello"}})
AGENT = json.dumps(json.loads(SPOKEN) | {"isSidechain": True, "agentId": "a"})


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A session whose sub-agent stands in a file beside it, with what is noted on it."""
    subagents = tmp_path / "project" / "s1" / "subagents"
    subagents.mkdir(parents=True)
    (tmp_path / "project" / "s1.jsonl").write_text(SPOKEN)
    (subagents / "agent-a.jsonl").write_text(AGENT)
    (subagents / "agent-a.meta.json").write_text('{"agentType": "Explore"}')
    (subagents / "agent-b.meta.json").write_text('{"agentType": "Explore"}')
    return tmp_path / "project"


def found(*paths: Path) -> list[str]:
    return sorted(str(file.path.relative_to(paths[0])) for file in recorded_files(paths))


ORPHANS = ["s1/subagents/agent-a.jsonl", "s1/subagents/agent-b.meta.json"]


def test_a_sub_agent_is_left_to_a_session_of_the_same_walk(project: Path) -> None:
    subagents = project / "s1" / "subagents"
    assert found(project) == ["s1.jsonl", "s1/subagents/agent-b.meta.json"]
    assert found(subagents) == ["agent-a.jsonl", "agent-b.meta.json"]
    assert ORPHANS[0] in found(project, subagents / "agent-a.jsonl")  # it is named
    (project / "s1.jsonl").unlink()
    assert found(project) == ORPHANS
    (subagents / "agent-a.jsonl").unlink()
    assert found(project) == ["s1/subagents/agent-a.meta.json", ORPHANS[1]]


@pytest.mark.parametrize("content", [CHAT, "", '{"some": "record"}'])
def test_a_sub_agent_beside_a_file_that_is_no_such_session_is_read_by_itself(project: Path, content: str) -> None:
    (project / "s1.jsonl").write_text(content)
    assert found(project) == ["s1.jsonl", *ORPHANS]
    (project / "s1.jsonl").unlink()
    (project / "s1.jsonl.gz").write_bytes(gzip.compress(SPOKEN.encode())[:12])
    assert found(project) == ["s1.jsonl.gz", *ORPHANS]


def test_packed_sub_agents_and_sessions_belong_together_too(project: Path) -> None:
    for path in (project / "s1.jsonl", project / "s1" / "subagents" / "agent-a.jsonl"):
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    assert found(project) == ["s1.jsonl.gz", ORPHANS[1]]
    (_, file) = recorded_files([project])
    assert [t.conversation_id for t in read_pieces(file, reader_of(file))] == ["s1", "s1/agent-a"]


def test_the_sub_agents_of_a_sub_agent_do_not_vanish(project: Path) -> None:
    inner = project / "s1" / "subagents" / "agent-a" / "subagents"
    inner.mkdir(parents=True)
    (inner / "agent-c.jsonl").write_text(AGENT)
    assert found(project) == ["s1.jsonl", ORPHANS[1]]
    file = next(file for file in recorded_files([project]) if file.name == "s1")
    assert sum(len(piece.messages) for piece in read_pieces(file, reader_of(file))) == 3


def test_linked_folders_are_walked_once_and_by_their_own_path(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for name in ("logs/z", "elsewhere/deep"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "talk.jsonl").write_text(CHAT)
    logs = tmp_path / "logs"
    (logs / "a").symlink_to(logs / "z")
    (logs / "loop").symlink_to(logs)
    (logs / "other").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "deep" / "back").symlink_to(tmp_path / "elsewhere")
    (logs / "gone").symlink_to(tmp_path / "nowhere")
    assert [file.name for file in recorded_files([logs])] == ["z/talk"]
    assert "logs/other leads out of what was named" in caplog.text
    both = recorded_files([logs, tmp_path / "elsewhere"])
    assert [file.name for file in both] == ["other/deep/talk", "z/talk", "deep/talk"]
    assert [file.name for file in recorded_files([logs / "other"])] == ["deep/talk"]


def test_a_folder_that_cannot_be_listed_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "closed").mkdir()
    (tmp_path / "talk.jsonl").write_text(CHAT)
    listed = os.scandir

    def scandir(path: str) -> Iterator[os.DirEntry[str]]:
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", path)
        return listed(path)

    monkeypatch.setattr(os, "scandir", scandir)
    closed, talk = recorded_files([tmp_path])
    assert (closed.path.name, talk.name) == ("closed", "talk")
    assert not is_passed_over(closed, [tmp_path])


PARQUET = b"PAR1" + b"\0" * 40


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", True),
        (" \n", True),
        ("# Notes\n", True),
        ("# Notes\n\n42\n\n{}\n", True),
        ("%PDF-1.7\n", True),
        ('{"type": "session.start", "data": {}}', True),
        ('{"theme": "dark", "hooks": [1]}', True),
        ('{\n "theme": "dark",\n "hooks": [1]\n}\n', True),
        ('{"agentType": "Explore"}', True),
        ('{"some": 1}\n{"other": 2}\n', True),
        (gzip.compress(b'{"some": 1}', mtime=0), True),
        (CHAT, False),
        (CHAT[:-9], False),
        ('{"some": 1}\n{"other"', False),
        ('[\n {"some": 1},\n {"ot', False),
        (gzip.compress(CHAT.encode(), mtime=0)[:20], False),
        (PARQUET, False),
    ],
)
def test_what_is_whole_and_of_another_kind_is_passed_over_in_a_folder(tmp_path, content, expected):
    path = tmp_path / "any"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    assert is_passed_over(RecordedFile(path), [tmp_path]) is expected
    assert not is_passed_over(RecordedFile(path), [tmp_path, path])


def test_parquet_of_other_columns_and_archives_are_passed_over_where_they_are_whole(tmp_path: Path) -> None:
    parquet, archive = tmp_path / "any.parquet", tmp_path / "any.tar"
    pl.DataFrame({"text": ["a"]}).write_parquet(parquet)
    (tmp_path / "talk.jsonl").write_text(f"\n{CHAT}\n")
    with tarfile.open(archive, "w") as packed:
        packed.add(tmp_path / "talk.jsonl", "talk.jsonl")
    assert any(reader.detects(RecordedFile(archive)) for reader in READERS)
    assert [is_passed_over(RecordedFile(path), [tmp_path]) for path in (parquet, archive)] == [True, True]
    parquet.write_bytes(parquet.read_bytes()[:-20])
    assert not is_passed_over(RecordedFile(parquet), [tmp_path])


def test_what_cannot_be_opened_is_not_passed_over(tmp_path: Path) -> None:
    assert not is_passed_over(RecordedFile(tmp_path / "nowhere"), [tmp_path])
