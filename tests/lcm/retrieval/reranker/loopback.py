"""A server on this machine that answers as a test says, and remembers what it was asked."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Asked:
    path: str
    headers: dict[str, str]
    body: Any


@dataclass
class Answer:
    """`body` is sent as JSON unless it is bytes; a stalled one is never sent, or only its first `stall_after` bytes."""

    body: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    stall_after: int | None = None


@dataclass
class Loopback:
    url: str
    asked: list[Asked]


@contextmanager
def serving(answer: Callable[[Asked], Answer]) -> Iterator[Loopback]:
    asked: list[Asked] = []
    is_over = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["Content-Length"]))
            request = Asked(self.path, {name.lower(): value for name, value in self.headers.items()}, json.loads(raw))
            asked.append(request)
            told = answer(request)
            if told.stall_after == 0:
                is_over.wait()
                return
            sent = told.body if isinstance(told.body, bytes) else json.dumps(told.body).encode()
            self.send_response(told.status)
            for name, value in told.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent[: told.stall_after])
            if told.stall_after is not None:
                self.wfile.flush()
                is_over.wait()

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        request_queue_size = 64  # with fewer, a client that comes too many waits a second

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield Loopback(f"http://127.0.0.1:{server.server_address[1]}", asked)
    finally:
        is_over.set()
        server.shutdown()
        thread.join()
        server.server_close()
