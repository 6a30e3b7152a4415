"""How large a loss `lcm regress` sees between two revisions of an external memory, with questions that nobody asked.

    .venv/bin/python experiments/sentinel_power.py [FOLDER]

The memory is docs/examples/external/bm25.py; its revisions are forgetful.py beside it, run for real: some drop a share
of what they are told, others move scores by 3 % and lose nothing. Each is judged by the gate of `lcm regress` on all
questions that `lcm questions make` makes of the long sample, and on random parts of them. Prints a table in Markdown.
"""

import os
import shlex
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from eval.comparison.pairing import comparable
from eval.regression.regression import Regression
from eval.run import SUMMARY, Run
from lcm.consent import COMMANDS
from pipelines import questions as questions_command
from pipelines.config import composition
from pipelines.steps.point import evaluated

SESSIONS = "data/sample_long/transcripts/brook.jsonl"
MEMORY = ("python3", "docs/examples/external/forgetful.py")
COMMON = (
    "dataset=own", f"dataset.paths=[{SESSIONS}]", "system=external", "arms=none", "measures.latency.queries=0",
    "measures.retention.budgets=[]",
)  # fmt: skip
REVISIONS: Sequence[tuple[str, float, float, int]] = (
    ("near ties", 0, 0.03, 8),
    *((f"forgets {share:.0%}", share, 0, 3) for share in (0.1, 0.05, 0.02)),
)
"""What it is told as, the share that it forgets, its noise, and how many seeds."""
SIZES = (None, 200, 100)
"""Questions: all, or a random part of so many."""
DRAWS = 20
"""Random parts that each revision is judged on."""
RESAMPLES = 2000
"""`lcm regress` takes 10,000."""


def main(arguments: Sequence[str]) -> None:
    folder = Path(arguments[0]) if arguments else Path("runs/sentinel_power")
    folder.mkdir(parents=True, exist_ok=True)
    questions = folder / "questions.jsonl"
    if not questions.exists():
        questions_command.main(["make", SESSIONS, f"into={questions}"])
    base = comparable(ran(folder, questions, 0, 0, 0), "base")
    print("| revision | true loss of recall@10, points | "
          + " | ".join(f"{size or judged(base)} questions: regressed | cannot tell" for size in SIZES)
          + " |\n|---|--:|" + "--:|--:|" * len(SIZES))  # fmt: skip
    for name, share, noise, seeds in REVISIONS:
        found: list[Counter[str]] = [Counter() for _ in SIZES]
        losses = []
        for seed in range(1, seeds + 1):
            side = comparable(ran(folder, questions, share, seed, noise), name)
            losses.append(100 * (recall(base) - recall(side)))
            for size, verdicts in zip(SIZES, found, strict=True):
                for draw in range(DRAWS if size else 1):
                    asked = base.queries.sample(size, seed=DRAWS * seed + draw) if size else base.queries
                    pair = (restricted(one, asked) for one in (base, side))
                    verdicts[Regression(changed_queries=0, resamples=RESAMPLES).compare(*pair).gate] += 1
        cells = [f"{one[gate]} of {one.total()}" for one in found for gate in ("regressed", "cannot tell")]
        told = f"{sum(losses) / seeds:.1f} ({min(losses):.1f} to {max(losses):.1f})"
        print(f"| {name} | {told} | {' | '.join(cells)} |", flush=True)


def ran(folder: Path, questions: Path, share: float, seed: int, noise: float) -> Path:
    """A real run; one that is there is not run again."""
    command = [*MEMORY, str(share), str(seed), str(noise)]
    os.environ[COMMANDS] = shlex.join(command)
    into = folder / f"{share}_{seed}_{noise}"
    if not (into / SUMMARY).exists():
        words = ",".join(f"'{word}'" for word in command)
        overrides = [*COMMON, f"dataset.questions={questions}", f"external.command=[{words}]"]
        evaluated(composition.composed(overrides), into, lambda *_: None)
    return into


def recall(side: Run) -> float:
    return float(side.values.filter(measure="recall@10")["value"].mean())  # type: ignore[arg-type]


def judged(side: Run) -> int:
    return len(side.values.filter(measure="recall@10"))


def restricted(side: Run, asked: pl.DataFrame) -> Run:
    return replace(
        side,
        queries=side.queries.join(asked, on="query_id", how="semi", maintain_order="left"),
        values=side.values.join(asked, on="query_id", how="semi", maintain_order="left"),
    )


if __name__ == "__main__":
    main(sys.argv[1:])
