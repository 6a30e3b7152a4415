"""What is told of one message: the cause in a line, and changes that were really tried."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl
import pytest

from eval.dataset.sample import Sample
from eval.experiment.workspace import WorkspaceEvaluator
from eval.ladder.explanation import ADDED, DROPPED, Explanation, explained
from eval.ladder.losses import asked_again, said_messages
from eval.replay.workspace_replay import Bulk
from lcm.memory.system import System
from lcm.protocols.retrieval import Batch, Stage
from lcm.records.query import Query
from lcm.retrieval.decay import NoDecay
from lcm.retrieval.fusion import TwoPass
from lcm.retrieval.ranking.pipeline import Ranking
from lcm.retrieval.ranking.stages.scores import TimeDecay
from lcm.retrieval.ranking.stages.selection import Crowding, Diversity, Limit, MinScore, NearDuplicates
from lcm.retrieval.source.indexes import Hybrid
from lcm.writing.admission.amac import Amac
from pipelines.config import building
from tests.eval.ladder.test_losses import ASKED, dataset, ranked
from tests.support.composing import composed
from tests.support.workspaces import LINES, minute, ranking, system

ALIKE = (LINES[0], "The kettle in the blue kitchen is broken, they say", *LINES[2:])
AGAIN = (LINES[0], LINES[1], LINES[0], *LINES[3:])
FEW = replace(ranking(), source=Hybrid(dense_pool_size=1, lexical_pool_size=1))


def evaluator_of(ours: System, lines: Sequence[str] = LINES, asked: Query = ASKED) -> WorkspaceEvaluator:
    return WorkspaceEvaluator(dataset(asked, lines), ours, Bulk(), measures={})


def told(ours: System, number: int, lines: Sequence[str] = LINES, asked: Query = ASKED, first: int = 2) -> Explanation:
    evaluator = evaluator_of(ours, lines, asked)
    said = said_messages(evaluator.dataset, "default")
    (found,) = (explained(one, f"talk:{number}", said, first) for one in asked_again(evaluator, "default"))
    return found


@pytest.mark.parametrize(
    ("ours", "number", "lines", "asked", "headline"),
    [
        (system(), 0, LINES, ASKED, "found at rank 1"),
        (system(), 4, LINES, ASKED, "late: rank 8 in the answer"),
        (ranked(cut=Limit(3)), 4, LINES, ASKED, "dropped at cut; rank 8 before; the first 3 are let through"),
        (ranked(floor=MinScore(0.6)), 4, LINES, ASKED, r"dropped at floor; rank 8 before; score 0\.\d+ below 0\.6"),
        (
            ranked(diversity=Diversity(0.6)), 1, ALIKE, ASKED,
            r"put back at diversity; rank 2 → 8; cosine 0\.\d+ to a better document, above 0.6; like doc_\w+ at rank 1",
        ),
        (
            ranked(near=NearDuplicates(n=9)), 2, AGAIN, ASKED,
            r"found at rank 1, where doc_\w+ stands for it as a near duplicate",
        ),
        (
            ranked(near=NearDuplicates(n=9), floor=MinScore(2)), 2, AGAIN, ASKED,
            r"dropped at floor; rank 8 before; score 0\.\d+ below 2",
        ),
        (
            ranked(crowding=Crowding(9.0, "session")), 2, ALIKE[:1] + LINES[1:2] + ALIKE[1:2] + LINES[3:], ASKED,
            r"put back at crowding; rank 2 → \d; loses [\d.]+ to better documents of the same session",
        ),
        (system(ranking=FEW), 4, LINES, ASKED, "not in the pool: the source found 1 documents, and none that stands"),
        (
            system(admission=Amac(reject_threshold=1.0, admit_threshold=1.0)), 0, LINES, ASKED,
            "refused: it was refused by admission",
        ),
        (system(), 7, LINES, replace(ASKED, asked_at=minute(3)), "not said yet: it was said after the question"),
    ],
)  # fmt: skip
def test_the_headline_names_the_cause(
    ours: System, number: int, lines: Sequence[str], asked: Query, headline: str
) -> None:
    found = told(ours, number, lines, asked)
    assert re.match(headline, found.headline), found.headline
    if not found.ladder.is_empty():
        assert found.ladder["step"].is_sorted() and found.ladder["stage"][0] == "source"


def test_what_took_its_place_stood_behind_it_and_what_would_have_kept_it_was_tried() -> None:
    found = told(ranked(diversity=Diversity(0.6)), 1, ALIKE)
    ((document_id, rank, before),) = found.taken_by.iter_rows()
    assert (rank, before) == (2, 3)
    assert found.traced.answers.filter(rank=2)["document_id"].to_list() == [document_id]
    ours = ranked(diversity=Diversity(0.6), cut=Limit(3))
    found = told(ours, 1, ALIKE)
    assert (found.trials[0].change, found.trials[0].rank) == ("without diversity", 2)
    (asked,) = asked_again(evaluator_of(ours, ALIKE), "default")
    for trial in found.trials:
        name, _, value = trial.change.removeprefix("without ").partition(".n=")
        stage = Limit(int(value)) if value else None
        other = replace(ours.ranking, stages={**ours.ranking.stages, name: stage})
        answered = asked.memory.rank(asked.queries, other)
        assert dict(answered.select("document_id", "rank").iter_rows())[found.document_id] == trial.rank
    assert [trial.change for trial in told(system(ranking=FEW), 4).trials] == ["pools 16 times as large"]


def test_a_document_is_asked_for_by_its_own_id() -> None:
    ours = ranked(cut=Limit(3))
    of_message = told(ours, 4)
    (asked,) = asked_again(evaluator_of(ours), "default")
    of_document = explained(asked, str(of_message.document_id), {}, 2)
    assert of_document.headline == of_message.headline
    assert of_document.ladder.equals(of_message.ladder)


@dataclass(frozen=True)
class Sure:
    """Gives what has no score one that means nothing."""

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        return frame.with_columns(score=pl.col("score").fill_null(-pl.int_range(pl.len()).cast(pl.Float64)))


@pytest.mark.parametrize("theta1", [0.9, 0.9999], ids=["some are left", "none is left"])
def test_what_first_gives_scores_is_not_left_out_and_its_rows_had_no_ranks(theta1: float) -> None:
    passes = TwoPass(NoDecay(), theta1=theta1)
    found = told(system(ranking=Ranking(Hybrid(), {"fusion": passes, "sure": Sure()})), 4)
    assert re.fullmatch(rf"dropped at fusion; cosine -?0\.\d+ below theta1 {theta1}", found.headline), found.headline
    assert found.is_tried and found.trials == () and found.taken_by.is_empty()
    assert found.ladder["event"].to_list() == [ADDED, DROPPED] and found.ladder["score_before"][-1] is None


@pytest.mark.parametrize(
    ("pool", "stages"), [(1, {}), (3, {"decay": TimeDecay()})], ids=["without scores", "with equal scores"]
)
def test_a_ranking_that_gives_no_order_is_not_tried(pool: int, stages: Mapping[str, Stage]) -> None:
    """Its rows stand as the source gave them: larger pools would only seem to help."""
    found = told(system(ranking=Ranking(Hybrid(dense_pool_size=pool, lexical_pool_size=1), stages)), 4)
    assert found.place == "source"
    assert found.trials == () and not found.is_tried


def test_a_rank_is_a_documents_which_may_hold_several_messages() -> None:
    ours = building.build(composed(["system=unified", "embedder=hashing"]), "memory")
    data, found = Sample().load(), set()
    evaluator = WorkspaceEvaluator(data, ours, Bulk(), measures={})
    said = said_messages(data, "assistant")
    for asked in asked_again(evaluator, "assistant", {"q039"}):
        sources = dict(asked.memory.documents.select("document_id", "source_message_ids").iter_rows())
        for message_id in data.evidence()["q039"]:
            one = explained(asked, message_id, said, 100, tries=False)
            several = len(sources[one.document_id]) > 1
            assert one.headline.endswith(f", in a document of {len(sources[one.document_id])} messages") == several
            found.add(several)
    assert found == {True}
