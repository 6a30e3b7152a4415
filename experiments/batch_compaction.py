"""How batch compaction grows: memory, time for each message, and what a second process is worth.

    python experiments/batch_compaction.py MESSAGES ... [shape=many|one ...] [folder=FOLDER] [workers=1,2]
        [KEY=VALUE ...]

For each number of messages a corpus is made as many conversations (of 100 messages, one Parquet file) and as one, and
compacted by `lcm compact triggers=per_turn` in a process of its own, whose peak of resident memory is that of the
largest process. Settings go to `lcm compact`. Corpora are kept in the folder and made once.
"""

import resource
import sys
import tempfile
from collections.abc import Iterator
from datetime import timedelta
from itertools import islice
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.corpus import START, native_messages
from benchmarks.peak_memory import peak_of
from lcm.records.conversation import Message, Transcript
from lcm.transcript.parquet import write_parquet
from lcm.transcript.parts import decompose

SEED = 5
CONVERSATION_MESSAGES = 100
PIECE_MESSAGES = 500
DEFAULTS = (
    "triggers=per_turn", "tracking=none", "embedder=hashing", "summarizer=extractive", "compaction=lossless",
    "compaction.leaf_chunk_tokens=2000", "compaction.min_leaf_tokens=1000", "compaction.fresh_tail_count=16",
    "compaction.leaf_target_tokens=240", "compaction.condensed_target_tokens=400",
)  # fmt: skip
"""Small enough that conversations of 100 messages are compacted."""


def pieces(messages: int, each: int) -> Iterator[Transcript]:
    """A corpus as pieces: conversations of `each` messages, a minute apart."""
    natives = islice(native_messages(SEED), messages)
    for first in range(0, messages, min(each, PIECE_MESSAGES)):
        name = f"talk {first // each}"
        batch = []
        for number, native in enumerate(islice(natives, min(each, PIECE_MESSAGES)), start=first):
            said = decompose(native)
            batch.append(
                Message(
                    f"{name}:{number}",
                    said.role,
                    said.content,
                    name,
                    START + timedelta(minutes=number),
                    parts=said.parts,
                    envelope=said.envelope,
                )
            )
        yield Transcript(name, tuple(batch))


def corpus(folder: Path, messages: int, shape: str) -> Path:
    path = folder / f"{shape} {messages}.parquet"
    if not path.exists():
        write_parquet(pieces(messages, CONVERSATION_MESSAGES if shape == "many" else messages), path)
    return path


def main(arguments: list[str]) -> None:
    sizes = [int(argument) for argument in arguments if argument.isdecimal()] or [10_000, 100_000]
    settings = dict(argument.split("=", 1) for argument in arguments if "=" in argument)
    shapes = settings.pop("shape", "many,one").split(",")
    workers = [int(number) for number in settings.pop("workers", "1,2").split(",")]
    folder = Path(settings.pop("folder", tempfile.gettempdir()))
    folder.mkdir(parents=True, exist_ok=True)
    overrides = [*DEFAULTS, *(f"{key}={value}" for key, value in settings.items())]
    table = Table("shape", "messages", "processes", "peak MiB", "seconds", "CPU seconds", "CPU µs a message", "file MB")
    for shape in shapes:
        for size in sizes:
            path = corpus(folder, size, shape)
            for number in workers if shape == "many" else workers[:1]:
                with tempfile.TemporaryDirectory(dir=folder) as into:
                    command = [
                        *(sys.executable, "-m", "pipelines.cli", "compact", str(path), f"into={into}"),
                        *(f"shards={number}", *overrides, f"executor.workers={number}"),
                    ]
                    before = _cpu_seconds()
                    peak_mb, seconds = peak_of(command, Path(__file__).parents[1])
                    cpu = _cpu_seconds() - before
                row = (
                    f"{size:,}",
                    str(number),
                    f"{peak_mb:,.0f}",
                    f"{seconds:,.1f}",
                    f"{cpu:,.1f}",
                    f"{cpu / size * 1e6:,.0f}",
                )
                table.add_row(shape, *row, f"{path.stat().st_size / 1e6:,.0f}")
                Console(stderr=True).print(shape, *row)
    Console().print(table)


def _cpu_seconds() -> float:
    """Of all processes that have ended: what other work on the machine changes less than the clock."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main(sys.argv[1:])
