"""Damaged Parquet, which has no lines: bytes are damaged, and rows hold odd values."""

import random
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lcm.errors import TranscriptError
from lcm.records.conversation import Event, Message, Transcript
from lcm.transcript.parquet import ParquetReader, write_parquet
from lcm.transcript.reading import read_pieces, reader_of
from lcm.transcript.recorded_file import RecordedFile
from tests.lcm.transcript.recordings import items, taken

ROWS, FILES_DAMAGED = 800, 80


def in_row_groups(path: Path, rng: random.Random) -> bytes:
    """A file of a few row groups: messages, and an event after every fourth."""
    said = tuple(Message(f"t:{i}", "user", rng.randbytes(100).hex(), "s") for i in range(ROWS * 4 // 5))
    events = tuple(Event("label", {"n": i}, i) for i in range(4, len(said) + 1, 4))
    assert write_parquet([Transcript("t", said, events=events)], path) == (1, len(said), ROWS - len(said))
    pq.write_table(pq.read_table(path), path, row_group_size=ROWS // 4)
    assert pq.ParquetFile(path).metadata.num_row_groups == 4
    return path.read_bytes()


def damaged(content: bytes, number: int, rng: random.Random) -> bytes:
    """The bytes cut, a few of them taken out or made zeros, or a bit flipped."""
    at = rng.randrange(len(content))
    head, tail = content[:at], content[at:]
    match number % 4:
        case 0:
            return head
        case 1:
            return head + tail[rng.choice([1, 7, 500]) :]
        case 2:
            return head + bytes([tail[0] ^ 1 << rng.randrange(8)]) + tail[1:]
        case _:
            length = rng.choice([1, 16, 400])
            return head + bytes(len(tail[:length])) + tail[length:]


def test_damaged_parquet_is_refused_or_read_up_to_the_damage(tmp_path: Path) -> None:
    rng = random.Random("parquet")
    reader = ParquetReader()
    path = tmp_path / "damaged.parquet"
    whole = in_row_groups(path, rng)
    outcomes: Counter[str] = Counter()
    for number in range(FILES_DAMAGED):
        path.write_bytes(damaged(whole, number, rng))
        file = RecordedFile(path)
        try:
            assert reader_of(file).name == "parquet"
        except TranscriptError as refusal:
            assert str(path) in str(refusal)
            outcomes["refused"] += 1
        else:
            outcomes["taken"] += 1
        pieces = list(read_pieces(file, reader))
        read = items(pieces)
        rows = {line for _, line, last, _ in file.quarantine if line == last}
        rest = [line for _, line, last, _ in file.quarantine if last is None]
        assert len(rest) <= 1
        assert len(rows) + len(rest) == len(file.quarantine)
        if rest:
            assert read + len(rows) == rest[0] - 1
            outcomes["in part" if read else "none"] += 1
        else:
            assert read + len(rows) == ROWS
            outcomes["all"] += 1
    assert min(outcomes[what] for what in ("refused", "taken", "none", "in part", "all")) > 5


ODD_COLUMNS: dict[str, pa.Array] = {
    "null": pa.nulls(4),
    "text": pa.array([None, "", "\x00", "user"]),
    "numbers": pa.array([None, 0, -(2**63), 2**63 - 1]),
    "unsigned": pa.array([None, 0, 2**63, 2**64 - 1], pa.uint64()),
    "floats": pa.array([None, float("nan"), float("-inf"), 1e308]),
    "flags": pa.array([None, True, False, True]),
    "decimals": pa.array([None, Decimal(0), Decimal("1e37"), Decimal(-7)], pa.decimal128(38, 0)),
    "bytes": pa.array([None, b"", b"\x00\xff", b"user"]),
    "lists": pa.array([None, [], [None], ["\x00", "a"]]),
    "blocks": pa.array(
        [None, {"type": None, "text": None}, {"type": "text", "text": "\x00"}, {"type": "", "text": "a"}]
    ),
    "instants": pa.array([None, 0, -(2**62), 2**62], pa.timestamp("us")),
    "durations": pa.array([None, 0, -(2**62), 2**62], pa.duration("ms")),
}


@pytest.mark.parametrize("kind", ODD_COLUMNS)
def test_odd_rows_are_taken_in_or_put_aside(kind: str, tmp_path: Path) -> None:
    """Odd values of one type, in each of the columns in turn that are read, and in all of them."""
    odd = ODD_COLUMNS[kind]
    plain = {"role": pa.array(["user"] * 4), "content": pa.array(list("abcd"))}
    others = (
        "conversation_id", "session_id", "message_id", "id", "title", "author", "name", "created_at", "timestamp",
        "tool_calls", "parts", "envelope", "event_kind", "event", "unknown",
    )  # fmt: skip
    tables = [plain | {name: odd} for name in (*plain, *others)]
    tables += [dict.fromkeys((*plain, *others), odd), dict.fromkeys(plain, odd)]
    path = tmp_path / "odd.parquet"
    for columns in tables:
        pq.write_table(pa.table(columns), path)
        file = RecordedFile(path)
        reader = reader_of(file)
        assert reader.name == "parquet"
        pieces = taken(file, reader)
        assert all(quarantined.line == quarantined.last_line for quarantined in file.quarantine)
        assert items(pieces) + len(file.quarantine) == 4
