"""How large a haystack may be: time and memory of an evaluated run over invented sessions.

    python experiments/haystack_scale.py 1000000 [folder=FOLDER] [median=80] [KEY=VALUE ...]

Writes so many invented messages (conversations of 100, one Parquet file, made once in the folder) and has
`lcm evaluate` take them as distractors of a pooled dataset, in a process of its own, whose resident memory it watches.
Settings go to `lcm evaluate`; by default hashing embeddings, no control arms and no latencies, and nothing is cached.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import timedelta
from itertools import islice
from pathlib import Path

from rich.console import Console

from benchmarks.corpus import START, native_messages
from eval.run import read_summary
from lcm.records.conversation import Message, Transcript
from lcm.transcript.parquet import write_parquet
from lcm.transcript.parts import decompose

SEED = 5
CONVERSATION_MESSAGES = 100
DEFAULTS = (
    "system=hybrid",
    "dataset=locomo", "replay.haystack=pooled", "embedder=hashing", "arms=none", "measures.latency.queries=0",
    "measures.retention.budgets=[]", "measures.compression=null", "tracking=none", "cache=false",
)  # fmt: skip


def talks(messages: int, median_characters: int) -> Iterator[Transcript]:
    natives = islice(native_messages(SEED, median_characters), messages)
    for first in range(0, messages, CONVERSATION_MESSAGES):
        name = f"talk {first // CONVERSATION_MESSAGES}"
        batch = []
        for number, native in enumerate(islice(natives, CONVERSATION_MESSAGES), start=first):
            said, at = decompose(native), START + timedelta(minutes=number)
            batch.append(
                Message(f"{name}:{number}", said.role, said.content, name, at, parts=said.parts, envelope=said.envelope)
            )
        yield Transcript(name, tuple(batch))


def resident_mb(process: int) -> tuple[int, int]:
    """What a process holds now and has held at most, in MiB."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0, 0
    told = {name: value for name, _, value in (line.partition(":") for line in lines)}
    return tuple(int(told.get(name, "0 kB").split()[0]) // 1024 for name in ("VmRSS", "VmHWM"))  # type: ignore[return-value]


def main(arguments: list[str]) -> None:
    settings = dict(argument.split("=", 1) for argument in arguments if "=" in argument)
    messages = next((int(argument) for argument in arguments if argument.isdecimal()), 10_000)
    folder = Path(settings.pop("folder", tempfile.gettempdir())) / "invented"
    median = int(settings.pop("median", "80"))
    sessions = folder / f"{messages}-{median}"
    if not (sessions / "talks.parquet").exists():
        sessions.mkdir(parents=True, exist_ok=True)
        write_parquet(talks(messages, median), sessions / "talks.parquet")
    run = folder / f"run-{time.time_ns()}"
    overrides = [*DEFAULTS, *(f"{key}={value}" for key, value in settings.items())]
    command = [
        *(sys.executable, "-m", "pipelines.cli", "evaluate", *overrides, f"replay.distractors={messages}"),
        *(f"distractors.transcripts.paths=[{sessions}]", f"hydra.run.dir={run}"),
    ]
    console = Console()
    started, peak = time.perf_counter(), 0
    with subprocess.Popen(command) as process:  # our own command
        while process.poll() is None:
            now, peak = resident_mb(process.pid)[0], max(peak, resident_mb(process.pid)[1])
            console.log(f"{now} MiB")
            time.sleep(5)
    summary = read_summary(run)
    console.print(f"{messages} distractors: peak {peak} MiB, {time.perf_counter() - started:.0f} s")
    console.print(summary["counts"], summary["timing"]["seconds"])


if __name__ == "__main__":
    main(sys.argv[1:])
