"""What the gate found: in words, as a table, Markdown, JUnit XML and JSON, and the folder that holds them."""

import html
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import polars as pl

from eval.comparison.pairing import comparable
from eval.dataset.dataset import generated_label
from eval.measures.means import ALL
from eval.regression.regression import ChangedQuery, GatedComparison, RankedDocument
from eval.run import CONFIG, EMBEDDING, Run, commit, read_table, write_frame, write_json, write_summary
from eval.shape import NUMBER, TEXT, keys, list_of, read_json
from eval.table import Cell, Column, Row, Table, interval, number, paired_cells, plain_markdown, probability, signed
from eval.tracking.entry import dataset_tags, metric_name
from lcm.files import private, write_text

_EXPLAINED = {
    "fine": "nothing gated is worse than tolerated beyond chance; over all queries, a loss to be detected is excluded",
    "regressed": "the candidate is worse than its tolerance, beyond chance",
    "cannot tell": "too few queries, or too varied ones: a loss that must be detected cannot be excluded",
}


CORRECTED = (
    "p: permutation test of what is gated, corrected by Holm over the rows over all queries, and over those of "
    "categories apart from them"
)
"""What p in a table of the gate is."""


def explained(comparison: GatedComparison) -> str:
    """What p, verdict and gate in a table are."""
    return f"{CORRECTED}; better, worse: p < {comparison.alpha:g}; regressed: worse, beyond the tolerance"


def headline(found: GatedComparison) -> str:
    """What got better and what got worse over all queries, what else changed, and what the gate says, in a line."""
    moved: dict[str, list[str]] = {"better": [], "worse": [], "not tested": []}
    for row in found.rows.filter(pl.col("verdict").is_in([*moved]), group=ALL).iter_rows(named=True):
        moved[row["verdict"]].append(f"{row['measure']} {signed(row['difference'], row['lower_is_better'])}")
    told = "; ".join(f"{verdict}: {', '.join(of)}" for verdict, of in moved.items() if of)
    return f"{found.gate}: {_EXPLAINED[found.gate]} ({told or 'no measure told better or worse'})"


def allowed(row: Mapping[str, Any]) -> str:
    """The loss that is tolerated, with the sign of a loss; `-` of a measure that is told only."""
    if row["tolerance"] is None:
        return "-"
    return f"{'+' if row['lower_is_better'] else '-'}{number(row['tolerance'], row['lower_is_better'])}"


_LACKS = [
    ["n", "changed", *more]
    for more in ([], ["tolerance"], ["tolerance", "p (Holm)"], ["tolerance", "p (Holm)", "baseline", "candidate"])
]
"""On a narrow terminal the interval outlives p, which has its say in the verdict."""


def table(rows: Sequence[Mapping[str, Any]], confidence: float) -> Table:
    """The rows of a gate, in order."""
    columns = (
        Column("group", "label"),
        Column("measure", "label"),
        Column("n", "number"),
        Column("changed", "number"),
        Column("baseline", "value"),
        Column("candidate", "value"),
        Column("difference", "change"),
        Column(f"{100 * confidence:g} % interval", "interval"),
        Column("p (Holm)", "p"),
        Column("verdict", "verdict"),
        Column("tolerance", "value"),
        Column("gate", "gate"),
    )
    return Table(columns, [_cells(row) for row in rows], lacks=_LACKS)


def _cells(row: Mapping[str, Any]) -> Row:
    values = (Cell(row[side], row["lower_is_better"]) for side in ("baseline", "candidate"))
    told = (row["group"], row["measure"], row["n"], row["changed"], *values, *paired_cells(row))
    return *told, row["verdict"], allowed(row), row["gate"]


def sentence(row: Mapping[str, Any]) -> str:
    """What a row says, for a log or a test report."""
    measure, is_cost = row["measure"], row["lower_is_better"]
    of = "" if row["group"] == ALL else f" ({row['group']})"
    return (
        f"{measure}{of}: {number(row['baseline'], is_cost)} -> {number(row['candidate'], is_cost)}, difference "
        f"{signed(row['difference'], is_cost)} {interval(row)}, corrected p {probability(row['p_holm'])}, {row['n']} "
        f"queries, {row['changed']} changed: {row['verdict']}; tolerance {allowed(row)}: {row['gate'] or 'not gated'}"
    )


def run_in_words(summary: Mapping[str, Any]) -> str:
    """Which configuration and which code a run is of."""
    commit = summary.get("commit")
    return f"configuration {summary['config_hash']}, commit {commit[:12] if commit else 'unknown'}"


def changes(query: ChangedQuery, costs: Collection[str]) -> str:
    """`recall@10 1.000 -> 0.500, ...` of what changed for a query."""
    return ", ".join(
        f"{name} {number(before, name in costs)} -> {number(after, name in costs)}"
        for name, (before, after) in query.values.items()
    )


_UNWRITABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(comparison: GatedComparison, at: str) -> str:
    """A failure where a row regressed, skipped where it cannot be told.

    Args:
        at: when, as 2026-01-31T12:00:00.
    """
    rows, gates = comparison.rows.drop_nulls("gate"), comparison.rows["gate"].to_list()
    counts = {"failures": gates.count("regressed"), "errors": 0, "skipped": gates.count("cannot tell"), "time": 0}
    named = {"name": "lcm regress", "tests": str(len(rows)), **{name: str(n) for name, n in counts.items()}}
    suites = Xml.Element("testsuites", named)
    suite = Xml.SubElement(suites, "testsuite", {**named, "timestamp": at, "hostname": "localhost"})
    properties, dataset = Xml.SubElement(suite, "properties"), comparison.baseline.summary["dataset"]
    said = {
        "gate": comparison.gate,
        "baseline": comparison.baseline.name,
        "candidate": comparison.candidate.name,
        "dataset": dataset["name"],
        **dataset_tags(dataset),
    }
    for name, value in said.items():
        Xml.SubElement(properties, "property", {"name": name, "value": _writable(value)})
    for row in rows.iter_rows(named=True):
        names = {"classname": f"lcm.regress.{_writable(row['group'])}", "name": row["measure"], "time": "0"}
        case, told = Xml.SubElement(suite, "testcase", names), _writable(sentence(row))
        if row["gate"] == "regressed":
            Xml.SubElement(case, "failure", {"message": told, "type": "regressed"}).text = told
        elif row["gate"] == "cannot tell":
            Xml.SubElement(case, "skipped", {"message": told})
    Xml.SubElement(suite, "system-out").text = _writable("\n".join([headline(comparison), *comparison.notes]))
    Xml.SubElement(suite, "system-err").text = ""
    Xml.indent(suites)
    text: bytes = Xml.tostring(suites, encoding="utf-8", xml_declaration=True)
    return text.decode() + "\n"


def _writable(text: str) -> str:
    """Without what XML cannot hold."""
    return _UNWRITABLE.sub("?", text)


_LONGEST_TEXT = 70
"""Letters of a document: 20 queries with 10 ranks of two sides fit into a comment, which takes 65,536."""


def markdown(comparison: GatedComparison) -> str:
    """What the gate says, one table, the queries that got worse and those that got better."""
    sides = {"baseline": comparison.baseline, "candidate": comparison.candidate}
    dataset = comparison.baseline.summary["dataset"]
    name, protocol, unknown = map(plain_markdown, (dataset["name"], dataset["protocol"], ", ".join(comparison.unknown)))
    label = plain_markdown(generated_label(dataset))
    about = [
        *(f"{word}: {plain_markdown(side.name)} ({run_in_words(side.summary)})" for word, side in sides.items()),
        f"dataset: {name}, {len(comparison.baseline.queries):,} queries ({protocol})",
        *([f"**{label}**"] if label else []),
        *([f"not measured in either: {', '.join(comparison.left_out)}"] if comparison.left_out else []),
        *([f"not known to agree, as a side's config.yaml does not tell: {unknown}"] if unknown else []),
        *map(plain_markdown, comparison.notes),
    ]
    told = [
        f"## lcm regress: {comparison.gate}",
        headline(comparison),
        "\n".join(f"- {line}" for line in about),
        table([*comparison.rows.iter_rows(named=True)], comparison.confidence).markdown(),
        f"Paired by query; {explained(comparison)}.",
    ]
    for word, queries in (("worse, worst", comparison.worse), ("better, best", comparison.better)):
        told += [f"### {len(queries)} queries that got {word} first"] if queries else []
        told += [part for query in queries for part in _worded(query, comparison.costs)]
    return "\n\n".join(told) + "\n"


def _worded(query: ChangedQuery, costs: Collection[str]) -> Iterator[str]:
    yield f"<details><summary>{_html(query.query_id)} ({_html(query.category)}): {_html(query.text)}</summary>"
    yield f"{changes(query, costs)}; {query.evidence} messages of evidence"
    if query.baseline is not None and query.candidate is not None and (query.baseline or query.candidate):
        ranks = range(max(len(query.baseline), len(query.candidate)))
        rows = [(i + 1, _document(query.baseline, i), _document(query.candidate, i)) for i in ranks]
        yield Table((Column("rank", "number"), Column("baseline"), Column("candidate")), rows).markdown()
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


MARKDOWN, JUNIT, JSON, ROWS = "report.md", "report.xml", "report.json", "verdict.parquet"
_LOGGED = ("baseline", "candidate", "difference", "low", "high", "p_holm")

_SIDE = keys({"folder": TEXT, "name": TEXT})
_SHAPE = keys(
    {
        "baseline": _SIDE,
        "candidate": _SIDE,
        "gate": TEXT,
        "not_measured": list_of(TEXT),
        "not_known_to_agree": list_of(TEXT),
        "settings": keys({"alpha": NUMBER, "confidence": NUMBER}),
    },
    {"notes": list_of(TEXT)},
)


@private()
def write_regression(
    folder: Path, comparison: GatedComparison, settings: Mapping[str, Any], config_text: str, now: datetime
) -> dict[str, Any]:
    """Write every file of it and, last, its summary.

    Args:
        settings: how it was judged: flat, by key.
    """
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / CONFIG, config_text)
    write_frame(folder / ROWS, comparison.rows)
    write_text(folder / MARKDOWN, markdown(comparison))
    write_text(folder / JUNIT, junit(comparison, now.isoformat(timespec="seconds").partition("+")[0]))
    write_json(folder / JSON, report(comparison, settings))
    return write_summary(folder, summary_of(comparison, settings), now.timestamp())


def report(comparison: GatedComparison, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Everything that was found, as plain data."""
    return {
        "gate": comparison.gate,
        "exit_code": comparison.exit_code,
        "dataset": dict(comparison.baseline.summary["dataset"]),
        "baseline": _side(comparison.baseline),
        "candidate": _side(comparison.candidate),
        "settings": dict(settings),
        "rows": comparison.rows.to_dicts(),
        "not_measured": list(comparison.left_out),
        "not_known_to_agree": list(comparison.unknown),
        "notes": list(comparison.notes),
        "worse_queries": [_query(query) for query in comparison.worse],
        "better_queries": [_query(query) for query in comparison.better],
    }


def read_regression(folder: Path) -> GatedComparison:
    """What the gate found, as its folder keeps it; without the queries that changed.

    Raises:
        LcmError: if a side is no longer where it was, or a file is missing or damaged.
    """
    told = read_json(folder / JSON, _SHAPE, "run `lcm regress` again")
    sides = {side: comparable(Path(told[side]["folder"]), told[side]["name"]) for side in ("baseline", "candidate")}
    rows = read_table(folder / ROWS)
    return GatedComparison(
        **sides,
        rows=rows,
        gate=told["gate"],
        worse=(),
        better=(),
        left_out=tuple(told["not_measured"]),
        costs=frozenset(rows.filter("lower_is_better")["measure"]),
        unknown=tuple(told["not_known_to_agree"]),
        alpha=told["settings"]["alpha"],
        confidence=told["settings"]["confidence"],
        notes=tuple(told.get("notes", ())),
    )


def _query(query: ChangedQuery) -> dict[str, Any]:
    return asdict(query) | {"values": {name: list(pair) for name, pair in query.values.items()}}


def summary_of(comparison: GatedComparison, settings: Mapping[str, Any]) -> dict[str, Any]:
    """What MLflow is told: each row's numbers as metrics, rows of a category under `category/`."""
    metrics = {
        ("" if row["group"] == ALL else f"category/{row['group']}/") + f"{row['measure']}.{name}": row[name]
        for row in comparison.rows.iter_rows(named=True)
        for name in _LOGGED
        if row[name] is not None
    }
    metrics |= {
        name.replace(" ", "_"): float((comparison.rows[column] == name).sum())
        for column, names in (("gate", ("regressed", "cannot tell")), ("verdict", ("better", "worse")))
        for name in names
    }
    metrics["exit_code"] = float(comparison.exit_code)
    baseline, candidate = comparison.baseline, comparison.candidate
    return {
        "kind": "regression",
        "gate": comparison.gate,
        "exit_code": comparison.exit_code,
        "name": f"{candidate.name} against {baseline.name}",
        "dataset": dict(baseline.summary["dataset"]),
        "commit": commit(),
        "metrics": metrics,
        "params": {
            "baseline": baseline.name,
            "candidate": candidate.name,
            "dataset": baseline.summary["dataset"]["name"],
            **{metric_name(key): value for key, value in settings.items()},
        },
        "tags": {
            "gate": comparison.gate,
            **dataset_tags(baseline.summary["dataset"]),
            "baseline_config_hash": baseline.summary["config_hash"],
            "candidate_config_hash": candidate.summary["config_hash"],
        },
    }


def _side(side: Run) -> dict[str, Any]:
    known = ("config_hash", "commit", "definitions")
    times = {
        name: section for name, section in side.summary.get("timing", {}).items() if name not in ("seconds", EMBEDDING)
    }
    return {
        "name": side.name,
        "folder": str(side.folder.resolve()),
        **{key: side.summary.get(key) for key in known},
        **times,
    }
