"""Derived files: whatever becomes of a byte, it is as it was written or none; what cannot be read is neither."""

import errno
import json
from pathlib import Path
from typing import Any

import pytest

from lcm import derived
from lcm.derived import changed_in, is_sealed_whole, seal, sealed, unsealed

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


def test_what_the_machine_refuses_to_read_is_not_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_bytes(b"whole")
    seal(tmp_path)
    assert is_sealed_whole(tmp_path)

    def refused(path: Path) -> str:
        raise OSError(errno.EMFILE, "Too many open files", str(path))

    monkeypatch.setattr(derived, "sum_of", refused)
    for look in (is_sealed_whole, changed_in):
        with pytest.raises(OSError, match="Too many open files"):
            look(tmp_path)
