"""What batch compaction makes of recorded transcripts, by summarizer; and what contexts then retain.

    LCM_DATASETS_DIR=~/datasets .venv/bin/python experiments/compact_tables.py FOLDER [T5]

Compacts the agent transcripts (agent_transcripts) and BEAM 1M with `system=lossless_claw triggers=per_turn` and each
summarizer, kept in FOLDER; T5 is a model as summarizer.model takes it, without which its rows say so. Prints a table in
Markdown.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import polars as pl

from lcm.records.summary import LEVELS
from lcm.transcript.parquet import write_parquet
from pipelines.config.building import build
from pipelines.config.composition import composed

SUMMARIZERS = ("t5", "extractive", "truncate")


def main(folder: Path, t5: str | None) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    sources = {"agent transcripts": Path(os.environ["LCM_DATASETS_DIR"]) / "agent_transcripts", "BEAM 1M": beam(folder)}
    print(
        "| transcripts | summarizer | conversations | messages | tokens before | after | ratio | summaries by depth | levels | made by |"
    )
    print(f"|{'---|' * 10}")
    for name, path in sources.items():
        for summarizer in SUMMARIZERS:
            if summarizer == "t5" and t5 is None:
                print(f"| {name} | t5 | not obtainable here | | | | | | | |")
                continue
            into = folder / f"{path.stem}_{summarizer}"
            embedder = ["embedder=hashing"] if summarizer == "extractive" else []
            model = [f"summarizer.model='{t5}'"] if summarizer == "t5" else []
            command = [
                *(sys.executable, "-m", "pipelines.cli", "compact", str(path), f"into={into}", "system=lossless_claw"),
                *("triggers=per_turn", "tracking=none", f"summarizer={summarizer}", *embedder, *model),
            ]
            subprocess.run(command, check=False, stdout=subprocess.DEVNULL)  # 2: some files are not transcripts
            print(f"| {name} | {summarizer} | {_row(into)} |", flush=True)


def beam(folder: Path) -> Path:
    path = folder / "beam_1m.parquet"
    if not path.exists():
        dataset = build(composed(["dataset=beam", "dataset.size=1M"]), "dataset").load()
        write_parquet(iter(dataset.transcripts), path)
    return path


def _row(into: Path) -> str:
    rows = pl.read_parquet(into / "report.parquet").filter(pl.col("messages") > 0)
    before, after = rows["tokens_before"].sum(), rows["tokens_after"].sum()
    depths: Counter[int] = Counter()
    methods: Counter[str] = Counter()
    for by_depth, made in rows.select("summaries_by_depth", "methods").iter_rows():
        depths.update(dict(enumerate(by_depth or ())))
        methods.update(json.loads(made or "{}"))
    levels = {level: rows[f"level_{level}"].sum() for level in LEVELS}
    cells = (
        f"{len(rows):,} | {rows['messages'].sum():,} | {before:,} | {after:,} | {before / max(1, after):.2f}",
        " ".join(f"{depths[depth]:,}" for depth in sorted(depths)) or "-",
        ", ".join(f"{n:,} {level}" for level, n in levels.items() if n) or "-",
        ", ".join(f"{n:,} {method}" for method, n in methods.most_common()) or "-",
    )
    return " | ".join(cells)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None)
