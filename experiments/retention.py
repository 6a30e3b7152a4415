"""What of the evidence contexts retain under budgets, by compaction, summarizer and eviction.

    LCM_DATASETS_DIR=~/datasets .venv/bin/python experiments/retention.py [FOLDER] [DATASET ...]

Runs `lcm evaluate` turn by turn, once a row and dataset (locomo, beam_1m), kept in FOLDER (runs/retention); what is there
already is not run again. Prints tables in Markdown: of the evidence of a query, the mean share that the context
assembled under a budget retains, and in parentheses the shares that stand there verbatim and in a summary's words.
"""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from eval.run import read_summary

COMMON = ("replay=per_turn", "arms=none", "tracking=none", "measures.latency.queries=0")
SMALL = (
    "compaction.budget_tokens=8000", "compaction.leaf_chunk_tokens=2000", "compaction.leaf_target_tokens=400",
    "compaction.condensed_target_tokens=400", "compaction.fresh_tail_count=16", "compaction.leaf_min_fanout=4",
)  # fmt: skip
"""A model of 8,000 tokens, so that conversations of 20,000 and more are compacted several times over."""
MEDIUM = (
    "compaction.budget_tokens=32000", "compaction.leaf_chunk_tokens=5000", "compaction.leaf_target_tokens=600",
    "compaction.condensed_target_tokens=600", "compaction.fresh_tail_count=8", "compaction.leaf_min_fanout=4",
)  # fmt: skip
"""A model of 32,000 tokens, for messages of some 500."""
RELEVANCE = ("assembly.eviction=relevance",)
ROWS: dict[str, Sequence[str]] = {
    "no compaction": ["system=hybrid", "compaction=none"],
    "no compaction, by relevance": ["system=hybrid", "compaction=none", *RELEVANCE],
    "lossless, extractive": ["system=hybrid", "compaction=lossless"],
    "lossless, extractive, by relevance": ["system=hybrid", "compaction=lossless", *RELEVANCE],
    "lossless, truncate": ["system=hybrid", "compaction=lossless", "summarizer=truncate"],
    "lossless_claw, extractive": ["system=lossless_claw"],
    "lossless_claw, truncate": ["system=lossless_claw", "summarizer=truncate"],
}
DATASETS: dict[str, tuple[Sequence[str], Sequence[str]]] = {
    "locomo": (["dataset=locomo", "assembly.fresh_tail_count=16"], SMALL),
    "beam_1m": (["dataset=beam", "dataset.size=1M", "embedder=hashing", "assembly.fresh_tail_count=8"], MEDIUM),
}
"""Dataset -> what chooses it, and the window where there is compaction."""
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
            chosen, window = DATASETS[dataset]
            made = [] if "compaction=none" in overrides else [*window, *_least(overrides, window)]
            summary = summary_of(folder / dataset / name.replace(" ", "_"), [*chosen, *overrides, *made])
            print(_row(name, summary), flush=True)


def _least(overrides: Sequence[str], window: Sequence[str]) -> Sequence[str]:
    """A leaf chunk of 2,000 tokens must not be less than the least leaf."""
    return ["compaction.min_leaf_tokens=500"] if window and "compaction=lossless" in overrides else []


def summary_of(run: Path, overrides: Sequence[str]) -> dict[str, object]:
    if not (run / "summary.json").exists():
        command = [sys.executable, "-m", "pipelines.cli", "evaluate", *COMMON, *overrides, f"hydra.run.dir='{run}'"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return read_summary(run)


def _row(name: str, summary: dict[str, object]) -> str:
    measures: dict[str, dict[str, float]] = summary["measures"]  # type: ignore[assignment]
    done: dict[str, float] = summary["compression"]  # type: ignore[assignment]

    def mean(measure: str, budget: int) -> float:
        return measures.get(f"{measure}@{budget}", {}).get("value", float("nan"))

    cells = [f"{mean('retained', b):.3f} ({mean('verbatim', b):.3f} {mean('summarised', b):.3f})" for b in BUDGETS]
    made = (
        [f"{done['ratio']:.2f}", f"{done['summaries']:g}", f"{done.get('depth', 0):g}"]
        if done["summaries"]
        else 3 * ["-"]
    )
    reached = [f"{mean('expansions', BUDGETS[-1]):.2f}", f"{mean('expansion_tokens', BUDGETS[-1]):,.0f}"]
    return f"| {name} | {' | '.join([*cells, *made, *(reached if done['summaries'] else ('-', '-'))])} |"


if __name__ == "__main__":
    main(sys.argv[1:])
