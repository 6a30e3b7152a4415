"""However a memory comes to its answers, they are the same: grown turn by turn and asked between, opened anew, one
question at a time, all at once, and from kept candidates."""

from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from eval.cache.pools import with_cached_pools
from eval.cache.stage_cache import FrameCache, StageCache
from lcm.memory.memory import Memory
from lcm.memory.system import System
from lcm.records.conversation import Message, Part, Transcript
from lcm.records.query import Query
from lcm.retrieval.ranking.pipeline import POOL_ACTED
from lcm.retrieval.source.indexes import POOLED
from pipelines.config.building import build
from pipelines.config.composition import composed
from tests.support.workspaces import START, minute

POOL = (
    "system=unified ranking.source.whole_documents=2 ranking.source.best=2 ranking.source.neighbours=1 "
    "ranking.source.speakers=1 ranking.source.times=1"
)
"""So small that it acts among a few messages."""
SYSTEMS = {
    "neighbours": "system=neighbours",
    "lancedb_pro": "system=lancedb_pro",
    "libravdb": "system=libravdb",
    "hybrid": "system=hybrid fusion=reciprocal_rank text_index=bm25s deduplication=rule",
    "unified": "system=unified extraction=verbatim",
    "small pool": POOL,
    "small pool, hnsw": f"{POOL} vector_index=hnsw deduplication=rule",
}
PHRASES = (
    "the kettle in the blue kitchen broke",
    "remember: Ada prefers green tea, never coffee",
    "goats escaped on Thursday",
    "来週の火曜日に東京で会議があります",
    "I moved to Lisbon in May 2023",
    "my budget is 4,500 EUR",
    "What did Ada say of the kettle?",
    "naïve café in Zürich",
    "ok",
    "",
)
LINES = st.lists(
    st.tuples(st.sampled_from(("talk", "other")), st.lists(st.sampled_from(PHRASES), min_size=1, max_size=3)),
    min_size=1,
    max_size=14,
)
ASKED = (
    Query("where", "where is the kettle of the kitchen", minute(9000)),
    Query("own", "what does Ada prefer to drink", minute(9001), conversation_id="talk", session_id="talk:session 0"),
    Query("when", "when did the goats escape, and what did I say on Thursday?", minute(9002)),
    Query("cjk", "東京で会議", minute(9003)),
    Query("nothing", "", minute(9004)),
)


@cache
def system(choices: str) -> System:
    made = build(composed([*choices.split(), "embedder=hashing"]), "memory")
    assert isinstance(made, System)
    return replace(made, reinforcement=type(made.reinforcement)()) if made.reinforcement.recalled else made


def talks(lines: Sequence[tuple[str, Sequence[str]]]) -> list[Transcript]:
    """The conversations, a message a line, each of them as long as the lines say."""
    messages: dict[str, list[Message]] = {}
    for number, (name, phrases) in enumerate(lines):
        told, said = ". ".join(phrases), messages.setdefault(name, [])
        role, author = ("assistant", "Bo") if len(said) % 2 else ("user", "Ada")
        said.append(
            Message(
                message_id=f"{name}:{len(said)}",
                role=role,
                content=told,
                session_id=f"{name}:session {len(said) // 4}",
                created_at=START + timedelta(hours=7 * number),
                author=author,
                parts=(Part("text", text=told),),
            )
        )
    return [Transcript(conversation_id=name, messages=tuple(said)) for name, said in messages.items()]


def same(found: pl.DataFrame, expected: pl.DataFrame) -> None:
    """The same rows in the same order; scores as near as sums of floats in another order are."""
    assert_frame_equal(found, expected, rel_tol=1e-5, abs_tol=1e-7)


@pytest.mark.parametrize("name", SYSTEMS)
@given(lines=LINES, asked_between=st.sets(st.integers(0, 13), max_size=4))
@settings(max_examples=10, deadline=None)
def test_answers_are_equal_on_every_path(
    name: str, lines: list[tuple[str, list[str]]], asked_between: set[int]
) -> None:
    parts = system(SYSTEMS[name])
    with TemporaryDirectory() as folder, ExitStack() as opened:
        path = Path(folder) / "grown.db"
        grown = opened.enter_context(Memory.open(parts, path))
        for end in range(1, len(lines) + 1):
            grown.ingest_all(talks(lines[:end]))
            if end in asked_between:
                grown.rank(ASKED[:2])  # what is kept of these documents must not be told of the next ones
        one_by_one = pl.concat([grown.rank([query]) for query in ASKED])
        frames = FrameCache(StageCache(folder))
        for _ in range(2):
            same(grown.rank(ASKED), one_by_one)
            same(grown.rank(ASKED, with_cached_pools(parts.ranking, frames, "grown")), one_by_one)
        grown.close()
        anew = opened.enter_context(Memory.open(parts, path))
        same(anew.rank(ASKED), one_by_one)
        same(pl.concat([anew.rank([query]) for query in ASKED[::-1]][::-1]), one_by_one)


def test_the_small_pool_acts() -> None:
    lines = [("talk" if number % 3 else "other", [PHRASES[number % 8], f"thing {number}"]) for number in range(14)]
    with Memory.open(system(POOL)) as memory:
        memory.ingest_all(talks(lines))
        batches = memory.batches(ASKED)
        frames = [system(POOL).ranking.source.candidates(batch) for batch in batches]
        acted = Counter[str]()
        for batch in batches:
            memory.system.ranking.rank(replace(batch, acted=acted))
    assert all(frame[POOLED].all() for frame in frames)
    assert acted[POOL_ACTED] == len(ASKED)
    rows, beside = 0, 0
    for frame in frames:
        rows += len(frame)
        beside += frame.filter(pl.all_horizontal(pl.col("dense_rank", "lexical_rank").is_null())).height
    assert 0 < beside < rows < len(ASKED) * len(memory.documents) / 2
