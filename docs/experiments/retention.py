"""What of the evidence contexts retain under budgets, by compaction, summarizer and eviction.

    LCM_DATASETS_DIR=~/datasets .venv/bin/python docs/experiments/retention.py [FOLDER] [DATASET ...]

Runs `lcm evaluate` turn by turn, once a row and dataset (locomo, beam), kept in FOLDER (runs/retention); what is there
already is not run again. Prints tables in Markdown: of the evidence of a query, the mean share that the context
assembled under a budget retains, and in parentheses the shares that stand there verbatim and in a summary's words.
"""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from eval.run_folder import read_summary

WINDOW = (
    "replay=per_turn", "arms=none", "tracking=none", "latency.queries=0", "assembly.fresh_tail_count=16",
)  # fmt: skip
SMALL = (
    "compaction.budget_tokens=8000", "compaction.leaf_chunk_tokens=2000", "compaction.leaf_target_tokens=400",
    "compaction.condensed_target_tokens=400", "compaction.fresh_tail_count=16", "compaction.leaf_min_fanout=4",
)  # fmt: skip
"""A model of 8,000 tokens, so that conversations of 20,000 and more are compacted several times over."""
CHUNK = ("compaction.min_leaf_tokens=500",)
RELEVANCE = ("assembly.eviction=relevance",)
ROWS: dict[str, Sequence[str]] = {
    "no compaction": ["compaction=none"],
    "no compaction, by relevance": ["compaction=none", *RELEVANCE],
    "lossless, extractive": ["compaction=lossless", *SMALL, *CHUNK],
    "lossless, extractive, by relevance": ["compaction=lossless", *SMALL, *CHUNK, *RELEVANCE],
    "lossless, truncate": ["compaction=lossless", "summarizer=truncate", *SMALL, *CHUNK],
    "lossless_claw, extractive": ["system=lossless_claw", *SMALL],
    "lossless_claw, truncate": ["system=lossless_claw", "summarizer=truncate", *SMALL],
}
DATASETS: dict[str, Sequence[str]] = {"locomo": ["dataset=locomo"], "beam": ["dataset=beam"]}
BUDGETS = (1000, 2000, 4000, 8000, 16000, 32000)


def main(arguments: Sequence[str]) -> None:
    folder = Path(arguments[0]) if arguments else Path("runs/retention")
    for dataset in arguments[1:] or DATASETS:
        print(f"\n### {dataset}\n")
        heads = " | ".join(f"{budget:,}" for budget in BUDGETS)
        print(
            f"| | {heads} | ratio | summaries | depth | expansions | tokens of them |\n|---|{'---|' * (len(BUDGETS) + 5)}"
        )
        for name, overrides in ROWS.items():
            print(_row(name, summary_of(folder / dataset / name.replace(" ", "_"), [*DATASETS[dataset], *overrides])))


def summary_of(run: Path, overrides: Sequence[str]) -> dict[str, object]:
    if not (run / "summary.json").exists():
        command = [sys.executable, "-m", "pipelines.cli", "evaluate", *WINDOW, *overrides, f"hydra.run.dir='{run}'"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603
    return read_summary(run)


def _row(name: str, summary: dict[str, object]) -> str:
    measures: dict[str, dict[str, float]] = summary["measures"]  # type: ignore[assignment]
    done: dict[str, float] = summary["compression"]  # type: ignore[assignment]

    def mean(measure: str, budget: int) -> float:
        return measures.get(f"{measure}@{budget}", {}).get("value", float("nan"))

    cells = [f"{mean('retained', b):.3f} ({mean('verbatim', b):.3f} {mean('summarised', b):.3f})" for b in BUDGETS]
    made = [f"{done['ratio']:.2f}", f"{done['summaries']:g}", f"{done.get('depth', 0):g}"]
    reached = [f"{mean('expansions', BUDGETS[-1]):.2f}", f"{mean('expansion_tokens', BUDGETS[-1]):,.0f}"]
    return f"| {name} | {' | '.join([*cells, *made, *reached])} |"


if __name__ == "__main__":
    main(sys.argv[1:])
