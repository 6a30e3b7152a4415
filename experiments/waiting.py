"""How long turns wait for compaction, with and without the background, and what contexts retain meanwhile.

    LCM_DATASETS_DIR=~/datasets .venv/bin/python experiments/waiting.py [FOLDER]

Runs `lcm evaluate 'measures=[waiting,survival]'` over an agent's long session, ten short ones and a long talk, with a
simulated summarizer that takes 5 and 30 seconds a call, a turn a minute; runs are kept in FOLDER (runs/waiting), and
what is there already is not run again. Then the same turns in real time, hurried, with a summarizer that sleeps half a
second, each turn by the clock. Prints tables in Markdown.
"""

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from eval.replay.workspace_replay import turns
from eval.run import read_summary, read_table
from lcm.compaction.scheduling import Synchronous
from lcm.memory.memory import Memory
from lcm.protocols.compaction import Summarizer
from lcm.records.summary import SummaryRequest, SummaryResult
from pipelines.config.building import build
from pipelines.config.composition import composed

COMMON = (
    "replay=per_turn", "compaction=lossless", "assembly=lossless", "embedder=hashing", "summarizer=extractive",
    "arms=none", "tracking=none", "report=false",
    "compaction.fresh_tail_count=8", "compaction.leaf_min_fanout=4", "compaction.leaf_target_tokens=400",
    "compaction.condensed_target_tokens=400", "assembly.fresh_tail_count=8",
)  # fmt: skip
A_TURN = "scheduling.replayed.seconds_a_turn=60"
HOME = Path(os.environ.get("LCM_DATASETS_DIR", "datasets"))
AGENTS = HOME / "agent_transcripts"
PI, SWE = ([f"dataset.paths=[{AGENTS / name}]", "dataset=transcripts"] for name in ("pi_session", "swe_agent"))
DATASETS: Mapping[str, tuple[int, Sequence[str]]] = {
    "pi_session, 128k": (128000, PI),
    "swe_agent, 16k": (16000, SWE),
    "swe_agent, 8k": (8000, SWE),
    "beam, 32k": (32000, ["dataset=beam", "dataset.only=[beam-100K-2]"]),
}
"""Name -> budget of the model's context in tokens, and overrides."""
SECONDS = (5, 30)
TOLD = ("mean", "p50", "p95", "p99", "max", "share", "context_tokens", "compacted", "unfinished")
SLEEP_S, PAUSE_S = 0.5, 0.6
"""Of the live session: a call of the summarizer, and what passes between two turns."""


def main(arguments: Sequence[str]) -> None:
    folder = Path(arguments[0]) if arguments else Path("runs/waiting")
    print(f"| | a call | | turns | {' | '.join(TOLD)} |\n|---|---|---|---|{'---|' * len(TOLD)}")
    for name in DATASETS:
        for seconds in SECONDS:
            summary = read_summary(made(folder, name, seconds))
            for arm, entries in summary["waiting"].items():
                told = " | ".join(_number(entries[one]["value"]) for one in TOLD)
                print(f"| {name} | {seconds} s | {arm} | {entries['mean']['n']} | {told} |", flush=True)
    print("\nretained, mean over all turns\n\n| | synchronous | 5 s a call | 30 s |\n|---|---|---|---|")
    for name in DATASETS:
        runs = [made(folder, name, seconds) for seconds in (0, *SECONDS)]
        print(f"| {name} | {' | '.join(f'{_retained(run):.3f}' for run in runs)} |", flush=True)
    print(f"\nlive, {SLEEP_S} s a call, a turn every {PAUSE_S} s\n")
    print(f"| | turns | calls | p50 | p95 | p99 | max | summaries |\n|---|{'---|' * 7}")
    for name in ("synchronous", "asynchronous"):
        print(f"| {name} | {' | '.join(map(_number, live(is_asynchronous=name == 'asynchronous')))} |", flush=True)


def made(folder: Path, name: str, seconds: int) -> Path:
    """A run with a call of so many seconds; 0 = synchronous, whatever a call takes."""
    budget, dataset = DATASETS[name]
    run = folder / f"{name}-{seconds}".replace(", ", "-")
    if not (run / "summary.json").exists():
        slow = f"scheduling.replayed.seconds_per_call={seconds}"
        scheduling = ["scheduling=asynchronous", f"scheduling.budget_tokens={budget}", A_TURN, slow]
        command = [
            *(sys.executable, "-m", "pipelines.cli", "evaluate", "measures=[waiting,survival]", *dataset, *COMMON),
            *(scheduling if seconds else ["measures.waiting=null"]),
            f"compaction.budget_tokens={budget}", f"compaction.leaf_chunk_tokens={budget // 8}",
            f"compaction.min_leaf_tokens={budget // 32}",
            "measures.survival.cycles=null", f"measures.survival.budgets=[{budget}]", f"hydra.run.dir={run}",
        ]  # fmt: skip
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return run


def _retained(run: Path) -> float:
    shown = pl.col("budget").is_not_null() & (pl.col("kind") == "all") & (pl.col("measure") == "retained")
    rows = read_table(run / "survival.parquet").filter(pl.col("arm") == "system", shown)
    return float(np.mean(rows["value"].to_numpy()))


class Sleeping:
    """A summarizer that takes its time."""

    def __init__(self, summarizer: Summarizer) -> None:
        self.summarizer, self.calls = summarizer, 0

    def summarize(self, requests: Sequence[SummaryRequest], *, incidents: Counter[str]) -> list[SummaryResult]:
        self.calls += len(requests)
        time.sleep(SLEEP_S * len(requests))
        return self.summarizer.summarize(requests, incidents=incidents)


def live(*, is_asynchronous: bool) -> list[float]:
    """Turns, calls, percentiles of the seconds that `take_turn` took, and summaries made."""
    budget = 8000
    sizes = [
        f"compaction.{key}={value}"
        for key, value in (("budget_tokens", budget), ("leaf_chunk_tokens", 1000), ("min_leaf_tokens", 250))
    ]
    config = composed([*COMMON, *sizes, "dataset=sample_long", "scheduling=asynchronous",
                       f"scheduling.budget_tokens={budget}"])  # fmt: skip
    system: Any = build(config, "memory")
    summarizer = Sleeping(system.compaction.summarizer)
    system = replace(system, compaction=replace(system.compaction, summarizer=summarizer))
    if not is_asynchronous:
        system = replace(system, scheduling=Synchronous())
    (transcript,) = build(config, "dataset").load().transcripts
    took = []
    with Memory.open(system) as memory:
        for turn in turns(transcript.messages):
            began = time.perf_counter()
            memory.take_turn(transcript.conversation_id, turn, clock=time.monotonic)
            took.append(time.perf_counter() - began)
            time.sleep(PAUSE_S)
        memory.settle()
        made_summaries = len(memory.store.summaries(transcript.conversation_id))
    return [len(took), summarizer.calls, *np.percentile(took, (50, 95, 99)), max(took), made_summaries]


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) or value > 1000 else f"{value:.3f}"


if __name__ == "__main__":
    main(sys.argv[1:])
