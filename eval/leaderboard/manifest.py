"""The manifest of a leaderboard: digests of code, data, configurations and results."""

import hashlib
import json
import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from eval.leaderboard.board import BoardRun, Leaderboard
from eval.run import CONFIG, ENVIRONMENT, SUMMARY, commit, write_json
from eval.shape import DATASET, TEXT, each, keys, list_of, or_null
from lcm import __version__
from lcm.derived import sum_of
from lcm.errors import LcmError
from lcm.given import plain_bytes

MANIFEST = "manifest.json"
PAGE = "index.html"
RUNS = "runs"
KEPT = (CONFIG, ENVIRONMENT, SUMMARY)
"""What of a run's folder lies beside the page."""
_NAME = re.compile(r"\d{3,}")
_PACKAGES = ("lcm", "eval")
_ROW = keys(
    {
        "name": TEXT, "system": TEXT, "dataset": DATASET,
        "config_hash": TEXT, "commit": or_null(TEXT), "command": or_null(TEXT), "results": each(TEXT),
    }
)  # fmt: skip
_SHAPE = keys(
    {
        "kind": TEXT, "measure": TEXT, "rows": list_of(_ROW), "files": each(TEXT), "sha256": TEXT,
        "code": keys({"lcm": TEXT, "source": TEXT, "commit": or_null(TEXT)}),
    },
)  # fmt: skip


def manifest_of(board: Leaderboard, folder: Path, names: list[str]) -> dict[str, Any]:
    """The manifest of a leaderboard whose files lie in a folder.

    Args:
        names: of the files, as paths below the folder.
    """
    told = {
        "kind": "leaderboard",
        "measure": board.measure,
        "code": {
            "lcm": __version__,
            "source": source_digest(),
            "commit": commit(),
        },
        "rows": [row_of(run) for run in board.runs],
        "files": {name: sum_of(folder / name) for name in sorted(names)},
    }
    return {**told, "sha256": digest_of(told)}


def digest_of(manifest: Mapping[str, Any]) -> str:
    """Of all that a manifest says, but for this digest, and a signature of it that an older lcm wrote."""
    told = {key: value for key, value in manifest.items() if key not in ("sha256", "signature")}
    return hashlib.sha256(json.dumps(told, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def source_digest() -> str:
    """Of the source that makes numbers, whichever way it is installed."""
    digest = hashlib.sha256()
    for package in _PACKAGES:
        root = Path(str(files(package)))
        for path in sorted(one for one in root.rglob("*") if one.suffix in (".py", ".sql", ".json", ".yaml")):
            digest.update(f"{package}/{path.relative_to(root).as_posix()} {sum_of(path)}\n".encode())
    return digest.hexdigest()


def results_of(folder: Path) -> dict[str, str]:
    """The sums of the tables of a run: equal runs have equal ones, for what may differ stands elsewhere."""
    return {path.name: sum_of(path) for path in sorted(folder.glob("*.parquet"))}


def write_manifest(folder: Path, manifest: Mapping[str, Any]) -> None:
    write_json(folder / MANIFEST, manifest)


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a folder, whole and of the right shape.

    Raises:
        LcmError: if there is none, or it does not say what it was written with.
    """
    path = folder / MANIFEST
    try:
        manifest = json.loads(plain_bytes(path))
        _SHAPE("", manifest)
    except FileNotFoundError as error:
        raise LcmError(f"{folder} has no {MANIFEST}: name a folder that `lcm leaderboard` wrote") from error
    except (OSError, ValueError, RecursionError) as error:
        raise LcmError(f"{path} is no manifest of a leaderboard ({error})") from error
    if digest_of(manifest) != manifest["sha256"]:
        raise LcmError(f"{path} is not as it was written: its digest is another")
    for row in manifest["rows"]:
        if not _NAME.fullmatch(row["name"]):
            raise LcmError(f"{path}: a row must be named by a number, got {row['name']!r}")
    return manifest  # type: ignore[no-any-return]


def changed_files(folder: Path, manifest: Mapping[str, Any]) -> list[str]:
    """The files of a leaderboard that are missing, or not as the manifest says; and those that it does not say."""
    wanted = {PAGE, *(f"{RUNS}/{row['name']}/{name}" for row in manifest["rows"] for name in KEPT)}
    told = manifest["files"]
    wrong = [name for name in sorted(wanted | told.keys()) if name not in told or name not in wanted]
    for name in sorted(wanted & told.keys()):
        path = folder / name
        if path.is_symlink() or not path.is_file() or sum_of(path) != told[name]:
            wrong.append(name)
    return wrong


def files_beside(folder: Path, manifest: Mapping[str, Any]) -> list[str]:
    """What lies in the folder of a leaderboard and is none of its files: nobody vouches for it."""
    names = (one.relative_to(folder).as_posix() for one in folder.rglob("*") if one.is_symlink() or not one.is_dir())
    return sorted(set(names) - {MANIFEST, *manifest["files"]})


def row_of(run: BoardRun) -> dict[str, Any]:
    """What a manifest says of a run."""
    return {
        "name": run.name,
        "system": run.system,
        "dataset": dict(run.summary["dataset"]),
        "config_hash": run.summary.get("config_hash", ""),
        "commit": run.summary.get("commit"),
        "command": run.command,
        "results": results_of(run.folder),
    }
