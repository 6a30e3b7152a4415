"""What index tiers cost and find beside the full width: LoCoMo and BEAM messages under MiniLM, and larger made-up sets.

    LCM_DATASETS_DIR=~/datasets .venv/bin/python experiments/index_tiers.py

Every index is asked one query a call, in turns with the others; the median of the rounds counts. Recall is the share of
the exact ten best. Work is how many numbers are multiplied where rows are looked at one by one: n x width for each
width asked, and full-width rows scored again; a graph's work is not counted. BLAS runs in one thread.

Of BEAM a message is embedded by its first window, of the first conversations of each size: `--conversations`.
`--synthetic 40000` adds a set of so many rows, each a real one moved along the difference of two others, so that their
spectrum is the real one's. `--clock wall` measures seconds; the default, processor time, bears a busy machine.
"""

import argparse
import json
import logging
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

from eval.dataset.beam import Beam
from eval.dataset.dataset import Dataset
from eval.dataset.locomo import Locomo
from lcm.files import cache_dir
from lcm.protocols.models import Vectors
from lcm.protocols.retrieval import VectorIndex, VectorIndexChoice
from lcm.retrieval.embedder.cache import CachedEmbedder
from lcm.retrieval.embedder.onnx import MiniLM
from lcm.retrieval.vector_index.exact import Exact
from lcm.retrieval.vector_index.hnsw import Hnsw
from lcm.retrieval.vector_index.hnsw_tiers import HnswTiers
from lcm.writing.extraction.said import Verbatim

K = 10
QUERIES = 200  # of each collection at most
CLOCKS = {"cpu": time.process_time, "wall": time.perf_counter}
MARGINS = (-9.0, -0.1, -0.05, 0.0, 0.05, 0.1)  # -9: whatever the narrowest proposes is taken
SHAPES: Sequence[tuple[str, tuple[int | None, ...]]] = (
    ("none", (64, 256, None)),
    ("none", (128, 256, None)),
    ("none", (192, None)),
    ("pca", (48, 128, None)),
    ("pca", (64, None)),
    ("pca", (64, 192, None)),
    ("pca", (96, None)),
)


@dataclass(frozen=True)
class Collection:
    """Sets of documents that are searched each on its own, with the queries of each."""

    name: str
    sets: Sequence[tuple[Vectors, Vectors]]


def collection(name: str, dataset: Dataset, embedder: CachedEmbedder, conversations: int | None) -> Collection:
    sets = []
    for transcript in dataset.transcripts[:conversations]:
        texts = [candidate.text for candidate in Verbatim().extract(transcript.messages, incidents=Counter())]
        rows = embedder.embed([windows[0] for windows in embedder.windows(texts)], "document")
        asked = [query.text for query in dataset.queries if query.workspace_id == transcript.workspace_id]
        sets.append((rows, embedder.embed(asked, "query")))
    return Collection(name, sets)


def synthetic(real: Collection, rows: int, rng: np.random.Generator) -> Collection:
    documents, queries = real.sets[0]
    one, two, three = rng.integers(0, len(documents), (3, rows))
    moved = documents[one] + 0.5 * (documents[two] - documents[three])
    moved /= np.linalg.norm(moved, axis=1, keepdims=True)
    return Collection(f"made up, {rows}", [(moved.astype(np.float32), queries)])


def built(choice: VectorIndexChoice, rows: Vectors) -> Any:
    index = choice.build(rows.shape[1], incidents=Counter())
    index.add([f"d{i}" for i in range(len(rows))], rows)
    return index


def indexes(rows: Vectors, has_graph: bool) -> dict[str, Any]:
    """Every choice under its name; those of one shape share rows and graphs through a file."""
    made: dict[str, Any] = {"exact": built(Exact(), rows)}
    if has_graph:
        made["hnsw"] = built(Hnsw(exact_below=0), rows)
    with tempfile.TemporaryDirectory() as folder:
        for rotation, widths in SHAPES:
            shape = HnswTiers(
                widths=widths,
                exit_thresholds=[0.0] * (len(widths) - 1),
                rotation=rotation,  # type: ignore[arg-type]
                tiers_from=0,
                flat_below=10_000,
                exact_below=10_000,
            )
            path = Path(folder) / f"{rotation} {widths}"
            built(shape, rows).save(path)
            for candidates in (50, 100):
                for margin in MARGINS:
                    setting = replace(shape, candidates=candidates, exit_thresholds=[margin] * (len(widths) - 1))
                    index = setting.build(rows.shape[1], incidents=Counter())
                    index.load(path)
                    lower = "/".join(str(width) for width in widths if width)
                    made[f"{rotation} {lower}, {candidates}, {margin:+}"] = index
    return made


def seconds_a_call(index: VectorIndex, queries: Vectors, clock: str) -> float:
    now = CLOCKS[clock]
    started = now()
    for i in range(len(queries)):
        index.search(queries[i : i + 1], K)
    return (now() - started) / len(queries)


def work_of(index: Any, name: str, rows: int, dim: int, queries: Vectors) -> tuple[float, str]:
    """Mean millions of products a query, and the share of queries that each width answered."""
    if name in ("exact", "hnsw"):
        return rows * dim / 1e6 if name == "exact" else float("nan"), "-"
    candidates = max(int(name.split(", ")[1]), 5 * K)
    widths, total, exits = index.widths, 0, np.zeros(len(index.widths))
    for way in index.ways(queries, K):
        for step in way:
            total += rows * widths[step.place] + (candidates * dim if widths[step.place] < dim else 0)
        exits[way[-1].place] += 1
    return total / len(queries) / 1e6, " ".join(
        f"{width}:{n / len(queries):.2f}" for width, n in zip(widths, exits, strict=True)
    )


def measure(collected: Collection, rounds: int, clock: str, rng: np.random.Generator) -> list[dict[str, Any]]:
    recalls: dict[str, list[float]] = {}
    times: dict[str, list[float]] = {}
    work: dict[str, list[tuple[float, str]]] = {}
    for rows, all_queries in collected.sets:
        queries = all_queries[rng.permutation(len(all_queries))[: QUERIES // len(collected.sets)]]
        has_graph = len(rows) >= 5000
        made = indexes(rows, has_graph)
        truth = [set(ids) for ids, _ in made["exact"].search(queries, K)]
        seconds: dict[str, list[float]] = {name: [] for name in made}
        for number in range(rounds):
            for name in sorted(made, reverse=bool(number % 2)):
                seconds[name].append(seconds_a_call(made[name], queries, clock))
        for name, index in made.items():
            found = index.search(queries, K)
            recalls.setdefault(name, []).append(
                statistics.mean(len(best & set(ids)) / len(best) for best, (ids, _) in zip(truth, found, strict=True))
            )
            times.setdefault(name, []).append(statistics.median(seconds[name]) * 1e6)
            work.setdefault(name, []).append(work_of(index, name, *rows.shape, queries))
    base = "hnsw" if "hnsw" in times else "exact"
    return [
        {
            "collection": collected.name,
            "setting": name,
            "recall": statistics.mean(recalls[name]),
            "of_full_width": statistics.mean(recalls[name]) / statistics.mean(recalls[base]),
            "us": statistics.mean(times[name]),
            "latency_ratio": statistics.mean(times[name]) / statistics.mean(times[base]),
            "products_m": statistics.mean(of_set for of_set, _ in work[name]),
            "exits": work[name][0][1],
        }
        for name in times
    ]


def frontier(found: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """What nothing else beats in both recall and latency; the full widths always."""
    return [
        one
        for one in sorted(found, key=lambda one: one["us"])
        if one["setting"] in ("exact", "hnsw")
        or not any(
            (other["us"] < one["us"] and other["recall"] >= one["recall"])
            or (other["us"] <= one["us"] and other["recall"] > one["recall"])
            for other in found
        )
    ]


def main() -> None:
    logging.disable(logging.INFO)
    parser = argparse.ArgumentParser()
    parser.add_argument("--conversations", type=int, nargs=2, default=(3, 2), metavar=("1M", "500K"))
    parser.add_argument("--synthetic", type=int, default=0)
    parser.add_argument("--only-synthetic", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--clock", choices=CLOCKS, default="cpu")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    embedder = CachedEmbedder(MiniLM(), cache_dir() / "embeddings")
    parts = [collection("LoCoMo, one index a conversation", Locomo().load(), embedder, None)]
    for size, conversations in zip(("1M", "500K"), arguments.conversations, strict=True):
        beam = Beam(size=size).load()  # type: ignore[arg-type]
        parts.append(collection(f"BEAM {size}, one index a conversation", beam, embedder, conversations))
    sets = [one for part in parts for one in part.sets]
    together = Collection(
        "all in one index", [(np.concatenate([d for d, _ in sets]), np.concatenate([q for _, q in sets]))]
    )
    wanted = [] if arguments.only_synthetic else [*parts, together]
    if arguments.synthetic:
        wanted.append(synthetic(together, arguments.synthetic, np.random.default_rng(1)))
    console = Console(width=130)
    results = []
    with threadpool_limits(1):
        for part in wanted:
            found = measure(part, arguments.rounds, arguments.clock, np.random.default_rng(0))
            results += found
            sizes = ", ".join(str(len(rows)) for rows, _ in part.sets)
            table = Table("setting", "recall@10", "of full width", "us a call", "of its latency", "M products", "exits")
            table.title = f"{part.name} ({sizes} rows)"
            for one in frontier(found):
                table.add_row(
                    one["setting"], f"{one['recall']:.3f}", f"{one['of_full_width']:.3f}", f"{one['us']:.0f}",
                    f"{one['latency_ratio']:.2f}", f"{one['products_m']:.2f}", one["exits"],
                )  # fmt: skip
            console.print(table)
            if arguments.out:
                arguments.out.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
