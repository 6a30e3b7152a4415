"""What a large memory costs: taking it in, opening it again, what it holds in memory, and one message at a time.

    python experiments/memory_scale.py 50000 [one=2000] [median=300] [SYSTEM ...] [KEY=VALUE ...]

Invents so many messages (conversations of 100, seeded), and for each system (default: unified, hybrid, libravdb,
lancedb_pro), every step in a process of its own: takes them in at once into a new file and closes it; opens it again
and asks one question. `one` messages of one conversation are then taken in one by one, each its own transaction: with
their documents, in the store alone, and the same rows by bare sqlite3 with the same pragmas, in milliseconds each; 0
leaves that out. Seconds are told as wall and as processor time: on a machine that others use only the latter says
something. KEY=VALUE go to the configuration; embedder=hashing unless given.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks import corpus
from benchmarks.ingest import encoded
from lcm.memory.memory import Memory
from lcm.memory.system import System
from lcm.records.conversation import Message, Transcript
from lcm.store.sqlite import connect
from lcm.store.store import Store
from lcm.transcript.parts import decompose
from pipelines.config.building import build
from pipelines.config.composition import composed

SEED = 5
CONVERSATION_MESSAGES = 100
SYSTEMS = ("unified", "hybrid", "libravdb", "lancedb_pro")


def talks(messages: int, median_characters: int, a_conversation: int = CONVERSATION_MESSAGES) -> Iterator[Transcript]:
    natives = islice(corpus.native_messages(SEED, median_characters), messages)
    for first in range(0, messages, a_conversation):
        name = f"talk {first // a_conversation}"
        batch = []
        for number, native in enumerate(islice(natives, a_conversation), start=first):
            said, at = decompose(native), corpus.START + timedelta(minutes=number)
            batch.append(
                Message(f"{name}:{number}", said.role, said.content, name, at, parts=said.parts, envelope=said.envelope)
            )
        yield Transcript(name, tuple(batch))


def resident_mib() -> tuple[float, float]:
    """What this process holds, and of that what is no page of a file."""
    lines = Path("/proc/self/status").read_text().splitlines()
    told = {name: value for name, _, value in (line.partition(":") for line in lines)}
    return tuple(int(told[name].split()[0]) / 1024 for name in ("VmRSS", "RssAnon"))  # type: ignore[return-value]


class Clock:
    """Wall and processor seconds since it was made."""

    def __init__(self) -> None:
        self._wall, self._processor = time.perf_counter(), time.process_time()

    def seconds(self) -> list[float]:
        return [time.perf_counter() - self._wall, time.process_time() - self._processor]


def ingest(system: System, path: Path, messages: int, median: int) -> dict[str, Any]:
    said = list(talks(messages, median))
    clock = Clock()
    memory = Memory.open(system, path)
    memory.ingest_all(said)
    taken, held = clock.seconds(), resident_mib()
    clock = Clock()
    documents = len(memory.documents)
    memory.close()
    return {"ingest": taken, "close": clock.seconds(), "ingest_mib": held, "documents": documents}


def reopen(system: System, path: Path, messages: int, median: int) -> dict[str, Any]:
    clock = Clock()
    with Memory.open(system, path) as memory:
        taken, held = clock.seconds(), resident_mib()
        clock = Clock()
        memory.rank(corpus.queries(1, SEED))
        return {"reopen": taken, "reopen_mib": held, "first query": clock.seconds(), "asked_mib": resident_mib()}


def one_by_one(system: System, path: Path, messages: int, median: int) -> dict[str, Any]:
    """Each message a turn of one conversation: with its documents, in the store alone, and by bare sqlite3."""
    (whole,) = talks(messages, median, messages)
    told = {}
    with Memory.open(system, path) as memory:
        clock = Clock()
        for message in whole.messages:
            memory.take_turn("talk", [message])
            memory.catch_up()
        told["memory"] = clock.seconds()
    with Store(path.with_suffix(".store")) as store:
        clock = Clock()
        for message in whole.messages:
            store.append("talk", [message], system.token_estimator)
        told["store"] = clock.seconds()
    apart = path.with_suffix(".apart")
    with Store(apart) as store:  # one a conversation, so that each has a transaction
        for message in whole.messages:
            store.ingest(Transcript(message.message_id, (message,)), system.token_estimator)
    transactions, bare = encoded(apart), path.with_suffix(".bare")
    Store(bare).close()
    connection = connect(bare)
    clock = Clock()
    for inserts in transactions:
        connection.execute("BEGIN IMMEDIATE")
        for statement, rows in inserts:
            connection.executemany(statement, rows)
        connection.execute("COMMIT")
    told["bare"] = clock.seconds()
    connection.close()
    return {f"one, {name}": [1000 * one / messages for one in seconds] for name, seconds in told.items()}


STEPS = {"ingest": ingest, "reopen": reopen, "one": one_by_one}


def step(name: str, path: str, messages: str, median: str, *overrides: str) -> None:
    """What a process of its own does."""
    system = build(composed(list(overrides)), "memory")
    assert isinstance(system, System)
    sys.stdout.write(json.dumps(STEPS[name](system, Path(path), int(messages), int(median))))


def main(arguments: list[str]) -> None:
    settings = dict(argument.split("=", 1) for argument in arguments if "=" in argument)
    sizes = [int(argument) for argument in arguments if argument.isdecimal()] or [5_000]
    systems = [one for one in arguments if "=" not in one and not one.isdecimal()] or SYSTEMS
    one, median = settings.pop("one", "2000"), settings.pop("median", "300")
    overrides = [f"{key}={value}" for key, value in {"embedder": "hashing", **settings}.items()]
    console = Console(soft_wrap=True)
    for system in systems:
        for messages in sizes:
            with tempfile.TemporaryDirectory() as folder:
                told: dict[str, Any] = {}
                for name, amount in (("ingest", str(messages)), ("reopen", str(messages)), ("one", one)):
                    path = str(Path(folder) / ("one.db" if name == "one" else "memory.db"))
                    command = [sys.executable, __file__, "step", name, path, amount, median, f"system={system}"]
                    if int(amount):
                        done = subprocess.run([*command, *overrides], check=True, stdout=subprocess.PIPE)
                        told |= json.loads(done.stdout)
                numbers = {key: [round(one, 4) for one in value] for key, value in told.items() if key != "documents"}
                load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
                console.print(
                    f"{system} {messages} messages, {told.get('documents')} documents, load {load}: {numbers}"
                )


if __name__ == "__main__":
    if sys.argv[1:2] == ["step"]:
        step(*sys.argv[2:])
    else:
        main(sys.argv[1:])
