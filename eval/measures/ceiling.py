"""The ceiling of each measure: the value of the best order of the documents, which no other order of them passes.

A measure of places is best where all that is relevant comes at once, most relevant first. How many messages k documents
cover, and what is read within a budget of tokens, has a bound from above, which is reached where documents do not
overlap.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, chain, repeat

import numpy as np
import polars as pl

from eval.measures.measure import QUERY_VALUES_SCHEMA

_ROUNDING = 1e-9
_UNITS_SCHEMA = {"query_id": pl.String, "unit": pl.String, "rank": pl.Int64, "position": pl.Int64}
_Part = tuple[int, int]
"""Evidence, and which part of it."""


def with_ranked(reachable: pl.DataFrame, rankings: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Rows query_id, document_id, stands_for: what can be ranked and what is, each with all near duplicates that some
    ranking lets it stand for.

    Args:
        reachable: query_id, document_id.
        rankings: query_id, document_id, stands_for.
    """
    named = ["query_id", "document_id"]
    alone = reachable.select(*named, stands_for=pl.lit([], pl.List(pl.String)))
    return (
        pl.concat([alone, *(frame.select(*named, "stands_for") for frame in rankings)])
        .group_by(named, maintain_order=True)
        .agg(pl.col("stands_for").explode().drop_nulls().unique(maintain_order=True))
    )


def best_units(covered: pl.DataFrame, level: str, judgements: pl.DataFrame) -> pl.DataFrame:
    """Rows query_id, unit, rank, position (1-based): what is relevant and can be had, most relevant first.

    The rank of the j-th is how many documents cover j of them at the least.

    Args:
        covered: query_id, rank and a column named as the level: of all documents that can be ranked, each by a rank of
            its own.
        judgements: query_id, unit, relevance above 0.
    """
    covers = covered.select("query_id", "rank", unit=level).join(
        judgements, on=["query_id", "unit"], maintain_order="left"
    )
    rows: list[tuple[str, str, int, int]] = []
    for (query_id,), of_query in covers.group_by("query_id", maintain_order=True):
        of_documents = of_query.group_by("rank", maintain_order=True).agg("unit")["unit"]
        most = most_covered(of_documents.to_list())
        units = of_query.unique("unit", keep="first", maintain_order=True)
        best = units.sort("relevance", descending=True, maintain_order=True)["unit"]
        rows += [(str(query_id), unit, 1 + bisect_left(most, j), j) for j, unit in enumerate(best, start=1)]
    return pl.DataFrame(rows, schema=_UNITS_SCHEMA, orient="row")


def most_covered(documents: Iterable[Iterable[str]]) -> list[int]:
    """Bound how many units one, two, ... documents cover together, up to all documents that differ.

    Beside some others, k documents add no more than the k largest of what each would add by itself; the others are in
    turn each beginning of a greedy cover.
    """
    left = list(dict.fromkeys(frozenset(units) for units in documents))
    most, found = [len(frozenset[str]().union(*left))] * len(left), 0
    while left:
        gains = sorted(map(len, left), reverse=True)
        bounds = accumulate(chain(gains, repeat(0)))
        most = [min(known, found + bound) for known, bound in zip(most, bounds, strict=False)]
        best = max(left, key=len)
        found += len(best)
        left = [more for one in left if (more := one - best)]
    return most


def most_within(budgets: Mapping[str, int], readings: pl.DataFrame, counted: pl.DataFrame) -> pl.DataFrame:
    """Rows query_id, measure, value: of each query the largest share of its evidence that budgets of tokens may show.

    Args:
        budgets: measure -> tokens.
        readings: query_id, document_id, tokens, evidence, part, parts, end: how far to read which document for a part.
        counted: query_id, evidence: how much there is.
    """
    limits = np.array(list(budgets.values()))
    found = {query_id: _most_found(limits, of_query) for (query_id,), of_query in readings.group_by("query_id")}
    rows = [
        (query_id, measure, float(most / evidence))
        for query_id, evidence in counted.iter_rows()
        for measure, most in zip(budgets, found.get(query_id, np.zeros(len(limits))), strict=True)
    ]
    return pl.DataFrame(rows, schema=QUERY_VALUES_SCHEMA, orient="row")


def _most_found(budgets: np.ndarray, readings: pl.DataFrame) -> np.ndarray:
    """Bound how many relevant units each budget of tokens shows.

    One document may be read in part; each other one is paid for whole, by its parts of evidence in equal shares, so a
    part costs no less than its cheapest share of a document. For each end of the document that is read in part, what
    stands before it is free.
    """
    ends: dict[str, list[tuple[int, _Part]]] = {}
    tokens: dict[str, int] = {}
    parts: dict[int, int] = {}
    for document, whole, evidence, part, of, end in (
        readings.sort("end", maintain_order=True)
        .unique(["document_id", "evidence", "part"], keep="first", maintain_order=True)
        .select("document_id", "tokens", "evidence", "part", "parts", "end")
        .iter_rows()
    ):
        ends.setdefault(document, []).append((end, (evidence, part)))
        tokens[document], parts[evidence] = whole, of
    price: dict[_Part, float] = {}
    for document, standing in ends.items():
        for _, one in standing:
            price[one] = min(price.get(one, np.inf), tokens[document] / len(standing))
    had = Counter(evidence for evidence, _ in price)
    place = {evidence: i for i, evidence in enumerate(one for one in parts if had[one] == parts[one])}
    costs = np.zeros(len(place))
    for (evidence, _), share in price.items():
        if evidence in place:
            costs[place[evidence]] += share
    most = _affordable(costs, budgets)
    for standing in ends.values():
        reduced = costs.copy()
        for end, (evidence, part) in standing:
            if evidence in place:
                reduced[place[evidence]] -= price[evidence, part]
                most = np.maximum(most, _affordable(reduced, budgets - end))
    return most


def _affordable(costs: np.ndarray, budgets: np.ndarray) -> np.ndarray:
    spent = np.cumsum(np.sort(costs))
    return np.where(budgets < 0, 0, np.searchsorted(spent, budgets + _ROUNDING, side="right"))
