"""Forks children to work on a study, each killed at an event: a statement to the database, or a file put in place."""

import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib
from sqlalchemy import event
from sqlalchemy.engine import Engine

import eval.tuning.study_folder  # noqa: F401 - loaded before children are made
import pipelines.steps.trial  # noqa: F401 - likewise
from pipelines import tune
from pipelines.config import building, command_line, composition
from tests.faults.forking import Tell, serve

matplotlib.use("Agg")


def study(asked: Mapping[str, Any], tell: Tell) -> None:
    """In a child: `lcm tune` until the event `at`; 0 = to its end."""
    seen = 0

    def count(*_: object) -> None:
        nonlocal seen
        seen += 1
        tell("event")
        if seen == asked["at"]:
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
    code = tune.main(command_line.read(asked["arguments"], "tune"))
    assert code == 0, code


if __name__ == "__main__":
    building.build(composition.composed(["embedder=hashing"], "tune"), "memory")  # Hydra looks for its plug-ins
    serve(study)
