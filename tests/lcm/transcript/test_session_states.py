"""Older states of one OpenClaw session: passed over where the newest holds them, else read for what they add."""

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.errors import TranscriptError
from lcm.transcript.folders import is_passed_over, recorded_files
from lcm.transcript.reading import joined, read_pieces, reader_of
from tests.lcm.transcript.recordings import write
from tests.lcm.transcript.test_agent_database import header, lines, made, said

RESET = "s.jsonl.reset.2026-09-02T10-00-00.000Z"
IMPORTED = "archive/agent-main.s.jsonl.imported-1790000000000"
OLDER = (
    "s.checkpoint.0f0f0f0f-1111-4222-8333-444444444444.jsonl",
    RESET,
    "s.jsonl.deleted.2026-09-03T10-00-00Z",
    IMPORTED,
)


def entry(number: int, words: str | None = None) -> dict[str, Any]:
    made_at = f"2026-09-01T08:00:{number:02}.000Z"
    return said(f"e{number}", f"e{number - 1}" if number else None, words or f"words {number}") | {"timestamp": made_at}


def session(*numbers: int) -> list[dict[str, Any]]:
    return [header("s"), *map(entry, numbers)]


def found(folder: Path) -> tuple[dict[str, str], list[str]]:
    """Return the numbers of the messages of each conversation, and why files were passed over."""
    read, refused = dict[str, str](), list[str]()
    for file in recorded_files([folder]):
        try:
            pieces = read_pieces(file, reader_of(file))
        except TranscriptError as error:
            assert is_passed_over(file, [folder, file.path])
            refused.append(str(error))
            continue
        for one in joined(pieces):
            assert one.conversation_id not in read
            read[one.conversation_id] = "".join(message.content.removeprefix("words ") for message in one.messages)
        assert file.quarantine == []
    return read, refused


@pytest.mark.parametrize("name", OLDER)
def test_an_older_state_is_passed_over_and_told(tmp_path: Path, name: str) -> None:
    write(tmp_path / "s.jsonl", *session(0, 1, 2))
    older = write(tmp_path / name, *session(0, 1))
    assert found(tmp_path) == (
        {"s": "012"},
        [f"{older}: an older state of session s: all that is said in it is in s.jsonl"],
    )
    (tmp_path / "s.jsonl").unlink()
    assert found(tmp_path) == ({"s": "01"}, [])  # it is the newest now


def test_of_several_the_newest_is_read_whatever_it_is_called(tmp_path: Path) -> None:
    write(tmp_path / OLDER[0], *session(0))
    write(tmp_path / IMPORTED, *session(0, 1, 2))
    (tmp_path / f"{RESET}.zst").write_bytes(pa.compress(lines(*session(0, 1)), "zstd", asbytes=True))
    read, refused = found(tmp_path)
    assert (read, len(refused)) == ({"s": "012"}, 2)
    assert all(Path(IMPORTED).name in reason for reason in refused)


def test_what_an_older_state_alone_holds_is_a_conversation_of_its_own(tmp_path: Path) -> None:
    write(tmp_path / "s.jsonl", header("s"), entry(7), entry(8, "8"))
    write(tmp_path / RESET, *session(0, 1), entry(8, "other words"))
    write(tmp_path / IMPORTED, *session(0, 1, 2))
    assert found(tmp_path)[0] == {"s": "78", "s~e0": "01other words", "s~e2": "2"}


def test_a_database_is_newer_than_any_file(tmp_path: Path) -> None:
    (tmp_path / "agent").mkdir()
    made(tmp_path / "agent" / "openclaw-agent.sqlite", {"s": session(0, 1), "other": [header("other"), entry(5)]})
    write(tmp_path / "sessions" / "s.jsonl", *session(0, 1))
    write(tmp_path / IMPORTED, *session(0, 3))
    write(tmp_path / "sessions" / "third.jsonl", header("third"), entry(9))
    read, refused = found(tmp_path)
    assert read == {"s": "01", "other": "5", "s~e3": "3", "third": "9"}
    assert [f"is in openclaw-agent.sqlite, {Path(IMPORTED).name}" in reason for reason in refused] == [True]


def test_another_session_or_another_format_of_such_a_name_is_read_by_itself(tmp_path: Path) -> None:
    write(tmp_path / "s.jsonl", *session(0, 1))
    write(tmp_path / OLDER[0], header("t"), entry(0))
    write(tmp_path / RESET, {"role": "user", "content": "words 4"})
    read, refused = found(tmp_path)
    assert (sorted(read.values()), refused) == (["0", "01", "4"], [])


def test_of_a_damaged_older_state_is_told_how_much_cannot_be_read(tmp_path: Path) -> None:
    write(tmp_path / "s.jsonl", *session(0, 1))
    write(tmp_path / RESET, *session(0), '{"type": "mess')
    assert found(tmp_path)[1][0].endswith("is in s.jsonl (1 of its records cannot be read)")


@given(
    states=st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=6, unique=True), min_size=1, max_size=len(OLDER))
)
def test_everything_said_is_read_once(states: list[list[int]], tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.getbasetemp() / "states"
    shutil.rmtree(folder, ignore_errors=True)
    for name, numbers in zip(("s.jsonl", *OLDER), states, strict=False):
        write(folder / name, header("s"), *map(entry, numbers))
    read, _ = found(folder)
    assert sorted("".join(read.values())) == sorted({str(number) for state in states for number in state})
