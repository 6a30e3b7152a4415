"""One call from Python: a system, a dataset, a table."""

from eval import evaluate
from eval.dataset.sample import Sample
from eval.measures.means import MEANS_SCHEMA, Means
from eval.measures.retention import Retention
from eval.measures.retrieval import Retrieval
from lcm.retrieval.ranking.pipeline import Ranking
from lcm.retrieval.source.branches import Recent
from tests.support.workspaces import system


def test_a_system_is_evaluated_in_one_call() -> None:
    sample = Sample().load()
    measures = {"retrieval": Retrieval(["recall@5"], ["message"]), "retention": Retention([1000])}
    table = evaluate(system(), sample, measures, {"last_n": Ranking(Recent())}, means=Means(resamples=5))
    assert dict(table.schema) == MEANS_SCHEMA
    rows = {(row["arm"], row["measure"]): row for row in table.filter(group="all").iter_rows(named=True)}
    assert set(table["group"]) > {"all", "single_hop", "multi_hop"}
    assert rows["system", "recall@5"]["n"] == 91
    assert rows["system", "recall@5"]["value"] > rows["last_n", "recall@5"]["value"]
    assert rows["system", "retained@1000"]["value"] > 0
    assert ("last_n", "retained@1000") not in rows
    table = evaluate(system(), sample.part({"ryokou"}), means=Means(resamples=5))  # no measure is named
    assert {"recall@10", "session.recall@10", "nDCG@10", "MRR"} < set(table["measure"])
    assert set(table["arm"]) == {"system"}
