"""External memories on the command line: what is said of one that does not run, or is named in the wrong place."""

import json
import sys
from pathlib import Path

import pytest

from pipelines.cli import help_of
from tests.pipelines.conftest import Lcm

STAND_IN = Path(__file__).parents[1] / "support/external/stand_in.py"
QUICK = ("system=external", "embedder=hashing", "arms=none", "tracking=none", "report=false", "means.resamples=20")


def command(behaviour: str) -> str:
    return f"external.command=[{sys.executable},{STAND_IN},{behaviour}]"


def test_a_run_of_a_memory_that_never_ran_ends_with_an_exit_code_of_its_own(lcm: Lcm) -> None:
    done = lcm("evaluate", *QUICK, command("'does not start'"), "measures.latency.queries=0")
    assert (done.code, "has no number: reset crashed" in done.stdout) == (2, True)
    assert "by category" not in done.stdout


def test_a_run_of_which_nothing_could_be_aligned_ends_with_it_too(lcm: Lcm) -> None:
    done = lcm("evaluate", *QUICK, command("invents"), "measures.latency.queries=0")
    assert (done.code, "they are unjudged and have no value, and the ranking has no number" in done.stdout) == (2, True)


@pytest.mark.parametrize(
    ("behaviour", "code", "told"),
    [
        ("honest", 0, "knows nothing of the first"),
        ("invents", 2, "fault: no answer is of anything that was said"),
        ("refuses to add", 2, "fault: add error: the disk is full"),
    ],
)
def test_a_memory_is_checked_by_its_words_or_its_settings(behaviour: str, code: int, told: str, lcm: Lcm) -> None:
    for words in [sys.executable, str(STAND_IN), behaviour], [command(behaviour)]:
        done = lcm("external", "check", *words)
        assert (done.code, told in done.stdout) == (code, True), done.stdout + done.stderr


def test_a_check_hands_what_is_no_setting_to_the_program(lcm: Lcm, tmp_path: Path) -> None:
    words = [sys.executable, str(STAND_IN.parent / "configured.py"), "none", "add=agent_end"]
    settings = "+ranking.settings.config.retrieval.hardMinScore=0.1"
    record = json.loads(lcm("external", "check", *words, settings, "--json").stdout)
    assert record["told"][3] == ["retrieval.hardMinScore", "retrieval.filterNoise"]
    done = lcm("external", "look", *words)
    assert (done.code, "`lcm external` is followed by check, got 'look'" in done.stderr) == (2, True)


def test_a_system_is_exported_by_its_name(lcm: Lcm) -> None:
    done = lcm("export", "lancedb_pro_tuned", "to=preset", "target=yaml", "tracking=none")
    assert done.code == 0, done.stderr
    assert (done.place / "preset/system/preset.yaml").is_file()


@pytest.mark.parametrize("pipeline", ["evaluate", "tune"])
def test_no_line_of_a_help_text_is_wider_than_its_docstring(pipeline: str) -> None:
    assert max(map(len, help_of(pipeline).splitlines())) <= 120
