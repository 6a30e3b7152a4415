"""The ledger of evidence corrections: kept as it was written, told in shares, refused where it is damaged."""

import json
from pathlib import Path

import pytest

from eval.dataset.locomo import LEDGER, Correction, Ledger, ledger_text, read_ledger
from lcm.errors import DatasetError

WRONG = Correction("a/1", ("D1:1",), ("D1:2", "D3:4"), False, "the turns do not hold the answer", "audit", "2")
DOUBTED = Correction("a/2", ("D1:1", "é"), ("D1:1", "é"), True, "several answers are right", "audit", "2")
LEFT = Correction("b/7", ("D",), (), False, "names no turn", "spelling", "1")


def test_a_ledger_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    path.write_text(ledger_text([WRONG, DOUBTED, LEFT]), encoding="utf-8")
    assert LEDGER.is_held_by(path)
    assert read_ledger(path) == Ledger((WRONG, DOUBTED, LEFT))


def test_evidence_becomes_what_the_ledger_says_and_else_stays() -> None:
    ledger = Ledger((WRONG, DOUBTED, LEFT))
    assert ledger.of("a/1", ["D1:1"]) == ("D1:2", "D3:4")
    assert ledger.of("b/7", ["D"]) == ()
    assert ledger.of("c/1", ["D9:9"]) == ["D9:9"]
    with pytest.raises(DatasetError, match=r"the evidence of 'a/1' was \['D1:1'\], but \['D1:1', 'D1:2'\] is recorded"):
        ledger.of("a/1", ["D1:1", "D1:2"])


def test_the_notes_tell_what_changed_and_what_share_is_undisputed() -> None:
    assert Ledger((WRONG, DOUBTED, LEFT)).notes({"a/1", "a/2", "c/1", "c/2"}) == (
        "1 of 4 judged questions have other evidence than recorded (ledger: audit 2, spelling 1)",
        "1 of 4 judged questions stay in doubt; the evidence of 75.0% is undisputed",
    )
    assert Ledger(()).notes(()) == (
        "0 of 0 judged questions have other evidence than recorded (ledger: empty)",
        "0 of 0 judged questions stay in doubt; the evidence of 0.0% is undisputed",
    )


def test_a_damaged_ledger_is_told_by_its_line(tmp_path: Path) -> None:
    whole = json.loads(ledger_text([WRONG]))
    damages = {
        "'becomes' is missing": {key: value for key, value in whole.items() if key != "becomes"},
        "'was' must be a list, got 'D1:1'": whole | {"was": "D1:1"},
        "'becomes[0]' must be text, got 3": whole | {"becomes": [3]},
        "'in_doubt' must be true or false, got 'no'": whole | {"in_doubt": "no"},
        "'reason' must be text, got null": whole | {"reason": None},
        "must be an object, got []": [],
    }
    path = tmp_path / "ledger.jsonl"
    for told, line in damages.items():
        path.write_text(ledger_text([DOUBTED]) + json.dumps(line) + "\n")
        with pytest.raises(DatasetError) as caught:
            read_ledger(path)
        assert str(caught.value).startswith(f"{path}: record 2: {told}"), caught.value
    path.write_text(ledger_text([WRONG, DOUBTED, WRONG]))
    with pytest.raises(DatasetError, match="the ledger corrects 'a/1' 2 times; keep one of its lines"):
        read_ledger(path)
