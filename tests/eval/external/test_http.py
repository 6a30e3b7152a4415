"""A memory behind HTTP: bounded in time and size, sent nothing that the user did not allow."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest

from eval.external.contract import FaultError
from eval.external.http import Http
from eval.external.ranking.external import External
from eval.measures.retrieval import Retrieval
from lcm.errors import LcmError
from tests.eval.external.test_stand_ins import EVERY_ONE, dataset, values
from tests.support import experiments
from tests.support.workspaces import system


class Words(BaseHTTPRequestHandler):
    """Ranks by shared words; misbehaves below /BEHAVIOUR."""

    said: ClassVar[list[dict[str, str]]] = []

    def do_POST(self) -> None:  # the name that the library asks for
        _, behaviour, call = self.path.split("/")
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        status, content = 200, b""
        if call == "reset":
            Words.said, reply = [], {"name": "words", "version": "2"}
        elif call == "add":
            Words.said, reply = [*Words.said, *asked["messages"]], {}
        else:
            words = set(asked["query"].split())
            ranked = sorted(Words.said, key=lambda one: -len(words & set(one["content"].split())))
            reply = {"results": [{"text": one["content"], "source_ids": [one["id"]]} for one in ranked[: asked["k"]]]}
            status = {"fails": 500, "moved": 302}.get(behaviour, 200)
            content = b"<html>" if behaviour == "garbage" else b""
            reply["padding"] = "x" * (1 << 20) if behaviour == "large" else ""
            time.sleep(1.5 if behaviour == "hangs" else 0)
        content = content or json.dumps(reply).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(content)))
        if status == 302:
            self.send_header("location", "http://example.org/")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Words) as served:
        threading.Thread(target=served.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{served.server_address[1]}"
        served.shutdown()


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
