"""lcm verify FOLDER [replay=false] [row=NAME] [key=FILE]

Check a leaderboard that `lcm leaderboard` wrote: that no file was changed since, whose signature it bears, and that its
runs, made again from their configurations, give the same results, bit for bit.

  lcm verify board replay=false     the files and the signature alone

  replay=false    make nothing again, which takes as long as the runs did
  row=NAME        make one of its runs again: 001
  key=FILE        the public key of Ed25519, in PEM, whose signature it must bear; else any that it names is checked

Without a cache: everything is worked out anew, from the datasets of this machine. Exit code 1 where something is not as
the manifest says. A signature proves who vouches for the manifest; that the numbers follow from code and data, the
replay does."""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from eval.experiment.run_folder import read_config
from eval.leaderboard.manifest import RUNS, changed_files, read_manifest, results_of, signer, source_digest
from lcm.errors import LcmError
from pipelines.config.arguments import told_apart
from pipelines.steps.point import evaluated
from pipelines.views.progress import progress
from pipelines.views.terminal import say, warn

_OWN = ("replay", "row", "key")
_CHANGED = 1


def main(arguments: Sequence[str]) -> int:
    """`lcm verify FOLDER [KEY=VALUE ...]`."""
    told = told_apart(arguments, _OWN, is_configured=False)
    if len(told.words) != 1:
        raise LcmError("name one folder that `lcm leaderboard` wrote: lcm verify FOLDER")
    folder, key = Path(told.words[0]), told.settings.get("key")
    manifest = read_manifest(folder)
    rows = [row for row in manifest["rows"] if row["name"] == told.settings.get("row", row["name"])]
    if not rows:
        names = ", ".join(row["name"] for row in manifest["rows"])
        raise LcmError(f"row={told.settings['row']}: no such row; choose of: {names}")
    who = signer(manifest, None if key is None else Path(key).expanduser())
    say(f"Signed: {f'with the Ed25519 key {who}' if who else 'by nobody'}")
    if changed := changed_files(folder, manifest):
        say(f"Changed: {', '.join(changed)}")
        return _CHANGED
    say(f"Files: {len(manifest['files'])}, all as the manifest says ({manifest['sha256']})")
    if manifest["code"]["source"] != source_digest():
        warn(
            f"this is other code than that which wrote the manifest, lcm {manifest['code']['lcm']}: numbers may differ"
        )
    if not told.flag("replay", default=True):
        return 0
    differing = [_replayed(folder / RUNS / row["name"], row) for row in rows]
    return _CHANGED if any(differing) else 0


def _replayed(kept: Path, row: Mapping[str, Any]) -> list[str]:
    """Make a run again; the tables that are not the same.

    Raises:
        LcmError: if it cannot be made again here: its dataset is another, or something in its configuration is refused.
    """
    config = OmegaConf.create(read_config(kept))
    assert isinstance(config, DictConfig)
    config.cache = False
    with tempfile.TemporaryDirectory() as scratch, progress() as show:
        again = Path(scratch) / "run"
        summary = evaluated(config, again, show)
        if summary["dataset"]["digest"] != row["dataset"]["digest"]:
            here, there = summary["dataset"]["digest"][:12], row["dataset"]["digest"][:12]
            raise LcmError(f"row {row['name']}: dataset {row['dataset']['name']!r} is {here} here, and {there} there")
        found = results_of(again)
    differing = [
        name for name in sorted(found.keys() | row["results"].keys()) if found.get(name) != row["results"].get(name)
    ]
    told = f"other in {', '.join(differing)}" if differing else f"the same, bit for bit: {len(found)} tables"
    say(f"{row['name']} {row['system']}, {row['dataset']['name']}: {told}")
    return differing
