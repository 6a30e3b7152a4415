"""What a measure is by the judgements of a pool: people's alone, a model's alone, and both together."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from eval.dataset.dataset import QRELS_SCHEMA, Dataset
from eval.judging.agreement import qrels_of
from eval.judging.judgement import Judgement, Kind
from eval.judging.ppi import PoweredMean, powered_mean
from eval.measures.measure import RunReading
from eval.measures.retrieval import Retrieval

PEOPLE: tuple[Kind, ...] = ("human", "file")
MODEL: tuple[Kind, ...] = ("model",)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A measure of one ranking, over the queries whose whole pool was judged; None where nobody judged enough."""

    people: PoweredMean | None
    """By people alone: the classical interval."""
    model: float | None
    """By the model alone, over all that it judged: its error is not known."""
    both: PoweredMean | None
    """By people and a model: prediction-powered."""


def estimated(
    measure: str,
    reading: RunReading,
    messages: Mapping[str, tuple[str, str]],
    pool: pl.DataFrame,
    judgements: Collection[Judgement],
    confidence: float,
) -> Estimate:
    """Estimate the mean of a measure over the queries of a pool; where nothing is relevant, a query counts as 0.

    Args:
        messages: document id -> workspace and message id.
    """
    people = _values(measure, reading, messages, pool, judgements, PEOPLE)
    model = _values(measure, reading, messages, pool, judgements, MODEL)
    both = [query for query in people if query in model]
    others = [value for query, value in model.items() if query not in people]
    powered = None
    if len(both) >= 2 and len(others) >= 2:
        powered = powered_mean([people[one] for one in both], [model[one] for one in both], others, confidence)
    return Estimate(
        people=powered_mean(list(people.values()), list(people.values()), [], confidence) if len(people) >= 2 else None,
        model=float(np.mean(list(model.values()))) if model else None,
        both=powered,
    )


def _values(
    measure: str,
    reading: RunReading,
    messages: Mapping[str, tuple[str, str]],
    pool: pl.DataFrame,
    judgements: Collection[Judgement],
    kinds: Collection[Kind],
) -> dict[str, float]:
    """Query -> the measure by judgements of these kinds; only queries whose whole pool they judged, or skipped."""
    decided = {one.pair for one in judgements if one.kind in kinds}
    by_query = pool.group_by("query_id", maintain_order=True).agg("document_id")
    whole = [query for query, ids in by_query.iter_rows() if all((query, one) in decided for one in ids)]
    rows = [
        (query, messages[document][1], relevance)
        for query, document, relevance in qrels_of(judgements, kinds).iter_rows()
        if document in messages
    ]
    dataset: Dataset = replace(
        reading.dataset,
        qrels=pl.DataFrame(rows, schema=QRELS_SCHEMA, orient="row"),
        session_qrels=reading.dataset.session_qrels.clear(),
        repaired_qrels=None,
    )
    found = Retrieval(names=[measure], levels=["message"]).rows(replace(reading, dataset=dataset))
    values = dict(found.filter(measure=measure).select("query_id", "value").iter_rows())
    return {query: values.get(query, 0.0) for query in whole}
