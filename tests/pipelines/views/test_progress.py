"""What is left is told by the steps that were made here, each kind of work by itself."""

import re
import sys
import time
from types import SimpleNamespace

import pytest

from pipelines.views import progress as view
from pipelines.views.output import answering
from pipelines.views.progress import Pace

PATIENCE_S = 20


def test_what_was_done_before_took_no_time_here() -> None:
    pace = Pace()
    pace.watch(4, 10, now_s=100.0)
    assert pace.told(100.0) == ""
    pace.watch(6, 10, now_s=160.0)
    assert pace.told(160.0) == "30.0 s each, 2 min left"  # 60 s / 2 steps, 4 are left
    assert pace.told(180.0) == "30.0 s each, 2 min left"  # 100 s
    assert pace.told(220.0) == "30.0 s each, 60 s left"


def test_the_same_work_of_the_next_point_begins_anew() -> None:
    pace = Pace()
    for now_s, done in ((0.0, 0), (10.0, 50), (20.0, 100)):
        pace.watch(done, 100, now_s)
    assert pace.told(20.0) == "5.0/s"
    pace.watch(0, 100, now_s=500.0)
    assert pace.told(500.0) == ""
    pace.watch(50, 100, now_s=600.0)
    assert pace.told(600.0) == "2.0 s each, 2 min left"  # 100 s / 50, not 600 s / 50


@pytest.mark.parametrize(
    ("left_s", "told"), [(99, "99 s"), (100, "2 min"), (5_400, "90 min"), (36_000, "10.0 h")]
)  # fmt: skip
def test_time_is_told_as_finely_as_matters(left_s: int, told: str) -> None:
    pace = Pace()
    pace.watch(0, left_s + 1, now_s=0.0)
    pace.watch(1, left_s + 1, now_s=1.0)
    assert pace.told(1.0).endswith(f", {told} left")


def test_each_kind_of_work_has_lines_of_its_own(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now_s = 0.0
    monkeypatch.setattr(view.time, "monotonic", lambda: now_s)
    with view.progress() as show:
        for point in range(3):
            show("points", point, 3)
            for done in range(0, 101, 50):
                show("replaying", done, 100)
                now_s += 10
    assert capsys.readouterr().err.splitlines() == [
        "replaying: 50 of 100, 5.0/s, 10 s left",
        "replaying: 100 of 100, 5.0/s",
        "points: 1 of 3, 30.0 s each, 60 s left",
        "replaying: 0 of 100",
        "replaying: 50 of 100, 5.0/s, 10 s left",
        "replaying: 100 of 100, 5.0/s",
        "points: 2 of 3, 30.0 s each, 30 s left",
        "replaying: 0 of 100",
        "replaying: 50 of 100, 5.0/s, 10 s left",
        "replaying: 100 of 100, 5.0/s",
    ]


def test_a_step_that_says_nothing_is_told_within_the_first_second_and_a_half(
    capsys: pytest.CaptureFixture[str],
) -> None:
    began_s, said = time.monotonic(), ""
    with view.working("loading the dataset"):
        while not said and time.monotonic() - began_s < PATIENCE_S:
            time.sleep(0.05)
            said = capsys.readouterr().err
    assert re.fullmatch(r"loading the dataset: \d+ s so far\n", said)
    assert time.monotonic() - began_s >= view.FIRST_AFTER_S


def test_a_quick_step_is_not_told(capsys: pytest.CaptureFixture[str]) -> None:
    with view.working("loading the dataset"):
        pass
    assert capsys.readouterr().err == ""


def test_of_one_step_there_is_no_rate() -> None:
    pace = Pace()
    pace.watch(0, 1, now_s=0.0)
    assert pace.told(12.0) == "12 s so far"
    pace.watch(1, 1, now_s=58.4)
    assert pace.told(60.0) == "58 s"


def test_a_quiet_command_tells_no_progress(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    now_s = 0.0
    monkeypatch.setattr(view.time, "monotonic", lambda: now_s)
    with answering(is_json=False, is_quiet=True), view.progress() as show:
        for done in range(3):
            show("points", done, 3)
            now_s += 100
    assert capsys.readouterr().err == ""


def test_a_notebook_shows_a_bar_and_leaves_none(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    line = SimpleNamespace(update=shown.append)
    cell = SimpleNamespace(HTML=str, display=lambda html, display_id: line)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=object())))
    monkeypatch.setitem(sys.modules, "IPython.display", cell)
    with view.progress() as show:
        show("ranking <b>", 3, 12)
    assert shown == ['<progress value="3" max="12"></progress> ranking &lt;b&gt;: 3 of 12', ""]
