"""The figures of docs/scale.md that are measured in seconds: what embedding a text and indexing a vector take.

    python experiments/scale_figures.py [texts=200] [vectors=20000]

Processor time on one thread, of texts of 139 and of 366 characters by `embedder=minilm`, without its cache, and of
random unit vectors of 384 dimensions in one graph of `vector_index=hnsw`; prints what `scale_model.py` takes. What
`lcm compact` takes a message is measured by `batch_compaction.py`.
"""

import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS"):
    os.environ[_name] = "1"  # before numpy is imported

import numpy as np

from benchmarks import corpus
from lcm.retrieval.embedder.onnx import MiniLM
from lcm.retrieval.vector_index.hnsw import Hnsw

LENGTHS = (139, 366)
DIM = 384


def microseconds(work: Callable[[], object], count: int) -> float:
    """Processor time of one of `count` things that are done together."""
    started = time.process_time()
    work()
    return (time.process_time() - started) / count * 1e6


def texts_of(length: int, count: int) -> list[str]:
    """Texts of one length, cut out of invented talk."""
    talk = " ".join(message.content for message in corpus.transcript(count * 8, 0).messages)
    return [talk[first * length : (first + 1) * length] for first in range(count)]


def main(arguments: list[str]) -> None:
    given = dict(argument.split("=", 1) for argument in arguments)
    count, vectors = int(given.pop("texts", 200)), int(given.pop("vectors", 20_000))
    if given:
        raise SystemExit(f"no such setting: {', '.join(given)}")
    embedder = MiniLM(threads=1)
    embedder.embed(["warm"], "document")
    for length in LENGTHS:
        texts = texts_of(length, count)
        taken = microseconds(lambda texts=texts: embedder.embed(texts, "document"), count)
        print(f"embed, {length} characters: embed_us={taken:.0f}", flush=True)
    rows = np.random.default_rng(0).standard_normal((vectors, DIM)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    ids = [f"d{number}" for number in range(vectors)]
    for n in (vectors // 4, vectors):
        index = Hnsw().build(DIM, incidents=Counter())
        taken = microseconds(lambda n=n, index=index: index.add(ids[:n], rows[:n]), n)
        print(f"index, a graph of {n}: graph_us={taken:.0f} graph_at={n}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph"
        index.save(path)
        print(f"saved, a vector and its place in the graph: {path.stat().st_size / vectors:.0f} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
