"""A console whose reader may leave before the end, as `head` does."""

import os
import sys

from rich.console import Console


class PipeSafeConsole(Console):
    """Goes on silently where its reader has gone: what was asked for is still to be done."""

    def on_broken_pipe(self) -> None:
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115 - open until the process ends
