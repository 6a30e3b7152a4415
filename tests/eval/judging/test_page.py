"""The page answers its own address on this machine and nobody else, and keeps each judgement before the next."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
import requests

from eval.judging.judgements import JudgementFile
from eval.judging.page import JudgingPage
from eval.judging.session import JudgingSession
from tests.support.small_talk import dataset

pytestmark = pytest.mark.slow

PAIRS = [("q0", "m1"), ("q0", "m5"), ("q1", "m7")]
JSON = {"Content-Type": "application/json"}


def session(folder: Path, judge: str = "ada") -> JudgingSession:
    pool = pl.DataFrame(PAIRS, schema=["query_id", "document_id"], orient="row")
    return JudgingSession(pool, dataset(), JudgementFile(folder), judge, lambda: "2026-01-01T00:00:00.000Z")


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[JudgingPage]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    page = JudgingPage(session(tmp_path))
    thread = threading.Thread(target=page.serve)
    thread.start()
    yield page
    requests.post(f"{page.address}finish", data="{}", headers=JSON, timeout=10)
    thread.join(10)
    assert not thread.is_alive()


def test_a_judge_goes_through_the_pool_and_back(page: JudgingPage, tmp_path: Path) -> None:
    def ask(path: str, **body: str) -> dict:
        return requests.post(page.address + path, data=json.dumps(body), headers=JSON, timeout=10).json()

    state = requests.get(f"{page.address}state", timeout=10).json()
    task = state["task"]
    assert (state["done"], state["total"], task["query"]) == (0, 3, "quokka photographs from Perth")
    assert [one["is_judged"] for one in task["messages"]] == [False, True, False, False, False]
    state = ask("say", query_id="q0", document_id="m1", grade="partly")
    assert JudgementFile(tmp_path).of("ada")["q0", "m1"].relevance == 1  # on disk when the next is shown
    assert state["task"]["document_id"] == "m5"
    ask("say", query_id="q0", document_id="m1", grade="not")  # the same key a second time
    assert JudgementFile(tmp_path).of("ada")["q0", "m1"].relevance == 1
    ask("say", query_id="q0", document_id="m5", grade="skip")
    assert ask("undo")["task"]["document_id"] == "m5"
    assert ask("undo")["task"]["document_id"] == "m1"
    assert ask("undo")["done"] == 0
    for (query, document), grade in zip(PAIRS, ("relevant", "not", "skip"), strict=True):
        state = ask("say", query_id=query, document_id=document, grade=grade)
    assert (state["task"], state["tally"]) == (None, {"relevant": 1, "partly": 0, "not": 1, "skip": 1})
    for body in (
        {"query_id": "q9", "document_id": "m1", "grade": "not"},
        {"query_id": "q0"},
        {"query_id": "q0", "document_id": "m1", "grade": "5"},
    ):
        refused = requests.post(f"{page.address}say", data=json.dumps(body), headers=JSON, timeout=10)
        assert refused.status_code == 400


def test_another_judge_sees_the_same_order_and_nothing_of_the_first(tmp_path: Path) -> None:
    first = session(tmp_path)
    first.say("q0", "m1", "relevant")
    second = session(tmp_path, "bo").state()
    assert (second["done"], second["task"]["document_id"]) == (0, "m1")
    assert session(tmp_path).state()["task"]["document_id"] == "m5"  # goes on where it stopped


def test_whoever_else_asks_is_refused(page: JudgingPage) -> None:
    base, state = f"http://127.0.0.1:{page.port}", f"{page.address}state"

    def status(address: str, **headers: str) -> int:
        return requests.get(address, headers=headers, timeout=10).status_code

    assert status(f"{base}/state") == status(f"{base}/{'a' * len(page.token)}/state") == 404
    for header, value in (
        ("Host", "evil.example"),
        ("Host", f"evil.example:{page.port}"),
        ("Origin", "http://evil.example"),
    ):
        assert status(state, **{header: value}) == 403
    assert requests.post(f"{page.address}undo", data={"a": "b"}, timeout=10).status_code == 403
    assert status(state, Host=f"localhost:{page.port}") == 200
    files = {name: requests.get(page.address + name, timeout=10) for name in ("", "judge.js", "judge.css")}
    for one in files.values():
        assert one.status_code == 200
        assert "script-src 'self'" in one.headers["content-security-policy"]
    assert "innerHTML" not in files["judge.js"].text
