"""A leaderboard: runs in tables of those that may be ranked together, and a manifest of what each was made of."""

import hashlib
import json
import re
import shlex
from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from eval.configuration import config_hash, leaves
from eval.measures.names import HAS_NO_NUMBER
from eval.run import CONFIG, ENVIRONMENT, SUMMARY, Run, commit, write_json
from eval.shape import DATASET, TEXT, each, keys, list_of, one_of, or_null
from eval.tracking.entry import system_name, title
from lcm import __version__
from lcm.consent import OWN
from lcm.derived import changed_in, checked, sum_of
from lcm.errors import LcmError
from lcm.given import plain_bytes

MANIFEST, PAGE, RUNS = "manifest.json", "index.html", "runs"
KEPT = (CONFIG, ENVIRONMENT, SUMMARY)
"""What of a run's folder lies beside the page."""
_SOURCES = (".py", ".sql", ".json", ".yaml")
_ROW = keys(
    {
        "name": one_of("a number of three digits or more", lambda name: bool(re.fullmatch(r"\d{3,}", str(name)))),
        "system": TEXT, "dataset": DATASET, "config_hash": TEXT, "commit": or_null(TEXT), "command": or_null(TEXT),
        "results": each(TEXT),
    }
)  # fmt: skip
_SHAPE = keys(
    {
        "kind": TEXT, "measure": TEXT, "rows": list_of(_ROW), "files": each(TEXT), "sha256": TEXT,
        "code": keys({"lcm": TEXT, "source": TEXT, "commit": or_null(TEXT)}),
    },
)  # fmt: skip


class Terms(NamedTuple):
    """What runs must share to be ranked together."""

    dataset: str
    protocol: str
    digest: str
    definitions: str
    queries: int
    """That are judged by the measure, whether or not all have a value."""
    confidence: float


class BoardRun(Run):
    """A run that stands on a leaderboard, named by its folder there."""

    @classmethod
    def read(cls, name: str, folder: Path) -> "BoardRun":
        run = cls.open(folder)
        if changed := changed_in(folder):
            raise LcmError(f"{changed} is damaged: it is not as it was written; run `lcm evaluate` again")
        if missing := next((one for one in (CONFIG, ENVIRONMENT) if not (folder / one).is_file()), None):
            raise LcmError(f"{folder} has no {missing}: name folders that `lcm evaluate` wrote")
        return run.having(name)

    @cached_property
    def version(self) -> str | None:
        """Of the lcm that made it, as far as the run says so."""
        made_by = checked(self.folder / ENVIRONMENT, "run `lcm evaluate` again")
        told: str | None = json.loads(plain_bytes(made_by))["packages"].get("lcm-harness")
        return told

    @property
    def system(self) -> str:
        """In words: the preset, and what else was asked for."""
        return title([system_name(self.summary)], self.overrides)

    @property
    def system_digest(self) -> str:
        """Of all settings of its memory: equal ones are one system on several datasets."""
        return config_hash(self.config.get("memory", {}))

    @property
    def command(self) -> str | None:
        """The command that repeats it, with the packages of others whose classes its configuration names; None where
        nobody composed its configuration from overrides."""
        if "overrides" not in self.summary:
            return None
        settings = leaves(self.config)
        named = [str(value) for key, value in settings if value and key.endswith(("_target_", "external.target"))]
        others = sorted({name.partition(".")[0] for name in named}.difference(OWN))
        return shlex.join(["lcm", "evaluate", *self.overrides, *([f"trust=[{','.join(others)}]"] if others else [])])


class BoardRow(NamedTuple):
    """A line of a table: a system, or a control arm that was measured beside one."""

    rank: int | None
    """1-based; None of an arm, which is no entry, and of a memory that has no value of some questions: its mean is over
    the others, and proves nothing beside theirs."""
    name: str
    run: BoardRun
    measures: Mapping[str, Mapping[str, Any]]
    """Measure -> its value, n, low, high."""
    is_arm: bool
    lacks: int = 0
    """Of how many of the questions it has no value."""


class Standings(NamedTuple):
    """The runs that share their terms, best first."""

    terms: Terms
    rows: Sequence[BoardRow]


class Leaderboard(NamedTuple):
    """Runs, in tables of those that may be ranked together by one measure."""

    measure: str
    cost: str
    """The measure of tokens that such a number costs."""
    runs: Sequence[BoardRun]
    tables: Sequence[Standings]
    unranked: Mapping[str, str]
    """Run -> why it has no number."""


def read_board(folders: Sequence[Path], measure: str) -> Leaderboard:
    """Read the folders of runs; LcmError where one is none or is named twice, or where none has the measure."""
    runs = [BoardRun.read(f"{number:03d}", folder) for number, folder in enumerate(folders, start=1)]
    places = [run.folder.resolve() for run in runs]
    if twice := [run.folder for run, place in zip(runs, places, strict=True) if places.count(place) > 1]:
        raise LcmError(f"{twice[0]} is named twice: a run stands on a leaderboard once")
    by_terms: dict[Terms, list[BoardRun]] = {}
    unranked = {}
    for run in runs:
        told = run.summary.get("measures", {}).get(measure)
        if told is not None and told["value"] is not None and told["n"]:
            by_terms.setdefault(_terms(run, measure), []).append(run)
        else:
            why = next((one for one in run.of_external if HAS_NO_NUMBER in one), f"{measure} was not measured")
            unranked[run.name] = f"{run.system}, {run.summary['dataset']['name']}: {why}"
    if not by_terms:
        known = dict.fromkeys(name for run in runs for name in run.summary.get("measures", {}))
        raise LcmError(f"none of the runs measured {measure}: choose of {', '.join(known) or 'nothing'}")
    for terms in list(by_terms):
        most = max(
            (one for one in by_terms if one._replace(queries=terms.queries) == terms), key=lambda one: one.queries
        )
        if most != terms and all(run.of_external for run in by_terms[terms]):  # an external memory that lacks values
            by_terms[most] += by_terms.pop(terms)
    tables = [Standings(terms, _rows(alike, measure, terms.queries)) for terms, alike in by_terms.items()]
    cutoff = re.search(r"@\d+$", measure)
    return Leaderboard(measure, f"tokens{cutoff[0] if cutoff else ''}", runs, tables, unranked)


def _terms(run: BoardRun, measure: str) -> Terms:
    about = run.summary["dataset"]
    measured = [run.summary["measures"], *(run.summary.get("arms", {}).values() if run.of_external else ())]
    return Terms(
        about["name"],
        about.get("protocol", ""),
        about["digest"],
        run.summary.get("definitions", ""),
        max(int(one[measure]["n"] or 0) for one in measured if measure in one),
        float(run.summary.get("interval", {}).get("confidence", 0.0)),
    )


def _rows(runs: Sequence[BoardRun], measure: str, queries: int) -> list[BoardRow]:
    """Best first; arms among them, each once where several runs measured the same. Last what lacks questions."""
    sign = 1 if runs[0].directions.get(measure) == "lower" else -1
    rows, arms = list[BoardRow](), dict[tuple[Any, ...], BoardRow]()
    for run in runs:
        own = run.summary["measures"]
        rows.append(BoardRow(None, run.system, run, own, False, lacks=queries - int(own[measure]["n"])))
        for arm, measures in run.summary.get("arms", {}).items():
            if (told := measures.get(measure)) and told["value"] is not None:
                arms.setdefault((arm, *sorted(told.items())), BoardRow(None, f"arm {arm}", run, measures, True))
    rows = sorted([*rows, *arms.values()], key=lambda row: (row.lacks > 0, sign * row.measures[measure]["value"]))
    values = [row.measures[measure]["value"] for row in rows if not row.is_arm and not row.lacks]
    return [
        row if row.is_arm or row.lacks else row._replace(rank=1 + values.index(row.measures[measure]["value"]))
        for row in rows
    ]


def write_manifest(board: Leaderboard, folder: Path, names: Sequence[str]) -> None:
    """Write the manifest of a leaderboard whose files, of these names, lie in a folder."""
    told = {
        "kind": "leaderboard",
        "measure": board.measure,
        "code": {"lcm": __version__, "source": source_digest(), "commit": commit()},
        "rows": [row_of(run) for run in board.runs],
        "files": {name: sum_of(folder / name) for name in sorted(names)},
    }
    write_json(folder / MANIFEST, {**told, "sha256": digest_of(told)})


def row_of(run: BoardRun) -> dict[str, Any]:
    """What a manifest says of a run."""
    made_by = {"config_hash": run.summary.get("config_hash", ""), "commit": run.summary.get("commit")}
    about = {"name": run.name, "system": run.system, "dataset": dict(run.summary["dataset"])}
    return {**about, **made_by, "command": run.command, "results": results_of(run.folder)}


def results_of(folder: Path) -> dict[str, str]:
    """The sums of the tables of a run: equal runs have equal ones, for what may differ stands elsewhere."""
    return {path.name: sum_of(path) for path in sorted(folder.glob("*.parquet"))}


def source_digest() -> str:
    """Of the source that makes numbers, whichever way it is installed."""
    digest = hashlib.sha256()
    for package in ("lcm", "eval"):
        root = Path(str(files(package)))
        for path in sorted(one for one in root.rglob("*") if one.suffix in _SOURCES):
            digest.update(f"{package}/{path.relative_to(root).as_posix()} {sum_of(path)}\n".encode())
    return digest.hexdigest()


def digest_of(manifest: Mapping[str, Any]) -> str:
    """Of all that a manifest says, but for this digest, and a signature of it that an older lcm wrote."""
    told = {key: value for key, value in manifest.items() if key not in ("sha256", "signature")}
    return hashlib.sha256(json.dumps(told, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a folder, whole, of the right shape, and as it was written."""
    path = folder / MANIFEST
    try:
        manifest: dict[str, Any] = json.loads(plain_bytes(path))
        _SHAPE("", manifest)
    except FileNotFoundError as error:
        raise LcmError(f"{folder} has no {MANIFEST}: name a folder that `lcm leaderboard` wrote") from error
    except (OSError, ValueError, RecursionError) as error:
        raise LcmError(f"{path} is no manifest of a leaderboard ({error})") from error
    if digest_of(manifest) != manifest["sha256"]:
        raise LcmError(f"{path} is not as it was written: its digest is another")
    return manifest


def changed_files(folder: Path, manifest: Mapping[str, Any]) -> list[str]:
    """The files of a leaderboard that are missing, or not as the manifest says; and those that it does not say."""
    wanted = {PAGE, *(f"{RUNS}/{row['name']}/{name}" for row in manifest["rows"] for name in KEPT)}
    told = manifest["files"]
    there = {name for name in wanted & told.keys() if (folder / name).is_file() and not (folder / name).is_symlink()}
    return sorted((wanted | told.keys()) - {name for name in there if sum_of(folder / name) == told[name]})


def files_beside(folder: Path, manifest: Mapping[str, Any]) -> list[str]:
    """What lies in the folder of a leaderboard and is none of its files: nobody vouches for it."""
    names = (one.relative_to(folder).as_posix() for one in folder.rglob("*") if one.is_symlink() or not one.is_dir())
    return sorted(set(names) - {MANIFEST, *manifest["files"]})
