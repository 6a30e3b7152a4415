"""How many of a query's words a document has."""

from typing import Literal

import polars as pl

from lcm.protocols import Batch
from lcm.text_index.words import split_words, windows

Terms = Literal["unicode", "ascii"]

_SHORTEST = 3
"""Characters of a query's term; a shorter one asks for nothing."""
_TERM = {"unicode": "[a-z0-9]+", "ascii": "[a-z0-9_]+"}
_HAS_NO_SPACES = "[\\u2e80-\\u9fff\\uac00-\\ud7af\\uf900-\\ufaff\\U00020000-\\U0003ffff]"
_PAIR = 2
_LISTS = pl.List(pl.String)


def keyword_coverage(rows: pl.DataFrame, batch: Batch, kind: Terms) -> pl.Series:
    """The share of the query's distinct terms that the document's text has, in [0, 1]; 0 where the query has none.

    `ascii`: lower-case runs of a-z, 0-9 and the underscore. `unicode`: words of any script, without accents; Chinese,
    Japanese and Korean, which put no spaces between them, as pairs of neighbours. Of a query three characters or more,
    but for such a pair. No stop words.

    Source: libravdb memory 1.3.5, mathematical reference, section 7.5, and 1.4.4 for `ascii`; `unicode` is ours.

    Args:
        rows: columns query_id, document_id.
        batch: knows the texts.
        kind: of terms.
    Returns:
        Float64, in the order of the rows.
    """
    asked = batch.queries.filter(pl.col("query_id").is_in(rows["query_id"].unique().implode()))
    found = batch.documents.filter(pl.col("document_id").is_in(rows["document_id"].unique().implode()))
    keywords = asked.select("query_id", _keywords=_distinct_keywords(cut(asked["text"], kind)))
    words = found.select("document_id", _words=cut(found["text"], kind))
    beside = (
        rows.select("query_id", "document_id")
        .join(keywords, on="query_id", how="left", maintain_order="left")
        .join(words, on="document_id", how="left", maintain_order="left")
    )
    wanted, had = pl.col("_keywords").list.len(), pl.col("_keywords").list.set_intersection("_words").list.len()
    return beside.select(pl.when(wanted > 0).then(had / wanted).fill_null(0.0).cast(pl.Float64)).to_series()


def cut(texts: pl.Series, kind: Terms) -> pl.Series:
    """The terms of each text, in order and with repetitions."""
    plain = texts.str.to_lowercase().str.extract_all(_TERM[kind])
    if kind == "ascii":
        return plain
    is_plain = texts.str.len_bytes() == texts.str.len_chars()
    if is_plain.all():
        return plain
    terms = [None if simple else _terms(text) for text, simple in zip(texts, is_plain, strict=True)]
    return plain.zip_with(is_plain, pl.Series(plain.name, terms, dtype=_LISTS))


def _terms(text: str | None) -> list[str]:
    words, runs = split_words(text or "")
    return words + [pair for run in runs for pair in windows(run, _PAIR)]


def _distinct_keywords(terms: pl.Series) -> pl.Series:
    element = pl.element()
    counts = (element.str.len_chars() >= _SHORTEST) | element.str.contains(_HAS_NO_SPACES)
    return terms.to_frame("terms").select(pl.col("terms").list.eval(element.filter(counts).unique())).to_series()
