"""Nothing read is never success: what gives doubt of a file, whatever its format."""

from pathlib import Path
from typing import Any

import pytest

from lcm.transcript.reading import in_few_lines, read_pieces, reader_of
from lcm.transcript.recorded_file import RecordedFile
from tests.lcm.transcript.recordings import write

AT = "2026-01-05T09:00:00Z"
SAID = {"role": "user", "content": "Where is the kettle?", "timestamp": AT}
CALL = {
    "role": "assistant",
    "tool_calls": [{"id": "c", "function": {"name": "ls", "arguments": "{}"}}],
    "timestamp": AT,
}


def judged(path: Path, *lines: Any) -> tuple[list[str], bool]:
    """The doubts without the file's name, and whether nothing is said."""
    file = RecordedFile(write(path, *lines))
    list(read_pieces(file, reader_of(file)))
    assert all(doubt.startswith(f"{path}: ") for doubt in file.doubts)
    return [doubt.removeprefix(f"{path}: ") for doubt in file.doubts], file.is_silent


@pytest.mark.parametrize(
    ("lines", "doubts", "is_silent"),
    [
        ([SAID, CALL], [], False),
        ([{"type": "session_meta", "payload": {"id": "a"}}], ["no message in it, and 1 records of other kinds"], True),
        ([CALL], [], True),
        ([SAID | {"content": ""}, CALL], ["none of 1 messages of the user has words"], True),
        ([SAID, *[SAID | {"content": ""}] * 9], [], False),
        (
            [{"role": "user", "content": "when?"}],
            ["no message says when it was said: decay and recency have nothing to work on"],
            False,
        ),
        ([*[SAID] * 8, "{", "{"], ["2 of 10 records were put aside"], False),
        ([*[SAID] * 9, "{"], [], False),
    ],
)  # fmt: skip
def test_a_doubt_names_its_reason(lines: list[Any], doubts: list[str], is_silent: bool, tmp_path: Path) -> None:
    assert judged(tmp_path / "talk.jsonl", *lines) == (doubts, is_silent)


def test_many_files_without_times_are_told_in_one_line(tmp_path: Path) -> None:
    files = [RecordedFile(write(tmp_path / f"{name}.jsonl", {"role": "user", "content": "when?"})) for name in "abc"]
    for file in files:
        list(read_pieces(file, reader_of(file)))
    doubts = ["x: no message in it", *(doubt for file in files for doubt in file.doubts)]
    told = f"{tmp_path}/a.jsonl and 2 more: no message says when it was said: decay and recency have nothing to work on"
    assert in_few_lines(doubts) == ["x: no message in it", told]
    assert in_few_lines(doubts[:2]) == doubts[:2]
