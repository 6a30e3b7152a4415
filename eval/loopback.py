"""A server for this machine alone, at an address that nobody can guess."""

import secrets
import socket
from collections.abc import Mapping, Sequence
from importlib import resources

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

HOST = "127.0.0.1"
CSP = "content-security-policy"
_HEADERS = {
    CSP: "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
"""Of every answer, unless it has its own: a page runs nothing but the scripts that are served with it."""


def static_routes(package: str, files: Mapping[str, str]) -> list[Route]:
    """Routes of files in the folder `static` of a package: name in an address -> media type; the page has no name."""

    def answered(request: Request) -> Response:
        name = request.url.path.rpartition("/")[2]
        path = resources.files(package).joinpath("static", name or "index.html")
        return Response(path.read_text("utf-8"), media_type=files[name])

    return [Route(f"/{name}", answered) for name in files]


class Loopback:
    """Serves routes below `/TOKEN/` until it is stopped or interrupted."""

    def __init__(self, routes: Sequence[BaseRoute], port: int = 0) -> None:
        """Take a port of the loopback interface; 0 = whichever is free.

        Raises:
            OSError: if it cannot be had.
            OverflowError: if it is no port.
        """
        self._socket = socket.create_server((HOST, port))
        self.port: int = self._socket.getsockname()[1]
        self.token = secrets.token_urlsafe(16)
        app = Starlette(routes=[Mount(f"/{self.token}", routes=routes)], middleware=[Middleware(Guard, port=self.port)])
        self._server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off"))

    @property
    def address(self) -> str:
        return f"http://{HOST}:{self.port}/{self.token}/"

    def serve(self) -> None:
        """Answer until `stop`, or Ctrl-C."""
        try:
            self._server.run(sockets=[self._socket])
        except KeyboardInterrupt:
            pass
        finally:
            self._socket.close()

    def stop(self) -> None:
        self._server.should_exit = True


class Guard:
    """Refuses what this machine's own page did not ask: another Host (a name that was made to lead here), another
    Origin, a form that is sent. Adds the headers that let a page run nothing but its own scripts."""

    def __init__(self, app: ASGIApp, port: int) -> None:
        self._app = app
        self._hosts = {f"{name}:{port}" for name in (HOST, "localhost")}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        origin = headers.get("origin", "").removeprefix("http://")
        is_own = headers.get("host") in self._hosts and (not origin or origin in self._hosts)
        is_json = scope["method"] in ("GET", "HEAD") or headers.get("content-type", "").startswith("application/json")

        async def with_headers(message: dict[str, object]) -> None:
            if message["type"] == "http.response.start":
                told: list[tuple[bytes, bytes]] = list(message.get("headers", []))  # type: ignore[call-overload]
                names = {name.decode("latin-1").lower() for name, _ in told}
                more = [(name.encode(), value.encode()) for name, value in _HEADERS.items() if name not in names]
                message["headers"] = [*told, *more]
            await send(message)

        if not (is_own and is_json):
            await PlainTextResponse("not from here", status_code=403)(scope, receive, with_headers)  # type: ignore[arg-type]
            return
        await self._app(scope, receive, with_headers)  # type: ignore[arg-type]
