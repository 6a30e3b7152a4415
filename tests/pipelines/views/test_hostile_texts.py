"""A text that somebody else wrote is shown on the terminal, and not obeyed by it."""

from collections.abc import Callable

import pytest

from lcm.encoding import printable
from pipelines.views.terminal import say, show_table, warn

HOSTILE = "a\x1b]0;owned\x07 b\x1b[2Jc\x9b31m\r\x08d\x00"


@pytest.mark.parametrize("show", [say, warn, lambda text: show_table(("said",), [(text,)])])
def test_no_command_reaches_the_terminal(show: Callable[[str], None], capsys: pytest.CaptureFixture[str]) -> None:
    show(HOSTILE)
    told = capsys.readouterr()
    assert not set(told.out + told.err) & set("\x1b\x07\x9b\r\x08\x00")
    assert "owned" in told.out + told.err


def test_lines_and_tabs_and_every_script_stay_as_they_are() -> None:
    text = "one\n\ttwo\r\nthree \u05e9\u05dc\u05d5\u05dd \U0001f600"
    assert printable(text) == text.replace("\r\n", "\n")
