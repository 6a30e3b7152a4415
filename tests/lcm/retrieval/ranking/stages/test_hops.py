"""Hops to authored documents; the vectors of the original are in tests/golden."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from lcm.context.assembly.continuity import Continuity
from lcm.memory.memory import Memory
from lcm.protocols.retrieval import Batch
from lcm.records.document import AuthoredNode
from lcm.records.query import Query
from lcm.retrieval.decay import NoDecay
from lcm.retrieval.fusion import TwoPass
from lcm.retrieval.ranking.pipeline import Ranking
from lcm.retrieval.ranking.stages.selection import Hops
from lcm.retrieval.source.by_scope import ByScope
from lcm.retrieval.source.indexes import branch, describe, merge
from lcm.token_estimator import Utf16Units
from tests.golden.components import documents_batch
from tests.lcm.refusals import assert_refused
from tests.support.workspaces import START, system, transcript

Scores = Mapping[str, float]


def workspace(graph: Mapping[str, Sequence[str]], authored: Sequence[str], queries: Sequence[str] = ("q",)) -> Batch:
    known = documents_batch(list(graph))
    kinds = ["authored" if document_id in authored else "message" for document_id in graph]
    asked = known.queries.select(pl.exclude("query_id")).join(pl.DataFrame({"query_id": queries}), how="cross")
    return replace(
        known,
        queries=asked,
        documents=known.documents.with_columns(
            kind=pl.Series(kinds),
            hop_targets=pl.Series([list(targets) for targets in graph.values()], dtype=pl.List(pl.String)),
        ),
    )


def frame(around: Batch, **scores: Scores) -> pl.DataFrame:
    found = [(list(found), list(found.values())) for found in scores.values()]
    rows = merge(around, branch(found, "cosine", "dense_rank"))
    return describe(rows, around).with_columns(score="cosine")


def hopped(stage: Hops, around: Batch, **scores: Scores) -> dict[str, dict[str, float]]:
    after = stage.expand(frame(around, **scores), around)
    return {
        query: dict(rows.select("document_id", "score").iter_rows())
        for (query,), rows in after.group_by("query_id", maintain_order=True)
    }


GRAPH = {"a": ["x", "y"], "b": ["x", "b", "told"], "told": ["z"], "x": ["z"], "y": [], "z": ["x"], "alone": []}
AROUND = workspace(GRAPH, ["x", "y", "z"], ["q", "r"])


def test_a_share_at_the_threshold_is_enough() -> None:
    assert hopped(Hops(theta_hop=0.25), AROUND, q={"a": 0.5})["q"] == {"a": 0.5, "x": 0.25, "y": 0.25}


def test_what_is_added_is_described_and_has_no_cosine_of_its_own() -> None:
    after = Hops().expand(frame(AROUND, q={"a": 0.5}), AROUND)
    before = frame(AROUND, q={"a": 0.5})
    assert after.schema == before.schema
    added = after.row(by_predicate=pl.col("document_id") == "x", named=True)
    assert (added["kind"], added["cosine"], added["scope_class"]) == ("authored", None, "durable")
    assert added["asked_at"] == before["asked_at"][0]


def test_a_parent_without_a_score_passes_on_nothing() -> None:
    for score in (None, math.nan, -3.0):
        before = frame(AROUND, q={"a": 0.5}).with_columns(score=pl.lit(score, pl.Float64))
        assert Hops(theta_hop=0.01).expand(before, AROUND)["document_id"].to_list() == ["a"]


def test_impossible_settings_are_refused() -> None:
    assert_refused(Hops, "be in (0, 1)", eta=[0.0, math.nan])
    assert_refused(Hops, "be in [0, 1]", theta_hop=1.5)


NAMES = "abcdef"
GRAPHS = st.fixed_dictionaries({name: st.lists(st.sampled_from([*NAMES, "gone"]), max_size=4) for name in NAMES})


@settings(max_examples=60)
@given(
    GRAPHS,
    st.sets(st.sampled_from(NAMES)),
    st.dictionaries(st.sampled_from(NAMES), st.floats(0.01, 1), min_size=1),
    st.builds(Hops, eta=st.floats(0.01, 0.99), theta_hop=st.floats(0, 1)),
)
def test_each_authored_target_of_a_row_is_reached_once_and_nothing_else(
    graph: dict[str, list[str]], authored: set[str], scores: dict[str, float], stage: Hops
) -> None:
    found = hopped(stage, workspace(graph, sorted(authored)), q=scores)["q"]
    parents = {name: [score for parent, score in scores.items() if name in graph[parent]] for name in authored}
    reached = {name: stage.eta * max(of) for name, of in parents.items() if of and name not in scores}
    assert found == scores | {name: score for name, score in reached.items() if score >= stage.theta_hop}
    assert list(found.values()) == sorted(found.values(), reverse=True)


@dataclass(frozen=True, slots=True)
class Written:
    def nodes(self, *, incidents: Counter[str]) -> list[AuthoredNode]:
        tiers = ("hard", "soft", "variant", "variant")
        texts = ("Never touch the kettle", "The kettle is blue", "How the kettle works", "zebras gallop")
        ids = [f"rules#{i:06}" for i in range(len(tiers))]
        return [
            AuthoredNode(node_id, "rules", tier, "Paragraph", text, i, i, 5, hop_targets=tuple(ids))  # type: ignore[arg-type]
            for i, (node_id, tier, text) in enumerate(zip(ids, tiers, texts, strict=True))
        ]


def test_what_is_always_shown_is_never_a_candidate() -> None:
    ranking = Ranking(ByScope(), {"fusion": TwoPass(NoDecay(), theta1=-1.0), "hops": Hops(theta_hop=0.0)})
    with Memory.open(system(authored=Written(), ranking=ranking, assembly=Continuity(Utf16Units()))) as memory:
        memory.ingest(transcript(["The kettle broke"]))
        for question in ("never touch the kettle", "the kettle is blue", ""):
            found = memory.rank([Query("q", question, START.replace(year=2030))])["document_id"].to_list()
            assert {i for i in found if i.startswith("rules")} == {"rules#000002", "rules#000003"}
