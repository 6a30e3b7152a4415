"""lcm verify FOLDER [replay=false] [row=NAME] [external.command=[PROGRAM,ARGUMENT]] [trust=[PACKAGE]]

Check a leaderboard that `lcm leaderboard` wrote: that no file was changed since, and that its runs, made again from
their configurations, give the same results, bit for bit, and the page that was written of them.

  lcm verify board replay=false     the files alone

  replay=false    make nothing again, which takes as long as the runs did
  row=NAME        make one of its runs again: 001

  external.command=[python3,mine.py]
                  allow the program of an external memory; once for each that rows ask, whose programs run nothing
                  unless they are named. trust=[PACKAGE] allows classes. Rows of others are told, and left out

Without a cache: everything is worked out anew, from the datasets of this machine. Exit code 1 where something is not as
the manifest says, 2 where a run could not be made again here. Digests tell of damage, not of forgery: that the numbers
follow from code and data, the replay shows."""

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from eval import leaderboard
from eval.leaderboard import KEPT, MANIFEST, PAGE, RUNS, read_board
from eval.report.leaderboard_page import leaderboard_page
from eval.report.page import rendered
from eval.run import SUMMARY, Run
from lcm.derived import SUMS
from lcm.errors import LcmError
from pipelines.config.arguments import RUNS_COMMAND, told_apart
from pipelines.steps.point import evaluated
from pipelines.views.progress import progress
from pipelines.views.terminal import say, warn

_OWN = ("replay", "row", RUNS_COMMAND)
_CHANGED = 1
_MOST_BESIDE = 5
_NUMBERS = ("config_hash", "measures", "arms", "interval", "definitions")
"""What a run's summary says of it that the page shows, and that comes out the same each time."""


def main(arguments: Sequence[str]) -> int:
    """`lcm verify FOLDER [KEY=VALUE ...]`."""
    told = told_apart(arguments, _OWN, is_configured=False)
    folder = Path(told.word("name one folder that `lcm leaderboard` wrote: lcm verify FOLDER"))
    manifest = leaderboard.read_manifest(folder)
    rows = [row for row in manifest["rows"] if row["name"] == told.settings.get("row", row["name"])]
    if not rows:
        names = ", ".join(row["name"] for row in manifest["rows"])
        raise LcmError(f"row={told.settings['row']}: no such row; choose of: {names}")
    if "signature" in manifest:
        warn("the signature of this manifest is not looked at: ask whom you had it from for its sha256")
    if changed := leaderboard.changed_files(folder, manifest):
        gone = [name for name in changed if not (folder / name).exists()]
        for what, files in (("Missing", gone), ("Changed", [name for name in changed if name not in gone])):
            if files:
                say(f"{what}: {', '.join(files)}")
        return _CHANGED
    say(f"Files: {len(manifest['files'])}, all as the manifest says ({manifest['sha256']})")
    if beside := leaderboard.files_beside(folder, manifest):
        say(f"Not of it, and vouched for by nobody: {len(beside)} files, such as {', '.join(beside[:_MOST_BESIDE])}")
    is_other_code = manifest["code"]["source"] != leaderboard.source_digest()
    if is_other_code:
        warn(
            f"this is other code than that which wrote the manifest, lcm {manifest['code']['lcm']}: numbers may differ"
        )
    if not told.flag("replay", default=True):
        return 0
    refused: list[str] = []
    with tempfile.TemporaryDirectory() as scratch:
        places = [Path(scratch) / row["name"] for row in rows]
        differing = []
        for row, place in zip(rows, places, strict=True):
            try:
                differing += _replayed(folder / RUNS / row["name"], row, place)
            except LcmError as error:
                say(f"{row['name']} {row['system']}, {row['dataset']['name']}: not made again: {error}")
                refused.append(row["name"])
        if differing:
            return _CHANGED
        if refused:
            raise LcmError(f"{', '.join(refused)}: not made again here, as said above")
        if len(rows) < len(manifest["rows"]):
            say("Page: not held against its runs, of which not all were made again")
            return 0
        differing_page = _other_in_page(folder / PAGE, manifest, places)
    if differing_page and not is_other_code:
        say(f"Page: {differing_page}")
        return _CHANGED
    say(f"Page: {differing_page or 'as its runs say'}")
    return 0


def _replayed(kept: Path, row: Mapping[str, Any], again: Path) -> list[str]:
    """Make a run again, in a new folder that then holds its tables, beside the files that were kept; what is not the
    same: tables, and what its kept summary says of them."""
    config = OmegaConf.create(Run(kept).config)
    assert isinstance(config, DictConfig)
    config.cache = False
    with progress() as show:
        summary = evaluated(config, again, show)
        if summary["dataset"]["digest"] != row["dataset"]["digest"]:
            here, there = summary["dataset"]["digest"][:12], row["dataset"]["digest"][:12]
            raise LcmError(f"row {row['name']}: dataset {row['dataset']['name']!r} is {here} here, and {there} there")
    found, told_before = leaderboard.results_of(again), Run(kept).summary
    before = row["results"]
    differing = [name for name in sorted(found.keys() | before.keys()) if found.get(name) != before.get(name)]
    differing += [f"{key} of {SUMMARY}" for key in _NUMBERS if summary.get(key) != told_before.get(key)]
    (again / SUMS).unlink(missing_ok=True)  # what was kept takes the place of what was made
    for name in KEPT:
        shutil.copyfile(kept / name, again / name)
    told = f"other in {', '.join(differing)}" if differing else f"the same, bit for bit: {len(found)} tables"
    say(f"{row['name']} {row['system']}, {row['dataset']['name']}: {told}")
    return differing


def _other_in_page(page: Path, manifest: Mapping[str, Any], folders: Sequence[Path]) -> str:
    """What the page, or the manifest, says otherwise than runs that were made again; empty where nothing is."""
    board = read_board(folders, manifest["measure"])
    for run, told in zip(board.runs, manifest["rows"], strict=True):
        own = leaderboard.row_of(run)
        if differing := [key for key in own if own[key] != told[key]]:
            return f"{MANIFEST} says another {', '.join(differing)} of {told['name']} than its run"
    is_same = rendered(leaderboard_page(board)) == page.read_text(encoding="utf-8")
    return "" if is_same else f"{page.name} is not the page of these runs"
