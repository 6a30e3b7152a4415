"""The documentation is true: commands run, choices are named, links lead somewhere."""

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

from pipelines.cli import PIPELINES, help_of
from pipelines.config import conf_folder
from pipelines.config.command_line import command, multirun
from pipelines.config.composition import composed
from pipelines.steps.point import parts_of
from tests.conftest import ROOT
from tests.pipelines.conftest import Lcm, lcm  # noqa: F401 - a fixture
from tests.support.looked_at import given
from tests.support.models import linked
from tests.support.once import made_once
from tests.support.small_locomo import write_small_locomo

DOCS = ROOT / "docs"
GROUPS = conf_folder.groups()
PAGES = [ROOT / "README.md", *(page for page in sorted(DOCS.rglob("*.md")) if "components" not in page.parts)]
EXECUTED = [
    ROOT / "README.md",
    *(DOCS / name for name in ("tutorial.md", "commands.md", "why.md", "survival.md", "leaderboard.md")),
    *sorted((DOCS / "howto").glob("*.md")),
]
"""Pages whose commands follow each other: all run, in one folder, from the first to the last."""
IN_CI = ("README", "tutorial")
FIGURES_OF = ("tutorial",)
"""Pages of which each line that a command is said to print is printed."""

COMPOSED = ("evaluate", "tune")
"""Commands whose examples are composed; those of the others name files that only their reader has."""
MAY_TELL_WORSE = "regress"
MOST_LINES_OF_README = 120


WRITTEN = re.compile(r"(?:hydra\.run\.dir|hydra\.sweep\.dir|into|to|study\.name)=([a-z][\w./-]*)")
"""What a command says that it writes; FOLDER and the like are the reader's to name."""


def command_lines(page: Path) -> list[str]:
    """The `lcm` command lines of a page that can run here: those about the reader's own home or variables cannot."""
    return [line for line in all_command_lines(page) if "~/" not in line and '"$' not in line and " $" not in line]


def is_whole(line: str) -> bool:
    """Whether a line is a configuration that anybody has: no placeholder, no choice of the reader's own files."""
    arguments = line.split()[1:]
    theirs = re.search(r"[A-Z]{3,}|\.\.\.|searchpath|config-dir|trust=", line)
    return arguments[0] in ("evaluate", "tune") and theirs is None


def all_command_lines(page: Path) -> list[str]:
    blocks = re.findall(r"^ *```(?:sh)?\n(.*?)^ *```", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    joined = "\n".join(blocks).replace("\\\n", " ")
    lines = [line.split("  #")[0].strip().removeprefix(".venv/bin/") for line in joined.splitlines()]
    return [line for line in lines if line.startswith("lcm ")]


PAGES_THAT_RUN = [
    pytest.param(page, id=page.stem, marks=pytest.mark.slow if page.stem in IN_CI else pytest.mark.full)
    for page in EXECUTED
    if command_lines(page)
]


def test_no_two_pages_write_the_same_folder() -> None:
    """Who reads one after the other in one checkout meets nothing there that another page left."""
    pages: dict[str, set[str]] = {}
    for page in PAGES:
        for line in all_command_lines(page):
            for folder in WRITTEN.findall(line):
                pages.setdefault(folder, set()).add(page.name)
    assert len(pages) > 20
    assert {folder: sorted(names) for folder, names in pages.items() if len(names) > 1} == {}


@pytest.fixture(scope="session")
def page_cache(exported_minilm: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache for all pages: what one has embedded, the next need not."""
    return made_once(tmp_path_factory, "page-cache", lambda cache: linked(exported_minilm, cache))


@pytest.mark.parametrize("page", PAGES_THAT_RUN)
def test_the_commands_of_a_page_run(page: Path, tmp_path: Path, page_cache: Path) -> None:
    """In a process of their own, since what they load would stay to the end of the tests."""
    (tmp_path / "cache").symlink_to(page_cache)
    (tmp_path / "here").mkdir()
    for name in ("data", "docs"):
        (tmp_path / "here" / name).symlink_to(ROOT / name)
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        process.submit(_run_page, page, tmp_path).result()


def _run_page(page: Path, folder: Path) -> None:
    """On a dataset of a page, where a command asks for one of thousands of messages."""
    (folder / "datasets" / "locomo").mkdir(parents=True)
    with pytest.MonkeyPatch.context() as patch:
        write_small_locomo(folder / "datasets" / "locomo", patch)
        said = "".join(_run(folder / "here", shlex.split(line)[1:]) for line in command_lines(page))
    if page.stem in FIGURES_OF:
        printed = {_cells(line) for line in said.splitlines()}
        unsaid = [line for line in told_lines(page) if _cells(line) not in printed]
        assert not unsaid, (unsaid, said)


def told_lines(page: Path) -> list[str]:
    """The lines that a page says its commands print."""
    others = re.sub(r"^```sh\n.*?^```\n", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    blocks = re.findall(r"^```\n(.*?)^```", others, flags=re.MULTILINE | re.DOTALL)
    return [line for line in "".join(blocks).splitlines() if line != "..."]


def _cells(line: str) -> str:
    """However wide its columns are."""
    return " ".join(line.split())


def _run(place: Path, arguments: list[str]) -> str:
    """What a command printed."""
    done = given(place, *arguments)
    is_absent = "external=server_memory" in arguments and shutil.which("mcp-server-memory") is None
    codes = (0, 1, 2) if arguments[0] == MAY_TELL_WORSE else (2,) if is_absent else (0,)
    assert done.code in codes, (arguments, done.stdout, done.stderr)
    if arguments[0] == "evaluate":
        assert done.summaries
        assert "│ system" in done.stdout or "-m" in arguments
    elif arguments[0] in ("ingest", "compact"):
        (into,) = [argument.removeprefix("into=") for argument in arguments if argument.startswith("into=")]
        assert (done.place / into).exists()
    else:
        assert done.stdout.strip()
    return done.stdout


def help_examples() -> list[list[str]]:
    """The arguments of `lcm` in each example of a help text, without the note beside it; one may go on over lines."""
    texts = [help_of(name) for name in PIPELINES]
    lines = [line for text in texts for line in re.sub(r",\n {20,}", ", ", text).splitlines()]
    examples = [re.split(r" {3,}", line.strip())[0] for line in lines if line.startswith("  lcm ")]
    return [shlex.split(example)[1:] for example in examples]


def test_help_texts_have_examples_of_all_that_is_composed() -> None:
    assert {example[0] for example in help_examples()} >= {"grep", *COMPOSED}


@pytest.mark.parametrize("arguments", [one for one in help_examples() if one[0] in COMPOSED], ids=" ".join)
def test_an_example_of_a_help_text_can_be_composed(
    arguments: list[str],
    lcm: Lcm,  # noqa: F811
) -> None:
    """With sessions and questions of ours in place of the reader's."""
    ours = {
        "~/sessions": str(DOCS / "examples/own/sessions"),
        "questions.jsonl": str(DOCS / "examples/own/questions.jsonl"),
    }
    pipeline, *rest = [ours.get(argument, argument) for argument in arguments]
    if "-m" not in rest:
        done = lcm(pipeline, *rest, "--cfg", "job")
        assert done.code == 0, done.stderr
        assert done.stdout.strip()
    if "-m" in rest:
        for point in ends(multirun(command(rest)).points):
            parts_of(composed(point), point)


def ends(points: Sequence[Sequence[str]]) -> list[Sequence[str]]:
    """The first and the last point of a sweep: those between differ by a value alone."""
    return [points[0], *points[1:][-1:]]


@pytest.mark.parametrize("line", [line for page in PAGES for line in all_command_lines(page) if is_whole(line)])
def test_what_a_page_evaluates_or_tunes_can_be_composed(line: str) -> None:
    """Of pages whose commands run, too; a folder, a file or a model of the reader's cannot be."""
    pipeline, *arguments = shlex.split(line)[1:]
    overrides = [one for one in arguments if "=" in one or one == "-m"]
    own = ["dataset=own"] if len(overrides) < len(arguments) else []  # sessions and questions stand before them
    asked = command([*own, *overrides], pipeline)
    points = multirun(asked).points if asked.is_multirun else [asked.overrides]
    for point in ends(points):
        composed(point, pipeline)


def python_blocks() -> list[str]:
    """Those that need no package that lcm does not install: tests/lcm/memory/test_langchain.py runs that one."""
    texts = [(DOCS / name).read_text() for name in ("library.md", "lossless_claw.md", "libravdb.md")]
    blocks = [block for text in texts for block in re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)]
    return [block for block in blocks if "langchain_core" not in block]


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


def test_the_page_of_choices_is_what_the_configuration_says() -> None:
    """Else `python docs/reference.py` has to be run."""
    specification = importlib.util.spec_from_file_location("reference", DOCS / "reference.py")
    assert specification is not None and specification.loader is not None
    reference = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(reference)
    page = (DOCS / "choices.md").read_text()
    assert page == reference.choices_page()
    named = {group: section for group, _, section in (part.partition("`") for part in page.split("\n## `")[1:])}
    assert named.keys() == GROUPS.keys()
    assert [f"{group}={one}" for group in GROUPS for one in GROUPS[group] if f"`{one}`" not in named[group]] == []


def test_every_pipeline_is_named_in_the_documentation() -> None:
    commands = (DOCS / "commands.md").read_text()
    assert [pipeline for pipeline in PIPELINES if f"| `lcm {pipeline} " not in commands] == []


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= MOST_LINES_OF_README


def test_links_lead_somewhere() -> None:
    targets = [(page, target) for page in PAGES for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text())]
    missing = [(page.name, to) for page, to in targets if "://" not in to and not (page.parent / to).exists()]
    assert missing == []


def test_code_and_files_that_pages_name_exist() -> None:
    """A path in backticks with a slash and a known suffix is a file of this checkout."""
    file = re.compile(r"`((?:conf|lcm|eval|pipelines|tests|docs|data)/[\w/.]+\.(?:py|yaml|md|sql))`")
    named = [(page.name, name) for page in PAGES for name in file.findall(page.read_text())]
    assert [(page, name) for page, name in named if not (ROOT / name).exists()] == []


def test_each_file_of_the_architecture_lies_where_it_is_said_to_lie() -> None:
    """A file without a folder lies beside the one before it; a walk has at most ten steps."""
    page = (DOCS / "architecture.md").read_text()
    folder, missing = ROOT, []
    for name in re.findall(r"`([\w/*]+(?:/|\.py|\.sql|\.yaml))`", page):
        path = (ROOT if (ROOT / name.partition("/")[0]).exists() else folder) / name
        folder = path.parent
        if not any(folder.glob(path.name)):
            missing.append(str(path.relative_to(ROOT)))
    assert missing == []
    assert max(map(int, re.findall(r"^(\d+)\. ", page, flags=re.MULTILINE))) <= 10


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
    script = ROOT / "experiments" / "published_bm25.py"
    done = subprocess.run([sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    results = (ROOT / "docs" / "results.md").read_text()
    measured = [[cell.strip() for cell in line.split("│")] for line in done.stdout.splitlines() if "/" in line]
    rows = [cells for cells in measured if cells[1:4] in (["False", "False", "of each"], ["True", "True", "of all"])]
    assert len(rows) == 2
    for cells in rows:
        row = " | ".join(cell.replace("0.", ".").replace("/", " / ") for cell in cells[4:10])
        assert row in results
