"""A ledger tells of the sources whose rows are all there as they were written, whatever became of its file."""

from pathlib import Path
from typing import Any

from eval.batch.report import Ledger, LedgerContent

ROWS = {
    "first": [{"digest": "first", "conversation_id": "a", "messages": 3}],
    "second": [{"digest": "second", "conversation_id": name, "messages": 5} for name in ("b", "c", "学")],
    "third": [],
}


def written(path: Path) -> bytes:
    for digest, rows in ROWS.items():
        Ledger(path).add(digest, rows)
    return path.read_bytes()


def rows_of(told: LedgerContent) -> list[dict[str, Any]]:
    return [row for digest, rows in ROWS.items() if digest in told.ended for row in rows]


def test_what_was_added_is_read_and_a_missing_file_holds_nothing(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "shard-000.jsonl")
    assert ledger.read() == ([], frozenset(), (), b"")
    whole = written(ledger.path)
    told = ledger.mend()
    assert told.rows == [row for rows in ROWS.values() for row in rows]
    assert (told.ended, told.damaged, told.whole) == (ROWS.keys(), (), whole)


def test_any_cut_and_any_flipped_bit_leave_whole_sources_and_what_is_added_afterwards(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "shard-000.jsonl")
    whole = written(ledger.path)
    places = [*range(0, len(whole), 9), len(whole) - 1]
    cuts = [whole[:at] for at in places]
    flips = [whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :] for at in places]
    wrong = []
    for number, content in enumerate([*cuts, *flips, b"\0" * 16 + whole[16:], b"\xff\xfe" + whole, b"garbage"]):
        ledger.path.write_bytes(content)
        told = ledger.read()
        rows = rows_of(told)
        is_told = bool(told.damaged) or told.ended == ROWS.keys() or content == told.whole
        ledger.add("new", [{"digest": "new", "conversation_id": "n", "messages": 1}])
        after = ledger.mend()
        grew = after.ended >= told.ended | {"new"} and after.rows[:-1] == rows_of(after)
        left = ledger.read().damaged
        if (
            told.rows != rows
            or not told.ended <= ROWS.keys()
            or not grew
            or left
            or not (is_told or number < len(cuts))
        ):
            wrong.append((number, told, after))
    assert not wrong
