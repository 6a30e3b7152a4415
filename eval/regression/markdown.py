"""The report of a comparison as Markdown: a comment on a pull request."""

import html
import re
from collections.abc import Collection, Iterator

from eval.dataset.dataset import generated_label
from eval.regression.comparison import Comparison
from eval.regression.wording import cells, changes, headline, run_in_words
from eval.regression.worse_query import RankedDocument, WorseQuery

_SPECIAL = re.compile(r"([\\`*_\[\]<>|~])")


def markdown(comparison: Comparison) -> str:
    """The verdict, one table, the queries that got worse."""
    return "\n".join(_lines(comparison)) + "\n"


def _lines(comparison: Comparison) -> Iterator[str]:
    baseline, candidate = comparison.baseline, comparison.candidate
    dataset = baseline.summary["dataset"]
    yield f"## lcm regress: {comparison.verdict}"
    yield ""
    yield headline(comparison)
    yield ""
    yield f"- baseline: {_text(baseline.name)} ({run_in_words(baseline.summary)})"
    yield f"- candidate: {_text(candidate.name)} ({run_in_words(candidate.summary)})"
    yield f"- dataset: {_text(dataset['name'])}, {len(baseline.queries):,} queries ({_text(dataset['protocol'])})"
    if label := generated_label(dataset):
        yield f"- **{_text(label)}**"
    if comparison.left_out:
        yield f"- not measured in either: {', '.join(comparison.left_out)}"
    if comparison.unknown:
        yield f"- not known to agree, as a side's config.yaml does not tell: {_text(', '.join(comparison.unknown))}"
    yield ""
    share = f"{100 * comparison.confidence:g} %"
    yield f"| group | measure | n | changed | baseline | candidate | difference | {share} interval | tolerance | p | |"
    yield "|---|---|---:|---:|---:|---:|---:|---|---:|---:|---|"
    for row in comparison.rows.iter_rows(named=True):
        verdict = f"**{row['verdict']}**" if row["verdict"] != "fine" else "fine"
        yield f"| {' | '.join([_text(row['group']), row['measure'], *cells(row), verdict])} |"
    yield ""
    yield (
        "Paired by query; p: permutation test, corrected over all rows (Holm); regressed: p < "
        f"{comparison.alpha:g} and a loss beyond the tolerance."
    )
    if comparison.worse:
        yield ""
        yield f"### {len(comparison.worse)} queries that got worse, worst first"
        for query in comparison.worse:
            yield ""
            yield from _query(query, comparison.costs)


def _query(query: WorseQuery, costs: Collection[str]) -> Iterator[str]:
    yield f"<details><summary>{_html(query.query_id)} ({_html(query.category)}): {_html(query.text)}</summary>"
    yield ""
    yield f"{changes(query, costs)}; {query.evidence} messages of evidence"
    if query.baseline is not None and query.candidate is not None and (query.baseline or query.candidate):
        yield ""
        yield "| rank | baseline | candidate |"
        yield "|---:|---|---|"
        for i in range(max(len(query.baseline), len(query.candidate))):
            yield f"| {i + 1} | {_document(query.baseline, i)} | {_document(query.candidate, i)} |"
    yield ""
    yield "</details>"


def _document(ranking: tuple[RankedDocument, ...], i: int) -> str:
    if i >= len(ranking):
        return ""
    found = ranking[i]
    return f"{_text(found.document_id)}{' **evidence**' if found.covers_evidence else ''}"


def _text(text: str) -> str:
    """Text on one line, with nothing that Markdown reads."""
    return _SPECIAL.sub(r"\\\1", " ".join(str(text).split()))


def _html(text: str) -> str:
    """Text on one line within an HTML element, where Markdown is not read."""
    return html.escape(" ".join(str(text).split()))
