"""What a live question of `system=unified` costs, part by part, as a memory grows: processor time in ms, as Markdown.

    OPENBLAS_NUM_THREADS=1 .venv/bin/python experiments/live_query.py 600 5000 50000 [KEY=VALUE ...]

Takes in so many invented messages of conversations of 100, with `embedder=hashing`, and asks one question at a time:
again and again over the same documents, then each after one more message. Settings go to the system.
"""

import sys
import time
from collections import defaultdict
from dataclasses import replace
from datetime import timedelta
from statistics import median

from haystack_scale import talks

from benchmarks import corpus
from lcm.memory.live_documents import query_batches
from lcm.memory.memory import Memory
from lcm.memory.system import System
from lcm.records.query import Query
from lcm.retrieval.ranking.pipeline import Ranking, passed
from pipelines.config.building import build
from pipelines.config.composition import composed

MEDIAN_CHARACTERS = 80
WARM, AGAIN, GROWING = 5, 40, 15


def asked(memory: Memory, query: Query) -> dict[str, float]:
    """Milliseconds of each part of one question."""
    ranking, taken = memory.system.ranking, {}
    assert isinstance(ranking, Ranking)
    before = time.process_time()

    def note(part: str) -> None:
        nonlocal before
        now = time.process_time()
        taken[part], before = 1e3 * (now - before), now

    vectors = memory.system.embedder.embed([query.text], "query")
    note("embedding")
    (batch,) = query_batches(memory.live, [query], memory.system.scopes, memory.system.embedder, vectors)
    note("documents")
    frame = ranking._candidates(batch)
    note("source")
    for name, stage in ranking.steps:
        frame = passed(name, stage, frame, batch)
        note(name)
    return taken


def grown(memory: Memory, number: int) -> None:
    """Say one more thing, after all others."""
    talk = corpus.transcript(number + 1, 7, "growing", MEDIAN_CHARACTERS)
    later = (replace(one, created_at=one.created_at + timedelta(days=365)) for one in talk.messages)
    memory.ingest(replace(talk, messages=tuple(later)))


def profile(system: System, messages: int) -> tuple[int, dict[str, list[float]], dict[str, list[float]]]:
    again, growing = defaultdict(list), defaultdict(list)
    with Memory.open(system, "") as memory:
        memory.ingest_all(list(talks(messages, MEDIAN_CHARACTERS)))
        queries = corpus.queries(WARM + AGAIN + GROWING, 3)
        for query in queries[:WARM]:
            asked(memory, query)
        for query in queries[WARM : WARM + AGAIN]:
            for part, ms in asked(memory, query).items():
                again[part].append(ms)
        for number, query in enumerate(queries[WARM + AGAIN :]):
            grown(memory, number)
            for part, ms in asked(memory, query).items():
                growing[part].append(ms)
        (batch,) = memory.batches(queries[-1:])
        return len(batch.documents), again, growing


def main(arguments: list[str]) -> None:
    sizes = [int(argument) for argument in arguments if argument.isdecimal()]
    overrides = [argument for argument in arguments if not argument.isdecimal()]
    system = build(composed(["system=unified", "embedder=hashing", *overrides]), "memory")
    found = [profile(system, size) for size in sizes]
    heads = [f"{size:,} ({documents:,})" for size, (documents, *_) in zip(sizes, found, strict=True)]
    print("| part |" + "".join(f" {head} | grown |" for head in heads))
    print("|---|" + "--:|--:|" * len(heads))
    for part in [*found[0][1], "all"]:
        cells = []
        for _, *timed in found:
            for times in timed:
                of_each = times[part] if part != "all" else [sum(row) for row in zip(*times.values(), strict=True)]
                cells.append(f" {median(of_each):.1f} |")
        print(f"| {part} |" + "".join(cells))


if __name__ == "__main__":
    main(sys.argv[1:])
