"""Slots of a ranking: empty by default, filled by their groups' choices, and with a meaning under any fusion."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

import polars as pl
import pytest

from lcm.memory.memory import Memory
from lcm.protocols.retrieval import Batch
from lcm.records.query import Query
from lcm.retrieval.ranking.pipeline import Ranking
from lcm.retrieval.ranking.stages.min_max import MinMax
from lcm.retrieval.ranking.stages.min_score import MinScore
from pipelines.config import building, conf_folder
from tests.golden.components import documents_batch
from tests.lcm.retrieval.decay.frames import rows
from tests.support.composing import composed
from tests.support.workspaces import LINES, minute, transcript

RANKINGS = [name for name in conf_folder.groups()["ranking"] if name != "external"]  # a memory of others has no stages
FUSIONS = {"unified": "unified", "neighbours": "plain_sum"}
"""Ranking -> the fusion that it was made for, where that is not the default."""
SLOTS = {"reranker": "cosine", "decay": "weibull", "recovery": "corrected", "summary_expansion": "bounded"}


def opened(ranking: str, **choices: str) -> Memory:
    chosen = {"ranking": ranking, "embedder": "hashing", "fusion": FUSIONS.get(ranking, "weighted_sum"), **choices}
    memory = Memory.open(building.build(composed([f"{group}={choice}" for group, choice in chosen.items()]), "memory"))
    memory.ingest(transcript(list(LINES)))
    return memory


def answered(memory: Memory) -> tuple[pl.DataFrame, set[str]]:
    """What is ranked for some questions, and the names of the stages that the rows passed."""
    asked = [Query(f"q{i}", text, minute(600)) for i, text in enumerate(("kitchen goats", "the wall"))]
    (batch,) = memory.batches(asked, memory.system.ranking, None)
    return memory.rank(asked), set(memory.system.ranking.trace(batch)["stage"])


@pytest.mark.parametrize("ranking", RANKINGS)
def test_every_ranking_has_a_place_for_each_slot(ranking: str) -> None:
    wrong = []
    with opened(ranking) as memory:
        empty, steps = answered(memory)
    assert not {"decay", "min_max"} & steps
    for slot, choice in SLOTS.items():
        with opened(ranking, **{slot: choice}) as memory:
            filled, steps = answered(memory)
        changes = slot in ("reranker", "decay") and filled.equals(empty)
        wrong += [slot] if slot not in steps or changes else []
        assert filled["score"].is_between(0, 1).all() or slot == "recovery"
    assert wrong == []


@dataclass(frozen=True, slots=True)
class Scaled:
    """Every score times a factor."""

    factor: float

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        return frame.with_columns(score=pl.col("score") * self.factor)


@pytest.mark.parametrize(
    ("factor", "minimum", "acts"),
    [
        (0.5, 0.0, False),  # every score is another, the answer is the same
        (0.5, 0.25, True),  # the minimum cuts by the new scores
        (0.5, 2.0, False),  # the minimum cuts everything, with it and without it
        (-1.0, -9.0, True),  # another order
    ],
)
def test_a_slot_acts_where_it_changes_which_documents_answer_or_their_order(
    factor: float, minimum: float, acts: bool
) -> None:
    asked = [Query("q", "kitchen goats", minute(600))]
    with opened("hybrid") as memory:
        own = memory.system.ranking
        stages = {name: own.stages[name] for name in ("dense_score", "lexical_score", "fusion")}
        ranking = Ranking(own.source, {**stages, "decay": Scaled(factor), "min_score": MinScore(minimum)})
        (batch,) = memory.batches(asked, ranking, None)
        counted = Counter[str]()
        ranking.rank(replace(batch, acted=counted))
    assert dict(counted) == ({"decay": 1} if acts else {})


@pytest.mark.parametrize("fusion", ["two_pass", "hybrid_score"])
def test_an_age_counts_once(fusion: str) -> None:
    with opened("hybrid", fusion=fusion, decay="weibull") as memory:
        _, steps = answered(memory)
    assert "decay" not in steps


SUMS: Mapping[str, list[float]] = {"score": [-2.0, 6.0, 1.0], "cosine": [0.1, 0.2, 0.3], "bm25": [0.0, 0.0, 0.0]}


def test_sums_come_to_lie_between_0_and_1_in_the_same_order() -> None:
    scored = MinMax()(rows(**SUMS), documents_batch([]))
    assert scored["score"].to_list() == pytest.approx([0.0, 1.0, 3 / 8])
    alike = MinMax()(rows(score=[4.0, 4.0]), documents_batch([]))
    assert alike["score"].to_list() == [1.0, 1.0]


def test_what_is_between_0_and_1_by_itself_stays_as_it_is() -> None:
    for ranking in RANKINGS:
        with opened(ranking, fusion="weighted_sum", reranker="cosine", decay="weibull") as memory:
            _, steps = answered(memory)
        assert "min_max" not in steps
        assert {"reranker", "decay"} <= steps
