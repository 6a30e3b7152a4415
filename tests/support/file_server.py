"""A server on this machine that has files, breaks off as it is told, and remembers what it was asked."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class FileServer:
    url: str
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    """Path and range of each request, in order."""
    breaks: list[int] = field(default_factory=list)
    """After how many bytes each of the next answers breaks off."""
    has_ranges: bool = True


@contextmanager
def serving_files(files: Mapping[str, bytes]) -> Iterator[FileServer]:
    """Serve the files by path."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wanted = self.headers["Range"]
            server.asked.append((self.path, wanted))
            content = files.get(self.path)
            if content is None:
                self.send_error(404)
                return
            begin = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted and server.has_ranges else 0
            if begin >= len(content) > 0:
                self.send_error(416)
                return
            self.send_response(206 if begin else 200)
            if begin:
                self.send_header("Content-Range", f"bytes {begin}-{len(content) - 1}/{len(content)}")
            self.send_header("Content-Length", str(len(content) - begin))
            self.end_headers()
            length = server.breaks.pop(0) if server.breaks else len(content)
            self.wfile.write(content[begin : begin + length])

        def log_message(self, *_: object) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server = FileServer(f"http://127.0.0.1:{http.server_address[1]}")
    thread = threading.Thread(target=http.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        http.shutdown()
        http.server_close()
        thread.join()
