"""A memory behind HTTP: bounded in time and size, sent nothing that the user did not allow."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress

import pytest

from eval.external.http import Http
from eval.external.ranking import External
from eval.external.session import FaultError
from eval.measures.retrieval import Retrieval
from lcm.errors import LcmError
from tests.eval.external.test_stand_ins import EVERY_ONE, dataset, values
from tests.lcm.retrieval.reranker.loopback import Answer, Asked, serving
from tests.support import experiments
from tests.support.workspaces import system

SAID: list[dict[str, str]] = []
MISTAKES = {
    "hangs": Answer(stall_after=0),
    "large": Answer({"results": [], "padding": "x" * (1 << 20)}),
    "fails": Answer({}, status=500),
    "moved": Answer({}, status=302, headers={"location": "http://example.org/"}),
    "garbage": Answer(b"<html>"),
}


def words(asked: Asked) -> Answer:
    """Rank by shared words; below /MISTAKE answer a search with that."""
    _, behaviour, call = asked.path.split("/")
    if call == "reset":
        SAID.clear()
        return Answer({"name": "words", "version": "2"})
    if call == "add":
        SAID.extend(asked.body["messages"])
        return Answer({})
    sought = set(asked.body["query"].split())
    ranked = sorted(SAID, key=lambda one: -len(sought & set(one["content"].split())))[: asked.body["k"]]
    found = {"results": [{"text": one["content"], "source_ids": [one["id"]]} for one in ranked]}
    return MISTAKES.get(behaviour, Answer(found))


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with serving(words) as served:
        yield served.url


def test_a_server_is_evaluated_like_any_memory(server: str) -> None:
    external = External(Http(f"{server}/honest"), k=5)
    outcome = experiments.outcome(dataset(), system(ranking=external), {"retrieval": Retrieval(names=["recall@1"])})
    assert values(outcome) == EVERY_ONE
    assert outcome.incidents == {}
    assert any("external memory words 2 answered 4 of 4" in flag for flag in outcome.flags)


@pytest.mark.parametrize(
    ("behaviour", "told", "is_end"),
    [
        ("hangs", "timed out: no whole reply within 0.5 s", True),
        ("large", "reply too large: more than 524,288 bytes", True),
        ("fails", "error: status 500", False),
        ("moved", "error: status 302", False),
        ("garbage", "wrong reply: a reply must be a map of JSON", False),
        ("is not there", "crashed: the connection fails", True),
    ],
)
def test_what_goes_wrong_is_told(server: str, behaviour: str, told: str, is_end: bool) -> None:
    url = "http://127.0.0.1:9/" if behaviour == "is not there" else f"{server}/{behaviour}"
    with closing(Http(url, timeout_s=0.5, reply_mib=0.5).open()) as connection:
        with pytest.raises(FaultError, match=told) as fault:
            connection.call("search", {"query": "words", "k": 3})
        assert fault.value.is_end == is_end


@pytest.mark.parametrize("part", ["head", "body"])
def test_a_server_that_sends_a_letter_now_and_then_is_too_slow(part: str) -> None:
    dripped = {"head": [f"x-{i}: a\r\n".encode() for i in range(20)], "body": [b"\r\n", *20 * [b"a"]]}

    def drip(listening: socket.socket) -> None:
        client, _ = listening.accept()
        with client, suppress(OSError):
            client.recv(1 << 16)
            client.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n")
            for letters in dripped[part]:
                client.sendall(letters)
                time.sleep(0.2)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=drip, args=[listening], daemon=True).start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        started = time.monotonic()
        with pytest.raises(FaultError, match=r"timed out: no whole reply within 0\.6 s"):
            Http(url, start_s=0.6).open().call("reset", {"workspace": "one"})
        assert time.monotonic() - started < 2


def test_nothing_is_sent_where_the_user_did_not_say(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LcmError, match=r"external.url: memory.example.org:80 is no host that you named"):
        Http("http://memory.example.org/v1").open()
    monkeypatch.setenv("MY_MEMORY_KEY", "abcdefgh12345678")
    with pytest.raises(LcmError, match="MY_MEMORY_KEY may not be read for a key"):
        Http("http://127.0.0.1:9/", api_key_env="MY_MEMORY_KEY").open()
