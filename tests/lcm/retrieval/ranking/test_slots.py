"""Slots of a ranking: empty by default, filled by their groups' choices, and with a meaning under any fusion."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

import polars as pl
import pytest

from lcm.memory.memory import Memory
from lcm.protocols.retrieval import Batch
from lcm.records.query import Query
from lcm.retrieval.ranking.pipeline import Ranking
from lcm.retrieval.ranking.stages.scores import MinMax
from lcm.retrieval.ranking.stages.selection import MinScore
from pipelines.config import building, conf_folder
from tests.lcm.retrieval.decay.frames import scored
from tests.support.composing import composed
from tests.support.workspaces import LINES, minute, system, transcript

RANKINGS = [name for name in conf_folder.groups()["ranking"] if name != "external"]  # a memory of others has no stages
FUSIONS = {"unified": "unified", "neighbours": "plain_sum"}
"""Ranking -> the fusion that it was made for, where that is not the default."""
SLOTS = {"reranker": "cosine", "decay": "weibull", "recovery": "corrected", "summary_expansion": "bounded"}


@pytest.fixture(scope="module")
def memory() -> Iterator[Memory]:
    with Memory.open(system()) as opened:
        opened.ingest(transcript(list(LINES)))
        yield opened


def ranking_of(name: str, **choices: str) -> Ranking:
    chosen = {"ranking": name, "embedder": "hashing", "fusion": FUSIONS.get(name, "weighted_sum"), **choices}
    return building.build(composed([f"{group}={choice}" for group, choice in chosen.items()]), "memory").ranking


def answered(memory: Memory, ranking: Ranking) -> tuple[pl.DataFrame, set[str]]:
    """What is ranked for some questions, and the names of the stages that the rows passed."""
    asked = [Query(f"q{i}", text, minute(600)) for i, text in enumerate(("kitchen goats", "the wall"))]
    (batch,) = memory.batches(asked, ranking, None)
    return memory.rank(asked, ranking), set(ranking.trace(batch)["stage"])


@pytest.mark.parametrize("name", RANKINGS)
def test_every_ranking_has_a_place_for_each_slot(name: str, memory: Memory) -> None:
    wrong = []
    empty, steps = answered(memory, ranking_of(name))
    assert not {"decay", "min_max"} & steps
    for slot, choice in SLOTS.items():
        filled, steps = answered(memory, ranking_of(name, **{slot: choice}))
        changes = slot in ("reranker", "decay") and filled.equals(empty)
        wrong += [slot] if slot not in steps or changes else []
        assert filled["score"].is_between(0, 1).all() or slot == "recovery"
    assert wrong == []
    _, steps = answered(memory, ranking_of(name, fusion="weighted_sum", reranker="cosine", decay="weibull"))
    assert {"reranker", "decay"} <= steps
    assert "min_max" not in steps  # what is between 0 and 1 by itself stays as it is


@dataclass(frozen=True, slots=True)
class Scaled:
    """Every score times a factor."""

    factor: float

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        return frame.with_columns(score=pl.col("score") * self.factor)


def test_a_slot_acts_where_it_changes_which_documents_answer_or_their_order(memory: Memory) -> None:
    own = ranking_of("hybrid")
    stages = {name: own.stages[name] for name in ("dense_score", "lexical_score", "fusion")}
    for factor, minimum, acts in (
        (0.5, 0.0, {}),  # every score is another, the answer is the same
        (0.5, 0.25, {"decay": 1}),  # the minimum cuts by the new scores
        (0.5, 2.0, {}),  # the minimum cuts everything, with it and without it
        (-1.0, -9.0, {"decay": 1}),  # another order
    ):
        ranking = Ranking(own.source, {**stages, "decay": Scaled(factor), "min_score": MinScore(minimum)})
        (batch,) = memory.batches([Query("q", "kitchen goats", minute(600))], ranking, None)
        counted = Counter[str]()
        ranking.rank(replace(batch, acted=counted))
        assert counted == acts


def test_an_age_counts_once(memory: Memory) -> None:
    for fusion in ("two_pass", "hybrid_score"):
        _, steps = answered(memory, ranking_of("hybrid", fusion=fusion, decay="weibull"))
        assert "decay" not in steps


def test_sums_come_to_lie_between_0_and_1_in_the_same_order() -> None:
    sums = {"score": [-2.0, 6.0, 1.0], "cosine": [0.1, 0.2, 0.3]}
    assert scored(MinMax(), **sums) == pytest.approx([0.0, 1.0, 3 / 8])
    assert scored(MinMax(), score=[4.0, 4.0]) == [1.0, 1.0]
