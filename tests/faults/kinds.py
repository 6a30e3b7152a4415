"""All kinds of files that long commands write, and what reads each."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from eval.judging.judgements import JudgementFile
from lcm.store.store import Store
from tests.faults.written_files import (
    LOG,
    compacted,
    compared,
    embedded,
    evaluated,
    exported,
    ingested,
    lcm_or_raise,
    logged,
    of_store,
    replied,
    searched,
    shown,
    swept,
    tuned,
)


@dataclass(frozen=True)
class Kind:
    """One kind of file that is written."""

    name: str
    pattern: str
    """Of its path, from the place."""
    door: Callable[[], Any] | None
    """What reads it; None where nothing does."""
    is_by_hand: bool = False
    """People write and change such files: what they say counts, so long as it can be read."""
    is_together: bool = False
    """Many have the same part: all are damaged at once, for any may be the one that is read."""
    is_dated: bool = False
    """An older version of it is a whole file, of then: it is answered from."""
    told_in: str | None = None
    """The folder of the run that goes on past the damage, whose summary counts it."""

    @property
    def thing(self) -> str:
        """What it is a part of: a run, a sweep, a study ..."""
        return self.name.partition(",")[0]


ranked = partial(evaluated, "measured")
replayed = partial(evaluated, "measured", "ranked", "pools", "values")
"""Finds nothing but its checkpoints."""
reembedded = partial(evaluated, "measured", "ranked", "pools", "values", "checkpoints")
"""Finds nothing but its embeddings."""
exported_again = partial(exported, "preset")
imported = partial(lcm_or_raise, "import", "preset/lancedb_pro.json")
checked = partial(lcm_or_raise, "questions", "check", "questions.jsonl", "talks")


def stage(name: str, pattern: str, door: Callable[[], Any]) -> Kind:
    """One kind of file of the stage cache."""
    return Kind(f"stage cache, {name}", f"cache/stages/{pattern}", door, is_together=True, told_in="runs/again")


KINDS = (
    Kind("logs of SQLite while a file is open", r".*\.(db|sqlite)-(wal|shm)", None),
    Kind("store", r"memory\.db", of_store, is_dated=True),
    Kind("vectors, exact", r"memory\.db\.\w{16}\.vectors", lambda: searched("memory")),
    Kind("vectors, hnsw", r"hnsw\.db\.\w{16}\.vectors", lambda: searched("hnsw")),
    Kind("vectors, tiers", r"tiers\.db\.\w{16}\.vectors(\.\d+)?", lambda: searched("tiers")),
    Kind("words", r"\w+\.db\.\w{16}\.words", lambda: [searched(name) for name in ("memory", "hnsw", "tiers")]),
    Kind("lock of a store", r"memory\.db-locks/.*", lambda: _locked()),
    Kind("embedding cache", r"cache/vectors/\w+\.sqlite", embedded),
    Kind("embedding cache of commands", r"cache/embeddings/.*", reembedded, told_in="runs/again"),
    Kind("lock of the embedding cache", r"cache/vectors/\w+\.sqlite\.lock", embedded),
    Kind("recorded reply", r"cache/replies/.*", replied),
    stage("measures", r"measured/.*", evaluated),
    stage("entry", r"(facts|values|ranked|pools)/.*", ranked),
    stage("store of a checkpoint", r"checkpoints/.*\.db", replayed),
    stage("vectors of a checkpoint", r"checkpoints/.*\.vectors", replayed),
    stage("words of a checkpoint", r"checkpoints/.*\.words", replayed),
    stage("list of checkpoints", r"checkpoints/.*\.json", replayed),
    stage("sums", r"checkpoints/.*/SHA256SUMS", replayed),
    Kind("run, summary", r"runs/\w+/summary\.json", compared),
    Kind("run, configuration", r"runs/\w+/config\.yaml", exported),
    Kind("run, values", r"runs/\w+/per_query\.parquet", compared),
    Kind("run, queries", r"runs/\w+/queries\.parquet", compared),
    Kind("run, ranking", r"runs/\w+/run\.parquet", compared),
    Kind("run, control arms", r"runs/\w+/control_(run|per_query)\.parquet", shown),
    Kind("run, documents", r"runs/\w+/documents\.parquet", compared),
    Kind("run, sums", r"runs/\w+/SHA256SUMS", compared),
    Kind("run, receipt of tracking", r"runs/\w+/mlflow\.json", logged),
    Kind("run, tables for people", r".*/(measures|decisions|compression|summary_\w+)\.parquet", None),
    Kind("environment", r".*environment\.json", None),
    Kind("page", r".*/report\.html", None),
    Kind("sweep, summary of a point", r"sweep/\w+/summary\.json", swept, told_in="sweep"),
    Kind("sweep, values of a point", r"sweep/\w+/per_query\.parquet", swept, told_in="sweep"),
    Kind("sweep, origin of a point", r"sweep/\w+/point\.json", swept, told_in="sweep"),
    Kind("sweep, other files of a point",
         r"sweep/\w+/(config\.yaml|SHA256SUMS|(queries|run|documents|control_\w+)\..*)", swept, told_in="sweep"),
    Kind("table of a sweep", r"sweep/(points|paired)\.parquet", swept, told_in="sweep"),
    Kind("sums of a sweep", r"sweep/SHA256SUMS", swept, told_in="sweep"),
    Kind("sweep, summary", r"sweep/summary\.json", swept),
    Kind("sweep, lock", r"sweep/sweep\.lock", swept),
    Kind("sweep, page", r"sweep/sweep\.(md|png)", None),
    Kind("batch, store", r"out/shard-000\.db", compacted, is_dated=True),
    Kind("batch, ledger", r"out/shard-000\.jsonl", compacted, told_in="out/run"),
    Kind("batch, plan", r"out/plan\.json", compacted),
    Kind("batch, report", r"out/report\.parquet", compacted),
    Kind("batch, summary", r"out/run/summary\.json", compacted),
    Kind("batch, other files of its run", r"out/run/(config\.yaml|report\.parquet)", compacted),
    Kind("batch, locks", r"out/(\.lock|shard-000\.lock)", compacted),
    Kind("study, database", r"study/study\.db", tuned, is_dated=True),
    Kind("study, locks", r"study/(report\.lock|study\.db\.lock|workers/.*)", tuned),
    Kind("study, summary of a trial", r"study/trials/(\d+|default)/summary\.json", tuned),
    Kind("study, other files of a trial", r"study/trials/(\d+|default)/.*", tuned),
    Kind("study, tables and pages", r"study/[\w.]+\.(parquet|yaml|md|png|json)", tuned),
    Kind("MLflow, database", r"mlflow\.db", lambda: bool(lcm_or_raise(*LOG))),
    Kind("MLflow, database, of a new run", r"mlflow\.db", partial(logged, "runs/other", "status")),
    Kind("MLflow, files", r"(mlruns|mlartifacts)/.*|mlflow\.db\.lock|\.lcm_.*", None),
    Kind("comparison", r"comparison/.*", None),
    Kind("preset, of ours", r"preset/(system|experiment|dataset|measures)/.*", None, is_by_hand=True),
    Kind("preset, of a plugin", r"preset/lancedb_pro\.json", imported, is_by_hand=True),
    Kind("preset, of other plugins", r"preset/(libravdb|lossless_claw)\.(json|env)", None, is_by_hand=True),
    Kind("preset, where it is from", r"preset/(config|provenance|summary)\.\w+", exported_again, is_by_hand=True),
    Kind("messages as Parquet", r"messages\.parquet", ingested),
    Kind("questions", r"questions\.jsonl", checked, is_by_hand=True),
    Kind("judgements", r"qrels/judgements\.jsonl", lambda: _judged(), is_by_hand=True),
)  # fmt: skip
"""Every kind of file that we write. A kind that is missing here fails a test."""
_NOT_OURS = re.compile(r"talks/.*|older/.*|.*\.older|hnsw\.db|tiers\.db")


def _judged() -> list[str]:
    return [repr(one) for one in JudgementFile(Path("qrels"))]


def _locked() -> bool:
    with Store("memory.db") as store, store.serialised("talk0"):
        return True


def unknown_files(place: Path) -> list[str]:
    """What lies in the place and is of no kind."""
    found = (str(path.relative_to(place)) for path in place.rglob("*") if path.is_file())
    return sorted(
        name
        for name in found
        if not _NOT_OURS.fullmatch(name) and not any(re.fullmatch(kind.pattern, name) for kind in KINDS)
    )
