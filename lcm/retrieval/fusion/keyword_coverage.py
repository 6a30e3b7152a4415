"""How many of a query's words a document has."""

import polars as pl

from lcm.protocols import Batch
from lcm.retrieval.terms import Terms, TermWords


def keyword_coverage(rows: pl.DataFrame, batch: Batch, words: TermWords) -> pl.Series:
    """The share of the query's distinct terms that the document's text has, in [0, 1]; 0 where the query has none.

    Of a query three characters or more, but for the pairs of scripts without spaces. No stop words.

    Source: libravdb memory 1.3.5, mathematical reference, section 7.5, and 1.4.4 for `ascii`; `unicode` is ours.

    Args:
        rows: columns query_id, document_id.
        batch: knows the texts.
        words: how texts are cut into terms.
    Returns:
        Float64, in the order of the rows.
    """
    terms = Terms(words)
    asked = batch.queries.filter(pl.col("query_id").is_in(rows["query_id"].unique().implode()))
    found = batch.documents.filter(pl.col("document_id").is_in(rows["document_id"].unique().implode()))
    distinct = [list(dict.fromkeys(terms.of(text))) for text in asked["text"]]
    keywords = asked.select("query_id", _keywords=pl.Series(distinct, dtype=pl.List(pl.String)))
    said = found.select("document_id", _words=terms.all_of_each(found["text"]))
    beside = (
        rows.select("query_id", "document_id")
        .join(keywords, on="query_id", how="left", maintain_order="left")
        .join(said, on="document_id", how="left", maintain_order="left")
    )
    wanted, had = pl.col("_keywords").list.len(), pl.col("_keywords").list.set_intersection("_words").list.len()
    return beside.select(pl.when(wanted > 0).then(had / wanted).fill_null(0.0).cast(pl.Float64)).to_series()
