"""lcm log [FOLDER ...] [tracking.uri=URI] [tracking.experiment=NAME]

Log complete run folders to MLflow, of a sweep or a study with all its points or trials below it; a folder that is
already there is not logged again. Without a folder: every run under runs/."""

from collections.abc import Sequence
from pathlib import Path

from eval.run import SUMMARY, folder_kind, read_summary
from lcm.errors import LcmError
from pipelines.config import building, composition
from pipelines.config.arguments import told_apart
from pipelines.views.progress import working
from pipelines.views.terminal import say

_HOLD_RUNS = ("sweep", "study")
"""Kinds of folders below which the runs of their points or trials lie, one or two folders deep."""


def main(arguments: Sequence[str]) -> int:
    """`lcm log [FOLDER ...] [tracking.KEY=VALUE ...]`."""
    command = told_apart(arguments)
    folders = [Path(word) for word in command.words]
    if not folders:
        of_sides = ("comparison", "regression", "transfer")  # which hold their own
        found = sorted(path.parent for path in Path("runs").rglob(SUMMARY))
        folders = [folder for folder in found if folder_kind(folder.parent) not in of_sides]
    if not folders:
        raise LcmError("no run folder under runs/: name one, or run `lcm evaluate` first")
    for folder in folders:
        read_summary(folder)  # what is no run is told before anything is logged
    tracking = building.build(composition.composed(command.overrides), "tracking")
    logged: list[Path] = []
    for folder in folders:
        below = folder.rglob(SUMMARY) if folder_kind(folder) in _HOLD_RUNS else ()
        logged += [folder, *sorted(path.parent for path in below)]
    for folder in dict.fromkeys(logged):
        above = next((one for one in folder.parents[:2] if folder_kind(one) in _HOLD_RUNS), None)
        with working(f"logging {folder}"):
            where = tracking.log(folder, above)
        say(f"{folder}: {where or 'tracking=none logs nowhere'}")
    return 0
