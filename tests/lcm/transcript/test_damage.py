"""Damaged files of every format: nothing crashes, and every record is taken in or put aside.

How many records a file holds is counted here by `json.loads` alone.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.errors import TranscriptError
from lcm.transcript.json_scanner import MAX_DEPTH
from lcm.transcript.reader import TranscriptReader
from lcm.transcript.reading import READERS, read_pieces
from lcm.transcript.recorded_file import RecordedFile
from tests.conftest import ROOT
from tests.fuzz.changes import changed
from tests.lcm.transcript.recordings import items, natives, taken

CASES = {
    path.name: (reader, path)
    for reader in READERS
    if reader.name != "parquet"
    for path in sorted((ROOT / "tests" / "recordings").glob(f"{reader.name}.*"))
}
OF_LINES = [name for name, (_, path) in CASES.items() if RecordedFile(path).shape == "lines"]
ODD_LINES = [
    *(b'{"x":"' + b"y" * 10 * 2**20 + b'"}', b"z" * 10 * 2**20, b"[" * 100_000, b'{"x":' * 900 + b"1" + b"}" * 900),
    *(b"9" * 5000, b'{"x":' + b"9" * 5000 + b"}", b'{"x":1e999}', b'{"x":0.' + b"3" * 3000 + b"}", b'{"x":NaN}'),
    *(b"\x00", b'{"\x00":1}', b"\xff\xfe", "żółć".encode("iso8859-2"), "naïve".encode("utf-16-le"), b"\x1f\x8b\x08"),
    *(b"null", b"true", b"[[]]", b'{"":{}}', b"}{", b"undefined", b'"\\ud83d"', b'[{"type":null}]'),
]


def is_json(line: bytes) -> bool:
    """By the standard library, and nested no deeper than what we read."""
    try:
        json.loads(line.decode())
    except (ValueError, RecursionError):
        return False
    return line.count(b"[") + line.count(b"{") <= MAX_DEPTH


def records(reader: TranscriptReader, lines: Sequence[bytes]) -> int:
    """How many messages, events and entries of the quarantine the reader owes for the lines."""
    nesting = reader.name in ("tau_bench", "gemini")
    sessions: list[Any] = [json.loads(line) for line in lines if nesting and is_json(line)]
    if reader.name == "gemini":  # a change that lists messages
        changes = [one.get("$set") for one in sessions if isinstance(one, dict)]
        sessions = [{key: one.get(key) for key in ("messages", "history")} for one in changes if isinstance(one, dict)]
    lists = [held for one in sessions if isinstance(one, dict) for held in one.values() if isinstance(held, list)]
    return sum(bool(line.strip()) for line in lines) + sum(map(len, lists))


def account(path: Path, reader: TranscriptReader, lines: Sequence[bytes]) -> None:
    path.write_bytes(b"\n".join(lines))
    file = RecordedFile(path)
    assert items(taken(file, reader)) + len(file.quarantine) == records(reader, lines)
    aside = [number for number, line in enumerate(lines, start=1) if line.strip() and not is_json(line)]
    assert {lost.line for lost in file.quarantine} >= set(aside)
    assert all(lost.line == lost.last_line for lost in file.quarantine)
    if file.quarantine:
        first = min(lost.line for lost in file.quarantine)
        with pytest.raises(TranscriptError, match=rf"{path.name}:{first}: "):
            list(read_pieces(RecordedFile(path, strict=True), reader))


@pytest.mark.parametrize("name", OF_LINES)
@given(data=st.data())
def test_every_damaged_line_is_taken_in_or_put_aside(
    name: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The first lines stay, for the format's sake."""
    reader, recording = CASES[name]
    whole = recording.read_bytes().splitlines()
    lines = data.draw(st.lists(changed(whole), min_size=1, max_size=20))
    account(
        tmp_path_factory.getbasetemp() / "damaged.jsonl",
        reader,
        [*whole, *(line.replace(b"\n", b" ").replace(b"\r", b" ") for line in lines)],
    )


@pytest.mark.parametrize("name", OF_LINES)
def test_every_odd_line_is_taken_in_or_put_aside(name: str, tmp_path: Path) -> None:
    """The extremes: ten megabytes, numbers and nesting beyond any bound, foreign encodings."""
    reader, recording = CASES[name]
    account(tmp_path / "odd.jsonl", reader, [*recording.read_bytes().splitlines(), *ODD_LINES])


@pytest.mark.parametrize("name", sorted(CASES.keys() - set(OF_LINES)))
@given(data=st.data())
def test_a_damaged_document_is_read_up_to_the_damage(
    name: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """What stands before the damage is what the document gives that ends there."""
    reader, recording = CASES[name]
    folder, content = tmp_path_factory.getbasetemp(), recording.read_bytes()

    def said(text: bytes) -> list[Any]:
        """The records behind the first header, which names all keys."""
        path = folder / f"read{recording.suffix}"
        path.write_bytes(text)
        return natives(one.item for one in reader.read(RecordedFile(path)))[1:]

    damaged = data.draw(changed([content]))
    path = folder / f"damaged{recording.suffix}"
    path.write_bytes(damaged)
    file = RecordedFile(path)
    taken(file, reader)
    if file.shape == "document":
        assert is_json(damaged) or [lost for lost in file.quarantine if lost.last_line is None]
        pairs = enumerate(zip(content, damaged, strict=False))
        first = next((at for at, (whole, found) in pairs if whole != found), min(len(content), len(damaged)))
        before = said(content[: content.rfind(b"\n", 0, first) + 1])
        assert said(damaged)[: len(before)] == before == said(content)[: len(before)]
