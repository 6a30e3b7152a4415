"""The documentation is true: commands run, choices are named, links lead somewhere."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.cli import PIPELINES
from pipelines.config import conf_folder
from tests.conftest import ROOT
from tests.lcm.retrieval.embedder.conftest import exported_minilm, minilm_cache  # noqa: F401 - fixtures
from tests.pipelines.conftest import Lcm, lcm  # noqa: F401 - a fixture
from tests.support.small_locomo import write_small_locomo

README = (ROOT / "README.md").read_text()
GROUPS = conf_folder.groups()
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def command_lines() -> list[list[str]]:
    """The `lcm` command lines that can run here, of each block of the README that has some."""
    blocks = re.findall(r"^```\w*\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)
    found = []
    for block in blocks:
        lines = [line.split("  #")[0].strip() for line in block.splitlines()]
        here = [line for line in lines if line.startswith(".venv/bin/lcm ") and "~/" not in line]
        found.append(here)
    return [lines for lines in found if lines]


@pytest.mark.full
@pytest.mark.xdist_group("minilm")
@pytest.mark.parametrize("lines", command_lines(), ids=lambda lines: lines[0])
def test_the_commands_of_a_block_of_the_readme_run(
    lines: list[str],
    lcm: Lcm,  # noqa: F811
    tmp_path: Path,
    minilm_cache: Path,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On a dataset of a page, where they ask for one of thousands of messages."""
    monkeypatch.setenv("LCM_CACHE_DIR", str(minilm_cache))
    monkeypatch.setenv("LCM_DATASETS_DIR", str(tmp_path / "datasets"))
    (tmp_path / "datasets" / "locomo").mkdir(parents=True)
    write_small_locomo(tmp_path / "datasets" / "locomo", monkeypatch)
    place = tmp_path / "here"
    place.mkdir()
    for name in ("data", "docs"):
        (place / name).symlink_to(ROOT / name)
    for command in lines:
        _run(lcm, shlex.split(command.removeprefix(".venv/bin/lcm ")))


def _run(lcm: Lcm, arguments: list[str]) -> None:  # noqa: F811
    done = lcm(*arguments)
    assert done.code == 0, done.stderr
    if arguments[0] == "evaluate":
        assert done.summaries
        assert "│ system" in done.stdout or "-m" in arguments
    elif arguments[0] in ("ingest", "compact"):
        (into,) = [argument.removeprefix("into=") for argument in arguments if argument.startswith("into=")]
        assert (done.place / into).exists()
    else:
        assert done.stdout.strip()


def python_blocks() -> list[str]:
    texts = [README, *((ROOT / "docs" / name).read_text() for name in ("lossless_claw.md", "libravdb.md"))]
    return [block for text in texts for block in re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)]


@pytest.mark.full
@pytest.mark.parametrize("block", python_blocks())
def test_the_python_of_the_documentation_runs(block: str, tmp_path: Path) -> None:
    (tmp_path / "data").symlink_to(ROOT / "data")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", block], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    expected = "adrenaline" if "read_transcripts" in block else "tag\n"
    assert expected in done.stdout


def test_make_evaluate_is_what_the_readme_says_it_is() -> None:
    command = ["make", "--no-print-directory", "-n", "evaluate"]
    dry = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert dry.splitlines()[-1].split() == [".venv/bin/lcm", "evaluate"]


def test_every_choice_is_named_in_the_readme() -> None:
    rows = {group: [line for line in README.splitlines() if line.startswith(f"| `{group}` |")] for group in GROUPS}
    missing = [
        f"{group}={choice}" for group in GROUPS for choice in GROUPS[group] if f"`{choice}`" not in str(rows[group])
    ]
    assert missing == []
    assert [group for group in GROUPS if len(rows[group]) > 1] == []


def test_every_pipeline_is_named_in_the_readme() -> None:
    assert [pipeline for pipeline in PIPELINES if f"| `lcm {pipeline} " not in README] == []


def test_links_lead_somewhere() -> None:
    targets = [(page, target) for page in PAGES for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text())]
    missing = [(page.name, to) for page, to in targets if "://" not in to and not (page.parent / to).exists()]
    assert missing == []


def test_code_and_files_that_pages_name_exist() -> None:
    """A path in backticks with a slash and a known suffix is a file of this checkout."""
    file = re.compile(r"`((?:conf|lcm|eval|pipelines|tests|docs|data)/[\w/.]+\.(?:py|yaml|md|sql))`")
    named = [(page.name, name) for page in PAGES for name in file.findall(page.read_text())]
    assert [(page, name) for page, name in named if not (ROOT / name).exists()] == []


def test_tests_that_pages_name_exist() -> None:
    """A promise names its test as `tests/path.py::name`."""
    test = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
    named = [(page.name, *found) for page in PAGES for found in test.findall(page.read_text())]
    missing = [
        (page, path, name)
        for page, path, name in named
        if not (ROOT / path).exists() or f"\ndef {name}(" not in (ROOT / path).read_text()
    ]
    assert missing == []
    assert {page for page, *_ in named} >= {"security.md", "reliability.md"}


@pytest.mark.full
@pytest.mark.skipif("LCM_DATASETS_DIR" not in os.environ, reason="it measures on LoCoMo")
def test_the_experiment_on_published_figures_gives_what_the_results_say(tmp_path: Path) -> None:
    script = ROOT / "docs" / "experiments" / "published_bm25.py"
    done = subprocess.run([sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    results = (ROOT / "docs" / "results.md").read_text()
    measured = [[cell.strip() for cell in line.split("│")] for line in done.stdout.splitlines() if "/" in line]
    rows = [cells for cells in measured if cells[1:4] in (["False", "False", "of each"], ["True", "True", "of all"])]
    assert len(rows) == 2
    for cells in rows:
        row = " | ".join(cell.replace("0.", ".").replace("/", " / ") for cell in cells[4:10])
        assert row in results
