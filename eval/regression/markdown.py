"""The report of the gate as Markdown: a comment on a pull request."""

import html
from collections.abc import Collection, Iterator

from eval.comparison.changed_query import ChangedQuery, RankedDocument
from eval.dataset.dataset import generated_label
from eval.regression.gate import GatedComparison
from eval.regression.wording import changes, explained, headline, run_in_words, table
from eval.table import Cell, Column, Table, plain_markdown

_LONGEST_TEXT = 70
"""Letters of a document: 20 queries with 10 ranks of two sides fit into a comment, which takes 65,536."""


def markdown(comparison: GatedComparison) -> str:
    """What the gate says, one table, the queries that got worse and those that got better."""
    return "\n".join(_lines(comparison)) + "\n"


def _lines(comparison: GatedComparison) -> Iterator[str]:
    baseline, candidate = comparison.baseline, comparison.candidate
    dataset = baseline.summary["dataset"]
    yield f"## lcm regress: {comparison.gate}"
    yield ""
    yield headline(comparison)
    yield ""
    yield f"- baseline: {plain_markdown(baseline.name)} ({run_in_words(baseline.summary)})"
    yield f"- candidate: {plain_markdown(candidate.name)} ({run_in_words(candidate.summary)})"
    name, protocol = map(plain_markdown, (dataset["name"], dataset["protocol"]))
    yield f"- dataset: {name}, {len(baseline.queries):,} queries ({protocol})"
    if label := generated_label(dataset):
        yield f"- **{plain_markdown(label)}**"
    if comparison.left_out:
        yield f"- not measured in either: {', '.join(comparison.left_out)}"
    if comparison.unknown:
        unknown = plain_markdown(", ".join(comparison.unknown))
        yield f"- not known to agree, as a side's config.yaml does not tell: {unknown}"
    yield from (f"- {plain_markdown(note)}" for note in comparison.notes)
    yield ""
    yield table([*comparison.rows.iter_rows(named=True)], comparison.confidence).markdown()
    yield ""
    yield f"Paired by query; {explained(comparison)}."
    for word, queries in (("worse, worst", comparison.worse), ("better, best", comparison.better)):
        if queries:
            yield ""
            yield f"### {len(queries)} queries that got {word} first"
        for query in queries:
            yield ""
            yield from _query(query, comparison.costs)


def _query(query: ChangedQuery, costs: Collection[str]) -> Iterator[str]:
    yield f"<details><summary>{_html(query.query_id)} ({_html(query.category)}): {_html(query.text)}</summary>"
    yield ""
    yield f"{changes(query, costs)}; {query.evidence} messages of evidence"
    if query.baseline is not None and query.candidate is not None and (query.baseline or query.candidate):
        yield ""
        ranks = range(max(len(query.baseline), len(query.candidate)))
        rows = [(i + 1, _document(query.baseline, i), _document(query.candidate, i)) for i in ranks]
        yield Table((Column("rank", "number"), Column("baseline"), Column("candidate")), rows).markdown()
    yield ""
    yield "</details>"


def _document(ranking: tuple[RankedDocument, ...], i: int) -> str | Cell:
    if i >= len(ranking):
        return ""
    found = ranking[i]
    shown = " ".join((found.text or found.document_id).split())
    shown = shown if len(shown) <= _LONGEST_TEXT else f"{shown[: _LONGEST_TEXT - 1]}…"
    return Cell(shown, note="evidence" if found.covers_evidence else "")


def _html(text: str) -> str:
    """Text on one line within an HTML element, where Markdown is not read."""
    return html.escape(" ".join(str(text).split()))
