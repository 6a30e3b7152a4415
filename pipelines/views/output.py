"""In which form a command answers: words and tables for a person, one JSON document for a program, or no more than
where the result lies.

What a command prints goes through one console, so it need not know of this: for a program lines and tables are
collected and told as one document, in which a folder that was made is its summary. Its reader may leave before the end,
as `head` does, or may not be there at all.
"""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from eval.table import Table
from lcm.encoding import printable, well_formed
from lcm.faults import naming
from lcm.redaction import redacted


@dataclass(slots=True)
class Output:
    """What one command answers."""

    is_json: bool = False
    is_quiet: bool = False
    is_collected: bool = False
    """For the program that this is: nothing is printed."""
    lines: list[str] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    place: Path | None = None
    """What was made: a folder, or a file."""
    result: Any = None
    """What the command itself has for a program."""

    @property
    def is_for_people(self) -> bool:
        return not (self.is_json or self.is_quiet or self.is_collected)

    def hear(self, printed: object) -> None:
        """Take what would be shown to a person."""
        text = str(printed) if isinstance(printed, (str, Text)) else getattr(printed, "markup", "")  # of Markdown
        self.lines += text.splitlines()

    def document(self) -> Any:
        """The result for a program: the command's own, the summary of the folder that was made, or what was said."""
        if self.result is not None:
            return self.result
        if self.place is None:
            return {"lines": self.lines, "tables": [one.json() for one in self.tables]}
        if (folder := folder_of(self.place)) is not None:
            from eval.run import read_summary

            return {"folder": str(folder), **read_summary(folder)}
        return {"made": str(self.place), "lines": self.lines, "tables": [one.json() for one in self.tables]}


def folder_of(place: Path) -> Path | None:
    """The folder with a summary that was made, where that or a page in it is told; None where a file alone was made."""
    from eval.run import SUMMARY  # here, because `lcm --help` need not wait for it

    folder = place.parent if place.suffix == ".md" else place
    return folder if (folder / SUMMARY).is_file() else None


_OUTPUT: ContextVar[Output | None] = ContextVar("output", default=None)


def output() -> Output:
    """That of the command which runs."""
    return _OUTPUT.get() or Output()


@contextmanager
def answering(*, is_json: bool, is_quiet: bool) -> Iterator[Output]:
    """Answer in this form inside; unless something goes wrong, the document that was asked for is printed last."""
    with _answered(Output(is_json=is_json, is_quiet=is_quiet)) as own:
        yield own
        if is_json:
            with naming(Path("standard output")):
                sys.stdout.write(well_formed(redacted(as_json(own.document()))) + "\n")
                sys.stdout.flush()


def collecting() -> AbstractContextManager[Output]:
    """Answer to the program that this is: inside, what would be printed is kept in the output."""
    return _answered(Output(is_collected=True))


@contextmanager
def _answered(own: Output) -> Iterator[Output]:
    token = _OUTPUT.set(own)
    try:
        yield own
    finally:
        _OUTPUT.reset(token)


def as_json(value: Any) -> str:
    """A value as JSON, which has neither infinite numbers nor such that are none: they are null."""
    told = json.loads(json.dumps(value, default=_written), parse_constant=lambda _: None)
    return json.dumps(told, ensure_ascii=False, indent=2)


def _written(value: object) -> object:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def tell_beside(text: str) -> None:
    """Print words on standard error."""
    Console(stderr=True, soft_wrap=True).print(printable(redacted(text)), highlight=False, markup=False)


class PipeSafeConsole(Console):
    """Goes on silently where its reader has gone: what was asked for is still to be done."""

    def on_broken_pipe(self) -> None:
        sys.stdout = _nowhere("w")

    def print(self, *objects: Any, **settings: Any) -> None:
        """As Rich's, where a person is answered; what the system refuses, as on a full disk, names standard output."""
        if not (own := output()).is_for_people:
            for printed in objects:
                own.hear(printed)
            return
        try:
            with naming(Path("standard output")):
                super().print(*objects, **settings)
        except OSError:
            sys.stdout = _nowhere("w")  # what is left unwritten would be complained of again at the end
            raise


def open_closed_streams() -> None:
    """Open what the caller closed, as `>&-` does, to nowhere: no file that is opened later takes its place."""
    sys.stdin = sys.stdin or _nowhere("r")
    sys.stdout = sys.stdout or _nowhere("w")
    sys.stderr = sys.stderr or _nowhere("w")


def _nowhere(mode: str) -> Any:
    return open(os.devnull, mode)  # noqa: PTH123 - open until the process ends
