"""A warm process that forks children to work on a study: a kill costs no start.

Reads a line of JSON a request from stdin: the arguments of `lcm tune`, and for each child the event at which it is
killed (0: never). An event is a statement to the database, or a file that takes its place. Writes how each child ended
and how many events it saw.
"""

import json
import os
import signal
import sys
from pathlib import Path

import matplotlib
from sqlalchemy import event
from sqlalchemy.engine import Engine

import eval.tuning.study_folder  # noqa: F401 - loaded before children are made
import pipelines.steps.trial  # noqa: F401 - likewise
from pipelines import tune
from pipelines.config import building, command_line, composition

matplotlib.use("Agg")


def main() -> None:
    building.build(composition.composed(["embedder=hashing"], "tune"), "memory")  # Hydra looks for its plug-ins
    for line in sys.stdin:
        asked = json.loads(line)
        children = []
        for at in asked["kill_at"]:
            ours, theirs = os.pipe()
            child = os.fork()
            if not child:
                os.close(ours)
                run(asked, at, theirs)
            os.close(theirs)
            children.append((child, ours))
        told = []
        for child, ours in children:
            with os.fdopen(ours) as said:
                events = len(said.read())
            told.append({"status": os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), "events": events})
        print(json.dumps(told), flush=True)


def run(asked: dict, at: int, channel: int) -> None:
    """In a child: `lcm tune`, killed at an event."""
    seen = 0

    def count(*_: object) -> None:
        nonlocal seen
        seen += 1
        os.write(channel, b".")
        if seen == at:
            os.kill(os.getpid(), signal.SIGKILL)

    def replaced(path: Path, target: Path) -> Path:
        count()
        return taken(path, target)

    taken = Path.replace
    os.chdir(asked["place"])
    with Path("told.txt").open("a") as said:
        os.dup2(said.fileno(), 1)
        os.dup2(said.fileno(), 2)
    event.listen(Engine, "before_cursor_execute", count)
    Path.replace = replaced
    code = 1
    try:
        code = tune.main(command_line.read(asked["arguments"], "tune"))
    finally:
        sys.stdout.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
