"""A record of JSON with its sum: whatever one byte of it becomes, it is as it was written or none."""

import json
from typing import Any

from lcm.derived import sealed, unsealed

RECORD: dict[str, Any] = {"shards": 3, "files": {"a": -1, "é": 2}, "settings": None}


def _read(content: bytes) -> dict[str, Any] | None:
    try:
        return unsealed(json.loads(content), RECORD)
    except ValueError:
        return None


def test_what_was_sealed_is_read_again() -> None:
    assert _read(json.dumps(sealed(RECORD), indent=1).encode()) == RECORD


def test_no_flipped_bit_gives_another_record() -> None:
    content = json.dumps(sealed(RECORD)).encode()
    flipped = (
        content[:place] + bytes([content[place] ^ (1 << bit)]) + content[place + 1 :]
        for place in range(len(content))
        for bit in range(8)
    )
    assert all(_read(one) in (None, RECORD) for one in flipped)


def test_a_record_without_a_sum_is_one_from_before_if_it_has_no_other_key() -> None:
    assert unsealed(RECORD, RECORD) == RECORD
    assert unsealed({**RECORD, "sha257": "0"}, RECORD) is None
    assert unsealed([RECORD], RECORD) is None
