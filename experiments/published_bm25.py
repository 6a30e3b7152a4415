"""Why BM25 has other figures here than in the published LMEB results on LoCoMo: one change at a time.

    LCM_DATASETS_DIR=~/datasets .venv/bin/python experiments/published_bm25.py

The published baseline is bm25s with its own settings: 33 English stop words, a Snowball stemmer, k1 = 1.5. This indexes
LoCoMo's development part in the same way, and varies what the published figures leave open: whether one index serves
all conversations, and whether a turn has its session's date and the caption of its picture.
"""

import logging
from collections import defaultdict
from collections.abc import Iterable
from itertools import product

import bm25s
import numpy as np
import Stemmer
from rich.console import Console
from rich.table import Table

from eval.dataset.dataset import Dataset
from eval.dataset.locomo import Locomo

CUTOFFS = (5, 10)
TYPES = ("single_hop", "multi_hop", "temporal", "open_domain", "adversarial")


def tokens(texts: Iterable[str]) -> list[list[str]]:
    stemmer = Stemmer.Stemmer("english")
    return bm25s.tokenize(list(texts), stopwords="en", stemmer=stemmer, show_progress=False, return_ids=False)


def recalls(dataset: Dataset, dated: bool, shared: bool) -> dict[tuple[str, int], float]:
    """Mean recall of each query type, and of all, at each cutoff."""
    relevant: dict[str, set[str]] = defaultdict(set)
    for query_id, message_id, _ in dataset.qrels.iter_rows():
        relevant[query_id].add(message_id)
    turns = [(t.workspace_id, m) for t in dataset.transcripts for m in t.messages]
    homes = np.array([workspace for workspace, _ in turns])
    found: dict[tuple[str, int], list[float]] = defaultdict(list)
    for home in [None] if shared else np.unique(homes):
        indexed = np.flatnonzero(homes == home) if home is not None else np.arange(len(turns))
        index = bm25s.BM25(k1=1.5, b=0.75)
        words = tokens(
            f"{m.created_at:%-I:%M %p on %-d %B, %Y} {m.author}: {m.content}" if dated else f"{m.author}: {m.content}"
            for _, m in (turns[i] for i in indexed)
        )
        index.index(words, show_progress=False)
        for query in dataset.queries:
            if query.query_id not in relevant or home not in (None, query.workspace_id):
                continue
            scores = index.get_scores(tokens([query.text])[0])
            scores[homes[indexed] != query.workspace_id] = 0
            best = [turns[indexed[i]][1].message_id for i in np.argsort(-scores, kind="stable")[:10] if scores[i] > 0]
            for k in CUTOFFS:
                share = len(relevant[query.query_id] & set(best[:k])) / len(relevant[query.query_id])
                found["all", k].append(share)
                found[query.category, k].append(share)
    return {key: float(np.mean(values)) for key, values in found.items()}


def main() -> None:
    logging.disable(logging.INFO)
    table = Table("dates", "captions", "index", *(f"{name} @5/@10" for name in ("all", *TYPES)))
    for dated, captions, shared in product((False, True), repeat=3):
        values = recalls(Locomo(captions=captions).load(), dated, shared)
        cells = ("/".join(f"{values[name, k]:.3f}" for k in CUTOFFS) for name in ("all", *TYPES))
        table.add_row(str(dated), str(captions), "of all" if shared else "of each", *cells)
    Console(width=160).print(table, highlight=False)


if __name__ == "__main__":
    main()
