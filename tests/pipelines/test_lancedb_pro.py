"""The presets of memory-lancedb-pro: each of their parts acts."""

from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

from lcm.memory.memory import Memory
from lcm.records.query import Query
from lcm.transcript.reading import read_transcripts
from pipelines.config.building import build
from pipelines.config.composition import composed

PARTS = {
    "lancedb_pro": (
        *("annotation=none", "text_index=fts5", "source.dense_pool_size=40", "fusion.lexical_weight=0.6"),
        *("reranker=cosine", "decay=none", "ranking.stages.length_normalization.anchor=60"),
        *("ranking.stages.hard_min_score.threshold=0.55", "ranking.stages.lexical_score.scale=9"),
    ),
    "lancedb_pro_tuned": (
        *("annotation=rules", "text_index=lancedb", "source=lancedb_pro", "fusion=weighted_sum", "reranker=cosine"),
        *("reranker=none", "decay=none"),
    ),
}
"""System -> swaps of one part each, another one than the system has."""
QUESTIONS = (
    "when is the meeting about today's plan",
    "where are the adrenaline pens",
    "what did we decide",
    "why did it fail",
)


def answers(transcripts: Path, *overrides: str) -> pl.DataFrame:
    system = build(composed(["embedder=hashing", *overrides]), "memory")
    asked = datetime(2030, 1, 1, tzinfo=UTC)
    with Memory.open(system) as memory:
        memory.ingest_all([each for path in sorted(transcripts.iterdir()) for each in read_transcripts(path)])
        return memory.rank([Query(f"q{number}", text, asked) for number, text in enumerate(QUESTIONS)])


@pytest.mark.full
def test_every_part_of_the_presets_acts(root: Path) -> None:
    sample = root / "data" / "sample" / "transcripts"
    idle = []
    for system, swaps in PARTS.items():
        preset = answers(sample, f"system={system}")
        assert preset["query_id"].n_unique() == len(QUESTIONS)
        idle += [f"{system} {swap}" for swap in swaps if answers(sample, f"system={system}", swap).equals(preset)]
    assert not idle
