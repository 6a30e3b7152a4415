"""What a pool keeps of the ranking of everything: `system=unified` with evidence of all documents and of a pool, as Markdown.

    LCM_DATASETS_DIR=~/datasets .venv/bin/python experiments/pool_recall.py locomo coding [--together] [--invented N] \
        [KEY=VALUE ...]

Every question of a kind of talk (`talk_kinds.py`) is answered twice by one memory: once from all that it sees, once from
pools, whatever the size. `--together` puts all conversations of the kind into one haystack, `--invented` as many invented
messages (`haystack_scale.py`) beside them. Settings go to the system: `ranking.source.best=100`.
"""

import argparse
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from haystack_scale import talks
from talk_kinds import EVERY_KIND, overrides

from eval.dataset.dataset import Dataset
from lcm.memory.memory import Memory
from lcm.memory.system import System
from lcm.records.query import Query
from lcm.retrieval.ranking.evidence.text_evidence import Pool
from lcm.retrieval.ranking.pipeline import Ranking
from pipelines.config import building, composition

EVERYTHING = 10**9
Found = list[tuple[str, frozenset[str]]]
"""Document id and the messages that it and those like it say, best first."""


def haystacks(dataset: Dataset, together: bool, invented: int) -> Iterator[tuple[list, list[Query]]]:
    """Transcripts that lie in one memory, and what is asked of it."""
    names = sorted({one.workspace_id for one in dataset.transcripts})
    beside = list(talks(invented, 80)) if invented else []
    for group in [names] if together else [[name] for name in names]:
        said = [one for one in dataset.transcripts if one.workspace_id in group]
        yield [*beside, *said], [query for query in dataset.queries if query.workspace_id in group]


def answered(memory: Memory, queries: Sequence[Query], ranking: Ranking) -> dict[str, Found]:
    covers = dict(memory.documents.select("document_id", "source_message_ids").iter_rows())
    answers: dict[str, Found] = defaultdict(list)
    for query_id, document_id, like in (
        memory.rank(queries, ranking).select("query_id", "document_id", "stands_for").iter_rows()
    ):
        answers[query_id].append((document_id, frozenset(m for one in (document_id, *like) for m in covers[one])))
    return answers


def recall(found: Found, judged: frozenset[str], k: int) -> float:
    return len(judged & frozenset().union(*(covered for _, covered in found[:k]))) / len(judged)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="+", metavar="KIND or KEY=VALUE")
    parser.add_argument("--together", action="store_true")
    parser.add_argument("--invented", type=int, default=0)
    given = parser.parse_intermixed_args()
    kinds = [one for one in given.kinds if one in EVERY_KIND]
    settings = [one for one in given.kinds if "=" in one]
    print(
        "| kind | questions | documents a haystack | recall@10, all | pool | @20, all | pool | of all's ten in the pool's |"
    )
    print("|---|--:|--:|--:|--:|--:|--:|--:|", flush=True)
    for kind in kinds:
        with TemporaryDirectory() as folder:
            config = composition.composed(["system=unified", "arms=none", *overrides(kind, Path(folder)), *settings])
            dataset: Dataset = building.build(config, "dataset").load()
        system: System = building.build(config, "memory")
        ranking = system.ranking
        assert isinstance(ranking, Ranking) and isinstance(ranking.source, Pool)
        ways = [replace(ranking, source=replace(ranking.source, whole_documents=size)) for size in (EVERYTHING, 0)]
        evidence, rows, sizes = dataset.evidence(), [], []
        for transcripts, queries in haystacks(dataset, given.together, given.invented):
            asked = [query for query in queries if evidence.get(query.query_id)]
            with Memory.open(system, "") as memory:
                memory.ingest_all(transcripts)
                sizes.append(len(memory.documents))
                all_, pool = (answered(memory, asked, way) for way in ways)
            for query in asked:
                judged, (a, b) = frozenset(evidence[query.query_id]), (x.get(query.query_id, []) for x in (all_, pool))
                ten = {document_id for document_id, _ in a[:10]}
                kept = len(ten & {document_id for document_id, _ in b[:10]}) / len(ten) if ten else 1.0
                rows.append(
                    [recall(a, judged, 10), recall(b, judged, 10), recall(a, judged, 20), recall(b, judged, 20), kept]
                )
        cells = " | ".join(f"{value:.3f}" for value in np.mean(rows, axis=0))
        print(f"| {kind} | {len(rows)} | {min(sizes):,} to {max(sizes):,} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
