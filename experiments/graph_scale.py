"""When a graph is faster than looking at every vector: the same queries asked of both, one at a time and in turns.

    LCM_DATASETS_DIR=~/datasets .venv/bin/python experiments/graph_scale.py 10000 100000 [share=0.8] [k=100]

Rows are made of LoCoMo's messages under MiniLM, each a real one moved along the difference of two others, so that their
spectrum is the real one's; queries are LoCoMo's questions. `share` of the rows may be seen, as where a query is asked
before the haystack was whole. Recall is the share of the exact k best; times are medians of wall seconds, BLAS and
graphs in one thread.
"""

import sys
import time
from collections import Counter

import numpy as np
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

from eval.dataset.locomo import Locomo
from lcm.files import cache_dir
from lcm.protocols.retrieval import VectorIndexChoice
from lcm.retrieval.embedder.cache import CachedEmbedder
from lcm.retrieval.embedder.onnx import MiniLM
from lcm.retrieval.vector_index.hnsw import Hnsw
from lcm.retrieval.vector_index.hnsw_tiers import HnswTiers

QUERIES = 200
ADDED_AT_ONCE = 5000
WHOLE_FROM = 10**9  # rows: the full width behind a narrow one has no graph here
CHOICES: dict[str, VectorIndexChoice] = {
    "hnsw": Hnsw(ef_construction=100, exact_below=0),
    "hnsw_tiers_pca": HnswTiers(
        (96, None), (-0.1,), rotation="pca", tiers_from=0, flat_below=0, ef_construction=100, exact_below=WHOLE_FROM
    ),
}


def main(arguments: list[str]) -> None:
    settings = dict(argument.split("=", 1) for argument in arguments if "=" in argument)
    share, k = float(settings.get("share", "0.8")), int(settings.get("k", "100"))
    dataset, embedder = Locomo().load(), CachedEmbedder(MiniLM(), cache_dir() / "embeddings")
    texts = [message.content for talk in dataset.transcripts for message in talk.messages]
    real = embedder.embed([text for text in texts if text], "document")
    asked = [query.text for query in dataset.queries]
    queries = embedder.embed(asked[:: len(asked) // QUERIES][:QUERIES], "query")
    table = Table("rows", "index", "build, s", "ways", "recall", "p50, ms", "exact p50, ms", "faster")
    for size in (int(argument) for argument in arguments if argument.isdecimal()):
        one, two, three = np.random.default_rng(1).integers(0, len(real), (3, size))
        rows = real[one] + 0.5 * (real[two] - real[three])
        rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
        ids = [f"d{i}" for i in range(size)]
        allowed = tuple(ids[: int(share * size)])
        for name, choice in CHOICES.items():
            start = time.perf_counter()
            index = choice.build(rows.shape[1], incidents=Counter())
            for first in range(0, size, ADDED_AT_ONCE):
                index.add(ids[first : first + ADDED_AT_ONCE], rows[first : first + ADDED_AT_ONCE])
            build_s = time.perf_counter() - start
            ways, recalls, times = Counter[str](), [], []
            for query in (queries[i : i + 1] for i in range(len(queries))):
                begun = time.perf_counter()
                (answer,) = index.answers(query, k, allowed)  # type: ignore[attr-defined]
                between = time.perf_counter()
                ((best, _),) = index.exact.search(query, k, allowed)  # type: ignore[attr-defined]
                times.append((between - begun, time.perf_counter() - between))
                ways[f"{'graph' if answer.is_by_graph else 'scan'} of {answer.width}"] += 1
                recalls.append(len(set(answer.ids).intersection(best)) / len(best))
            own, exact = np.array(times).T
            table.add_row(
                *(f"{size:,}", name, f"{build_s:.0f}", ", ".join(f"{n} {way}" for way, n in ways.items())),
                *(f"{np.mean(recalls):.3f}", f"{1000 * np.median(own):.2f}", f"{1000 * np.median(exact):.2f}"),
                f"{np.count_nonzero(own < exact)} of {len(own)}",
            )
            Console(width=160).print(table)


if __name__ == "__main__":
    with threadpool_limits(1):
        main(sys.argv[1:])
