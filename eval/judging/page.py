"""The page on which a judge works: served to this machine alone, at an address that nobody can guess."""

import json
import secrets
import socket
from collections.abc import Callable
from importlib import resources

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from eval.judging.session import JudgingSession

HOST = "127.0.0.1"
_FILES = {"": "text/html", "judge.js": "text/javascript", "judge.css": "text/css"}
"""Name in an address -> what it is; the page itself has none."""
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class JudgingPage:
    """Serves the page of one session until the judge is done, or interrupts."""

    def __init__(self, session: JudgingSession, port: int = 0) -> None:
        """Take a port of the loopback interface; 0 = whichever is free."""
        self._socket = socket.create_server((HOST, port))
        self.port: int = self._socket.getsockname()[1]
        self.token = secrets.token_urlsafe(16)
        app = application(session, self.token, self.port, self._stop)
        self._server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off"))

    @property
    def address(self) -> str:
        return f"http://{HOST}:{self.port}/{self.token}/"

    def serve(self) -> None:
        """Answer until the page says that it is done, or Ctrl-C: nothing is lost by either."""
        try:
            self._server.run(sockets=[self._socket])
        except KeyboardInterrupt:
            pass
        finally:
            self._socket.close()

    def _stop(self) -> None:
        self._server.should_exit = True


def application(session: JudgingSession, token: str, port: int, stop: Callable[[], None]) -> Starlette:
    """The page and what it asks, all below `/TOKEN/`.

    Args:
        stop: called when the judge says that all is done.
    """

    async def file(request: Request) -> Response:
        name = request.url.path.rpartition("/")[2]
        text = resources.files("eval.judging").joinpath("static", name or "judge.html").read_text("utf-8")
        return Response(text, media_type=_FILES[name])

    async def state(request: Request) -> Response:
        return JSONResponse(session.state())

    async def said(request: Request) -> Response:
        try:
            asked = json.loads(await request.body())
            session.say(str(asked["query_id"]), str(asked["document_id"]), str(asked["grade"]))
        except (ValueError, KeyError, TypeError) as error:
            return PlainTextResponse(str(error), status_code=400)
        return JSONResponse(session.state())

    async def undo(request: Request) -> Response:
        session.undo()
        return JSONResponse(session.state())

    async def finish(request: Request) -> Response:
        stop()
        return JSONResponse({})

    acts = {"say": said, "undo": undo, "finish": finish}
    routes = [
        *(Route(f"/{token}/{name}", file) for name in _FILES),
        Route(f"/{token}/state", state),
        *(Route(f"/{token}/{name}", act, methods=["POST"]) for name, act in acts.items()),
    ]
    return Starlette(routes=routes, middleware=[Middleware(_Guard, port=port)])


class _Guard:
    """Refuses what this machine's own page did not ask: another Host (a name that was made to lead here), another
    Origin, a form. Adds the headers that let the page run nothing but its own script."""

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
                more = [(name.lower().encode(), value.encode()) for name, value in _HEADERS.items()]
                message["headers"] = [*message.get("headers", []), *more]  # type: ignore[misc]
            await send(message)

        if not (is_own and is_json):
            await PlainTextResponse("not from here", status_code=403)(scope, receive, with_headers)  # type: ignore[arg-type]
            return
        await self._app(scope, receive, with_headers)  # type: ignore[arg-type]
