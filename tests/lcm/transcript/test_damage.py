"""Damaged files of every format: nothing crashes, and every record is taken in or put aside.

Thousands of lines are damaged by a seeded generator: cut, of mixed encodings, of wrong types, with numbers beyond any
bound, with NUL, of ten megabytes. How many records a file holds is counted here by `json.loads` alone.
"""

import copy
import json
import random
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from lcm.errors import TranscriptError
from lcm.records.conversation import Transcript
from lcm.store.store import Store
from lcm.transcript.json_scanner import MAX_DEPTH
from lcm.transcript.reader import TranscriptReader
from lcm.transcript.reading import READERS, read_pieces, reader_of
from lcm.transcript.recorded_file import RecordedFile
from tests.conftest import ROOT
from tests.lcm.store.contents import TOKENS
from tests.lcm.transcript.recordings import natives

RECORDINGS = ROOT / "tests" / "recordings"
TEN_MEGABYTES = 10 * 2**20
OF_LINES_DAMAGED, DOCUMENTS_DAMAGED, DETECTED_DAMAGED = 600, 60, 150
"""Of each recording: lines of JSONL and documents that its own reader reads, and lines that the detected one reads."""
ODD_VALUES: list[Any] = [
    None, True, 0, -1, 10**400, -(10**400), 1e308, float("inf"), float("nan"), "", " ", "\x00", "\ud83d", "9" * 400,
    [], {}, [[]], [None], {"": {}}, [{"type": None}], {"role": 7}, {"text": {"text": []}},
]  # fmt: skip
FOREIGN = ["żółć".encode("iso8859-2"), "naïve".encode("utf-16-le"), b"\xff\xfe", "表".encode("shift_jis")]


def cut(line: bytes, rng: random.Random) -> bytes:
    return line[: rng.randrange(len(line))]


def mix_encodings(line: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(line))
    return (line[:at] + rng.choice(FOREIGN) + line[at:]).replace(b"\n", b"")


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


def damage(line: bytes, rng: random.Random) -> bytes:
    """The line, changed for certain."""
    while (changed := rng.choice(DAMAGES)(line or b" ", rng)) == line:
        pass
    return changed


CASES = [
    (reader, path)
    for reader in READERS
    if reader.name != "parquet"
    for path in sorted(RECORDINGS.glob(f"{reader.name}.*"))
]
OF_LINES = [(reader, path) for reader, path in CASES if RecordedFile(path).shape == "lines"]
DOCUMENTS = [case for case in CASES if case not in OF_LINES]


def names(cases: list[tuple[TranscriptReader, Path]]) -> list[str]:
    return [path.name for _, path in cases]


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


UNREADABLE = object()


def parsed(text: bytes) -> Any:
    """The value of the text, by the standard library; UNREADABLE where it is not JSON, or is nested too deeply."""
    try:
        value = json.loads(text.decode())
    except (ValueError, RecursionError):
        return UNREADABLE
    return UNREADABLE if b"[" * (MAX_DEPTH + 1) in text else value


def is_said(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("role"), str)


def is_chat_session(value: Any) -> bool:
    said = value.get("messages") if isinstance(value, dict) else None
    return isinstance(said, list) and all(map(is_said, said[:1]))


def records(name: str, values: Sequence[Any]) -> int:
    """How many messages, events and entries of the quarantine the reader of that name owes for the values of a file."""
    if name in ("openclaw", "claude_code", "codex"):
        return len(values)
    if name == "chat":
        known = next((value for value in values if is_said(value) or is_chat_session(value)), None)
        if not is_chat_session(known):
            return len(values)
    return sum(of_session(name, value) if isinstance(value, dict) else 1 for value in values)


def of_session(name: str, session: dict[str, Any]) -> int:
    """One for what stands beside the lists, and one for each element; a step without other messages is two."""
    sizes = Counter({key: len(held) for key, held in session.items() if isinstance(held, list)})
    steps = session.get("trajectory") if name == "swe_agent" and not sizes["history"] + sizes["messages"] else None
    seen = (isinstance(step, dict) and "observation" in step for step in (steps if isinstance(steps, list) else ()))
    return 1 + sizes.total() + sum(seen)


def account(file: RecordedFile, reader: TranscriptReader, pieces: list[Transcript]) -> None:
    """Every record of the file was taken in or put aside."""
    text = file.path.read_bytes()
    if file.shape == "lines":
        values = [parsed(line) for line in text.split(b"\n") if line.strip()]
        assert items(pieces) + len(file.quarantine) == records(reader.name, values)
        assert all(quarantined.line == quarantined.last_line for quarantined in file.quarantine)
    elif (value := parsed(text)) is UNREADABLE:
        assert [quarantined for quarantined in file.quarantine if quarantined.last_line is None]
    else:
        values = value if isinstance(value, list) else [value]
        assert items(pieces) + len(file.quarantine) == records(reader.name, values)


@pytest.mark.parametrize(("reader", "recording"), OF_LINES, ids=names(OF_LINES))
def test_every_damaged_line_is_taken_in_or_put_aside(reader: TranscriptReader, recording: Path, tmp_path: Path) -> None:
    """The first lines stay, for the format's sake; every tenth damaged one is followed by one that is whole."""
    rng = random.Random(f"lines of {reader.name}")
    whole = recording.read_bytes().splitlines()
    lines = list(whole)
    for number in range(OF_LINES_DAMAGED):
        line = rng.choice(whole)
        lines.append(damage(line, rng))
        if number % 10 == 0:
            lines.append(line)
    assert sum(line not in whole for line in lines) == OF_LINES_DAMAGED
    for line in (b'{"x":"' + b"y" * TEN_MEGABYTES + b'"}', b"z" * TEN_MEGABYTES):
        lines.insert(rng.randrange(10, len(lines)), line)
    path = tmp_path / "damaged.jsonl"
    path.write_bytes(b"\n".join(lines))
    file = RecordedFile(path)
    account(file, reader, taken(file, reader))
    aside = {line for _, line, _, _ in file.quarantine}
    assert aside <= set(range(1, len(lines) + 1))
    assert len(aside) > OF_LINES_DAMAGED // 10
    with pytest.raises(TranscriptError, match=rf"damaged\.jsonl:{min(aside)}: "):
        list(read_pieces(RecordedFile(path, strict=True), reader))


def said(path: Path, reader: TranscriptReader) -> list[Any]:
    """Return the records that the document gives behind its first header, which names all of its keys."""
    return natives(item for _, item, _ in reader.read(RecordedFile(path)))[1:]


@pytest.mark.parametrize(("reader", "recording"), DOCUMENTS, ids=names(DOCUMENTS))
def test_a_damaged_document_is_read_up_to_the_damage(reader: TranscriptReader, recording: Path, tmp_path: Path) -> None:
    """What stands before the damage is what the document gives that ends there."""
    rng = random.Random(f"documents of {reader.name}")
    lines = recording.read_bytes().splitlines()
    path, head = tmp_path / f"damaged{recording.suffix}", tmp_path / f"head{recording.suffix}"
    path.write_bytes(b"\n".join(lines))
    whole, kept, readable = said(path, reader), 0, 0
    for number in range(DOCUMENTS_DAMAGED):
        changed = list(lines)
        first, *others = sorted(rng.sample(range(1, len(lines)), rng.choice([1, 1, 2, len(lines) // 4])))
        for at in (first, *others):
            changed[at] = damage(lines[at], rng)
        if not number:
            changed[-2] += b'"' + b"w" * TEN_MEGABYTES
        path.write_bytes(b"\n".join(changed))
        head.write_bytes(b"\n".join(lines[:first]))
        file = RecordedFile(path)
        assert file.shape == "document"
        account(file, reader, taken(file, reader))
        before = said(head, reader)
        assert said(path, reader)[: len(before)] == before == whole[: len(before)]
        kept += len(before)
        readable += parsed(path.read_bytes()) is not UNREADABLE
    assert kept > DOCUMENTS_DAMAGED // 2
    assert readable > 0


@pytest.mark.parametrize(("reader", "recording"), CASES, ids=names(CASES))
def test_a_file_damaged_anywhere_is_refused_or_read_whole(
    reader: TranscriptReader, recording: Path, tmp_path: Path
) -> None:
    """The first line may be damaged too: the file is refused by its name, or what takes it accounts for all of it."""
    rng = random.Random(f"detection of {recording.name}")
    lines = recording.read_bytes().splitlines()
    path = tmp_path / f"damaged{recording.suffix}"
    outcomes: Counter[str] = Counter()
    for _ in range(DETECTED_DAMAGED // max(1, len(lines) // 6)):
        changed = list(lines)
        places = rng.sample(range(len(lines)), rng.randrange(max(1, len(lines) // 3)))
        for at in {0, *places} if rng.random() < 0.5 or not places else places:
            changed[at] = damage(lines[at], rng)
        path.write_bytes(b"\n".join(changed))
        file = RecordedFile(path)
        try:
            detected = reader_of(file)
        except TranscriptError as refusal:
            assert str(path) in str(refusal)
            outcomes["refused"] += 1
            continue
        account(file, detected, list(read_pieces(file, detected)))
        outcomes["right" if detected is reader else detected.name] += 1
    assert outcomes["right"] > 0
    assert outcomes["refused"] > 0
