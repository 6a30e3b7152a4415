"""Damaged files of every format: nothing crashes, and every line is taken in or put aside.

Ten thousand lines are damaged by a seeded generator: cut, of mixed encodings, of wrong types, with numbers beyond any
bound, with NUL, of ten megabytes.
"""

import copy
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lcm.errors import TranscriptError
from lcm.protocols import TranscriptReader
from lcm.records import Transcript
from lcm.store.store import Store
from lcm.transcript.reading import READERS, read_pieces
from lcm.transcript.recorded_file import RecordedFile
from tests.conftest import ROOT
from tests.lcm.store.contents import TOKENS

RECORDINGS = ROOT / "tests" / "recordings"
TEN_MEGABYTES = 10 * 2**20
FORMATS = [reader for reader in READERS if reader.name != "parquet"]
LINES = 1250
"""Damaged in each recording."""
ODD_VALUES: list[Any] = [
    None, True, 0, -1, 10**400, -(10**400), 1e308, float("inf"), float("nan"), "", " ", "\x00", "\ud83d", "9" * 400,
    [], {}, [[]], [None], {"": {}}, [{"type": None}], {"role": 7}, {"text": {"text": []}},
]  # fmt: skip
FOREIGN = ["żółć".encode("iso8859-2"), "naïve".encode("utf-16-le"), b"\xff\xfe", "表".encode("shift_jis")]


def cut(line: bytes, rng: random.Random) -> bytes:
    return line[: rng.randrange(len(line))]


def mix_encodings(line: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(line))
    foreign = rng.choice(
        ["żółć".encode("iso8859-2"), "naïve".encode("utf-16-le"), b"\xff\xfe", "表".encode("shift_jis")]
    )
    return (line[:at] + foreign + line[at:]).replace(b"\n", b"")


def put_nul(line: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(line))
    return line[:at] + b"\x00" * rng.randrange(1, 9) + line[at:]


def grow_a_number(line: bytes, rng: random.Random) -> bytes:
    number = rng.choice([b"9" * 5000, b"1e999", b"-1E+400", b"0." + b"3" * 3000, b"1" + b"0" * 4000])
    return with_member(line, b'"huge":' + number, rng)


def nest(line: bytes, rng: random.Random) -> bytes:
    depth = rng.choice([150, 900, 100_000])
    return with_member(line, b'"deep":' + b"[" * depth + b"]" * depth, rng)


def with_member(line: bytes, member: bytes, rng: random.Random) -> bytes:
    places = [at for at, byte in enumerate(line) if byte == ord("{")]
    if not places:
        return member
    at = rng.choice(places) + 1
    return line[:at] + member + (b"," if line[at : at + 1] != b"}" else b"") + line[at:]


def change_types(line: bytes, rng: random.Random) -> bytes:
    """Put odd values in the place of a few values, wherever they stand."""
    try:
        value = json.loads(line)
    except ValueError:
        return line[::-1]
    if not isinstance(value, dict | list):
        return json.dumps(rng.choice(ODD_VALUES)).encode()
    for _ in range(rng.randrange(1, 4)):
        holder = value
        while True:
            keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
            if not keys:
                break
            key = rng.choice(keys)
            if isinstance(holder[key], dict | list) and holder[key] and rng.random() < 0.7:
                holder = holder[key]
                continue
            holder[key] = copy.deepcopy(rng.choice(ODD_VALUES))
            break
    return json.dumps(value).encode()


def replace_whole(line: bytes, rng: random.Random) -> bytes:
    return rng.choice([json.dumps(rng.choice(ODD_VALUES)).encode(), b"}{", b"undefined", b"\x1f\x8b\x08", line + line])


DAMAGES: list[Callable[[bytes, random.Random], bytes]] = [
    cut, mix_encodings, put_nul, grow_a_number, nest, change_types, change_types, change_types, replace_whole,
]  # fmt: skip


def damaged(lines: list[bytes], rng: random.Random, amount: int) -> list[bytes]:
    """So many damaged lines, every tenth followed by one that is whole; the first lines stay, for the format's sake."""
    out = list(lines)
    for number in range(amount):
        line = rng.choice([line for line in lines if line.strip()])
        out.append(rng.choice(DAMAGES)(line, rng))
        if number % 10 == 0:
            out.append(line)
    return out


def taken(file: RecordedFile, reader: TranscriptReader) -> list[Transcript]:
    """What is read, once it has gone into a store whole."""
    pieces = list(read_pieces(file, reader))
    with Store() as store:
        store.ingest_pieces(pieces, TOKENS)
        stored = sum(len(store.messages(key)) for key in {piece.conversation_id for piece in pieces})
        assert stored == sum(len(piece.messages) for piece in pieces)
    return pieces


def items(pieces: list[Transcript]) -> int:
    return sum(len(piece.messages) + len(piece.events) for piece in pieces)


CASES = [(reader, path) for reader in FORMATS for path in sorted(RECORDINGS.glob(f"{reader.name}.*"))]
OF_LINES = [(reader, path) for reader, path in CASES if RecordedFile(path).shape == "lines"]
DOCUMENTS = [case for case in CASES if case not in OF_LINES]


def names(cases: list[tuple[TranscriptReader, Path]]) -> list[str]:
    return [path.name for _, path in cases]


def test_ten_thousand_lines_of_every_format_are_damaged() -> None:
    assert {reader.name for reader, _ in CASES} == {reader.name for reader in FORMATS}
    assert LINES * len(CASES) >= 10_000


@pytest.mark.parametrize(("reader", "recording"), OF_LINES, ids=names(OF_LINES))
def test_every_damaged_line_is_taken_in_or_put_aside(reader: TranscriptReader, recording: Path, tmp_path: Path) -> None:
    rng = random.Random(f"lines of {reader.name}")
    lines = damaged(recording.read_bytes().splitlines(), rng, LINES)
    for line in (b'{"x":"' + b"y" * TEN_MEGABYTES + b'"}', b"z" * TEN_MEGABYTES):
        lines.insert(rng.randrange(10, len(lines)), line)
    path = tmp_path / "damaged.jsonl"
    path.write_bytes(b"\n".join(lines))
    file = RecordedFile(path)
    pieces = taken(file, reader)
    aside = {line for _, line, _, _ in file.quarantine}
    assert all(line == last for _, line, last, _ in file.quarantine)
    assert aside <= set(range(1, len(lines) + 1))
    assert len(aside) > LINES // 10
    not_blank = sum(bool(line.strip()) for line in lines)
    sessions = [event for piece in pieces for event in piece.events if event.kind == "session"]
    if reader.name == "tau_bench":  # a line is a session: an event and its messages
        assert (
            len(sessions) + len({line for _, line, _, r in file.quarantine if not r.startswith("traj ")}) == not_blank
        )
    else:
        assert items(pieces) + len(aside) == not_blank
    with pytest.raises(TranscriptError, match=rf"damaged\.jsonl:{min(aside)}: "):
        list(read_pieces(RecordedFile(path, strict=True), reader))


@pytest.mark.parametrize(("reader", "recording"), DOCUMENTS, ids=names(DOCUMENTS))
def test_a_damaged_document_is_read_up_to_the_damage(reader: TranscriptReader, recording: Path, tmp_path: Path) -> None:
    rng = random.Random(f"documents of {reader.name}")
    original = recording.read_bytes()
    lines = original.splitlines()
    path = tmp_path / f"damaged{recording.suffix}"
    path.write_bytes(original)
    whole = items(taken(RecordedFile(path), reader))
    for number in range(0, LINES, len(lines)):
        changed = list(lines)
        first = len(lines)
        for at in sorted(rng.sample(range(1, len(lines)), rng.choice([1, 1, 1, 2, len(lines) // 2]))):
            changed[at] = rng.choice(DAMAGES)(changed[at] or b" ", rng)
            first = min(first, at + 1)
        if number == 0:
            changed[-2] += b'"' + b"w" * TEN_MEGABYTES
        path.write_bytes(b"\n".join(changed))
        file = RecordedFile(path)
        found = items(taken(file, reader))
        try:
            json.loads(path.read_bytes())
        except (ValueError, RecursionError):
            assert [q for q in file.quarantine if q.last_line is None], (
                "a document that is no JSON is put aside somewhere"
            )
            assert found <= whole + len(lines)
        else:
            assert found + len(file.quarantine) >= 1
