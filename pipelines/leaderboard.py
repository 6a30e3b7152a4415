"""lcm leaderboard RUN ... to=FOLDER [measure=recall@10]

Write one static page of runs, systems by dataset: each number with its interval, what it costs in tokens and time, the
versions and digests that it was made of, and the command that makes it again; beside it manifest.json, which
`lcm verify FOLDER` checks and replays.

  lcm leaderboard runs/a runs/b to=board

  to=FOLDER       takes index.html, manifest.json, and each run's configuration and summary; it must be empty
  measure=NAME    by which runs are ranked; else the most telling that all have

Runs that differ in the dataset's digest or protocol, in the number of judged questions, the definitions of measures or
the confidence of intervals are ranked apart."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from eval.leaderboard import KEPT, PAGE, RUNS, Leaderboard, read_board, write_manifest
from eval.measures.names import HEADLINE
from eval.report.leaderboard_page import leaderboard_page
from eval.report.page import write_page
from eval.run import read_summary
from lcm.errors import LcmError
from lcm.files import private
from pipelines.config.arguments import told_apart
from pipelines.views.terminal import kept, say

_OWN = ("to", "measure")


def main(arguments: Sequence[str]) -> int:
    """`lcm leaderboard RUN ... to=FOLDER [KEY=VALUE ...]`."""
    told = told_apart(arguments, _OWN, is_configured=False)
    folders = [Path(word) for word in told.words]
    if not folders:
        raise LcmError("name the folders of runs: lcm leaderboard RUN ... to=FOLDER")
    if not told.settings.get("to"):
        raise LcmError("to=FOLDER says where the page is written: it is missing")
    to = Path(told.settings["to"]).expanduser()
    if to.exists() and any(to.iterdir()):
        raise LcmError(f"to={to} is not empty: name another folder, or remove that one first")
    board = read_board(folders, told.settings.get("measure") or _telling(folders))
    _write(board, to)
    for line in board.unranked.values():
        say(f"Without a number: {line}")
    kept(to / PAGE)
    return 0


@private()
def _write(board: Leaderboard, to: Path) -> None:
    to.mkdir(parents=True, exist_ok=True)
    names = [PAGE]
    write_page(to / PAGE, leaderboard_page(board))
    for run in board.runs:
        below = to / RUNS / run.name
        below.mkdir(parents=True)
        for name in KEPT:
            shutil.copyfile(run.folder / name, below / name)
            names.append(f"{RUNS}/{run.name}/{name}")
    write_manifest(board, to, names)


def _telling(folders: Sequence[Path]) -> str:
    """The most telling measure that all have; where there is none, that the first has."""
    told = (read_summary(folder).get("measures", {}) for folder in folders)
    measured = [{name for name, one in measures.items() if one["value"] is not None} for measures in told]
    shared = set.intersection(*measured) or measured[0]
    return next((name for name in HEADLINE if name in shared), min(shared, default=HEADLINE[0]))
