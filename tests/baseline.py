"""What eight systems answer, kept in a folder, to hold changed code against.

    python -m tests.baseline record FOLDER      with the code before
    python -m tests.baseline compare FOLDER     with the code after: every difference, and exit code 1 if there is one
    python -m tests.baseline count              lines and modules of each room, and modules that act in three commands

Numbers are equal within 1e-9, and the order of documents is the same. Kept of every system: the frames of an evaluated
run, what twelve questions rank and what their contexts say, asked one at a time; and the rows of two compacted stores.
LoCoMo's shortest conversation is asked too where LCM_DATASETS_DIR has it.
"""

import argparse
import os
import sqlite3
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import FrameType
from typing import Any

import polars as pl
from polars.testing import assert_frame_equal

ROOT = Path(__file__).parent.parent
SYSTEMS = [
    "unified",
    "neighbours",
    "hybrid",
    "lancedb_pro",
    "lancedb_pro_beta11",
    "libravdb",
    "lossless_claw",
    "lossless_claw_0_15",
]
RUN_FRAMES = [
    "run",
    "control_run",
    "per_query",
    "control_per_query",
    "compression",
    "documents",
    "decisions",
    "summary_quality",
]
TABLES = [
    "summaries",
    "summary_messages",
    "summary_parents",
    "context_items",
    "documents",
    "document_messages",
    "guidance_shards",
]
MEASURED_BY_THE_CLOCK = "latency|wait|throughput|per_second|_ms"


def evaluated(system: str, *dataset: str) -> dict[str, pl.DataFrame]:
    """The frames of a run, without what a clock measured."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["evaluate", f"system={system}", *dataset, "tracking=none", "measures.latency.queries=0"]
        _lcm(*command, "cache=false", f"hydra.run.dir={folder}/run")
        frames = {name: pl.read_parquet(f"{folder}/run/{name}.parquet") for name in RUN_FRAMES}
    for name, frame in frames.items():
        if "measure" in frame.columns:
            frames[name] = frame.filter(~pl.col("measure").str.contains(MEASURED_BY_THE_CLOCK))
    return frames


def asked_live(system: str) -> dict[str, pl.DataFrame]:
    """What single questions rank, and what a context of 2,000 tokens says."""
    from eval.dataset.sample import Sample
    from lcm.memory.memory import Memory
    from pipelines.config.building import build
    from pipelines.config.composition import composed

    dataset = Sample().load()
    one = dataset.part(dataset.workspaces[:1])
    queries = one.queries[:12]
    with Memory.open(build(composed([f"system={system}"]), "memory")) as memory:
        memory.ingest_all(one.transcripts)
        ranked = pl.concat([memory.rank([query]) for query in queries], how="vertical_relaxed")
        last = one.transcripts[-1].conversation_id
        contexts = [memory.context(replace(query, conversation_id=last), 2000) for query in queries]
    told = ["\n".join(f"{item.item_id} {item.tokens}: {item.text}" for item in one.items) for one in contexts]
    return {
        "live": ranked.select("query_id", "document_id", "rank", "score"),
        "contexts": pl.DataFrame({"query_id": [query.query_id for query in queries], "context": told}),
    }


def compacted(*overrides: str) -> dict[str, pl.DataFrame]:
    """The rows of a store into which the sample's sessions were compacted."""
    with tempfile.TemporaryDirectory() as folder:
        _lcm("compact", "data/sample/transcripts", f"into={folder}/kept", "shards=1", "tracking=none", *overrides)
        with sqlite3.connect(f"{folder}/kept/shard-000.db") as store:
            return {table: _rows(store, table) for table in TABLES}


def _rows(store: sqlite3.Connection, table: str) -> pl.DataFrame:
    rows = store.execute(f'SELECT * FROM "{table}" ORDER BY rowid')
    names = [column for column, *_ in rows.description]
    return pl.DataFrame([[repr(value) for value in row] for row in rows], dict.fromkeys(names, pl.String), orient="row")


def _lcm(*command: str) -> None:
    done = subprocess.run([sys.executable, "-m", "pipelines.cli", *command], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"lcm {' '.join(command)}\n{done.stdout}\n{done.stderr}")


def cases() -> Iterator[tuple[str, Callable[[], dict[str, pl.DataFrame]]]]:
    for system in SYSTEMS:
        yield f"{system}-sample", lambda system=system: evaluated(system, "dataset=sample")
        yield f"{system}-live", lambda system=system: asked_live(system)
    for system in ("unified", "lossless_claw_0_15", "libravdb"):
        yield f"{system}-sample_long", lambda system=system: evaluated(system, "dataset=sample_long")
    if "LCM_DATASETS_DIR" in os.environ:
        locomo = ("dataset=locomo", "dataset.only=[conv-30]")
        for system in ("unified", "lancedb_pro_beta11"):
            yield f"{system}-locomo", lambda system=system: evaluated(system, *locomo)
    hashed = ("embedder=hashing", "compaction.fresh_tail_count=16")
    yield "compacted-lossless", lambda: compacted("system=lossless_claw_0_15", *hashed)
    yield "compacted-libravdb", lambda: compacted("system=libravdb", "embedder=hashing")


def record(folder: Path, wanted: str) -> int:
    for name, answers in _chosen(wanted):
        (folder / name).mkdir(parents=True, exist_ok=True)
        for frame_name, frame in answers().items():
            frame.write_parquet(folder / name / f"{frame_name}.parquet")
        print(f"kept     {name}", flush=True)
    return 0


def compare(folder: Path, wanted: str) -> int:
    differing = 0
    for name, answers in _chosen(wanted):
        wrong = []
        for frame_name, frame in answers().items():
            before = pl.read_parquet(folder / name / f"{frame_name}.parquet")
            try:
                assert_frame_equal(before, frame, check_dtypes=False, rel_tol=1e-9, abs_tol=1e-9)
            except AssertionError as error:
                wrong.append(f"  {frame_name}: {_told(before, frame, error)}")
        print("\n".join([f"{'DIFFERS' if wrong else 'equal'}  {name}", *wrong]), flush=True)
        differing += bool(wrong)
    return int(differing > 0)


def _told(before: pl.DataFrame, after: pl.DataFrame, error: AssertionError) -> str:
    """The first row that differs, where the frames have one shape."""
    if before.shape != after.shape or before.columns != after.columns:
        return f"{before.shape} rows and columns before, {after.shape} now; {set(before.columns) ^ set(after.columns)}"
    rows = enumerate(zip(before.iter_rows(), after.iter_rows(), strict=True))
    number, (old, new) = next(((at, pair) for at, pair in rows if pair[0] != pair[1]), (0, ((), ())))
    return f"{str(error).splitlines()[0]}; first near row {number}: {old} -> {new}"[:600]


def _chosen(wanted: str) -> list[tuple[str, Callable[[], dict[str, pl.DataFrame]]]]:
    parts = [part for part in wanted.split(",") if part]
    return [(name, answers) for name, answers in cases() if not parts or any(part in name for part in parts)]


def count() -> int:
    for package in ("lcm", "eval", "pipelines"):
        files = sorted((ROOT / package).rglob("*.py"))
        lines: Counter[str] = Counter()
        modules: Counter[str] = Counter()
        for path in files:
            room = path.relative_to(ROOT / package).parts[0]
            lines[room] += len(path.read_text().splitlines())
            modules[room] += 1
        print(f"{package:<28}{lines.total():>8} lines{modules.total():>6} modules")
        for room, number in lines.most_common():
            print(f"  {room:<26}{number:>8} lines{modules[room]:>6} modules")
    for what, command in {
        "a live query": ["-c", _LIVE],
        "lcm evaluate": ["-c", _COMMAND, "evaluate", "embedder=hashing", "tracking=none", "measures.latency.queries=0"],
        "a misspelt key": ["-c", _COMMAND, "evaluate", "rankin.k=3"],
    }.items():
        with tempfile.TemporaryDirectory() as folder:
            options = [f"hydra.run.dir={folder}/run"] if what == "lcm evaluate" else []
            environment = {**os.environ, "PYTHONPATH": str(ROOT)}
            done = subprocess.run(
                [sys.executable, *command, *options], cwd=ROOT, env=environment, capture_output=True, text=True
            )
        print(f"modules that act in {what}: {done.stderr.strip().splitlines()[-1]}")
    return 0


class Acting:
    """Counts the modules of the product of which a function runs meanwhile: what runs while a module is loaded, as what
    makes its dataclasses does, is loading."""

    def __init__(self) -> None:
        self.modules: set[str] = set()
        self._loading = 0

    def __enter__(self) -> "Acting":
        sys.setprofile(self._seen)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _seen(self, frame: FrameType, event: str, arg: Any) -> None:
        name = frame.f_globals.get("__name__", "")
        if not name.startswith(("lcm.", "eval.", "pipelines.")):
            return
        if frame.f_code.co_name == "<module>":
            self._loading += {"call": 1, "return": -1}.get(event, 0)
        elif event == "call" and not self._loading and frame.f_code.co_flags & CO_OPTIMIZED:
            self.modules.add(name)


_LIVE = """
import sys
from tests.baseline import Acting
from eval.dataset.sample import Sample
from lcm.memory.memory import Memory
from pipelines.config.building import build
from pipelines.config.composition import composed

dataset = Sample().load()
one = dataset.part(dataset.workspaces[:1])
with Memory.open(build(composed(["embedder=hashing"]), "memory")) as memory:
    memory.ingest_all(one.transcripts)
    first, second = one.queries[:2]
    memory.rank([first])
    with Acting() as acting:
        memory.rank([second])
print(len(acting.modules), file=sys.stderr)
"""
_COMMAND = """
import sys
from tests.baseline import Acting
from pipelines.cli import main

with Acting() as acting:
    try:
        main()
    except SystemExit:
        pass
print(len(acting.modules), file=sys.stderr)
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["record", "compare", "count"])
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--only", default="", help="parts of names of cases, with commas: unified,live")
    given = parser.parse_args()
    if given.what == "count":
        return count()
    if given.folder is None:
        parser.error("a FOLDER for what is kept")
    return record(given.folder, given.only) if given.what == "record" else compare(given.folder, given.only)


if __name__ == "__main__":
    sys.exit(main())
