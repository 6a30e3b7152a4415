"""Kept runs of external memories: whose program may run again is said on the line that makes them again."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from eval.leaderboard import read_board
from lcm import consent
from lcm.errors import LcmError
from pipelines import leaderboard, report, verify, why
from pipelines.config.arguments import consented
from tests.eval.test_leaderboard import run

NAMED = "external.command=[python3,mine.py]"


def test_a_row_that_may_not_be_made_again_is_told_and_the_others_are_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    leaderboard._write(read_board([run(tmp_path / "a"), run(tmp_path / "b")], "recall@10"), tmp_path / "board")
    made = []

    def replayed(kept: Path, row: dict[str, Any], *_: Any) -> list[str]:
        if row["name"] == "001":
            raise LcmError("external.command: it is no command that you named")
        made.append(row["name"])
        return []

    monkeypatch.setattr(verify, "_replayed", replayed)
    with pytest.raises(LcmError, match="001: not made again here"):
        verify.main([str(tmp_path / "board"), NAMED])
    assert made == ["002"]
    assert "001 hybrid, toy: not made again: external.command" in capsys.readouterr().out


@pytest.mark.parametrize("main", [verify.main, why.main, report.main], ids=["verify", "why", "report"])
def test_what_makes_a_kept_run_again_may_be_told_its_program(main: Callable[[Sequence[str]], int]) -> None:
    with consented(["nowhere/run", NAMED]) as rest:
        assert consent.refused_command(["python3", "mine.py"]) is None
        with pytest.raises(LcmError, match="nowhere/run"):
            main(rest)
