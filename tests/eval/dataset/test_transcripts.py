"""Transcripts of any format as a dataset without judgements."""

import json
from pathlib import Path

import pytest

from eval.dataset.own import Transcripts
from eval.dataset.sample import bundled_directory
from lcm.errors import DatasetError, TranscriptError

HELLO = json.dumps({"timestamp": "2026-01-05T09:00:00Z", "role": "user", "content": "hello"})


def test_files_and_folders_are_read_into_one_workspace(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "talk.jsonl").write_text(HELLO)
    dataset = Transcripts([str(bundled_directory() / "transcripts" / "coding.jsonl"), str(tmp_path)]).load()
    assert [t.conversation_id for t in dataset.transcripts][1:] == ["more/talk"]
    assert {t.workspace_id for t in dataset.transcripts} == {"transcripts"}
    assert len(dataset.transcripts[0].messages) == 122
    assert (dataset.queries, len(dataset.qrels), dataset.notes) == ((), 0, ())


def test_lines_put_aside_and_files_passed_over_are_notes_and_strictly_an_error(tmp_path: Path) -> None:
    """Only some of them are named."""
    path = tmp_path / "talk.jsonl"
    path.write_text("\n".join([HELLO, *["{"] * 7]))
    notes = Transcripts([str(path)]).load().notes
    assert notes[0].startswith(f"put aside: {path}:2: not JSON")
    assert notes[5:] == ("put aside: 2 more", f"doubtful: {path}: 7 of 8 records were put aside")
    with pytest.raises(TranscriptError, match=r"talk\.jsonl:2: not JSON"):
        Transcripts([str(path)], strict=True).load()
    path.write_text(HELLO)
    for number in range(7):
        (tmp_path / f"{number}.md").write_text("# Notes\n")
    notes = Transcripts([str(tmp_path)]).load().notes
    assert (len(notes), notes[-1]) == (6, "passed over: 2 more")


def test_of_a_conversation_in_two_files_the_first_is_read_and_the_other_told(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps({"conversation_id": "x", "messages": [json.loads(HELLO)]}))
    read = Transcripts([str(tmp_path)]).load()
    assert sum(len(one.messages) for one in read.transcripts) == 1
    told = f"left out: {tmp_path}/b.jsonl: conversation 'x' is also in {tmp_path}/a.jsonl: name one of the two files"
    assert told in read.notes


def test_without_a_path_or_a_transcript_it_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"dataset\.paths names no file: set it"):
        Transcripts().load()
    with pytest.raises(TranscriptError, match="nowhere: no such file or folder"):
        Transcripts(["nowhere"]).load()
    (tmp_path / "empty.jsonl").touch()
    told = r"holds no transcript that lcm reads \(passed over: .*empty.jsonl: an empty"
    with pytest.raises(DatasetError, match=told):
        Transcripts(paths=[str(tmp_path)]).load()


def test_a_folder_is_read_as_it_is_ingested(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("# Notes\n")
    (tmp_path / "settings.json").write_text('{"theme": "dark"}')
    (tmp_path / "talk.jsonl").write_text(HELLO)
    dataset = Transcripts([str(tmp_path)]).load()
    assert [t.conversation_id for t in dataset.transcripts] == ["talk"]
    if_a_talk = 'if it holds a talk, write what was said as lines {"role": ..., "content": ..., "timestamp": ...}'
    assert dataset.notes == (
        f"passed over: {tmp_path}/README.md: plain text, which is not a format that lcm reads: {if_a_talk}",
        f"passed over: {tmp_path}/settings.json: not a known transcript format (its keys: theme): {if_a_talk}",
    )
    with pytest.raises(TranscriptError, match=r"README\.md: plain text"):
        Transcripts([str(tmp_path), str(tmp_path / "README.md")]).load()
    (tmp_path / "torn.jsonl").write_text(HELLO[:-5])
    with pytest.raises(TranscriptError, match=r"torn\.jsonl: not a known transcript format"):
        Transcripts([str(tmp_path)]).load()


def test_the_digest_is_that_of_the_contents_of_sub_agents_and_of_what_is_noted_on_them(tmp_path: Path) -> None:
    said = {"type": "user", "sessionId": "s", "message": {"role": "user", "content": "hello"}}
    subagents = tmp_path / "s" / "subagents"
    subagents.mkdir(parents=True)
    path = tmp_path / "s.jsonl"
    digests = []
    for lines in (2, 1, 1):
        path.write_text(f"{json.dumps(said)}\n" * lines)
        digests.append(Transcripts([str(tmp_path)]).load().digest)
    assert digests[0] != digests[1] == digests[2]
    for content in ("hello", "goodbye"):
        agent = said | {"isSidechain": True, "agentId": "a", "message": {"role": "user", "content": content}}
        (subagents / "agent-a.jsonl").write_text(json.dumps(agent))
        digests.append(Transcripts([str(tmp_path)]).load().digest)
    (subagents / "agent-a.meta.json").write_text('{"agentType": "Explore"}')
    digests.append(Transcripts([str(path)]).load().digest)
    assert len(set(digests)) == 5
