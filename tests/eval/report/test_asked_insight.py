"""What a page tells of the evidence is what is told of one message alone."""

import polars as pl

from eval.experiment.workspace import WorkspaceEvaluator
from eval.ladder.explanation import best_documents
from eval.report.ranking import insight_of
from lcm.retrieval.ranking.stages.selection import Diversity, Limit
from pipelines.config import building
from tests.eval.ladder.test_explanation import ALIKE
from tests.eval.ladder.test_losses import ASKED, dataset, ranked
from tests.support.composing import composed


def test_a_rung_tells_why() -> None:
    data = dataset(ASKED, ALIKE, judged=[1, 4])
    ours = ranked(diversity=Diversity(0.6), cut=Limit(3))
    found = insight_of(
        WorkspaceEvaluator(data, ours, building.build(composed([]), "replay"), measures={}), lambda _: None
    )
    alike, far = found.ladders["q"]
    reasons = {rung.stage: rung.reason for rung in alike.rungs if rung.reason}
    assert reasons["diversity"].startswith("cosine 0.") and "; like doc_" in reasons["diversity"]
    assert [rung.reason for rung in far.rungs if rung.told == "dropped"] == ["the first 3 are let through"]


def test_the_best_document_is_the_one_that_came_to_the_stage_that_lost_the_message() -> None:
    ranks = {"first": (1, 9, None), "far": (5, 2, 30), "last": (9, 8, 20)}
    rows = [("q", name, step, rank) for name, steps in ranks.items() for step, rank in enumerate(steps)]
    steps = pl.DataFrame(rows, schema=["query_id", "document_id", "step", "rank"], orient="row")
    covers = pl.DataFrame({"query_id": "q", "document_id": list(ranks), "message_id": "m"})

    def best(step: int | None, steps: pl.DataFrame = steps) -> list[str]:
        lost = pl.DataFrame({"query_id": ["q"], "message_id": ["m"], "step": pl.Series([step], dtype=pl.Int64)})
        return best_documents(steps, covers, lost)["document_id"].to_list()

    assert best(None) == ["last"]  # all that came to the end, and there it stands best
    assert best(2) == ["far"]
    assert best(1) == best(0, steps.clear()) == ["first"]
