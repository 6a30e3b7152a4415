"""`lcm serve`: what lies below a folder, shown to this machine alone, and nothing written but judgements."""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pytest
import requests

from eval.loopback import Loopback
from eval.serving.browser import Browser
from eval.serving.shelf import Shelf, grouped
from pipelines import serve
from tests.support.looked_at import HOSTILE

JSON = {"Content-Type": "application/json"}


@dataclass
class Served:
    """A server at work, and what is behind its address."""

    server: Loopback
    root: Path

    def get(self, path: str = "", **headers: str) -> requests.Response:
        return requests.get(self.server.address + path, headers=headers, timeout=60)

    def post(self, path: str, body: object) -> requests.Response:
        return requests.post(self.server.address + path, data=json.dumps(body), headers=JSON, timeout=60)

    def key(self, name: str) -> str:
        return next(one.key for one in Shelf(self.root).all() if one.name == name)


@contextmanager
def serving(root: Path, judgements: Path) -> Iterator[Served]:
    server = Loopback(Browser(Shelf(root), serve.FolderDoors("ada", judgements)).routes())
    thread = threading.Thread(target=server.serve)
    thread.start()
    yield Served(server, root)
    server.stop()
    thread.join(10)
    assert not thread.is_alive()


@pytest.fixture
def served(shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    monkeypatch.chdir(shelf)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    with serving(Path("runs"), tmp_path / "judgements") as server:
        yield server


def contents(folder: Path) -> dict[str, bytes]:
    """But for what SQLite keeps beside a store that some other test reads."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink())
    return {str(path): path.read_bytes() for path in files if not path.name.endswith(("-wal", "-shm"))}


def test_the_list_names_all_that_lies_there_and_finds_by_setting(served: Served) -> None:
    listed = served.get().text
    for title, name in (
        ("hybrid · own · dataset.paths", "a"),
        ("hybrid · own · dataset.paths", "b"),
        ("hybrid · own · dataset.paths", "swept"),
        ("runs/b against runs/a", "compared"),
    ):
        assert re.search(rf">{title}[^<]*</a> <span[^>]*>{name}</span>", listed), name
    assert ">memory.db</a>" in listed
    assert "fusion.dense_weight=0.4" in listed  # what a point of the sweep is about
    assert "link/" not in listed  # nothing that a link leads to
    found = served.get("?q=dense_weight=0.4").text
    assert ">a</span>" not in found
    assert "swept/" in found
    assert "Nothing here holds" in served.get("?q=zebra").text


def test_points_stand_below_their_sweep_and_what_was_evaluated_for_a_comparison_below_that(served: Served) -> None:
    shelf = Shelf(served.root).all()
    alone, below = grouped(shelf)
    swept, compared = (next(one for one in shelf if one.name == name) for name in ("swept", "compared"))
    assert {one.label for one in below[swept.key]} >= {"fusion.dense_weight=0.2", "fusion.dense_weight=0.4"}
    assert (swept.dataset, compared.dataset) == ("own", "own")
    assert compared.key not in below  # its sides were runs before
    assert {one.name for one in alone if one.kind == "run"} >= {"a", "b"}
    assert len(alone) + sum(map(len, below.values())) == len(shelf)


def test_nothing_of_a_transcript_or_a_name_is_markup(served: Served) -> None:
    key = served.key("memory.db")
    pages = ["", "questions?q=torch", f"store/{key}?q=torch", f"store/{key}/{quote('msg#1', safe='')}"]
    for page in pages:
        answer = served.get(page)
        assert answer.status_code == 200, page
        assert "<script>alert" not in answer.text, page
        assert "script-src 'self'" in answer.headers["content-security-policy"]
        assert "set-cookie" not in answer.headers
    assert "&lt;script&gt;alert(1)&lt;/script&gt; the torch lies in drawer 0" in served.get(pages[3]).text


def test_questions_lead_to_their_place_in_the_page_of_each_run(served: Served) -> None:
    found = served.get("questions?q=where+kettle").text
    assert "1 found" in found
    links = re.findall(r'href="page/(\w+)#q=([^"]+)"', found)
    assert {key for key, _ in links} >= {served.key("a"), served.key("b")}
    assert {query for _, query in links} == {quote(f"q1{HOSTILE}", safe="/")}
    assert "3 found" in served.get("questions").text


def test_two_ticked_runs_and_pages_are_shown_in_an_origin_of_their_own(served: Served) -> None:
    a, b = served.key("a"), served.key("b")
    answer = served.get(f"compare?run={b}&run={a}")
    assert answer.status_code == 200
    assert "recall@10" in answer.text
    (heading,) = re.findall("<h1>([^<]*)</h1>", answer.text)
    assert re.fullmatch(r"hybrid · own · .* against hybrid · own · .*", heading)
    assert answer.headers["content-security-policy"].startswith("sandbox allow-scripts")
    one = served.get(f"compare?run={a}")
    assert (one.status_code, "tick two runs" in one.text) == (404, True)
    kept = served.get(f"page/{served.key('compared')}")
    assert (kept.status_code, kept.headers["content-security-policy"].startswith("sandbox ")) == (200, True)
    gone = served.get("page/0123456789abcdef")
    assert (gone.status_code, "go back to the list" in gone.text) == (404, True)


def test_looking_writes_nothing_and_judging_only_judgements(served: Served, shelf: Path, tmp_path: Path) -> None:
    before = contents(shelf / "runs")
    key = served.key("a")
    for page in ("", "questions", f"store/{served.key('memory.db')}?q=rope", f"judge/{key}/", f"judge/{key}/state"):
        assert served.get(page).status_code == 200, page
    assert contents(shelf / "runs") == before
    assert not contents(tmp_path)
    state = served.get(f"judge/{key}/state").json()
    while state["task"] is not None:
        grade = "relevant" if state["task"]["query"].split()[3].rstrip("?") in str(state["task"]) else "not"
        told = {"query_id": state["task"]["query_id"], "document_id": state["task"]["document_id"], "grade": grade}
        state = served.post(f"judge/{key}/say", told).json()
    assert "qrels.trec" in served.post(f"judge/{key}/finish", {}).json()["told"]
    (qrels,) = (tmp_path / "judgements").rglob("qrels.trec")
    assert len(qrels.read_text().splitlines()) == state["done"]
    assert contents(shelf / "runs") == before


def test_whoever_else_asks_is_refused(served: Served) -> None:
    base = f"http://127.0.0.1:{served.server.port}"
    assert requests.get(f"{base}/", timeout=10).status_code == 404
    assert served.get(Host="evil.example").status_code == 403
    assert served.get(Origin="http://evil.example").status_code == 403
    assert served.get(Origin="null").status_code == 403
    undo = f"{served.server.address}judge/{served.key('a')}/undo"
    assert requests.post(undo, data={"a": "b"}, timeout=10).status_code == 403
    for path in ("", "questions", f"page/{served.key('a')}"):
        assert served.post(path, {}).status_code == 405
    for path in ("store/../../a", "%2e%2e/%2e%2e/etc/passwd", f"store/{served.key('a')}", "page/..%2f..%2fa"):
        assert served.get(path).status_code in (403, 404), path
