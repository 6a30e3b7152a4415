"""The page on which a judge works."""

import json
from collections.abc import Callable
from importlib import resources

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from eval.judging.session import JudgingSession
from eval.loopback import Loopback
from lcm.errors import LcmError

_FILES = {"": "text/html", "judge.js": "text/javascript", "judge.css": "text/css"}
"""Name in an address -> what it is; the page itself has none."""


class JudgingPage(Loopback):
    """Serves the page of one session until the judge is done, or interrupts: nothing is lost by either."""

    def __init__(self, session: JudgingSession, port: int = 0) -> None:
        """Take a port of the loopback interface; 0 = whichever is free."""
        super().__init__(routes(lambda _: session, self.stop_when_done), port)

    def stop_when_done(self, _: Request) -> str:
        self.stop()
        return "The report is in the terminal. You can close this page."


def routes(of: Callable[[Request], JudgingSession], done: Callable[[Request], str]) -> list[Route]:
    """The page and what it asks.

    Args:
        of: the session that a request is about.
        done: called when the judge says that all is done; returns what the page then says.
    """

    async def file(request: Request) -> Response:
        name = request.url.path.rpartition("/")[2]
        text = resources.files("eval.judging").joinpath("static", name or "judge.html").read_text("utf-8")
        return Response(text, media_type=_FILES[name])

    async def state(request: Request) -> Response:
        try:
            session = await run_in_threadpool(of, request)  # the first time it loads the dataset
        except LcmError as error:
            return PlainTextResponse(str(error), status_code=404)
        return JSONResponse(session.state())

    async def said(request: Request) -> Response:
        session = of(request)
        try:
            asked = json.loads(await request.body())
            session.say(str(asked["query_id"]), str(asked["document_id"]), str(asked["grade"]))
        except (ValueError, KeyError, TypeError) as error:
            return PlainTextResponse(str(error), status_code=400)
        return JSONResponse(session.state())

    async def undo(request: Request) -> Response:
        session = of(request)
        session.undo()
        return JSONResponse(session.state())

    async def finish(request: Request) -> Response:
        return JSONResponse({"told": await run_in_threadpool(done, request)})

    acts = {"say": said, "undo": undo, "finish": finish}
    return [
        *(Route(f"/{name}", file) for name in _FILES),
        Route("/state", state),
        *(Route(f"/{name}", act, methods=["POST"]) for name, act in acts.items()),
    ]
