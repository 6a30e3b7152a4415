"""One call from Python: a system, a dataset, a table."""

from eval.dataset.sample import Sample
from eval.evaluate import evaluate
from eval.measures.means import MEANS_SCHEMA, Means
from eval.measures.retention import Retention
from eval.measures.retrieval import Retrieval
from lcm.retrieval.ranking.pipeline import Ranking
from lcm.retrieval.source.recent import Recent
from tests.support.workspaces import system


def test_a_system_is_evaluated_in_one_call() -> None:
    measures = {"retrieval": Retrieval(["recall@5"], ["message"]), "retention": Retention([1000])}
    arms = {"last_n": Ranking(Recent())}
    table = evaluate(system(), Sample().load(), measures, arms, means=Means(resamples=5))
    assert dict(table.schema) == MEANS_SCHEMA
    rows = {(row["arm"], row["measure"]): row for row in table.filter(group="all").iter_rows(named=True)}
    assert set(table["group"]) > {"all", "single_hop", "multi_hop"}
    assert rows["system", "recall@5"]["n"] == 91
    assert rows["system", "recall@5"]["value"] > rows["last_n", "recall@5"]["value"]
    assert rows["system", "retained@1000"]["value"] > 0
    assert ("last_n", "retained@1000") not in rows


def test_retrieval_is_measured_where_nothing_is_named() -> None:
    table = evaluate(system(), Sample().load(), means=Means(resamples=5))
    assert {"recall@10", "session.recall@10", "nDCG@10", "MRR"} < set(table["measure"])
    assert set(table["arm"]) == {"system"}
