"""The page of a run: what was run on what, how good it was and beside what, and every question by itself."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from eval.comparison.control_arms import against_controls
from eval.dataset.card import Card
from eval.dataset.dataset import generated_label
from eval.ladder.losses import missed
from eval.measures.names import SYSTEM_ARM
from eval.report.column import ShownRanking
from eval.report.contexts import contexts_section
from eval.report.conversations import conversation_headline, conversation_sections, of_conversations
from eval.report.curves import rank_curves, token_curves
from eval.report.figure import Interval, intervals, lines, shares
from eval.report.parts import Facts, Figure, Notes, Part, ReportPage, Section, Source
from eval.report.run_tables import answer_tables, decisions_table, served_table, timing_tables
from eval.report.system_flow import system_flow
from eval.run import CONFIG, read_config, read_summary
from eval.shape import sections
from eval.table import Cell, Measures, Row, Table, counted, mean_cell, means_table, sentence, titled
from eval.tracking.entry import run_name

FIRST = ("recall@10", "nDCG@10", "MRR", "recall_all@10", "recall@5", "recall@2000t", "tokens@10")


def run_page(
    folder: Path, columns: Sequence[ShownRanking], queries: pl.DataFrame, card: Card | None = None
) -> ReportPage:
    """A page without its explorer, which is packed into its blocks.

    Args:
        card: of the dataset, where it is known.
    """
    summary = read_summary(folder)
    dataset = summary["dataset"]
    config = read_config(folder) if (folder / CONFIG).is_file() else None
    shown = first_measures(summary["measures"])
    directions = columns[0].directions
    told = [
        section
        for section in (
            _what(config, summary),
            *conversation_sections(folder, summary),
            Section("dataset", "What it was asked", _dataset(summary, card)),
            _quality(summary, shown, directions),
            _categories(summary, shown, directions),
            lost(columns),
            _curves(columns, queries),
            _answers(summary, directions),
            contexts_section(summary),
            _latency(summary),
            _others(summary),
            survived(summary),
            configuration(folder),
        )
        if section is not None and section.parts
    ]
    return ReportPage(
        kind="run",
        title=run_name(summary, folder, is_nested=False),
        headline=_headline(folder, summary, shown),
        sections=told,
        label=generated_label(dataset),
    )


def first_measures(measures: Measures) -> list[str]:
    """The measures of every table, as far as they were measured; those of sessions where only sessions are judged."""
    found = [next((name for name in (one, f"session.{one}") if name in measures), None) for one in FIRST]
    return [name for name in found if name is not None] or list(measures)[: len(FIRST)]


def about(summary: Mapping[str, Any]) -> dict[str, str]:
    """What a bug report says of a run."""
    return {
        "dataset": f"{summary['dataset']['name']} ({summary['dataset']['protocol']})",
        "configuration": str(summary.get("config_hash")),
        "commit": str(summary.get("commit")),
    }


def survived(summary: Mapping[str, Any]) -> Section | None:
    """What failed and did not stop the run, and what is to be known of its numbers."""
    incidents = summary.get("incidents") or {}
    parts: list[Part] = []
    if incidents:
        columns = titled("incident", ("times",))
        parts.append(Table(columns, list(incidents.items()), "What failed, and was survived"))
    lines_told = [*summary.get("notes", ()), *summary.get("flags", ())]
    if lines_told:
        parts.append(Notes(lines_told))
    return Section("notes", "Notes", parts) if parts else None


def configuration(folder: Path) -> Section | None:
    """The whole configuration as it was resolved, and where it ran."""
    parts = [
        Source(title, (folder / name).read_text("utf-8"))
        for name, title in ((CONFIG, "the whole configuration, resolved"), ("environment.json", "the environment"))
        if (folder / name).is_file()
    ]
    return Section("configuration", "To repeat it", parts) if parts else None


def _headline(folder: Path, summary: Mapping[str, Any], shown: Sequence[str]) -> list[str]:
    judged, first = summary["counts"].get("judged_queries"), next(iter(shown), None)
    against = [f"{sentence(line)}." for line in against_controls(folder, summary)]
    if first is None or not judged:
        told = conversation_headline(summary) or against
        return told or ["No question is judged: there is nothing to say of its quality."]
    entry = summary["measures"][first]
    share = f"{summary['interval']['confidence']:.0%}"
    bounds = "" if entry["low"] is None else f" ({share} interval {entry['low']:.3f} to {entry['high']:.3f})"
    n = int(entry["n"] or 0)
    over = counted(judged, "judged question") if n == judged else f"{n:,} of {counted(judged, 'judged question')}"
    return [f"{first} is {entry['value']:.3f}{bounds}, over {over}.", *against]


def _what(config: Mapping[str, Any] | None, summary: Mapping[str, Any]) -> Section | None:
    if config is None:
        return Section(
            "system", "What was run", [Notes(["The folder has no config.yaml: nothing is known of the system."])]
        )
    flow = system_flow(config, is_asked=bool(summary["counts"]["queries"]))
    return Section("system", "What was run", [flow], "The system as data passes through it; what is off is not drawn.")


def _dataset(summary: Mapping[str, Any], card: Card | None) -> list[Part]:
    dataset, counts = summary["dataset"], summary["counts"]
    pairs = [("dataset", dataset["name"])]
    if card is not None:
        pairs += [("what it is", card.title), ("licence", card.licence), ("origin", card.origin)]
    pairs += [
        ("protocol", dataset["protocol"]),
        ("questions", f"{counts['queries']:,}, {counts['judged_queries']:,} of them judged"),
        (
            "haystack",
            ", ".join(counted(counts[f"{noun}s"], noun) for noun in ("workspace", "message", "document")),
        ),
        ("digest", dataset["digest"][:16]),
    ]
    if "generated" in dataset:
        pairs.append(("questions were generated", dataset["generated"]))
    return [Facts(pairs)]


def _quality(summary: Mapping[str, Any], shown: Sequence[str], directions: Mapping[str, str]) -> Section | None:
    if not summary["counts"].get("judged_queries") or not shown:
        return None
    arms: dict[str, Measures] = {SYSTEM_ARM: summary["measures"], **summary["arms"]}
    first = shown[0]
    rows = _intervals(arms, first)
    table = _table(
        f"Means over judged questions; below each its {summary['interval']['confidence']:.0%} bootstrap interval",
        "arm", arms, shown, directions,
    )  # fmt: skip
    figure = Figure(
        f"{first} of the system and of its control arms",
        intervals(rows, f"{first} by arm; the table below tells the numbers"),
    )
    lead = "Control arms rank the very same documents: random and last n are the floor, oracle is the ceiling."
    return Section("quality", "How good it is", [figure, table], lead)


def _categories(summary: Mapping[str, Any], shown: Sequence[str], directions: Mapping[str, str]) -> Section | None:
    groups = summary.get("categories") or {}
    if not groups or not shown:
        return None
    first = shown[0]
    figure = intervals(_intervals(groups, first, own=None), f"{first} by category; the table below tells the numbers")
    table = _table("The system's means, by category", "category", groups, shown, directions)
    return Section("categories", "By kind of question", [Figure(f"{first} by category", figure), table])


def _intervals(rows: Mapping[str, Measures], measure: str, own: str | None = SYSTEM_ARM) -> list[Interval]:
    return [
        Interval(label, entry["value"], entry["low"], entry["high"], own is None or label == own)
        for label, measures in rows.items()
        if (entry := measures.get(measure)) is not None and entry["value"] is not None
    ]


def _table(
    caption: str, heading: str, rows: Mapping[str, Measures], names: Sequence[str], directions: Mapping[str, str]
) -> Table:
    costs = [name for name in names if directions.get(name) == "lower"]
    return replace(means_table(heading, rows, names, costs, own=SYSTEM_ARM), caption=caption)


def _curves(columns: Sequence[ShownRanking], queries: pl.DataFrame) -> Section | None:
    parts: list[Part] = []
    if by_rank := rank_curves(columns, queries):
        drawn = lines(by_rank, "recall by rank", "ranks that are read", "recall")
        parts.append(Figure("Recall by how many ranks are read", drawn))
    if by_tokens := token_curves(columns, queries):
        drawn = lines(by_tokens, "recall by tokens", "tokens that are read", "recall")
        parts.append(Figure("Recall by how many tokens are read, documents whole and in order", drawn))
    return Section("curves", "How far one has to read", parts) if parts else None


def lost(columns: Sequence[ShownRanking]) -> Section | None:
    """Where the evidence of each ranking went that was asked again; each judged message is in one place."""
    counts = {one.name: one.insight.losses() for one in columns if one.insight is not None and len(one.insight.places)}
    if not counts:
        return None
    places = list(dict.fromkeys(place for found in counts.values() for place in found))
    rows: list[Row] = [(place, *(found.get(place, 0) for found in counts.values())) for place in places]
    rows.append((Cell("all judged messages", tone="own"), *(sum(found.values()) for found in counts.values())))
    lost_of = {name: missed(found) for name, found in counts.items()}
    parts: list[Part] = [
        Figure(
            "Missed evidence by where it was lost",
            shares(lost_of, "missed evidence by stage; the table tells the numbers"),
        ),
        Table(titled("place", counts), rows, "Every judged message in one place"),
        *(_by_category(one) for one in columns if one.insight is not None and len(one.insight.places)),
    ]
    return Section("losses", "Where evidence was lost", parts, _PLACES)


_PLACES = (
    "found: among the first ten. late: ranked behind them all along. A stage: it put the message behind the first ten, "
    "or dropped it. source: nothing found it. The rest could not be seen when the question was asked."
)


def _by_category(column: ShownRanking) -> Table:
    assert column.insight is not None
    told = column.insight.places
    places = list(column.insight.losses())
    counts = {row[:2]: row[2] for row in told.group_by("category", "place").len().iter_rows()}
    groups = told["category"].unique(maintain_order=True).to_list()
    rows = [(group, *(counts.get((group, place), 0) for place in places)) for group in groups]
    return Table(titled("category", places), rows, f"{column.name}: by kind of question")


def _latency(summary: Mapping[str, Any]) -> Section | None:
    parts = [replace(table, caption=table.columns[0].title) for table in timing_tables(summary)]
    lead = "Live questions, one at a time, on the machine of the run."
    return Section("latency", "How fast it is", parts, lead) if parts else None


def _answers(summary: Mapping[str, Any], directions: Mapping[str, str]) -> Section | None:
    parts = [
        _table(title.capitalize(), heading, rows, columns, directions)
        for heading, title, rows, columns in answer_tables(summary)
    ]
    lead = "Each question with an answer in the dataset, answered from what the arm found; nothing said counts 0."
    return Section("answers", "What the answers are worth", parts, lead) if parts else None


def _others(summary: Mapping[str, Any]) -> Section | None:
    """What measures of something else than questions tell."""
    shown = of_conversations(summary)
    parts = list(_tables_of({name: one for name, one in sections(summary).items() if name not in shown}))
    if served := served_table(summary):
        parts.append(replace(served, caption="How concentrated answers are: the documents that took all places"))
    if decided := summary.get("decisions"):
        parts.append(replace(decisions_table(decided), caption="What became of candidates"))
    return Section("others", "What else was measured", parts) if parts else None


def _tables_of(found: Mapping[str, Mapping[str, Any]]) -> Iterator[Table]:
    for name, section in found.items():
        arms = {arm: entries for arm, entries in section.items() if isinstance(entries, Mapping) and entries}
        if (
            name == "answers"
            or not arms
            or not all(isinstance(one, Mapping) and "value" in one for arm in arms.values() for one in arm.values())
        ):
            continue
        names = list(dict.fromkeys(name for entries in arms.values() for name in entries))
        rows = [(arm, *(mean_cell(entries.get(one)) for one in names)) for arm, entries in arms.items()]
        yield Table(titled("", names, "mean"), rows, f"{name.replace('_', ' ')}: means over conversations")
