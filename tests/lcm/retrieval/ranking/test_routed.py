"""Each query goes its own way, and answers as that way alone would."""

from dataclasses import replace

import polars as pl
import pytest

from lcm.memory.memory import Memory
from lcm.records.query import Query
from lcm.retrieval.ranking.routed import LeastPools, RankingPath, RoutedRanking
from lcm.retrieval.ranking.stages.scores import RawScore
from lcm.retrieval.ranking.stages.selection import Limit
from lcm.retrieval.source.indexes import Dense, Hybrid, Tagged, TagPrefixes
from tests.support.workspaces import LINES, minute, system, transcript

PATHS = RoutedRanking(
    stages={"cosine": RawScore("cosine"), "bm25": RawScore("bm25"), "few": Limit(3)},
    hybrid=RankingPath(Hybrid(), {"short": ["bm25"]}),
    vector=RankingPath(Dense(), {"short": ["cosine", "few"]}),
    tag=RankingPath(Tagged(), {"short": ["bm25"]}),
    order="short",
)
TEXTS = ("kitchen", "goats proj:x", "the wall", "PROJ:X kettle env:dev")


def asked() -> list[Query]:
    return [Query(f"q{i}", text, minute(600)) for i, text in enumerate(TEXTS)]


def memory() -> Memory:
    opened = Memory.open(system(ranking=PATHS))
    opened.ingest(transcript([f"{line} proj:x{'' if i % 2 else ' env:dev'}" for i, line in enumerate(LINES)]))
    return opened


@pytest.mark.parametrize("mode", ["hybrid", "vector"])
def test_a_mixed_batch_answers_as_each_path_alone(mode: str) -> None:
    paths = replace(PATHS, mode=mode)
    assert [paths.path_of(text) for text in TEXTS] == [mode, "tag", mode, "tag"]
    with memory() as opened:
        ranked, (batch,) = opened.rank(asked(), paths), opened.batches(asked(), paths, None)
        alone = [opened.rank([query], paths.ranking(paths.path_of(query.text))) for query in asked()]
        assert ranked.equals(pl.concat(alone))
        traced = paths.trace(batch)
        last = traced.group_by("query_id", maintain_order=True).agg(pl.all().last())
        assert set(last["stage"]) == ({"bm25"} if mode == "hybrid" else {"few", "bm25"})


def test_the_tag_path_keeps_only_what_carries_every_tag() -> None:
    with memory() as opened:
        found = opened.search("PROJ:X kettle env:dev", minute(600))
    assert found["text"].str.contains("env:dev").all()
    assert len(found) == len(LINES) / 2


def test_a_path_names_what_is_wrong_with_it() -> None:
    with pytest.raises(ValueError, match="vector: order names no stage 'cosines'; choose from: cosine, bm25, few"):
        replace(PATHS, vector=RankingPath(Dense(), {"short": ["cosines"]}))
    with pytest.raises(ValueError, match="hybrid: order must be one of short, got 'long'"):
        replace(PATHS, order="long")
    with pytest.raises(ValueError, match="mode must be one of: hybrid, vector, got 'tag'"):
        replace(PATHS, mode="tag")
    with pytest.raises(ValueError, match=r"prefixes must be regular expressions, got '\(':"):
        TagPrefixes(["("])


def test_pools_follow_the_limit_of_their_path_up_to_the_most_and_never_shrink() -> None:
    pools = LeastPools(per_result=2, most=20)
    paths = replace(PATHS, least_pools=pools, vector=RankingPath(Dense(10), {"short": ["cosine", "few"]}))
    for n, own, expected in ((3, 1, 6), (3, 10, 10), (10, 10, 20), (15, 10, 20), (15, 50, 50)):
        path = RankingPath(Dense(own), {"short": ["few"]})
        limited = replace(paths, vector=path, stages={**PATHS.stages, "few": Limit(n)})
        assert limited.ranking("vector").source == Dense(expected)
    assert paths.ranking("hybrid").source == Hybrid()  # no stage limits it
    both = replace(paths, hybrid=RankingPath(Hybrid(1, 9), {"short": ["few"]}))
    assert both.ranking("hybrid").source == Hybrid(6, 9)
    assert replace(both, least_pools=None).ranking("hybrid").source == Hybrid(1, 9)
    with pytest.raises(ValueError, match="most must be >= 0, got -1"):
        LeastPools(most=-1)
