"""A reader that leaves before the end, and a configuration that is no text."""

import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.cli import BAD_INPUT
from pipelines.views.output import open_closed_streams
from pipelines.views.terminal import show_table
from tests.pipelines.conftest import Lcm


@pytest.mark.slow
def test_a_reader_that_leaves_at_once_ends_no_command(root: Path) -> None:
    asked = [sys.executable, "-m", "pipelines.cli", "evaluate", "--cfg", "job"]
    with subprocess.Popen(asked, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as lcm:
        lcm.stdout.close()
        assert lcm.stderr.read() == b""
    assert lcm.returncode == 0


def test_a_configuration_that_is_no_text_is_named_with_the_remedy(lcm: Lcm, tmp_path: Path) -> None:
    bad = tmp_path / "conf" / "fusion" / "bad.yaml"
    bad.parent.mkdir(parents=True)
    bad.write_bytes(b"_target_: x # \xff")
    told = lcm("evaluate", "--config-dir", str(tmp_path / "conf"), "fusion=bad")
    assert told.code == BAD_INPUT
    assert told.stderr == f"lcm: {bad} is no UTF-8 text at byte 14: save it as UTF-8\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("redirection", "code", "told"),
    [
        (">/dev/full", 74, "lcm: standard output: No space left on device; make room and give the same command again"),
        (">&-", 0, ""),
        ("<&- >&- 2>&-", 0, ""),
    ],
)
def test_an_output_that_is_full_or_closed_is_no_defect(redirection: str, code: int, told: str, root: Path) -> None:
    command = f"{sys.executable} -m pipelines.cli --version {redirection}"
    done = subprocess.run(["bash", "-c", command], cwd=root, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr.partition(":")[0]) == (code, "", told.partition(":")[0])
    assert done.stderr.startswith(told)
    assert done.stderr.count("\n") <= 1


def test_a_table_goes_nowhere_where_the_output_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, name, None)
    open_closed_streams()
    show_table(("name",), [("a",)])
    assert (sys.stdin.read(), sys.stdout.isatty()) == ("", False)
