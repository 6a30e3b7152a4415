"""`lcm serve` of folders that others made, changed or took away: each is told by itself, and the others are shown."""

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stderr
from html import unescape
from io import StringIO
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from eval.dataset.dataset import Dataset
from eval.run import read_summary
from eval.serving.shelf import Shelf
from eval.tracking.entry import run_name
from pipelines import cli, serve
from tests.pipelines.test_serve import Served, serving
from tests.support.looked_at import HOSTILE, copy_of

pytestmark = pytest.mark.usefixtures("no_progress")
RUN = "runs/a"


@pytest.fixture
def here(shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of what is served, which a test may damage."""
    monkeypatch.chdir(copy_of(shelf, tmp_path / "place"))
    monkeypatch.setenv("LCM_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    return tmp_path / "place"


@pytest.fixture
def served(here: Path) -> Iterator[Served]:
    with serving(Path("runs"), here / "judgements") as server:
        yield server


def rewrite(folder: Path, changed: Mapping[str, Any]) -> None:
    """Let a summary say something else, and nothing of its sums."""
    told = json.loads((folder / "summary.json").read_text()) | changed
    for name in ("sha256", "timing_sha256"):
        told.pop(name, None)
    (folder / "summary.json").write_text(json.dumps(told))


def unseal(folder: Path) -> None:
    for path in folder.glob("*.sha256"):
        path.unlink()


def judge_all(served: Served, key: str) -> int:
    state = served.get(f"judge/{key}/state").json()
    while state["task"] is not None:
        told = {name: state["task"][name] for name in ("query_id", "document_id")} | {"grade": "relevant"}
        state = served.post(f"judge/{key}/say", told).json()
    return int(state["done"])


@pytest.mark.parametrize(
    "name", ["../../../escaped", "/tmp/escaped", ".", "", "..", "a/b", ".hidden", "x\n<b>", "x\x00", "語"]
)
def test_judgements_lie_right_below_their_folder_whatever_the_dataset_is_called(tmp_path: Path, name: str) -> None:
    digest, qrels = "a" * 64, pl.DataFrame(schema={"query_id": pl.String(), "message_id": pl.String()})
    folder = serve.folder_about(Dataset(name, "as is", digest, (), (), qrels), tmp_path)
    assert folder.resolve().parent == tmp_path.resolve()
    assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*-a{12}", folder.name)


def test_no_link_leads_judgements_elsewhere(here: Path, served: Served) -> None:
    key = served.key("a")
    judge_all(served, key)
    (folder,) = (here / "judgements").iterdir()
    shutil.rmtree(folder)
    (here / "elsewhere").mkdir()
    folder.symlink_to(here / "elsewhere")
    os.utime(Path(RUN, "summary.json"))
    state = served.get(f"judge/{key}/state")
    assert (state.status_code, "leads out of" in state.text) == (404, True)
    assert not any((here / "elsewhere").iterdir())


def test_a_judge_who_asks_out_of_turn_is_told_in_a_line(here: Path, served: Served) -> None:
    key = served.key("a")
    finished = served.post(f"judge/{key}/finish", {})  # before anything else
    assert (finished.status_code, "Kept in" in finished.json()["told"]) == (200, True)
    assert served.get(f"judge/{key}/state").status_code == 200
    shutil.rmtree(RUN)
    for asked in ("undo", "say", "finish"):
        gone = served.post(f"judge/{key}/{asked}", {})
        assert (gone.status_code, gone.text.count("\n")) == (404, 0), asked
        assert "go back to the list" in gone.text
    swept = served.post(f"judge/{served.key('swept')}/undo", {})
    assert swept.status_code in (400, 404)
    assert "\n" not in swept.text


def test_a_run_that_was_made_again_is_judged_by_what_it_found_now(served: Served) -> None:
    key = served.key("a")
    before = served.get(f"judge/{key}/state").json()["total"]
    shutil.rmtree(RUN)
    shutil.copytree("runs/b", RUN)
    config = yaml.safe_load(Path(RUN, "config.yaml").read_text())
    (one, *_) = Path("questions.jsonl").read_text().splitlines()
    Path("questions.jsonl").write_text(one + "\n")
    unseal(Path(RUN))
    assert config["dataset"]
    now = served.get(f"judge/{key}/state")
    assert (now.status_code, "has changed since" in now.text) == (404, True), before  # looked at anew


def test_a_page_that_was_written_again_is_shown_as_it_is(served: Served) -> None:
    key = served.key("a")
    made = served.get(f"page/{key}").text
    page = Path(RUN, "report.html")
    for words in ("the first", "the second"):
        page.write_text(f"<!doctype html><title>{words}</title>")
        assert words in served.get(f"page/{key}").text
    page.unlink()
    assert served.get(f"page/{key}").text == made


def test_the_oldest_of_those_ticked_is_the_baseline(served: Served) -> None:
    keys = {name: served.key(name) for name in ("a", "b")}
    asked = f"compare?run={keys['a']}&run={keys['b']}"
    for oldest, newest in (("a", "b"), ("b", "a")):
        for age, name in enumerate((oldest, newest)):
            os.utime(Path("runs", name, "summary.json"), (1_700_000_000 + age, 1_700_000_000 + age))
        title = unescape(served.get(asked).text.partition("</title>")[0].rpartition(">")[2])
        baseline, other = (
            run_name(read_summary(folder), folder, is_nested=False)
            for folder in (Path("runs", oldest), Path("runs", newest))
        )
        assert title.startswith(f"{other} against {baseline} · "), title


def test_no_link_to_a_summary_or_a_store_is_followed(served: Served) -> None:
    Path("runs/linked").mkdir()
    Path("runs/linked/summary.json").symlink_to(Path(RUN, "summary.json").resolve())
    Path("runs/linked.db").symlink_to(Path("runs/memory.db").resolve())
    listed = served.get().text
    assert f'page/{served.key("a")}"' in listed
    assert "linked" not in listed


def said_by(*arguments: str) -> tuple[int, list[str]]:
    """The exit code of `lcm`, and the lines that it complains in."""
    with redirect_stderr(StringIO()) as stderr:
        code = cli.run(list(arguments))
    return code, stderr.getvalue().splitlines()


def test_a_summary_of_another_shape_is_damaged_by_its_key(served: Served) -> None:
    rewrite(Path(RUN), {"measures": {"recall@10": {"value": HOSTILE, "n": 1, "low": None, "high": None}}})
    reason = "measures.recall@10.value must be a finite number"
    listed = served.get()
    assert listed.status_code == 200
    assert f'page/{served.key("b")}"' in listed.text
    assert f"not as lcm writes it ({reason}" in listed.text
    assert HOSTILE not in listed.text
    for page in ("questions?q=where", "?q=dense"):
        assert served.get(page).status_code == 200, page
    code, lines = said_by("report", RUN)
    assert (code, len(lines)) == (2, 1), lines
    assert reason in lines[0]


def is_pipe(folder: Path) -> None:
    (folder / "summary.json").unlink()
    os.mkfifo(folder / "summary.json")
    os.mkfifo(folder / "store.db")


def is_a_link(folder: Path) -> None:
    Path("secret").write_text("SECRET")
    (folder / "report.html").symlink_to(Path("secret").resolve())


DAMAGES: dict[str, Callable[[Path], object]] = {
    "a comparison": lambda folder: rewrite(folder, {"kind": "comparison", "name": "x"}),
    "a regression": lambda folder: rewrite(folder, {"kind": "regression", "name": "x"}),
    "deep": lambda folder: (folder / "summary.json").write_text("[" * 200_000),
    "holds itself": lambda folder: (folder / "config.yaml").write_text("a: &a\n  b: *a\n"),
    "pipes": is_pipe,
    "no text": lambda folder: (folder / "report.html").write_bytes(b"\xff\xfe\xfa"),
    "late": lambda folder: os.utime(folder / "summary.json", (253_402_300_800, 253_402_300_800)),
    "a link": is_a_link,
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_whatever_a_folder_holds_is_told_of_it_alone(here: Path, served: Served, damage: str) -> None:
    unseal(Path(RUN))
    DAMAGES[damage](Path(RUN))
    listed = served.get()
    assert listed.status_code == 200
    assert f'page/{served.key("b")}"' in listed.text
    if (key := next((one.key for one in Shelf(served.root).all() if one.name == "a"), None)) is not None:
        for page in (f"page/{key}", f"judge/{key}/state", f"compare?run={key}&run={served.key('b')}"):
            answer = served.get(page)
            assert answer.status_code != 500, page
            assert "Traceback" not in answer.text
            assert "SECRET" not in answer.text
    assert served.get("questions?q=where").status_code == 200
    code, lines = said_by("report", RUN, "into=page.html", "ladders=false")
    assert (code, len(lines)) in ((0, 0), (2, 1)), lines


@pytest.mark.parametrize("name", ["swept", "compared"])
def test_a_page_of_tables_that_do_not_fit_is_told_in_a_line(here: Path, served: Served, name: str) -> None:
    folder = Path("runs", name)
    unseal(folder)
    (folder / "report.html").unlink(missing_ok=True)
    for table in folder.glob("*.parquet"):
        pl.DataFrame({"x": [1]}).write_parquet(table)
    answer = served.get(f"page/{served.key(name)}")
    assert answer.status_code in (404, 422)
    assert "Not to be had" in answer.text
    code, lines = said_by("report", f"runs/{name}")
    assert (code, len(lines)) == (2, 1), lines


@pytest.fixture(scope="module")
def beside(shelf: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server of a whole run, and of folders that are changed."""
    at = tmp_path_factory.mktemp("beside")
    for name in ("a", "b", "swept", "compared"):
        shutil.copytree(shelf / "runs" / name, at / "runs" / name)
        unseal(at / "runs" / name)
        (at / "runs" / name / "report.html").unlink(missing_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(shelf)
        patch.setenv("LCM_CACHE_DIR", str(at / "cache"))
        patch.setenv("NO_PROXY", "127.0.0.1,localhost")
        with serving(at / "runs", at / "judgements") as server:
            yield server


ODD = (
    *(None, True, 0, -1, 1e308, float("inf"), 10**400, "", "x", HOSTILE, "../..", "\ud800", "\n"),
    *([], [1, 2], ["x"], {}, {"x": 1}, {"recall@10": {}}, {"name": "x", "digest": "y"}),
)


@settings(max_examples=15)
@given(name=st.sampled_from(["a", "swept", "compared"]), data=st.data())
def test_no_summary_keeps_the_others_from_being_shown(beside: Served, name: str, data: st.DataObject) -> None:
    folder = beside.root / name
    whole = (folder / "summary.json").read_text()
    told = json.loads(whole)
    for sum_of in ("sha256", "timing_sha256"):
        told.pop(sum_of, None)
    for _ in range(data.draw(st.integers(1, 3))):
        change(told, data)
    try:
        (folder / "summary.json").write_text(json.dumps(told))
        listed = beside.get()
        assert listed.status_code == 200
        assert f'page/{beside.key("b")}"' in listed.text
        key, good = beside.key(name), beside.key("b")
        for page in ("questions?q=where", f"page/{key}", f"compare?run={key}&run={good}", f"judge/{key}/state"):
            answer = beside.get(page)
            assert answer.status_code in (200, 400, 404, 422), (page, answer.text)
            assert "Traceback" not in answer.text
        assert beside.get(f"page/{good}").status_code == 200
        code, lines = said_by("report", str(folder), f"into={beside.root / 'page.html'}", "ladders=false")
        assert (code, len(lines)) in ((0, 0), (2, 1)), lines
    finally:
        (folder / "summary.json").write_text(whole)


def change(told: dict[str, Any], data: st.DataObject) -> None:
    """Take a value out of JSON, or put another in its place, somewhere."""
    node: Any = told
    while True:
        keys = list(node) if isinstance(node, dict) else range(len(node))
        if not keys:
            return
        key = data.draw(st.sampled_from(list(keys)))
        if isinstance(node[key], (dict, list)) and node[key] and data.draw(st.booleans()):
            node = node[key]
            continue
        if data.draw(st.booleans()):
            node[key] = data.draw(st.sampled_from(ODD))
        else:
            del node[key]
        return
