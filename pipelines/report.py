"""lcm report PATH [into=FILE] [ladders=false] [external.command=[PROGRAM,ARGUMENT]]

Write the page of a run, a sweep, a comparison, a study or a gate: one HTML file that holds all that it shows, opens
from disk, and asks nothing of a network. docs/report.md tells what stands in it.

  PATH              a folder that `lcm evaluate`, `lcm compare`, `lcm regress` or `lcm tune` wrote
  into=FILE         where the page is written; else report.html in the folder
  ladders=false     leave out what memories must be asked for again: how every stage treated the evidence, what contexts
                    held, how talk was folded. It takes about as long as the ranking did.
  external.command=[python3,mine.py]
                    allow the program of an external memory, where it must be asked again; trust=[PACKAGE] allows a
                    class

The last line on screen is the path of the page."""

from collections.abc import Sequence
from pathlib import Path

from pipelines.config.arguments import RUNS_COMMAND, told_apart
from pipelines.steps.reporting import Reporter
from pipelines.views.progress import progress
from pipelines.views.terminal import say

_OWN = ("into", "ladders", RUNS_COMMAND)


def main(arguments: Sequence[str]) -> int:
    """`lcm report PATH [into=FILE] [ladders=false]`."""
    told = told_apart(arguments, _OWN, is_configured=False)
    folder = told.word("name one folder of a run, a sweep, a comparison, a study or a gate: lcm report PATH")
    into = Path(told.settings["into"]) if told.settings.get("into") else None
    with progress() as show:
        path = Reporter(show, asks_memories=told.flag("ladders", default=True)).write(Path(folder), into)
    say(f"Page: {path}")
    return 0
