"""`lcm leaderboard` and `lcm verify`: a page, its manifest, and the runs made again, bit for bit."""

import json
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eval.leaderboard import digest_of
from lcm.derived import sum_of
from pipelines.cli import BAD_INPUT
from tests.pipelines.conftest import Lcm
from tests.support.looked_at import NO_CONTEXTS, commanded, copy_of


@pytest.fixture(scope="module")
def made(shelf: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A leaderboard `board` of the runs `runs/a` and `runs/b`."""
    place = copy_of(shelf, tmp_path_factory.mktemp("leaderboard") / "here")
    commanded(place, "leaderboard", "runs/a", "runs/b", "to=board")
    return place


@pytest.fixture
def board(made: Path, tmp_path: Path) -> Path:
    """A copy that may be changed, where commands run."""
    shutil.copytree(made, tmp_path / "here", symlinks=True)
    return tmp_path / "here" / "board"


def rewritten(board: Path, change: Callable[[dict[str, Any]], None], *, is_digested: bool = True) -> None:
    """The manifest with a change; with its digest worked out anew, as a forger would."""
    path = board / "manifest.json"
    manifest = json.loads(path.read_text())
    change(manifest)
    if is_digested:
        manifest["sha256"] = digest_of(manifest)
    path.write_text(json.dumps(manifest))


def test_the_runs_made_again_give_the_same_bit_for_bit(lcm: Lcm, board: Path) -> None:
    manifest = json.loads((board / "manifest.json").read_text())
    assert [shlex.split(row["command"])[-1] for row in manifest["rows"]] == [NO_CONTEXTS, "fusion=reciprocal_rank"]
    assert {"run.parquet", "per_query.parquet", "measures.parquet"} <= manifest["rows"][0]["results"].keys()
    page = (board / "index.html").read_text()
    assert manifest["rows"][1]["config_hash"] in page
    done = lcm("verify", "board")
    assert done.code == 0, done.stderr
    assert done.stdout.count("the same, bit for bit") == 2
    assert "Page: as its runs say" in done.stdout


def test_another_number_is_found_by_making_it_again(lcm: Lcm, board: Path) -> None:
    """A forger may write everything."""

    def other(manifest: dict[str, Any]) -> None:
        manifest["rows"][0]["results"]["measures.parquet"] = "0" * 64

    rewritten(board, other)
    done = lcm("verify", "board", "row=001")
    assert (done.code, "other in measures.parquet" in done.stdout) == (1, True)
    assert lcm("verify", "board", "replay=false").code == 0


def forged(board: Path, name: str, change: Callable[[str], str]) -> None:
    """A file with a change, and a manifest that says it."""
    path = board / name
    path.write_text(change(path.read_text()))

    def told(manifest: dict[str, Any]) -> None:
        manifest["files"][name] = sum_of(path)

    rewritten(board, told)


def test_other_numbers_of_a_page_and_of_a_summary_are_found_by_making_the_run_again(lcm: Lcm, board: Path) -> None:
    def better(text: str) -> str:
        summary = json.loads(text)
        summary["measures"]["recall@10"]["value"] = 0.75
        return json.dumps({key: value for key, value in summary.items() if not key.endswith("sha256")})

    forged(board, "index.html", lambda page: page.replace("Leaderboard by", "The leaderboard by"))
    assert lcm("verify", "board", "replay=false").code == 0, "the files are as its manifest says"
    done = lcm("verify", "board")
    assert (done.code, "Page: index.html is not the page of these runs" in done.stdout) == (1, True)
    forged(board, "runs/001/summary.json", better)
    done = lcm("verify", "board", "row=001")
    assert (done.code, "other in measures of summary.json" in done.stdout) == (1, True), done.stderr


@pytest.mark.parametrize("name", ["index.html", "runs/001/config.yaml", "runs/002/summary.json"])
def test_a_file_that_was_changed_is_named_and_nothing_is_made_again(lcm: Lcm, board: Path, name: str) -> None:
    (board / name).write_bytes((board / name).read_bytes() + b" ")
    done = lcm("verify", "board")
    assert (done.code, f"Changed: {name}" in done.stdout) == (1, True)
    (board / name).unlink()
    assert f"Missing: {name}" in lcm("verify", "board").stdout


def test_a_file_that_was_laid_beside_is_named(lcm: Lcm, board: Path) -> None:
    assert "vouched for" not in lcm("verify", "board", "replay=false").stdout
    (board / "runs/001/more.html").write_text("better numbers")
    done = lcm("verify", "board", "replay=false")
    assert (done.code, "vouched for by nobody: 1 files, such as runs/001/more.html" in done.stdout) == (0, True)


def test_what_a_manifest_may_not_say_is_refused_in_one_line(lcm: Lcm, board: Path) -> None:
    whole = (board / "manifest.json").read_text()

    def renamed(manifest: dict[str, Any]) -> None:
        manifest["rows"][0]["name"] = "../../etc"

    def other_measure(manifest: dict[str, Any]) -> None:
        manifest["measure"] = "MAP"

    cases: dict[str, Callable[[], None]] = {
        "its digest is another": lambda: rewritten(board, other_measure, is_digested=False),
        "rows[0].name must be a number of three digits or more": lambda: rewritten(board, renamed),
        "is no manifest of a leaderboard": lambda: (board / "manifest.json").write_text("[" * 10**5) and None,
        "has no manifest.json": lambda: (board / "manifest.json").unlink(),
    }
    for told, change in cases.items():
        (board / "manifest.json").write_text(whole)
        change()
        done = lcm("verify", "board", "replay=false")
        assert (done.code, told in done.stderr) == (BAD_INPUT, True), (told, done.stderr)
        assert len(done.stderr.splitlines()) == 1


def test_a_signature_that_an_older_manifest_bears_is_told_and_not_looked_at(lcm: Lcm, board: Path) -> None:
    rewritten(board, lambda manifest: manifest.update(signature={"algorithm": "ed25519"}))
    done = lcm("verify", "board", "replay=false")
    assert (done.code, "the signature of this manifest is not looked at" in done.stderr) == (0, True)


def test_a_table_that_was_damaged_stands_on_no_leaderboard(lcm: Lcm, board: Path) -> None:
    path = board.parent / "runs/a/per_query.parquet"
    path.write_bytes(path.read_bytes() + b" ")
    done = lcm("leaderboard", "runs/a", "to=new")
    assert (done.code, "per_query.parquet is damaged" in done.stderr) == (BAD_INPUT, True)
