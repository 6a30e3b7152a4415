"""Where a system loses judged messages, by stage: by kind of talk and by category of question, in Markdown.

    LCM_DATASETS_DIR=~/datasets .venv/bin/python experiments/ranking_losses.py --system "unified: system=unified"

Every judged message of every kind (`talk_kinds.py`) is counted once, in its place (`eval/ladder/losses.py`): found among
the first ten documents, late, the stage that lost it, the source, or why nothing that may be seen stands for it. What
was found before with the same components in the same dataset comes from `--folder`.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl
from ranking_tables import Tried, heading, named, row, with_groups
from system_parts import COMMON, key_of
from talk_kinds import EVERY_KIND, overrides

from eval.dataset.dataset import Dataset
from eval.experiment.workspace import WorkspaceEvaluator
from eval.ladder.losses import losses, places_in_order
from eval.replay.workspace_replay import Bulk
from lcm.errors import LcmError
from lcm.memory.memory import Memory
from lcm.memory.system import System
from lcm.retrieval.embedder.cache import kept
from pipelines.config import building, composition


def places(kind: str, tried: Tried, folder: Path) -> pl.DataFrame:
    """Rows kind and `LOSSES_SCHEMA` of every judged message of a kind."""
    config = composition.composed([*COMMON, *overrides(kind, folder), *tried.made_by(kind)])
    dataset: Dataset = building.build(config, "dataset").load()
    memory: System = building.build(config, "memory")
    memory = replace(memory, embedder=kept(memory.embedder))
    replay: Bulk = building.build(config, "replay")
    found = folder / f"{kind}-{key_of([memory, replay], [dataset.digest, losses.__module__], Memory)}.parquet"
    if not found.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = found.with_suffix(".part")
        placed = losses(WorkspaceEvaluator(dataset, memory, replay, measures={}), lambda _: None)
        placed.select(pl.lit(kind).alias("kind"), pl.all()).write_parquet(unfinished)
        unfinished.replace(found)
    return pl.read_parquet(found)


def table(found: pl.DataFrame, by: Sequence[str]) -> None:
    """Print how many judged messages of each group are in each place."""
    order = places_in_order(found)
    for line in heading((*by, "judged", *order), len(by)):
        print(line)
    for names, rows in found.group_by(by, maintain_order=True):
        counts = [rows.filter(place=place).height for place in order]
        assert sum(counts) == len(rows), "each judged message is in one place"
        print(row(*names, len(rows), *counts))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--system", type=named, default=("unified", "system=unified"), metavar="'NAME: OVERRIDES'")
    parser.add_argument("--kind", action="append", choices=EVERY_KIND)
    parser.add_argument("--folder", default="runs/ranking_losses", type=Path, help="where places are kept")
    given = parser.parse_args()
    tried, parts = Tried(given.system[0], given.system[1].split()), []
    try:
        for kind in given.kind or EVERY_KIND:
            parts.append(places(kind, tried, given.folder.resolve()))
            print(f"{kind}: {len(parts[-1])} judged messages", file=sys.stderr, flush=True)
    except LcmError as error:
        parser.error(str(error))
    found = pl.concat(parts)
    table(with_groups(found), ["kind"])
    print()
    table(found, ["kind", "category"])


if __name__ == "__main__":
    main()
