"""A console whose reader may leave before the end, as `head` does, or may not be there at all."""

import os
import sys
from pathlib import Path
from typing import Any

from rich.console import Console

from lcm.faults import naming
from pipelines.views.output import output


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
