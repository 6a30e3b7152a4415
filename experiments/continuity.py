"""Continuity beside lossless assembly: what must hold of every context, and what contexts retain of the evidence.

    LCM_DATASETS_DIR=~/datasets .venv/bin/python experiments/continuity.py laws [DATASET ...]
    LCM_DATASETS_DIR=~/datasets .venv/bin/python experiments/continuity.py table [FOLDER] [DATASET ...]

`laws` assembles a context of every conversation of every dataset, under every budget, for its questions or its last
words, with a small set of authored blocks, and checks what `broken` names; it prints how many contexts were looked at,
and ends with 1 where one breaks a law. `table` runs `lcm evaluate` once a row and dataset, kept in FOLDER
(runs/continuity); what is there already is not run again. Recall is that of the ranking, the same for rows with the
same ranking; retained is the mean share of a query's evidence that the context under a budget holds, and in parentheses
what stands there verbatim and in a summary's words.
"""

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from eval.dataset.dataset import Dataset
from eval.run import read_summary
from lcm.memory.memory import Memory
from lcm.protocols.context import ContextRequest
from lcm.records.context import Context
from lcm.records.document import AuthoredNode
from lcm.records.query import Query
from pipelines.config import building, composition

BUDGETS = (1000, 2000, 4000, 8000, 16000, 32000)
DATASETS = {
    "locomo": ["dataset=locomo"],
    "beam_100k": ["dataset=beam"],
    "beam_500k": ["dataset=beam", "dataset.size=500K", "embedder=hashing"],
    "beam_1m": ["dataset=beam", "dataset.size=1M", "embedder=hashing"],
    "longmemeval": ["dataset=longmemeval", "embedder=hashing"],
    "personamem": ["dataset=personamem", "embedder=hashing"],
    "qmsum": ["dataset=qmsum", "embedder=hashing"],
    "dialogsum": ["dataset=dialogsum", "embedder=hashing"],
    "transcripts": [
        "dataset=transcripts",
        "dataset.paths=[${oc.env:LCM_DATASETS_DIR}/agent_transcripts]",
        "embedder=hashing",
    ],  # fmt: skip
}
JUDGED = ("locomo", "beam_100k", "beam_500k", "beam_1m")
CLUSTERS = ("compaction=clustering", "summarizer=routed", "guidance=corrected", "summary_documents=searchable")
ROWS: dict[str, Sequence[str]] = {
    "lossless": ["system=hybrid", "assembly=lossless"],
    "lossless, tail of 8": ["system=hybrid", "assembly=lossless", "assembly.fresh_tail_count=8"],
    "continuity": ["system=hybrid", "assembly=continuity"],
    "continuity over clusters": ["system=hybrid", "assembly=continuity", *CLUSTERS],
    "system=libravdb, continuity": ["system=libravdb", "assembly=continuity"],
    "system=libravdb": ["system=libravdb"],
}
LAWFUL: dict[str, Sequence[str]] = {
    "continuity over clusters": ROWS["continuity over clusters"],
    "system=libravdb": ROWS["system=libravdb"],
}
MOST_QUERIES = 12
"""Of a conversation, for the laws."""


class Written:
    """Six blocks, two of each tier."""

    def nodes(self, *, incidents: Counter[str]) -> list[AuthoredNode]:
        tiers = ("hard", "hard", "soft", "soft", "variant", "variant")
        texts = (
            "Never push to main.", "Answer in English.", "Prefer short answers.", "Name your sources.",
            "The office is in Lisbon.", "The cat is called Ada.",
        )  # fmt: skip
        return [
            AuthoredNode(f"AGENTS.md#{i:06}", "AGENTS.md", tier, "ListItem", text, 40 * i, i, 6)  # type: ignore[arg-type]
            for i, (tier, text) in enumerate(zip(tiers, texts, strict=True))
        ]


def broken(context: Context, memory: Memory, conversation_id: str, nodes: Sequence[AuthoredNode]) -> Iterator[str]:
    """The laws that a context breaks, by name."""
    by_tier: dict[str, list[str]] = {}
    for item in context.items:
        by_tier.setdefault(item.context_tier or "none", []).append(item.item_id)
    hard = [node.node_id for node in nodes if node.tier == "hard"]
    soft = [node.node_id for node in nodes if node.tier == "soft"]
    if by_tier.get("hard", []) != hard:
        yield "every hard block stands in every context, in authored order"
    shown = by_tier.get("soft", [])
    if shown != soft[: len(shown)]:
        yield "soft blocks are a prefix in authored order"
    ids = [item.item_id for item in context.items]
    if len(set(ids)) < len(ids):
        yield "nothing stands twice"
    said = [entry.item_id for entry in memory.store.context(conversation_id) if entry.is_message]
    tail = by_tier.get("tail", [])
    if tail != said[len(said) - len(tail) :]:
        yield "the tail is the newest turns, without a gap"
    base = context.notes["base_turns"]
    if len(tail) < min(base, len(said)):
        yield "the base tail lies within the tail"
    recalled = [item for item in context.items if item.source_message_ids]
    if any(set(item.source_message_ids) <= set(tail) for item in recalled):
        yield "what the tail shows is not recalled"
    if sum(item.tokens for item in context.items) != context.tokens:
        yield "a context costs what its items cost"
    if context.tokens > context.budget_tokens and not context.is_degraded:
        yield "a context is within its budget, or says that it is degraded"
    if context.is_degraded and set(by_tier) - {"hard", "tail"} and context.notes["degraded"]:
        yield "a degraded context is hard text and turns alone"


def check(name: str, overrides: Sequence[str]) -> Counter[str]:
    """Assemble a dataset's conversations; counts contexts, degraded ones, and broken laws."""
    config = composition.composed([*DATASETS[name], *overrides, "tracking=none"])
    dataset: Dataset = building.build(config, "dataset").load()
    system = replace(building.build(config, "memory"), authored=Written())
    nodes = Written().nodes(incidents=Counter())
    found: Counter[str] = Counter()
    for workspace in dict.fromkeys(transcript.workspace_id for transcript in dataset.transcripts):
        with Memory.open(system) as memory:
            transcripts = [one for one in dataset.transcripts if one.workspace_id == workspace and one.messages]
            for transcript in transcripts:
                memory.ingest(transcript)
            memory.compact()
            asked = [query for query in dataset.queries if query.workspace_id == workspace]
            for transcript in transcripts:
                key = transcript.conversation_id
                last = memory.store.last_said(key)
                own = [q for q in asked if q.conversation_id in (None, key)][:MOST_QUERIES] or [
                    Query("last words", transcript.messages[-1].content[:2000] or "what now?", last)
                ]
                asks = [replace(query, conversation_id=key, asked_at=max(query.asked_at, last)) for query in own]
                recalled = memory.recalled(memory.rank(asks))
                wanted = [
                    ContextRequest(budget, query.text, recalled.get(query.query_id, ()), query.asked_at)
                    for query in asks
                    for budget in BUDGETS
                ]
                for context in memory.assemble(key, wanted):
                    found["contexts"] += 1
                    found["degraded"] += context.is_degraded
                    found.update(broken(context, memory, key, nodes))
        found["workspaces"] += 1
    return found


def laws(names: Sequence[str]) -> int:
    broke = 0
    print("| dataset | setting | contexts | degraded | broken laws |\n|---|---|---|---|---|")
    for name in names or DATASETS:
        for row, overrides in LAWFUL.items():
            found = check(name, overrides)
            wrong = {law: n for law, n in found.items() if law not in ("contexts", "degraded", "workspaces")}
            told = "; ".join(f"{law}: {n}" for law, n in wrong.items()) or "none"
            print(f"| {name} | {row} | {found['contexts']:,} | {found['degraded']:,} | {told} |", flush=True)
            broke += bool(wrong)
    return 1 if broke else 0


def table(arguments: Sequence[str]) -> int:
    folder = Path(arguments[0]) if arguments else Path("runs/continuity")
    for name in arguments[1:] or JUDGED:
        print(f"\n### {name}\n")
        heads = " | ".join(f"{budget:,}" for budget in BUDGETS)
        print(f"| | recall@5 | recall@10 | {heads} | tokens at {BUDGETS[2]:,} |\n|---|{'---|' * (len(BUDGETS) + 3)}")
        for row, overrides in ROWS.items():
            print(_row(row, _summary(folder / name / row.replace(" ", "_"), [*DATASETS[name], *overrides])), flush=True)
    return 0


def _summary(run: Path, overrides: Sequence[str]) -> dict[str, Any]:
    if not (run / "summary.json").exists():
        quiet = ["arms=none", "tracking=none", "measures.latency.queries=0", f"hydra.run.dir='{run}'"]
        command = [sys.executable, "-m", "pipelines.cli", "evaluate", *overrides, *quiet]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return read_summary(run)


def _row(name: str, summary: dict[str, Any]) -> str:
    measures = summary["measures"]

    def mean(measure: str) -> float:
        return float(measures.get(measure, {}).get("value", float("nan")))

    recall = [f"{mean(f'recall@{k}'):.3f}" for k in (5, 10)]
    kept = [f"{mean(f'retained@{b}'):.3f} ({mean(f'verbatim@{b}'):.3f} {mean(f'summarised@{b}'):.3f})" for b in BUDGETS]
    return f"| {name} | {' | '.join([*recall, *kept])} | {mean(f'context_tokens@{BUDGETS[2]}'):,.0f} |"


if __name__ == "__main__":
    command, *rest = sys.argv[1:] or ["laws"]
    sys.exit(laws(rest) if command == "laws" else table(rest))
