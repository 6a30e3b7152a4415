"""Where `system=unified` loses judged messages, by stage: by kind of talk and by category of question, in Markdown.

    LCM_DATASETS_DIR=~/datasets .venv/bin/python docs/experiments/ranking_losses.py --system "unified: system=unified"

Every judged message of every kind (`talk_kinds.py`) is counted once:

- found: one of the first ten documents stands for it, be it as a near duplicate's better one;
- 11 to 40: a later one of those that the ranking lets through does;
- session crowding, crowding, near duplicates: among the first ten before that stage, and not behind it;
- cut: found by the source, and not let through;
- not in the pool: no document that the source finds stands for it;
- no document: none that the asker may see does.

What was found before with the same components in the same dataset comes from `--folder`.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import polars as pl
from evidence_rows import BEHIND, rank_judged
from ranking_tables import Tried, heading, named, row, with_groups
from system_parts import COMMON, key_of
from talk_kinds import EVERY_KIND, overrides

from eval.dataset.dataset import Dataset
from eval.measures.ranked_messages import with_near_duplicates
from eval.replay.bulk import Bulk
from lcm.errors import LcmError
from lcm.memory.memory import Memory
from lcm.memory.system import System
from lcm.protocols.retrieval import Batch
from lcm.retrieval.embedder.kept import kept
from lcm.retrieval.ranking.ordering import best_first, with_rank
from lcm.retrieval.ranking.pipeline import Ranking
from pipelines.config import building, composition

FIRST = 10
FOUND, LATER, CUT, NOT_IN_POOL, NO_DOCUMENT = "found", "11 to 40", "cut", "not in the pool", "no document"
STAGES = ("fusion", *BEHIND)
"""Those behind which documents stand in an order that counts, first to last."""
PLACES = (FOUND, LATER, *(stage.replace("_", " ") for stage in STAGES[1:]), CUT, NOT_IN_POOL, NO_DOCUMENT)
_MESSAGE = ("query_id", "message_id")


@dataclass(slots=True)
class Seen:
    """A stage that keeps how well each judged message stands here: the best rank of a document that stands for it."""

    judged: pl.DataFrame
    frames: list[pl.DataFrame] = field(default_factory=list)
    """Columns query_id, message_id, rank; null = no document of the frame stands for it, but another does."""

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        stands_for = batch.documents.select("document_id", message_id="source_message_ids").explode("message_id")
        asked = self.judged.join(batch.queries, on="query_id", how="semi")
        documents = asked.join(stands_for, on="message_id", how="inner")
        columns = [
            name for name in ("query_id", "document_id", "rank", "stands_for") if name in (*frame.columns, "rank")
        ]
        ranked = with_near_duplicates(with_rank(best_first(frame)).select(columns))
        best = documents.join(ranked, on=["query_id", "document_id"], how="left").group_by(_MESSAGE)
        self.frames.append(best.agg(pl.col("rank").min()))
        return frame


def places(kind: str, tried: Tried, folder: Path) -> pl.DataFrame:
    """Rows kind, category, query_id, message_id and place, one of `PLACES`, of every judged message of a kind."""
    config = composition.composed([*COMMON, *overrides(kind, folder), *tried.made_by(kind)])
    dataset: Dataset = building.build(config, "dataset").load()
    memory: System = building.build(config, "memory")
    memory = replace(memory, embedder=kept(memory.embedder))
    replay: Bulk = building.build(config, "replay")
    found = folder / f"{kind}-{key_of([memory, replay], [dataset.digest], Memory)}.parquet"
    if not found.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = found.with_suffix(".part")
        _placed(memory, replay, dataset).select(pl.lit(kind).alias("kind"), pl.all()).write_parquet(unfinished)
        unfinished.replace(found)
    return pl.read_parquet(found)


def _placed(memory: System, replay: Bulk, dataset: Dataset) -> pl.DataFrame:
    category = {query.query_id: query.category or "" for query in dataset.queries}
    judged = pl.DataFrame(
        [
            (category[query_id], query_id, message_id)
            for query_id, messages in dataset.evidence().items()
            for message_id in dict.fromkeys(messages)
        ],
        schema=["category", *_MESSAGE],
        orient="row",
    )
    ranking = memory.ranking
    if not isinstance(ranking, Ranking) or any(ranking.stages.get(name) is None for name in STAGES):
        raise LcmError(f"a system's ranking must have the stages {', '.join(STAGES)}, as system=unified has them")
    seen = {name: Seen(judged.select(_MESSAGE)) for name in (*STAGES, "limit")}
    stages = {}
    for name, stage in ranking.stages.items():
        stages[name] = stage
        if name in seen:
            stages[f"seen behind {name}"] = seen[name]
    rank_judged(memory, replay, dataset, replace(ranking, stages=stages))
    placed = judged
    for name, stage in seen.items():
        ranks = pl.concat(stage.frames).rename({"rank": name}).with_columns(is_document=pl.lit(True))
        placed = placed.join(ranks, on=_MESSAGE, how="left", coalesce=True, maintain_order="left", suffix=f"_{name}")
    assert len(placed) == len(judged), "every judged message is seen once"
    place = pl.when(pl.col("is_document").is_null()).then(pl.lit(NO_DOCUMENT))
    place = place.when(pl.col(STAGES[0]).is_null()).then(pl.lit(NOT_IN_POOL))
    place = place.when(pl.col("limit") <= FIRST).then(pl.lit(FOUND))
    for before, behind in reversed([*zip(STAGES, STAGES[1:], strict=False)]):
        place = place.when(pl.col(before) <= FIRST).then(pl.lit(behind.replace("_", " ")))
    return placed.with_columns(
        place=place.when(pl.col("limit").is_null()).then(pl.lit(CUT)).otherwise(pl.lit(LATER))
    ).select("category", *_MESSAGE, "place")


def table(found: pl.DataFrame, by: Sequence[str]) -> None:
    """Print how many judged messages of each group are in each place."""
    for line in heading((*by, "judged", *PLACES), len(by)):
        print(line)
    for names, rows in found.group_by(by, maintain_order=True):
        counts = [rows.filter(place=place).height for place in PLACES]
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
