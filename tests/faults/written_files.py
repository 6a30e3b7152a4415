"""A place where every long command has been run once, and what each door answers from the files that it holds then."""

import contextlib
import io
import json
import logging
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from eval.cache import stage_cache
from eval.judging.judgements import Judgement, JudgementFile
from eval.report.ranking import columns_of_run
from eval.run import Run
from lcm.language_model.replies import Recorded
from lcm.memory.memory import Memory
from lcm.retrieval.embedder.cache import CachedEmbedder
from lcm.retrieval.embedder.hashing import Hashing
from lcm.retrieval.vector_index.exact import Exact
from lcm.retrieval.vector_index.hnsw import Hnsw
from lcm.retrieval.vector_index.hnsw_tiers import HnswTiers
from lcm.store.store import Store
from lcm.transcript.reading import read_transcripts
from tests.support.workspaces import system

QUICK = (
    "system=hybrid",
    "embedder=hashing",
    "arms=none",
    "tracking=none",
    "measures.latency.queries=0",
    "means.resamples=20",
)
EVALUATE = ("evaluate", "talks", "questions.jsonl", *QUICK)
SWEEP = ("evaluate", "-m", *EVALUATE[1:], "fusion.dense_weight=0.3,0.6", "hydra.sweep.dir=sweep")
COMPACT = (
    "compact", "talks", "into=out", "shards=1", "embedder=hashing", "tracking=none", "executor=none",
    "compaction.fresh_tail_count=4",
)  # fmt: skip
TUNE = (
    "tune", "study.name=first", "study.trials=2", "dataset=sample", "hydra.run.dir=study", *QUICK,
    "measures.retention.budgets=[]", "space=fusion", "space.system=null", "space.fusion.choices=null",
    "space.fusion.floor_ratio=null", "space.fusion.floor_from=null", "space.fusion.k=null", "space.ranking=null",
)  # fmt: skip

LOG = ("log", "runs/base", "tracking.uri=sqlite:///mlflow.db")

_QUESTIONS_APART = 8
"""So few are asked that every checkpoint between them is kept."""
ASKED = ("Where are the blue pens?", "What lies beside the lamp 49?")
ASKED_AT = datetime(2026, 2, 1, tzinfo=UTC)
INDEXES = {"memory": Exact(), "hnsw": Hnsw(), "tiers": HnswTiers(widths=(32, 64, None))}


@dataclass
class Said:
    """What a door answered: its answer, or the error that it raised; and what it said beside."""

    answer: Any
    error: str | None
    is_raw: bool
    text: str


def write_talks(place: Path, n: int = 3) -> None:
    (place / "talks").mkdir(exist_ok=True)
    colours = ("blue", "red", "green", "yellow")
    for number in range(n):
        lines = (
            {
                "role": "assistant" if i % 2 else "user",
                "content": f"The pens number {number * 100 + i} lie in the {colours[i % 4]} drawer of room {number}, "
                f"beside the lamp {i * 7}.",
                "timestamp": f"2026-01-0{number + 1}T09:{i:02}:00Z",
            }
            for i in range(14)
        )
        (place / "talks" / f"talk{number}.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def lcm(*arguments: str) -> int:
    """`lcm` in this process, in the folder where it is."""
    from pipelines import cli

    return cli.run(list(arguments))


def make(place: Path, *, with_study: bool = True) -> None:
    """Run every long command in a folder."""
    write_talks(place, 2)
    for name in INDEXES:  # as they were before the last talk came
        filled(name)
        (place / f"{name}.db").rename(place / f"{name}.db.older")
    for old in (*place.glob("*.vectors*"), *place.glob("*.words")):
        old.unlink()
    lcm_or_raise(*COMPACT)
    shutil.copytree(place / "out", place / "older" / "out")
    write_talks(place)
    for name in INDEXES:
        filled(name)
    with Store(place / "memory.db") as store, store.serialised("talk0"):
        pass
    embedded()
    replied()
    JudgementFile(place / "qrels").add(Judgement(f"q{i}", f"m{i}", i % 3, "bo") for i in range(6))
    lcm_or_raise("questions", "make", "talks", "into=questions.jsonl")
    questions = Path("questions.jsonl")
    questions.write_text("".join(questions.read_text().splitlines(keepends=True)[::_QUESTIONS_APART]))
    lcm_or_raise(*EVALUATE, "hydra.run.dir=runs/base")
    lcm_or_raise(*EVALUATE, "hydra.run.dir=runs/other", "fusion.dense_weight=0.2")
    lcm_or_raise(*SWEEP)
    lcm_or_raise(*COMPACT)
    lcm_or_raise("regress", "runs/base", "runs/other", "into=comparison", "tracking=none")
    lcm_or_raise("export", "runs/base", "to=preset", "name=base", "tracking=none")
    lcm_or_raise("ingest", "talks", "into=messages.parquet")
    if with_study:
        lcm_or_raise(*TUNE)
        lcm_or_raise(*LOG)


def filled(name: str) -> int:
    """Take all talks into the store of an index."""
    with Memory.open(system(vector_index=INDEXES[name]), f"{name}.db") as memory:
        for talk in sorted(Path("talks").iterdir()):
            memory.ingest_all(list(read_transcripts(talk)))
    return 0


class _Answering:
    """A model that answers by what it is asked."""

    identity = {"name": "answering"}  # noqa: RUF012  # never changed

    def reply(self, system: str, prompt: str, *_: object, **__: object) -> str:
        return f"{system}: {prompt[::-1]}"


def embedded() -> list[float]:
    with CachedEmbedder(Hashing(), Path("cache/vectors")) as embedder:
        return [float(np.square(row).argmax()) for row in embedder.embed([f"text {i}" for i in range(60)], "document")]


def replied() -> list[str]:
    model = Recorded(_Answering(), "cache/replies")
    return [model.reply("again", f"say {i}") for i in range(2)]


def searched(name: str) -> list[Any]:
    """What a store answers to a search, and what was said in it."""
    with Memory.open(system(vector_index=INDEXES[name]), f"{name}.db") as memory:
        found = [memory.search(text, ASKED_AT).select("document_id", "text", "score").rows() for text in ASKED]
        return [found, [(one.message_id, one.content) for one in memory.store.messages()]]


def of_store() -> list[Any]:
    found = searched("memory")
    return [*found, lcm_or_raise("status", "store=memory.db"), lcm_or_raise("grep", "drawer", "store=memory.db")]


class CommandError(Exception):
    """`lcm` ended with an error."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(code)
        self.code = code
        self.text = text


def lcm_or_raise(*arguments: str, good: tuple[int, ...] = (0,)) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        code = lcm(*arguments)
    if code not in good:
        raise CommandError(code, out.getvalue())
    return out.getvalue()


def evaluated(*without: str) -> Any:
    """A run whose stages are found again, but for some."""
    _remove("runs/again")
    stage_cache._at_hand.cache_clear()  # what this process has in memory would hide what is on disk
    for stage in without:
        shutil.rmtree(f"cache/stages/{stage}", ignore_errors=True)
    lcm_or_raise(*EVALUATE, "hydra.run.dir=runs/again")
    return numbers("runs/again")


def numbers(folder: str) -> Any:
    summary = json.loads((Path(folder) / "summary.json").read_text())
    return {key: summary[key] for key in ("counts", "measures", "arms", "categories")}


def compared() -> Any:
    _remove("comparison2")
    lcm_or_raise("regress", "runs/base", "runs/other", "into=comparison2", "tracking=none", good=(0, 1))
    report = json.loads(Path("comparison2/report.json").read_text())
    return {key: report[key] for key in ("gate", "rows", "worse_queries")}


def shown() -> Any:
    """What the page of a run shows of every arm."""
    columns = columns_of_run(Run(Path("runs/base"), "system"))
    return [(one.name, one.values.rows(), one.ranking.rows()) for one in columns]


def exported(source: str = "runs/base") -> str:
    _remove("preset2")
    lcm_or_raise("export", source, "to=preset2", "name=base", "tracking=none")
    return Path("preset2/system/base.yaml").read_text()


def swept() -> Any:
    lcm_or_raise(*SWEEP)
    points = sorted(Path("sweep").glob("*/summary.json"))
    return [pl.read_parquet("sweep/points.parquet").rows(), [numbers(str(one.parent)) for one in points]]


def compacted(command: tuple[str, ...] = COMPACT) -> Any:
    lcm_or_raise(*command)
    report = pl.read_parquet("out/report.parquet").drop("seconds").sort("conversation_id")
    with Store("out/shard-000.db") as store:
        found = [
            (store.messages(name), sorted(one.content for one in store.summaries(name)))
            for name in sorted(store.conversations()["conversation_id"])
        ]
    summary = json.loads(Path("out/run/summary.json").read_text())
    return [repr(report.rows()), repr(found), summary["counts"], summary["measures"]]


def tuned() -> Any:
    lcm_or_raise(*TUNE)
    return pl.read_parquet("study/study.parquet").drop("seconds").rows()


def logged(run: str = "runs/base", columns: str = "run_uuid, status") -> Any:
    """What lies in MLflow after a run was logged, which may have been logged before."""
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore
    from mlflow.tracking._tracking_service.utils import _tracking_store_registry as stores

    stores._get_store_with_resolved_uri.cache_clear()  # which have the file open that lay here before
    SqlAlchemyStore._engine_map.clear()
    lcm_or_raise("log", run, *LOG[2:])
    with contextlib.closing(sqlite3.connect("mlflow.db")) as database:
        return [
            database.execute(f"SELECT {columns} FROM runs ORDER BY {columns}").fetchall(),  # ours
            database.execute("SELECT key, value FROM latest_metrics ORDER BY key, value").fetchall(),
        ]


def ingested() -> Any:
    _remove("again.db")
    lcm_or_raise("ingest", "messages.parquet", "into=again.db")
    with Store("again.db") as store:
        return [(one.message_id, one.content) for one in store.messages()]


def _remove(name: str) -> None:
    for path in Path().glob(f"{name}*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()


@contextlib.contextmanager
def at(place: Path) -> Iterator[None]:
    """Work in a folder with a cache of its own."""
    before, cache = Path.cwd(), os.environ.get("LCM_CACHE_DIR")
    os.chdir(place)
    os.environ["LCM_CACHE_DIR"] = str(place / "cache")
    try:
        yield
    finally:
        os.chdir(before)
        os.environ.pop("LCM_CACHE_DIR")
        if cache is not None:
            os.environ["LCM_CACHE_DIR"] = cache


def ask(door: Callable[[], Any]) -> Said:
    """What a door answers, whatever it raises."""
    from lcm.errors import LcmError

    said = io.StringIO()
    told = logging.StreamHandler(said)
    logging.getLogger().addHandler(told)
    answer, error, is_raw = None, None, False
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            answer = door()
    except CommandError as ended:
        error, is_raw = said.getvalue() + ended.text, ended.code == 70
    except (LcmError, OSError) as raised:
        error = f"{raised}"
        is_raw = isinstance(raised, OSError) and raised.filename is None
    except Exception as raised:
        error, is_raw = f"{type(raised).__name__}: {raised}", True
    finally:
        logging.getLogger().removeHandler(told)
    return Said(answer, error, is_raw or "Traceback" in said.getvalue(), said.getvalue())
