"""Whatever stands in a reply, an evaluation goes on, and a terminal is told nothing that it would obey."""

import json
import shlex
import sys
from pathlib import Path

import pytest

from eval.experiment.outcome import Outcome
from eval.external.contract import FaultError, read_found, read_told, read_took_ms
from eval.external.ranking.external import External
from eval.external.stdio import Stdio
from lcm.consent import COMMANDS
from tests.eval.external.test_stand_ins import EVERY_ONE, MEASURES, dataset, values
from tests.support import experiments
from tests.support.workspaces import system

STAND_IN = Path(__file__).parents[2] / "support/external/verbatim.py"
DIGITS = "1" + 400 * "0"


def outcome(monkeypatch: pytest.MonkeyPatch, **replies: str) -> Outcome:
    command = [sys.executable, str(STAND_IN), json.dumps(replies)]
    monkeypatch.setenv(COMMANDS, shlex.join(command))
    return experiments.outcome(dataset(), system(ranking=External(Stdio(command), k=5)), MEASURES)


@pytest.mark.parametrize(
    "result",
    [
        f'{{"text": "tea", "score": {DIGITS}}}',
        r'{"text": "tea", "source_ids": ["\ud800"]}',
        r'{"text": "\ud800 tea", "score": NaN}',
    ],
)
def test_a_result_that_no_table_could_hold_is_judged_by_its_text(result: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = outcome(monkeypatch, search=f'"results": [{result}]')
    assert values(found) == {}, "the text is nobody's"
    assert values(found, "aligned") == dict.fromkeys(EVERY_ONE, 0.0)


def test_what_a_memory_says_of_itself_is_one_line_and_no_command(monkeypatch: pytest.MonkeyPatch) -> None:
    found = outcome(monkeypatch, reset=r'"name": "\ud800\u001b]0;owned\u0007", "version": "1\n2\u009b31m"')
    assert values(found) == EVERY_ONE
    flag = next(one for one in found.flags if one.startswith("external memory"))
    assert flag == "external memory \ufffd\ufffd]0;owned\ufffd 1 2\ufffd31m answered 4 of 4 queries"


def test_an_error_is_told_in_words_that_can_be_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    found = outcome(monkeypatch, search=r'"error": "\udfff\u001b[2J gone\r\nfor good"')
    assert values(found) == {}
    assert any("error: \ufffd\ufffd[2J gone for good" in flag for flag in found.flags)


def test_a_time_of_more_digits_than_a_float_has_is_no_time() -> None:
    assert read_took_ms({"took_ms": int(DIGITS)}) is None
    assert read_took_ms({"took_ms": 3}) == 3


def test_a_score_of_more_digits_than_a_float_has_is_none() -> None:
    assert read_found({"results": [{"text": "tea", "score": int(DIGITS)}]})[0].score is None


def test_ignored_settings_are_named_on_a_line_each() -> None:
    assert read_told({"ignores": ["a.b\n\x1b[31m"]}).ignores == ("a.b \ufffd[31m",)
    assert str(FaultError("error", "a\n\x1bb", is_end=False)) == "error: a \ufffdb"
