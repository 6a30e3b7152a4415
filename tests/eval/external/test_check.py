"""What a memory can do is told before it is measured, and a fault is no success."""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

import pytest

from eval.external.check import Checked, checked
from eval.external.process import LineProcess, Stdio
from tests.eval.external.test_stand_ins import stand_in, verbatim_memory

CRASHED = "reset crashed: it ended with exit code 1: no such database"
NOWHERE = "what answers the questions at rank -, -, -, -, -"


def look(behaviour: str, monkeypatch: pytest.MonkeyPatch, **settings: float) -> Checked:
    return checked(stand_in(behaviour, monkeypatch, **settings), {}, 0.85)


def told(found: Checked, what: str) -> list[str]:
    return [one.told for one in found.lines if one.what == what]


def test_an_honest_memory_is_told_of_call_by_call(monkeypatch: pytest.MonkeyPatch) -> None:
    found = look("contexts", monkeypatch)
    assert found.faults == []
    assert told(found, "reset") == ["stand-in 1"]
    assert told(found, "offers") == ["add, search, context, compact"]
    assert told(found, "ignores") == ["does not say"]
    assert told(found, "add") == ["12 of 12 messages, 6 a call"]
    assert told(found, "compact") == ["done: it does not say whether anything was folded"]
    assert told(found, "search") == ["5 of 5 questions, 10 texts at most of 10 asked for"]
    assert told(found, "texts") == ["50 named by it, 0 by their words, 0 nearly, 0 that could not be aligned"]
    assert told(found, "finds") == ["what answers the questions at rank 1, 1, 2, 1, 1"]
    assert told(found, "next workspace") == ["knows nothing of the first"]
    (context,) = told(found, "context")
    assert context.endswith("tokens of 1000, with 3 of 12 messages")
    assert all(one.took_ms > 0 for one in found.lines if one.what in ("reset", "add", "search", "compact", "context"))


def test_what_a_memory_says_of_itself_ignores_and_folds_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    replies = {
        "reset": '"notes": ["by two ways"], "offers": ["compact"], "ignores": ["a.b", "c"]',
        "compact": '"compacted": false, "reason": "it is short"',
    }
    found = checked(verbatim_memory(monkeypatch, **replies), {"a": {"b": 1}}, 0.85)
    assert (told(found, "says"), told(found, "ignores")) == (["by two ways"], ["a.b, c"])
    assert told(found, "compact") == ["nothing was folded; it is short"]


@pytest.mark.parametrize(
    ("behaviour", "fault", "line"),
    [
        ("one text", None, ("search", "5 of 5 questions, 1 texts at most of 10 asked for")),
        ("chatters", None, ("counted", "lines that are no reply: 5")),
        ("refuses to add", "add error: the disk is full", ("next workspace", "gave no answer")),
        ("does not start", CRASHED, ("add", "0 of 12 messages, 6 a call")),
        ("errs", "search error: no such collection", ("search", "4 of 5 questions, 10 texts at most of 10 asked for")),
        ("invents", "no answer is of anything that was said", ("finds", NOWHERE)),
    ],
)  # fmt: skip
def test_a_fault_is_told_and_what_was_cut(
    behaviour: str, fault: str | None, line: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = look(behaviour, monkeypatch)
    assert line[1] in told(found, line[0])
    assert (fault in found.faults) if fault else not found.faults


def test_a_memory_that_is_not_emptied_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = stand_in("another workspace", monkeypatch)
    with _one_process(kept), mock.patch.object(LineProcess, "close"):
        found = checked(kept, {}, 0.85)
    assert told(found, "next workspace") == ["still knows 10 texts of the first: it is not emptied"]


@contextmanager
def _one_process(transport: Stdio) -> Iterator[None]:
    """The same process for every workspace."""
    process = transport.open()
    close = process.close
    with mock.patch.object(Stdio, "open", return_value=process):
        yield
    close()
