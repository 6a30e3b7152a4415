"""lcm log [FOLDER ...] [tracking.uri=URI] [tracking.experiment=NAME]

Log complete run folders to MLflow; a folder that is already there is not logged again. Without a folder: every run
under runs/."""

from collections.abc import Sequence
from pathlib import Path

from eval.experiment.run_folder import SUMMARY, read_summary
from lcm.errors import LcmError
from pipelines.config import building, composition
from pipelines.config.arguments import told_apart
from pipelines.views.progress import working
from pipelines.views.terminal import say


def main(arguments: Sequence[str]) -> int:
    """`lcm log [FOLDER ...] [tracking.KEY=VALUE ...]`."""
    command = told_apart(arguments)
    folders = [Path(word) for word in command.words]
    if not folders:
        folders = sorted(path.parent for path in Path("runs").rglob(SUMMARY))
        folders = [
            folder for folder in folders if _kind(folder.parent) not in ("comparison", "regression", "transfer")
        ]  # its sides are in it
    if not folders:
        raise LcmError("no run folder under runs/: name one, or run `lcm evaluate` first")
    tracking = building.build(composition.composed(command.overrides), "tracking")
    for folder in folders:
        with working(f"logging {folder}"):
            where = tracking.log(folder, folder.parent if _kind(folder.parent) == "sweep" else None)
        say(f"{folder}: {where or 'tracking=none logs nowhere'}")
    return 0


def _kind(folder: Path) -> str | None:
    """What a folder holds, by its summary."""
    if not (folder / SUMMARY).is_file():
        return None
    kind: str = read_summary(folder).get("kind", "run")
    return kind
