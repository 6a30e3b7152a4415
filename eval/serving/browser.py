"""The pages of `lcm serve`: a list of what lies below a folder, its pages, comparisons of two, stores, judging, and a
search for questions over all runs."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from threading import Lock
from typing import Any, Protocol

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from eval.judging import page as judging_page
from eval.judging.page import Judging
from eval.loopback import CSP, static_routes
from eval.report.page import PAGE
from eval.run import read_table
from eval.serving.shelf import HEADLINE, KINDS, Shelf, Shelved, grouped
from eval.table import Column, Table
from lcm.context.recall.grep import minute, one_line
from lcm.context.recall.reader import DescribedFile, DescribedMessage, DescribedSummary, Reader
from lcm.encoding import well_formed
from lcm.errors import LcmError

SHOWN = 100
_COLUMNS = ("query_id", "workspace_id", "category", "text")


@dataclass(frozen=True, slots=True)
class FoundQuestion:
    """A question of a dataset, and the runs that answered it."""

    query_id: str
    workspace_id: str
    category: str
    text: str
    dataset: str
    runs: tuple[Shelved, ...]


class QuestionSearch:
    """Over what runs were asked; the questions of a dataset are read once."""

    def __init__(self) -> None:
        self._questions: dict[str, list[tuple[str, ...]]] = {}
        """Digest of the dataset -> rows of `_COLUMNS`."""

    def found(self, words: str, runs: Sequence[Shelved]) -> tuple[list[FoundQuestion], int]:
        """The first `SHOWN` questions that hold every word, and how many there are."""
        wanted = words.lower().split()
        all_of = [one for one in self._all(runs) if all(word in one.text.lower() for word in wanted)]
        return all_of[:SHOWN], len(all_of)

    def _all(self, runs: Sequence[Shelved]) -> Iterator[FoundQuestion]:
        by_digest: dict[str, list[Shelved]] = {}
        for run in runs:
            by_digest.setdefault(str(run.summary["dataset"]["digest"]), []).append(run)
        for digest, asked in by_digest.items():
            for query_id, workspace_id, category, text in self._rows(digest, asked):
                yield FoundQuestion(query_id, workspace_id, category, text, asked[0].dataset, tuple(asked))

    def _rows(self, digest: str, runs: Sequence[Shelved]) -> list[tuple[str, ...]]:
        if digest not in self._questions:
            for run in runs:
                try:
                    table = read_table(run.path / "queries.parquet", _COLUMNS)
                except LcmError:  # the page of that run says so; another may be whole
                    continue
                self._questions[digest] = [tuple(cell or "" for cell in row) for row in table.iter_rows()]
                break
        return self._questions.get(digest, [])


_ALONE = (
    "sandbox allow-scripts allow-downloads allow-popups; default-src 'none'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Of a page that was made as a file: it runs its own scripts, in an origin of its own, which may ask this server
nothing."""
_log = logging.getLogger(__name__)
_HITS = 50
_LONGEST = 200
_KEPT = 16
"""Pages that are held, of which each may have 20 MB."""
_STATIC = {"serve.css": "text/css", "serve.js": "text/javascript"}


class Doors(Protocol):
    """What the pages ask of the rest of the program; each may raise LcmError."""

    def page(self, folder: Path) -> str:
        """The report page of a folder, as HTML that stands alone."""
        ...

    def compared(self, folders: Sequence[Path]) -> str:
        """The comparison of runs, the first of them the baseline, likewise."""
        ...

    def judging(self, folder: Path) -> Judging:
        """A judge's way through what a run found, as it lies there now."""
        ...

    def store(self, path: Path) -> AbstractContextManager[Reader]: ...


class Browser:
    """The routes of `lcm serve`."""

    def __init__(self, shelf: Shelf, doors: Doors) -> None:
        self._shelf, self._doors = shelf, doors
        self._questions = QuestionSearch()
        self._made: dict[tuple[str, ...], str] = {}
        """Pages that were made, by what they are of and its last change."""
        self._judging: dict[str, tuple[datetime, Judging]] = {}
        """By the key of a run: its last change, and the judge at work on it."""
        self._one_at_a_time = Lock()
        loader = PackageLoader("eval.serving", "templates")
        self._templates = Environment(loader=loader, autoescape=True, undefined=StrictUndefined)

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/", self._told("./", self._list)),
            *static_routes("eval.serving", _STATIC),
            Route("/questions", self._told("./", self._asked)),
            Route("/compare", self._told("./", self._compare)),
            Route("/page/{key}", self._told("../", self._page)),
            Route("/store/{key}", self._told("../", self._store)),
            Route("/store/{key}/{item:path}", self._told("../../", self._item)),
            Mount("/judge/{key}", routes=judging_page.routes(self._judged)),
        ]

    def _list(self, request: Request) -> Response:
        words = request.query_params.get("q", "")
        found, below = grouped(self._shelf.matching(words))
        kinds = [(kind, of_kind) for kind in KINDS if (of_kind := [one for one in found if one.kind == kind])]
        told = {"root": self._shelf.root, "words": words, "kinds": kinds, "below": below, "measures": HEADLINE}
        return self._shown("list.html", up="./", **told)

    def _asked(self, request: Request) -> Response:
        words = request.query_params.get("q", "")
        found, total = self._questions.found(words, [one for one in self._shelf.all() if one.is_ranked])
        return self._shown("questions.html", up="./", words=words, found=found, total=total)

    def _page(self, request: Request) -> Response:
        one = self._shelf.named(request.path_params["key"])
        kept = (one.path / PAGE).stat().st_mtime_ns if (one.path / PAGE).is_file() else None
        return self._alone(("page", one.key, f"{one.changed_at} {kept}"), lambda: self._doors.page(one.path))

    def _compare(self, request: Request) -> Response:
        keys = request.query_params.getlist("run")
        if len(keys) < 2:
            raise LcmError("tick two runs or more: the oldest is the baseline")
        ticked = sorted((self._shelf.named(key) for key in dict.fromkeys(keys)), key=lambda one: one.changed_at)
        made_of = ("compare", *(f"{one.key} {one.changed_at}" for one in ticked))
        return self._alone(made_of, lambda: self._doors.compared([one.path for one in ticked]))

    def _store(self, request: Request) -> Response:
        one = self._shelf.named(request.path_params["key"])
        words = request.query_params.get("q", "").strip()
        with self._doors.store(one.path) as reader:
            conversations = reader.store.conversations().to_dicts()
            found = reader.grep(words, limit=_HITS) if words else None
        notes = list(found.notes) if found else []
        told_by: list[tuple[str, str, Any]] = []
        told_by += [(one.summary_id, one.kind, one) for one in found.summaries] if found else []
        told_by += [(f"msg#{one.number}", one.role, one) for one in found.messages] if found else []
        hits = [
            {"id": name, "what": what, "at": minute(hit.created_at), "text": one_line(hit.snippet)}
            for name, what, hit in told_by
        ]
        told = Table(
            [Column(name.replace("_", " ")) for name in (conversations[0] if conversations else ())],
            [["" if cell is None else str(cell) for cell in row.values()] for row in conversations],
        )
        return self._shown("store.html", up="../", one=one, words=words, conversations=told, hits=hits, notes=notes)

    def _item(self, request: Request) -> Response:
        one, item = self._shelf.named(request.path_params["key"]), str(request.path_params["item"])
        with self._doors.store(one.path) as reader:
            described = reader.describe(item)
            said = reader.messages(described.messages) if isinstance(described, DescribedSummary) else []
        return self._shown("item.html", up="../../", one=one, item=item, said=said, **_described(described))

    def _judged(self, request: Request) -> Judging:
        one = self._shelf.named(request.path_params["key"])
        changed_at, judging = self._judging.get(one.key, (None, None))
        if judging is None or changed_at != one.changed_at:  # a run may have been made again in its folder
            judging = self._doors.judging(one.path)
            self._judging[one.key] = one.changed_at, judging
        return judging

    def _alone(self, made_of: tuple[str, ...], make: Callable[[], str]) -> Response:
        with self._one_at_a_time:  # replaying a run takes all cores as it is
            if made_of not in self._made:
                self._made[made_of] = make()
                while len(self._made) > _KEPT:
                    del self._made[next(iter(self._made))]
        return HTMLResponse(self._made[made_of], headers={CSP: _ALONE})

    def _shown(self, template: str, **told: Any) -> Response:
        return HTMLResponse(well_formed(self._templates.get_template(template).render(**told)))

    def _refused(self, up: str, reason: str, status: int) -> Response:
        page = self._templates.get_template("refused.html").render(up=up, reason=reason)
        return HTMLResponse(well_formed(page), status_code=status)

    def _told(self, up: str, answer: Callable[[Request], Response]) -> Callable[[Request], Response]:
        """The same, with whatever goes wrong told on a page of one line, from which it is so far up to the list."""

        def answered(request: Request) -> Response:
            try:
                return answer(request)
            except LcmError as error:
                return self._refused(up, str(error), 404)
            except Exception as error:  # whatever others left in a folder, the other pages are shown
                reason = " ".join(f"{type(error).__name__}: {error}".split())[:_LONGEST]
                _log.warning("%s cannot be shown: %s", request.url.path.partition("/")[2].partition("/")[2], reason)
                _log.debug("that was", exc_info=error)
                return self._refused(up, f"This cannot be shown, for it is not what lcm writes ({reason}).", 422)

        return answered


def _described(described: DescribedSummary | DescribedFile | DescribedMessage) -> Mapping[str, Any]:
    """What of it is shown: facts, text, and what it is linked with."""
    made_of, part_of = list[str](), list[str]()
    if isinstance(described, DescribedSummary):
        summary, made_of, part_of = described.summary, [*described.source_summary_ids], [*described.derived_ids]
        facts = f"{summary.kind} of depth {summary.depth}, {summary.token_count:,} tokens, stands for "
        facts, text = f"{facts}{summary.source_message_token_count:,} tokens of messages", summary.content
    elif isinstance(described, DescribedMessage):
        said, made_of = described.said, [*described.file_ids]
        facts = f"{said.role}, {minute(described.created_at)}, {described.tokens:,} tokens, id {said.message_id}"
        text, part_of = said.text, [said.leaf_id] if said.leaf_id else []
    else:
        file = described.stored.file
        facts = f"{file.name or 'a file'}, {file.mime_type or 'unknown type'}, {file.byte_size:,} bytes"
        text = file.exploration_summary
    return {"facts": facts, "text": text, "made_of": made_of, "part_of": part_of}
