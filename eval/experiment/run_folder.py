"""A run on disk: everything that was found, whole before anything else hears of it."""

import hashlib
import io
import json
import os
import platform
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import MappingProxyType
from typing import Any

import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]
import yaml

from eval.dataset.dataset import Dataset
from eval.experiment.outcome import Outcome
from eval.experiment.summary_shape import SUM_NAMES, check_summary, sums_of
from eval.experiment.times import with_times
from eval.measures.means import ALL, Entry, entry
from eval.measures.measure import Direction
from eval.measures.names import SYSTEM_ARM
from lcm.consent import OWN
from lcm.derived import checked, is_listed, seal
from lcm.encoding import from_yaml
from lcm.errors import LcmError
from lcm.files import private, write_text, written_whole
from lcm.given import plain_bytes
from lcm.records.document import ACTIONS
from lcm.redaction import redacted_record

SUMMARY = "summary.json"
CONFIG = "config.yaml"
CONTROLS = "control_"
"""Begins the names of tables that have of the control arms what others have of the system, and `read_arms` of both."""
ENVIRONMENT = "environment.json"
DEFINITIONS = "1"
"""Of the measures: another number whenever what one of them means changes, so that no two meanings are compared."""
QUERY_SCHEMA: dict[str, pl.DataType] = {
    "workspace_id": pl.String(),
    "query_id": pl.String(),
    "conversation_id": pl.String(),
    "category": pl.String(),
    "text": pl.String(),
    "asked_at": pl.Datetime("ms", "UTC"),
    "origin": pl.String(),
}
"""Of `queries.parquet`, where `evidence` stands behind: the ids of the messages that are judged relevant. `origin` is
the workspace that a query comes from, be it pooled with others or not."""
_KEYS = {
    "title", "kind", "dataset", "config_hash", "overrides", "changed", "definitions", "commit", "counts", "served",
    "decisions", "incidents", "notes", "flags", "interval", "measures", "arms", "categories", "timing", "sha256",
    "timing_sha256", "tags",
}  # fmt: skip
"""Of every run's summary; its other keys are names of measures."""
_SOUND: set[bytes] = set()
"""Digests of summaries that were read whole: a sweep reads those of its points again and again."""
_AGAIN = "run `lcm evaluate` again"
_LAST_FILES: dict[str, tuple[object, bytes]] = {}
"""Table of the run that was written last -> what it was made of, and its file: points of a sweep share what is asked
and what control arms answer, and coding whole histories as Parquet takes longer than to rank."""
_PACKAGES = (
    "lcm-harness", "bm25s", "hnswlib", "hydra-core", "mlflow", "numpy", "omegaconf", "onnxruntime",
    "optimum", "optuna", "polars", "PyStemmer", "scipy", "tokenizers", "torch", "transformers",
)  # fmt: skip


def config_hash(resolved: Mapping[str, Any]) -> str:
    """Tells two configurations apart, by content: 16 hex digits."""
    canonical = json.dumps(resolved, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]


def by_class(node: Any) -> Any:
    """Settings with each component of ours named by its class alone, whose module may have become part of another."""
    if not isinstance(node, Mapping):
        return [by_class(inner) for inner in node] if isinstance(node, list) else node
    return {
        name: inner.rpartition(".")[2]
        if name == "_target_" and isinstance(inner, str) and inner.partition(".")[0] in OWN
        else by_class(inner)
        for name, inner in node.items()
    }


@private()
def begin_run(folder: Path) -> None:
    """Make the folder of a run.

    Raises:
        LcmError: if it holds a complete run already.
    """
    if (folder / SUMMARY).exists():
        raise LcmError(f"{folder} holds a complete run: name another folder, or remove that one first")
    folder.mkdir(parents=True, exist_ok=True)


@private()
def write_run(
    folder: Path,
    outcome: Outcome,
    dataset: Dataset,
    resolved: Mapping[str, Any],
    config_text: str,
    seconds: Mapping[str, float],
    asked: Mapping[str, Any] = MappingProxyType({}),
) -> dict[str, Any]:
    """Write every file of a run and, last, its summary: a folder with a summary is complete.

    What may differ between two equal runs stands under `timing` in the summary, or in environment.json.

    Args:
        resolved: the settings that the numbers depend on.
        config_text: all settings.
        asked: `overrides`, what was asked for, and `changed`, what of that is not the default; empty where nobody
            composed the configuration.
    """
    folder.mkdir(parents=True, exist_ok=True)
    told = environment()
    frames = {
        "run": outcome.system_run,
        "documents": outcome.documents,
        "per_query": _directed(outcome.system_values, outcome.directions),
        "measures": outcome.means,
        "decisions": outcome.decisions,
        **outcome.frames,
    }
    shared: dict[str, tuple[object, Callable[[], pl.DataFrame]]] = {
        "queries": (dataset, lambda: _queries(dataset)),
        f"{CONTROLS}run": (outcome.control_run, lambda: outcome.control_run),
        f"{CONTROLS}per_query": (
            outcome.control_values,
            lambda: _directed(outcome.control_values, outcome.directions),
        ),
    }
    files = {name: _file_of(frame) for name, frame in frames.items()}
    files |= {name: _file_once(name, origin, made) for name, (origin, made) in shared.items()}
    write_text(folder / CONFIG, config_text)
    write_json(folder / ENVIRONMENT, told)
    for name, file in files.items():
        _write(folder / f"{name}.parquet", file)
    seal(folder, [CONFIG, ENVIRONMENT, *(f"{name}.parquet" for name in files)])
    summary = {
        "kind": "run",
        "dataset": dataset.identity(),
        "config_hash": config_hash(resolved),
        **asked,
        "definitions": DEFINITIONS,
        "commit": told["commit"],
        "counts": dict(outcome.counts),
        "served": {row.pop("arm"): row for row in outcome.served.iter_rows(named=True)},
        "decisions": _by_action(outcome.decisions),
        **{name: dict(section) for name, section in outcome.sections.items()},
        "incidents": dict(outcome.incidents),
        "notes": list(dataset.notes),
        "flags": list(outcome.flags),
        "interval": {"kind": "percentile bootstrap over queries", "confidence": outcome.confidence},
        "measures": _measures(outcome.means, SYSTEM_ARM, ALL),
        "arms": {
            arm: _measures(outcome.means, arm, ALL)
            for arm in outcome.means["arm"].unique(maintain_order=True)
            if arm != SYSTEM_ARM
        },
        "categories": {
            group: _measures(outcome.means, SYSTEM_ARM, group)
            for group in outcome.means["group"].unique(maintain_order=True)
            if group != ALL
        },
        "timing": {
            **{f"{name}_ms": dict(section) for name, section in outcome.timing.items()},
            "seconds": {**outcome.seconds, **seconds},
        },
    }
    return write_summary(folder, summary, time.time() - seconds.get("total", 0.0))


def write_summary(folder: Path, summary: Mapping[str, Any], began_unix_s: float | None = None) -> dict[str, Any]:
    """Write the summary of a folder, with the sums by which `read_summary` knows it again; returns it with these.

    Args:
        began_unix_s: when the work began that it tells of, which ends now; None: as the summary says, if it does.
    """
    told = redacted_record(summary if began_unix_s is None else with_times(summary, began_unix_s))
    kept = {**told, **sums_of(told)}
    write_json(folder / SUMMARY, kept)
    return kept


def read_summary(folder: Path) -> dict[str, Any]:
    """The summary of a complete run.

    Raises:
        LcmError: if the folder holds none, or one that is not as it was written, or as lcm writes them.
    """
    path = folder / SUMMARY
    if not path.exists():
        raise LcmError(f"{folder} is not a complete run: it has no {SUMMARY}; name a folder that `lcm evaluate` wrote")
    try:
        content = plain_bytes(path)
        summary = json.loads(content)
        if (known := hashlib.sha256(content).digest()) in _SOUND:
            return summary  # type: ignore[no-any-return]
        sums = {} if not isinstance(summary, dict) else {name: summary[name] for name in SUM_NAMES if name in summary}
        is_changed = bool(sums and sums != sums_of(summary))
    except (ValueError, OSError, RecursionError) as error:
        raise LcmError(f"{path} is damaged ({error}); {_AGAIN}") from error
    if not isinstance(summary, dict) or is_changed:
        raise LcmError(f"{path} is damaged: it is not as it was written; {_AGAIN}")
    about = summary.get("dataset")
    if not (isinstance(about, Mapping) and about.keys() >= {"name", "digest"}) and "name" not in summary:
        raise LcmError(f"{path} says neither its dataset nor its name: name a folder that `lcm evaluate` wrote")
    try:
        check_summary(summary)
    except (ValueError, RecursionError) as error:
        raise LcmError(f"{path} is not as lcm writes it ({error}); {_AGAIN}") from error
    _SOUND.add(known)
    return summary


def read_table(path: Path, columns: Sequence[str] | None = None, where_there: Sequence[str] = ()) -> pl.DataFrame:
    """A table of a complete run.

    Args:
        columns: to be read; None = all.
        where_there: columns that older runs may not have, read beside those.
    Raises:
        LcmError: if it is not there, or not as it was written.
    """
    import pyarrow.parquet as pq  # type: ignore[import-untyped]  # here, because importing it takes half a second

    try:  # by Arrow, for a folder may have no sums: damage that has none to show it may make Polars abort
        with pq.ParquetFile(checked(path, _AGAIN)) as file:
            there = file.schema_arrow.names
            if missing := [name for name in columns or () if name not in there]:
                raise LcmError(f"{path} is damaged (it has no {', '.join(missing)}); {_AGAIN}")
            wanted = None if columns is None else [*columns, *(name for name in where_there if name in there)]
            table = file.read(wanted)
        table.validate(full=True)
        return pl.DataFrame(table.replace_schema_metadata(None))  # which may be no text
    except (pa.ArrowException, pl.exceptions.PolarsError, OSError, ValueError, OverflowError) as error:
        raise LcmError(f"{path} is damaged ({' '.join(str(error).split()):.200}); {_AGAIN}") from error


def read_arms(
    folder: Path,
    table: str,
    columns: Sequence[str] | None = None,
    where_there: Sequence[str] = (),
    *,
    controls: bool = True,
) -> pl.DataFrame:
    """A table of the system and, if asked for, of its control arms; as `read_table`.

    Args:
        table: `run` or `per_query`, which in older folders holds all arms.
    """
    found = read_table(folder / f"{table}.parquet", columns, where_there)
    path = folder / f"{CONTROLS}{table}.parquet"
    if not controls or not (path.exists() or is_listed(path)):
        return found
    return pl.concat([found, read_table(path, columns, where_there)])


def read_config(folder: Path) -> dict[str, Any]:
    """The configuration of a complete run.

    Raises:
        LcmError: if it is not there, or not as it was written.
    """
    path = folder / CONFIG
    try:
        config = from_yaml(checked(path, _AGAIN).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, RecursionError, yaml.YAMLError) as error:
        raise LcmError(f"{path} is damaged ({str(error).splitlines()[0]}): {_AGAIN}") from error
    if not isinstance(config, dict):
        raise LcmError(f"{path} is damaged (not a map of settings): {_AGAIN}")
    return config


def directions(folder: Path) -> dict[str, Direction]:
    """Measure of queries -> which way it is better, as a complete run says; empty where it does not.

    Raises:
        LcmError: if its file is damaged.
    """
    return directions_in(read_table(folder / "per_query.parquet", ["measure"], ["direction"]))


def directions_in(values: pl.DataFrame) -> dict[str, Direction]:
    """The same of values that were read with the column `direction` where it is there."""
    return dict(values.select("measure", "direction").unique().iter_rows()) if "direction" in values.columns else {}


def sections(summary: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """What a run's summary tells of measures of something else than queries, by the measure's name."""
    is_run = summary.get("kind", "run") == "run"
    return {name: section for name, section in summary.items() if name not in _KEYS} if is_run else {}


def environment() -> dict[str, Any]:
    """What is needed to repeat a run besides its configuration."""
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cpus": os.cpu_count(),
        "packages": _packages(),
        "commit": commit(),
    }


@cache
def _packages() -> dict[str, str | None]:
    packages: dict[str, str | None] = {}
    for name in _PACKAGES:
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            packages[name] = None
    return packages


@cache
def commit() -> str | None:
    """The commit of the checkout that this code runs from, `+` added where it had been changed."""
    here = Path(__file__).resolve().parents[2]
    if not (here / ".git").exists():
        return None
    try:
        head = _git(here, "rev-parse", "HEAD")
        changed = _git(here, "status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.CalledProcessError):
        return None
    return f"{head}+" if changed else head


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout.strip()  # noqa: S603


def _queries(dataset: Dataset) -> pl.DataFrame:
    """The queries, and the ids of the messages that are their evidence: what two runs are compared by."""
    evidence = dataset.evidence()
    rows = [
        (
            *(q.workspace_id, q.query_id, q.conversation_id, q.category, q.text, q.asked_at),
            *(dataset.origin(q), evidence.get(q.query_id, [])),
        )
        for q in dataset.queries
    ]
    return pl.DataFrame(rows, schema={**QUERY_SCHEMA, "evidence": pl.List(pl.String())}, orient="row")


def _by_action(decisions: pl.DataFrame) -> dict[str, int]:
    """How often each action was decided; empty where nothing was judged."""
    found = dict(decisions.group_by("action").len().iter_rows())
    return {action: found[action] for action in ACTIONS if action in found}


def _measures(means: pl.DataFrame, arm: str, group: str) -> dict[str, Entry]:
    rows = means.filter((pl.col("arm") == arm) & (pl.col("group") == group))
    return {row["measure"]: entry(row) for row in rows.iter_rows(named=True)}


def leaves(node: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Every value of nested settings by its dotted key; a map without entries is a value."""
    if isinstance(node, Mapping) and node:
        for key, value in node.items():
            yield from leaves(value, f"{prefix}.{key}" if prefix else str(key))
    else:
        yield prefix, node


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a file of JSON that is there whole or not at all."""
    write_text(path, json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def write_frame(path: Path, frame: pl.DataFrame) -> None:
    """Write a table that is there whole or not at all."""
    _write(path, _file_of(frame))


def _write(path: Path, content: bytes) -> None:
    with written_whole(path) as file:
        file.write(content)


def _file_of(frame: pl.DataFrame) -> bytes:
    content = io.BytesIO()
    frame.write_parquet(content)
    return content.getvalue()  # no view: what exports one when Python ends is complained of


def _file_once(name: str, origin: object, made: Callable[[], pl.DataFrame]) -> bytes:
    """The file of a table, that of the last run where it is made of the very same thing."""
    if name not in _LAST_FILES or _LAST_FILES[name][0] is not origin:
        _LAST_FILES[name] = origin, _file_of(made())
    return _LAST_FILES[name][1]


def _directed(values: pl.DataFrame, directions: Mapping[str, Direction]) -> pl.DataFrame:
    """With the way in which each measure is better."""
    way = pl.col("measure").replace_strict(directions, default="higher", return_dtype=pl.String)
    return values.with_columns(direction=way)
