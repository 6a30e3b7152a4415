"""No dataset tells the answer by an id or an order: ranking on those alone scores at chance level."""

import os

import polars as pl
import pytest

from eval.datasets.dataset import Dataset
from eval.datasets.locomo import Locomo
from eval.datasets.sample import Sample
from eval.measures.retrieval import Retrieval

LOADERS = {"sample": Sample()} | ({"locomo": Locomo()} if os.environ.get("LCM_DATASETS_DIR") else {})
CUTOFF = 10


@pytest.fixture(scope="module", params=list(LOADERS))
def dataset(request: pytest.FixtureRequest) -> Dataset:
    return LOADERS[request.param].load()


@pytest.mark.parametrize("descending", [False, True], ids=["ascending", "descending"])
def test_ranking_on_the_id_alone_scores_at_chance(dataset: Dataset, descending: bool) -> None:
    messages = pl.DataFrame(
        [(t.workspace_id, m.message_id) for t in dataset.transcripts for m in t.messages],
        schema=["workspace_id", "message_id"],
        orient="row",
    )
    queries = pl.DataFrame(
        [(q.workspace_id, q.query_id) for q in dataset.queries], schema=["workspace_id", "query_id"], orient="row"
    )
    ordered = messages.sort("workspace_id", "message_id", descending=[False, descending]).with_columns(
        rank=pl.int_range(1, pl.len() + 1).over("workspace_id"), size=pl.len().over("workspace_id")
    )
    first = ordered.filter(pl.col("rank") <= CUTOFF)
    run = queries.join(first, on="workspace_id").select(
        pl.lit("id").alias("arm"), "query_id", pl.col("message_id").alias("document_id"), "rank"
    )
    covers = messages.select(
        "workspace_id",
        document_id="message_id",
        source_message_ids=pl.concat_list("message_id"),
        tokens=pl.lit(1),
    )
    names = [f"recall@{CUTOFF}"]
    retrieval = Retrieval(names=names, levels=["message"], resamples=1000, confidence=0.999)
    means = retrieval.means(retrieval.values(run.sort("query_id", "rank"), covers, dataset), dataset)
    row = means.filter(group="all").row(0, named=True)
    judged = queries.join(dataset.qrels.select("query_id").unique(), on="query_id", how="semi")
    sizes = ordered.select("workspace_id", "size").unique()
    chance = judged.join(sizes, on="workspace_id").select((CUTOFF / pl.col("size")).clip(0, 1).mean()).item()
    assert row["low"] <= chance <= row["high"] or abs(row["value"] - chance) < 0.02
