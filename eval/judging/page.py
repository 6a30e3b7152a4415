"""The page on which a judge works."""

import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from eval.judging.session import JudgingSession
from eval.loopback import Loopback, static_routes
from lcm.errors import LcmError
from lcm.faults import told

_log = logging.getLogger(__name__)
_FILES = {"": "text/html", "judge.js": "text/javascript", "judge.css": "text/css"}
"""Name in an address -> what it is; the page itself has none."""


@dataclass(frozen=True, slots=True)
class Judging:
    """A judge at work, and what is to be done when that judge is."""

    session: JudgingSession
    finish: Callable[[], str]
    """Called when the judge says that all is done; returns what the page then says."""


class JudgingPage(Loopback):
    """Serves the page of one session until the judge is done, or interrupts: nothing is lost by either."""

    def __init__(self, session: JudgingSession, port: int = 0) -> None:
        """Take a port of the loopback interface; 0 = whichever is free."""
        judging = Judging(session, self.stop_when_done)
        super().__init__(routes(lambda _: judging), port)

    def stop_when_done(self) -> str:
        self.stop()
        return "The report is in the terminal. You can close this page."


def routes(of: Callable[[Request], Judging]) -> list[Route]:
    """The page and what it asks of the judge at work that a request is about, which LcmError says there is not."""
    one_at_a_time = Lock()

    def answering(act: Callable[[Judging, bytes], Mapping[str, Any]]) -> Callable[[Request], Awaitable[Response]]:
        def acted(request: Request, body: bytes) -> Response:
            try:
                with one_at_a_time:
                    return JSONResponse(act(of(request), body))
            except LcmError as error:
                return PlainTextResponse(str(error), status_code=404)
            except OSError as error:
                return PlainTextResponse(told(error) or str(error), status_code=503)
            except Exception as error:  # what was sent, or whatever others left in the folder
                _log.debug("%s", request.url.path, exc_info=error)
                return PlainTextResponse(" ".join(f"{type(error).__name__}: {error}".split()), status_code=400)

        async def answered(request: Request) -> Response:
            return await run_in_threadpool(acted, request, await request.body())  # the first time it loads the dataset

        return answered

    def say(judging: Judging, body: bytes) -> Mapping[str, Any]:
        asked = json.loads(body)
        judging.session.say(str(asked["query_id"]), str(asked["document_id"]), str(asked["grade"]))
        return judging.session.state()

    def undo(judging: Judging, _: bytes) -> Mapping[str, Any]:
        judging.session.undo()
        return judging.session.state()

    acts = {"say": say, "undo": undo, "finish": lambda judging, _: {"told": judging.finish()}}
    return [
        *static_routes("eval.judging", _FILES),
        Route("/state", answering(lambda judging, _: judging.session.state())),
        *(Route(f"/{name}", answering(act), methods=["POST"]) for name, act in acts.items()),
    ]
