"""`lcm serve` of folders that others made, changed or took away: each is told by itself, and the others are shown."""

import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml

from eval.dataset.dataset import Dataset
from pipelines import serve
from tests.pipelines.test_serve import Served, place, serving  # noqa: F401

RUN = "runs/a"


@pytest.fixture
def here(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:  # noqa: F811
    """A copy of what is served, which a test may damage."""
    shutil.copytree(place, tmp_path / "place", symlinks=True, ignore=shutil.ignore_patterns("cache", "judgements"))
    monkeypatch.chdir(tmp_path / "place")
    monkeypatch.setenv("LCM_CACHE_DIR", str(place / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    return tmp_path / "place"


@pytest.fixture
def served(here: Path) -> Iterator[Served]:
    with serving(Path("runs"), here / "judgements") as server:
        yield server


def rewrite(folder: Path, changed: Mapping[str, Any], *left_out: str) -> None:
    """Let a summary say something else, and nothing of its sums."""
    told = json.loads((folder / "summary.json").read_text()) | changed
    for name in ("sha256", "timing_sha256", *left_out):
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


NAMES = ("../../../escaped", "/tmp/escaped", ".", "", "..", "a/b", ".hidden", "x\n<b>", "x\x00", "語")


@pytest.mark.parametrize("name", NAMES)
def test_no_name_that_a_run_gives_its_dataset_leads_out_of_the_judgements(
    here: Path, served: Served, name: str
) -> None:
    rewrite(Path(RUN), {"dataset": json.loads(Path(RUN, "summary.json").read_text())["dataset"] | {"name": name}})
    before = set(here.parent.rglob("*"))
    key = served.key("a")
    assert served.get(f"judge/{key}/state").status_code == 200
    assert set(here.parent.rglob("*")) == before  # to look makes nothing
    judge_all(served, key)
    assert served.post(f"judge/{key}/finish", {}).status_code == 200
    made = {path.relative_to(here).parts[0] for path in set(here.parent.rglob("*")) - before}
    assert made == {"judgements"}


@pytest.mark.parametrize("name", NAMES)
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
        title = served.get(asked).text.partition("</title>")[0].rpartition(">")[2]
        assert title.index(f"runs/{oldest}") > title.index(f"runs/{newest}"), title


def test_no_link_to_a_summary_or_a_store_is_followed(served: Served) -> None:
    Path("runs/linked").mkdir()
    Path("runs/linked/summary.json").symlink_to(Path(RUN, "summary.json").resolve())
    Path("runs/linked.db").symlink_to(Path("runs/memory.db").resolve())
    listed = served.get().text
    assert ">a</a>" in listed
    assert "linked" not in listed
