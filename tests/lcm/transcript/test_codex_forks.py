"""Rollouts that begin with a copy of another."""

from pathlib import Path
from typing import Any

import pytest

from lcm.records.conversation import Transcript
from lcm.transcript.codex import CodexReader
from lcm.transcript.folders import recorded_files
from lcm.transcript.parts import rebuild_record
from lcm.transcript.reading import Copies, joined, read_pieces
from lcm.transcript.recorded_file import RecordedFile
from tests.lcm.transcript.recordings import write


def at(second: int) -> str:
    return f"2026-01-05T09:00:{second:02}Z"


def header(name: str, second: int, **more: Any) -> dict[str, Any]:
    return {"timestamp": at(second), "type": "session_meta", "payload": {"id": name, "timestamp": at(second), **more}}


def item(second: int, **payload: Any) -> dict[str, Any]:
    return {"timestamp": at(second), "type": "response_item", "payload": payload}


def said(second: int, role: str, words: str) -> dict[str, Any]:
    return item(second, type="message", role=role, content=[{"type": "input_text", "text": words}])


def turn(second: int, turn_id: str) -> dict[str, Any]:
    return {"timestamp": at(second), "type": "turn_context", "payload": {"turn_id": turn_id}}


CALL = item(3, type="function_call", call_id="c1", name="shell", arguments="{}")
PARENT = [
    header("p", 0), turn(1, "t1"), said(1, "user", "Oil the mast"), said(2, "assistant", "Let me look."), CALL,
    said(4, "assistant", "Oiled."), turn(5, "t2"), said(5, "user", "Again"), said(6, "assistant", "Done."),
]  # fmt: skip
OWN = [turn(40, "t9"), said(40, "user", "Now the keel"), said(41, "assistant", "Done.")]


def restamped(records: list[dict[str, Any]], second: int = 20) -> list[dict[str, Any]]:
    return [record | {"timestamp": at(second)} for record in records]


def read(*paths: Path, copies: Copies | None = None) -> tuple[dict[str, Transcript], list[RecordedFile]]:
    files = recorded_files(paths)
    pieces = (piece for file in files for piece in read_pieces(file, CodexReader(), copies=copies))
    return {one.conversation_id: one for one in joined(pieces)}, files


def words(transcript: Transcript) -> list[str]:
    return [message.content for message in transcript.messages if message.content]


@pytest.mark.parametrize("order", [("p.jsonl", "f.jsonl"), ("f.jsonl", "p.jsonl")])
def test_what_a_fork_copies_is_said_once_and_kept(tmp_path: Path, order: tuple[str, str]) -> None:
    fork = [header("f", 20, forked_from_id="p"), *restamped(PARENT), *OWN]
    write(tmp_path / "p.jsonl", *PARENT)
    write(tmp_path / "f.jsonl", *fork)
    found, files = read(*(tmp_path / name for name in order), copies=Copies())
    assert words(found["p"]) == ["Oil the mast", "Let me look.", "Oiled.", "Again", "Done."]
    assert words(found["f"]) == ["Now the keel", "Done."]
    assert [event.native for event in found["f"].events if event.kind == "copy"] == [
        record for record in restamped(PARENT) if record["type"] == "response_item"
    ]
    assert sum(file.copies for file in files) == 6
    assert [file.doubts for file in files] == [[], []]
    kept = [rebuild_record(message) for message in found["f"].messages] + [event.native for event in found["f"].events]
    assert sorted(map(str, kept)) == sorted(map(str, fork))


@pytest.mark.parametrize(
    ("copied", "own", "left"),
    [
        # Up to an earlier prompt; and the same words again, in a turn of its own.
        (PARENT[:6], OWN, ["Now the keel", "Done."]),
        (PARENT[:6], [turn(40, "t9"), said(40, "user", "Again"), said(41, "assistant", "No.")], ["Again", "No."]),
        # For a sub-agent: what was asked, and the last answers.
        ([PARENT[2], *PARENT[5:]], OWN, ["Now the keel", "Done."]),
        # What the parent said after the fork is no original.
        ([], [said(10, "user", "Oil the mast")], ["Oil the mast"]),
        # Nothing is copied where it begins otherwise.
        (PARENT[7:], [], ["Again", "Done."]),
    ],
)
def test_a_fork_has_what_it_says_itself(tmp_path: Path, copied: list[Any], own: list[Any], left: list[str]) -> None:
    forked_at = 20 if copied else 0
    write(tmp_path / "p.jsonl", *PARENT)
    write(tmp_path / "f.jsonl", header("f", forked_at, forked_from_id="p"), *restamped(copied), *own)
    assert words(read(tmp_path, copies=Copies())[0]["f"]) == left


@pytest.mark.parametrize(
    "more",
    [
        {"parent_thread_id": "p"},
        {"source": {"subagent": {"thread_spawn": {"parent_thread_id": "p"}}}},
        {"source": "cli"},
    ],
)
def test_other_headers_tell_of_a_copy_too(tmp_path: Path, more: dict[str, Any]) -> None:
    write(tmp_path / "p.jsonl", *PARENT)
    write(tmp_path / "f.jsonl", header("f", 20, **more), *restamped(PARENT), *OWN)
    found, (fork, _) = read(tmp_path, copies=Copies())
    assert (words(found["f"]), fork.copies, fork.doubts) == (["Now the keel", "Done."], 6, [])


def test_a_fork_of_a_fork_that_is_not_there_copies_its_grandparent(tmp_path: Path) -> None:
    between = [header("b", 20, forked_from_id="p"), *restamped(PARENT), said(21, "user", "And the keel")]
    write(tmp_path / "p.jsonl", *PARENT)
    write(tmp_path / "f.jsonl", header("f", 30, forked_from_id="b"), *restamped(between, 30), *OWN)
    found, (fork, _) = read(tmp_path, copies=Copies())
    assert words(found["f"]) == ["And the keel", "Now the keel", "Done."]
    assert [doubt.partition(": ")[2] for doubt in fork.doubts] == [
        "forked from the session b, which is not among the files: what both say counts as its own"
    ]


def test_all_copies_are_kept_where_they_are_asked_for(tmp_path: Path) -> None:
    write(tmp_path / "p.jsonl", *PARENT)
    write(tmp_path / "f.jsonl", header("f", 20, forked_from_id="p"), *restamped(PARENT), *OWN)
    assert len(read(tmp_path)[0]["f"].messages) == 8


def test_forks_of_each_other_lose_no_word(tmp_path: Path) -> None:
    names = ("a", "b", "c")
    for name, other in zip(names, ("b", "c", "a"), strict=True):
        write(tmp_path / f"{name}.jsonl", header(name, 20, forked_from_id=other), *restamped(PARENT[1:]))
    found, _ = read(tmp_path, copies=Copies())
    assert {"Oil the mast", "Again"} <= {said for one in found.values() for said in words(one)}
