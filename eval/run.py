"""Runs: what was asked for, the configuration that it was composed of, and a folder of frames with one summary.

A run is begun, written, checked and read here; so are the summary and the tables of every other folder.
"""

import hashlib
import io
import json
import os
import platform
import subprocess
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cache, cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Self

import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]
import yaml

from eval.measures.coverage import ranked_messages
from eval.measures.means import conversation_direction, conversation_means
from eval.measures.names import CONTEXT_MEASURES, EXTERNAL_MEMORY, SYSTEM_ARM, Direction, kind_of, telling
from eval.measures.sessions import ALL_KINDS
from eval.shape import SUM_NAMES, check_summary, sums_of
from eval.table import means_table
from lcm.derived import SUM, checked, is_listed, seal, unsealed
from lcm.encoding import from_yaml
from lcm.errors import LcmError
from lcm.files import from_here, private, write_text, written_whole
from lcm.given import plain_bytes
from lcm.redaction import redacted, redacted_record

SUMMARY = "summary.json"
CONFIG = "config.yaml"
CONTROLS = "control_"
"""Begins the names of tables that have of the control arms what others have of the system, and `Run.arms` of both."""
ENVIRONMENT = "environment.json"
POINT = "point.json"
PAGE = "report.html"
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
_SOUND: set[bytes] = set()
"""Digests of summaries that were read whole: a sweep reads those of its points again and again."""
_AGAIN = "run `lcm evaluate` again"
BEGAN, ENDED = "began_unix_s", "ended_unix_s"
"""Among the seconds of a summary's timing."""
EMBEDDING = "embedding"
"""Within a summary's timing: what vectors with a price took."""
CONVERSATION = "a conversation"
"""The category of what stands for a question, where conversations do."""
_ASKED = ("query_id", "workspace_id", "category", "text", "evidence")
_ORIGIN = "origin"
"""The column of queries that says which workspace a query comes from; older runs have none, and pool nothing."""
_SHOWN = 5
_PACKAGES = (
    "lcm-harness", "bm25s", "hnswlib", "hydra-core", "mlflow", "numpy", "omegaconf", "onnxruntime",
    "optimum", "optuna", "polars", "PyStemmer", "scipy", "tokenizers", "torch", "transformers",
)  # fmt: skip


class Run:
    """What was asked for, the configuration that it was composed of, and a folder of frames with one summary.

    A folder with a summary is complete. Everything is read when it is first asked for; what is missing or damaged is an
    LcmError of one line, which names the file and what to do. Folders of earlier versions are read alike.
    """

    def __init__(self, folder: Path, name: str | None = None, **known: Any) -> None:
        """Take the folder for a run's, unread.

        Args:
            name: what it is called beside others; None = its folder. What looks like a key is taken out.
            known: what need not be read, by the names of this class.
        """
        self.folder = folder
        self.name = redacted(str(folder) if name is None else name)
        self._written: list[str] = []
        vars(self).update(known)

    @classmethod
    def open(cls, folder: Path, name: str | None = None) -> Self:
        """The complete run of a folder.

        Raises:
            LcmError: if there is none, or the folder is one of a sweep or comparison, whose runs are named.
        """
        run = cls(folder, name)
        if (kind := run.summary.get("kind", "run")) == "run":
            return run
        below = (path.parent for path in folder.rglob(SUMMARY) if path.parent != folder)
        runs = sorted(str(one) for one in below if (one / CONFIG).is_file())
        shown = ", ".join(runs[:_SHOWN]) + (f" and {len(runs) - _SHOWN} more" if len(runs) > _SHOWN else "")
        named = f"one of its runs: {shown}" if runs else "a folder that `lcm evaluate` wrote"
        raise LcmError(f"{run.name} is a {kind}, not a run: name {named}")

    @classmethod
    @private()
    def begin(cls, folder: Path) -> "Run":
        """Make the folder of a run that is to be written.

        Raises:
            LcmError: if it holds a complete run already.
        """
        if (folder / SUMMARY).exists():
            raise LcmError(f"{folder} holds a complete run: name another folder, or remove that one first")
        folder.mkdir(parents=True, exist_ok=True)
        return cls(folder)

    @private()
    def write(self, table: str, rows: pl.DataFrame | bytes) -> None:
        """Write a table, whole or not at all.

        Args:
            rows: its frame, or its file as `parquet` gives it.
        """
        content = parquet(rows) if isinstance(rows, pl.DataFrame) else rows
        _write(self.folder / f"{table}.parquet", content, is_checked=True)  # by the list of sums
        self._written.append(f"{table}.parquet")

    @private()
    def finish(self, summary: Mapping[str, Any], config_text: str, seconds: float = 0.0) -> dict[str, Any]:
        """Write what makes a run of the tables: configuration, environment, sums and, last, the summary.

        Args:
            config_text: the whole configuration as YAML.
            seconds: that the work took which ends now.
        Returns:
            The summary as `summary` gives it.
        """
        told = environment()
        for name, text in ((CONFIG, config_text), (ENVIRONMENT, f"{_lined(told)}\n")):
            write_text(self.folder / name, text, is_checked=True)  # by the list of sums
        seal(self.folder, [CONFIG, ENVIRONMENT, *self._written])
        whole = {"kind": "run", "definitions": DEFINITIONS, "commit": told["commit"], **summary}
        return write_summary(self.folder, whole, time.time() - seconds)

    def __repr__(self) -> str:
        return f"Run({str(self.folder)!r})"

    def _repr_html_(self) -> str:
        """For a notebook: the system beside its control arms, means with their intervals."""
        summary = self.summary
        arms = {SYSTEM_ARM: summary["measures"], **summary["arms"]}
        names = telling(summary["measures"] or next(iter(summary["arms"].values()), {}))
        costs = [name for name, direction in self.directions.items() if direction == "lower"]
        caption = (
            f"{summary['dataset']['name']}: mean over {summary['counts']['judged_queries']} judged queries "
            f"[{summary['interval']['confidence']:.0%} bootstrap interval]"
        )
        told = means_table("arm", arms, names, costs, own=SYSTEM_ARM)
        notes = (*summary["notes"], *summary["flags"], f"kept in {from_here(self.folder)}")
        return replace(told, caption=caption, notes=notes)._repr_html_()

    def having(self, name: str, **known: Any) -> Self:
        """The same run under another name, with something else in the place of what it holds: of a control arm its
        `values`."""
        other = copy(self)
        vars(other).update(known, name=redacted(name))
        return other

    @cached_property
    def summary(self) -> dict[str, Any]:
        return read_summary(self.folder)

    @cached_property
    def config(self) -> dict[str, Any]:
        """The whole configuration, references worked out; empty where only the numbers of a run are at hand."""
        path = self.folder / CONFIG
        if not path.exists():
            return {}
        try:
            config = from_yaml(checked(path, _AGAIN).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, RecursionError, yaml.YAMLError) as error:
            raise LcmError(f"{path} is damaged ({str(error).splitlines()[0]}): {_AGAIN}") from error
        if not isinstance(config, dict):
            raise LcmError(f"{path} is damaged (not a map of settings): {_AGAIN}")
        return config

    @property
    def overrides(self) -> list[str]:
        """What was asked for; empty where nobody composed the configuration of overrides."""
        return list(self.summary.get("overrides", ()))

    @property
    def page(self) -> Path | None:
        """The report page, where it was written."""
        path = self.folder / PAGE
        return path if path.is_file() else None

    @cached_property
    def table(self) -> pl.DataFrame:
        """arm, group, measure, value, n, low, high: the means with their intervals."""
        return self.frame("measures")

    @cached_property
    def per_query(self) -> pl.DataFrame:
        """arm, query_id, measure, value, direction: of every arm, one a judged query; older runs have no direction."""
        return self.arms("per_query")

    @cached_property
    def contexts(self) -> pl.DataFrame:
        """arm, query_id, budget, and a column for each measure of contexts: what was retained, and what it costs."""
        of_contexts = self.per_query.filter(
            pl.col("measure").map_elements(lambda one: kind_of(one) in CONTEXT_MEASURES, pl.Boolean)
        )
        parts = of_contexts.with_columns(pl.col("measure").str.split_exact("@", 1).struct.rename_fields(["kind", "at"]))
        wide = parts.unnest("measure").with_columns(budget=pl.col("at").cast(pl.Int64))
        return wide.pivot("kind", index=["arm", "query_id", "budget"], values="value", maintain_order=True)

    @cached_property
    def rankings(self) -> pl.DataFrame:
        """What each arm ranked, the system first: arm, workspace_id, query_id, document_id, rank (1-based), score."""
        return self.arms("run")

    @cached_property
    def documents(self) -> pl.DataFrame:
        """workspace_id, document_id, source_message_ids, tokens: what rankings name."""
        return self.frame("documents")

    @cached_property
    def ranked_messages(self) -> pl.DataFrame:
        """arm, workspace_id, query_id, message_id, rank, score: the rankings, read as those of messages."""
        return ranked_messages(self.rankings, self.documents)

    @cached_property
    def queries(self) -> pl.DataFrame:
        """query_id, workspace_id (that the query comes from), category, text, evidence (message ids).

        Of a run in which no question was judged, conversations stand for them.
        """
        if not self._is_judged:
            return self._conversations.select(query_id=pl.col("conversation_id").unique(maintain_order=True)).select(
                "query_id",
                workspace_id="query_id",
                category=pl.lit(CONVERSATION),
                text=pl.lit(""),
                evidence=pl.lit(None, pl.List(pl.String())),
            )
        asked = self.frame("queries", _ASKED, (_ORIGIN,))
        return (asked.with_columns(workspace_id=_ORIGIN) if _ORIGIN in asked.columns else asked).select(_ASKED)

    @cached_property
    def values(self) -> pl.DataFrame:
        """query_id, measure, value: of the system, one a judged query; nothing where there is no number."""
        if not self._is_judged:
            told = self._conversations.rename({"conversation_id": "query_id"})
            return told.filter(pl.col("value").is_finite())
        values = self._of_system.select("query_id", "measure", "value")
        keys = values.select("query_id", "measure")
        if keys.hash_rows().n_unique() < len(keys) and keys.is_duplicated().any():  # hashes in a third of the time
            query, measure = keys.filter(keys.is_duplicated()).row(0)
            path = self.folder / "per_query.parquet"
            raise LcmError(f"{path} has several values of {measure} for query {query}: {_AGAIN}")
        return values

    @cached_property
    def directions(self) -> dict[str, Direction]:
        """Measure -> which way it is better; empty where the run does not say."""
        if not self._is_judged:
            return {measure: conversation_direction(measure) for measure in self.measures}
        told = self._per_system
        return dict(told.select("measure", "direction").unique().iter_rows()) if "direction" in told.columns else {}

    @property
    def measures(self) -> list[str]:
        """Those that the system has values of."""
        return self.values["measure"].unique(maintain_order=True).to_list()

    @property
    def is_of_conversations(self) -> bool:
        """Whether conversations stand for questions."""
        return not self.queries.is_empty() and bool((self.queries["category"] == CONVERSATION).all())

    @property
    def of_external(self) -> list[str]:
        """What it says of an external memory, which may leave queries unanswered: they have no value; nothing of a
        system of ours."""
        return [flag for flag in self.summary.get("flags", ()) if flag.startswith(EXTERNAL_MEMORY)]

    @property
    def latency_ms(self) -> Mapping[str, float] | None:
        """Of live queries as a whole; None where none were timed. It is of other queries than the values."""
        timed = self.summary.get("timing", {}).get("latency_ms") or {}
        return next(iter(timed.values()), None)

    @property
    def embedding_price(self) -> float | None:
        """The price of all vectors, each requested once: 0 for a local model, None where it is unknown."""
        if "price_per_million_tokens" not in (self.config.get("embedder") or {}):
            return 0.0
        price: float | None = self.summary.get("counts", {}).get("embedding_price")
        return price

    @property
    def incidents(self) -> str:
        """What failed, or came otherwise than it should, and was survived, in a line; empty where nothing did."""
        counted: Mapping[str, int] = self.summary.get("incidents") or {}
        return ", ".join(f"{what} ({times:,} times)" for what, times in counted.items())

    def frame(self, table: str, columns: Sequence[str] | None = None, where_there: Sequence[str] = ()) -> pl.DataFrame:
        """A table of the run; as `read_table`."""
        path = self.folder / f"{table}.parquet"
        if not path.exists() and not is_listed(path):
            raise LcmError(f"{self.name} has no {path.name} beside its summary: copy it there, or {_AGAIN}")
        return read_table(path, columns, where_there)

    def arms(self, table: str, columns: Sequence[str] | None = None, where_there: Sequence[str] = ()) -> pl.DataFrame:
        """A table of the system and its control arms, `run` or `per_query`, which in older folders holds all arms."""
        own, path = self.frame(table, columns, where_there), self.folder / f"{CONTROLS}{table}.parquet"
        if not (path.exists() or is_listed(path)):
            return own
        return pl.concat([own, read_table(path, columns, where_there)])

    @cached_property
    def _per_system(self) -> pl.DataFrame:
        return self.frame("per_query", ("arm", "query_id", "measure", "value"), ("direction",))

    @cached_property
    def _of_system(self) -> pl.DataFrame:
        return self._per_system.filter(pl.col("value").is_finite(), arm=SYSTEM_ARM)

    @cached_property
    def _is_judged(self) -> bool:
        """Whether a query has a value, or nothing else has."""
        return not self._of_system.is_empty() or not conversation_means(self.summary)

    @cached_property
    def _conversations(self) -> pl.DataFrame:
        """conversation_id, measure, value: what the means of conversations are means of."""
        means = conversation_means(self.summary)
        parts = []
        for name in dict.fromkeys(measure.partition(".")[0] for measure in means):
            columns = ("arm", "budget", "conversation_id", "measure", "value")
            rows = self.frame(name, columns, ("cycle", "kind")).filter(arm=SYSTEM_ARM)
            if "kind" in rows.columns:
                rows = rows.filter(kind=ALL_KINDS)
            if "cycle" in rows.columns:
                rows = rows.filter(pl.col("cycle") == pl.col("cycle").max().over("conversation_id"))
            named = pl.format("{}.{}@{}", pl.lit(name), "measure", "budget")
            parts.append(rows.select("conversation_id", named.alias("measure"), "value"))
        return pl.concat(parts).filter(pl.col("measure").is_in(list(means)))


def write_summary(folder: Path, summary: Mapping[str, Any], began_unix_s: float | None = None) -> dict[str, Any]:
    """Write the summary of a folder, with the sums by which `read_summary` knows it again; returns it with these.

    Args:
        began_unix_s: when the work began that it tells of, which ends now; None: as the summary says, if it does.
    """
    told = redacted_record(summary if began_unix_s is None else _with_times(summary, began_unix_s))
    kept = {**told, **sums_of(told)}
    _write(folder / SUMMARY, f"{_lined(kept)}\n".encode())
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


def folder_kind(folder: Path) -> str | None:
    """What a folder holds, by its summary: run, sweep, study and so on; None where it holds nothing complete."""
    return str(read_summary(folder).get("kind", "run")) if (folder / SUMMARY).is_file() else None


def read_table(path: Path, columns: Sequence[str] | None = None, where_there: Sequence[str] = ()) -> pl.DataFrame:
    """A table of a complete run.

    Args:
        columns: to be read; None = all.
        where_there: columns that older runs may not have, read beside those.
    Raises:
        LcmError: if it is not there, or not as it was written.
    """
    try:
        content = plain_bytes(checked(path, _AGAIN))
        # By Arrow in a folder without sums, for damage that no sum shows may make Polars abort.
        by_library = _by_polars if is_listed(path) else _by_arrow
        there, read = by_library(io.BytesIO(content))
        if missing := [name for name in columns or () if name not in there]:
            raise LcmError(f"{path} is damaged (it has no {', '.join(missing)}); {_AGAIN}")
        return read(None if columns is None else [*columns, *(name for name in where_there if name in there)])
    except (pa.ArrowException, pl.exceptions.PolarsError, OSError, ValueError, OverflowError) as error:
        raise LcmError(f"{path} is damaged ({' '.join(str(error).split()):.200}); {_AGAIN}") from error


_Read = Callable[[list[str] | None], pl.DataFrame]


def _by_polars(content: io.BytesIO) -> tuple[Collection[str], _Read]:
    """The names of a table's columns, and what reads some of them."""
    return pl.read_parquet_schema(content), lambda columns: pl.read_parquet(content, columns=columns)


def _by_arrow(content: io.BytesIO) -> tuple[Collection[str], _Read]:
    """Read as `_by_polars` does, seven times slower, and raise where anything is damaged."""
    import pyarrow.parquet as pq  # type: ignore[import-untyped]  # here, because importing it takes half a second

    def read(columns: list[str] | None) -> pl.DataFrame:
        table = file.read(columns)
        table.validate(full=True)
        return pl.DataFrame(table.replace_schema_metadata(None))  # which may be no text

    file = pq.ParquetFile(content)
    return file.schema_arrow.names, read


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
    here = Path(__file__).resolve().parents[1]
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


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a file of JSON that is there whole or not at all."""
    write_text(path, _lined(content) + "\n")


def _lined(value: Any, margin: str = "") -> str:
    """JSON with a line for each key, but one line for a map or a list that holds nothing but numbers and words."""
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, (list, tuple)) else ()
    if not any(isinstance(one, (Mapping, list, tuple)) for one in inner):
        return _in_line(value)
    deeper = f"{margin}  "
    if isinstance(value, Mapping):
        told = (f"{deeper}{_in_line(str(key))}: {_lined(one, deeper)}" for key, one in value.items())
        return "{\n" + ",\n".join(told) + f"\n{margin}}}"
    return "[\n" + ",\n".join(f"{deeper}{_lined(one, deeper)}" for one in value) + f"\n{margin}]"


_in_line = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


def write_frame(path: Path, frame: pl.DataFrame) -> None:
    """Write a table that is there whole or not at all."""
    _write(path, parquet(frame))


def _write(path: Path, content: bytes, *, is_checked: bool = False) -> None:
    with written_whole(path, is_checked=is_checked) as file:
        file.write(content)


def parquet(frame: pl.DataFrame) -> bytes:
    """The file of a table."""
    content = io.BytesIO()
    frame.write_parquet(content, compression_level=1)  # two thirds of the usual level's time, for as many bytes
    return content.getvalue()  # no view: what exports one when Python ends is complained of


def _with_times(summary: Mapping[str, Any], began_unix_s: float) -> dict[str, Any]:
    """The summary of work that ends now."""
    timing = summary.get("timing", {})
    seconds = {**timing.get("seconds", {}), BEGAN: began_unix_s, ENDED: time.time()}
    return {**summary, "timing": {**timing, "seconds": seconds}}


def times_ms(summary: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """When what a summary tells of began and ended, in milliseconds of Unix time; None where it does not tell."""
    seconds = summary.get("timing", {}).get("seconds", {})
    began, ended = (seconds.get(name) for name in (BEGAN, ENDED))
    return (None if began is None else int(1000 * began)), (None if ended is None else int(1000 * ended))


def point_record(folder: Path) -> dict[str, Any]:
    """What the folder of a point says of it besides its numbers: its `overrides`, its `label` among the others and the
    `objectives` by which they are chosen, as far as it says so; empty where the folder holds no point, or the record is
    damaged."""
    path = folder / POINT
    try:
        told = json.loads(plain_bytes(path)) if path.is_file() else None
    except (OSError, RecursionError, ValueError):
        return {}
    return {} if not isinstance(told, dict) else unsealed(told, told.keys() - {SUM}) or {}
