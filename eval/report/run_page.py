"""The page of a run: what was run on what, how good it was and beside what, and every question by itself."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from eval.comparison.comparison import against_controls
from eval.dataset.card import Card
from eval.dataset.dataset import generated_label
from eval.ladder.losses import missed
from eval.measures.names import SYSTEM_ARM, among
from eval.measures.sessions import ALL_KINDS, STATES
from eval.report.figure import Interval, intervals, lines, shares
from eval.report.page import Facts, Figure, Notes, Part, ReportPage, Section, Source
from eval.report.ranking import ShownRanking, rank_curves, token_curves
from eval.report.run_tables import (
    UNCHANGED,
    answer_tables,
    are_in_question,
    contexts_table,
    conversations_table,
    decisions_table,
    haystack,
    sections_of_means,
    served_table,
    timing_tables,
)
from eval.report.system_flow import system_flow
from eval.run import CONFIG, Run
from eval.shape import sections
from eval.table import Cell, Measures, Row, Table, counted, means_table, sentence, titled
from eval.tracking.entry import run_name

FIRST = ("recall@10", "nDCG@10", "MRR", "recall_all@10", "recall@5", "recall@2000t", "tokens@10")
_TITLES = {"survival": "What survives of facts", "resume": "What it takes to go on"}
_FIRST = {"survival": "retained", "resume": "at_hand"}
"""The measure that is drawn, and that the page begins with."""
_LEADS = {
    "survival": "Each fact of a conversation by what became of it in the context under a budget, once compaction has "
    "gone over it; means over conversations.",
    "resume": "What the next turns mention again: at hand in the context, or brought back, at what cost; means over "
    "conversations.",
}
_BUDGET = 8000
"""Of the tables that have one: the largest up to here."""
_MOST_CONVERSATIONS = 30
_MEANT = (
    "summarised: at least half of a message's words stand, in order, in a summary or a recalled document that covers "
    "it; reachable: one covers it with fewer"
)
_BY_DOCUMENTS = {"summarised": "summarised: in part, by a passage", "reachable": "reachable: less of it, by a passage"}
"""Headings where no summary was made."""
_NO_SUMMARY = (
    "No summary was made here: what counts as summarised or reachable is a message of which a recalled document, "
    "mostly a passage, holds a part"
)


def run_page(run: Run, columns: Sequence[ShownRanking], queries: pl.DataFrame, card: Card | None = None) -> ReportPage:
    """A page without its explorer, which is packed into its blocks."""
    summary = run.summary
    shown = among(FIRST, summary["measures"]) or list(summary["measures"])[: len(FIRST)]
    directions = columns[0].directions
    return ReportPage(
        kind="run",
        title=run_name(summary, run.folder, is_nested=False),
        headline=_headline(run, shown),
        sections=[
            _what(run.config, summary),
            *conversation_sections(run),
            dataset_section(summary, card),
            _quality(summary, shown, directions),
            _categories(summary, shown, directions),
            lost(columns),
            curves(columns, queries),
            _answers(summary, directions),
            contexts_section(summary),
            _latency(summary),
            _others(summary),
            survived(summary),
            configuration(run.folder),
        ],
        label=generated_label(summary["dataset"]),
    )


def about(summary: Mapping[str, Any]) -> dict[str, str]:
    """What a bug report says of a run."""
    return {
        "dataset": f"{summary['dataset']['name']} ({summary['dataset']['protocol']})",
        "configuration": str(summary.get("config_hash")),
        "commit": str(summary.get("commit")),
    }


def survived(summary: Mapping[str, Any]) -> Section:
    """What failed and did not stop the run, and what is to be known of its numbers."""
    parts: list[Part] = []
    if incidents := summary.get("incidents"):
        parts.append(Table(titled("incident", ("times",)), [*incidents.items()], "What failed, and was survived"))
    if told := [*summary.get("notes", ()), *summary.get("flags", ())]:
        parts.append(Notes(told))
    return Section("notes", "Notes", parts)


def configuration(folder: Path) -> Section:
    """The whole configuration as it was resolved, and where it ran."""
    parts = [
        Source(title, (folder / name).read_text("utf-8"))
        for name, title in ((CONFIG, "the whole configuration, resolved"), ("environment.json", "the environment"))
        if (folder / name).is_file()
    ]
    return Section("configuration", "To repeat it", parts)


def _headline(run: Run, shown: Sequence[str]) -> list[str]:
    summary = run.summary
    judged, first = summary["counts"].get("judged_queries"), next(iter(shown), None)
    against = [f"{sentence(line)}." for line in against_controls(run)]
    if first is None or not judged:
        told = conversation_headline(summary) or against
        return told or ["No question is judged: there is nothing to say of its quality."]
    entry = summary["measures"][first]
    share = f"{summary['interval']['confidence']:.0%}"
    bounds = "" if entry["low"] is None else f" ({share} interval {entry['low']:.3f} to {entry['high']:.3f})"
    n = int(entry["n"] or 0)
    over = counted(judged, "judged question") if n == judged else f"{n:,} of {counted(judged, 'judged question')}"
    return [f"{first} is {entry['value']:.3f}{bounds}, over {over}.", *against]


def _what(config: Mapping[str, Any], summary: Mapping[str, Any]) -> Section:
    if not config:
        untold = Notes(["The folder has no config.yaml: nothing is known of the system."])
        return Section("system", "What was run", [untold])
    flow = system_flow(config, is_asked=bool(summary["counts"]["queries"]))
    return Section("system", "What was run", [flow], "The system as data passes through it; what is off is not drawn.")


def dataset_section(summary: Mapping[str, Any], card: Card | None, shared: tuple[int, int] | None = None) -> Section:
    """What a run was asked.

    Args:
        shared: how many questions several runs were asked, and how many of them are judged; None = those of this run.
    """
    dataset, counts = summary["dataset"], summary.get("counts", {})
    about = [] if card is None else [("what it is", card.title), ("licence", card.licence), ("origin", card.origin)]
    asked, judged = shared or (counts["queries"], counts["judged_queries"])
    pairs = [
        ("dataset", dataset["name"]),
        *about,
        ("protocol", dataset["protocol"]),
        ("questions that all were asked" if shared else "questions", f"{asked:,}, {judged:,} of them judged"),
        *([] if shared else [("haystack", haystack(counts))]),
        ("digest", dataset["digest"][:16]),
        *([("questions were generated", dataset["generated"])] if "generated" in dataset else []),
    ]
    return Section("dataset", "What they were asked" if shared else "What it was asked", [Facts(pairs)])


def _quality(summary: Mapping[str, Any], shown: Sequence[str], directions: Mapping[str, str]) -> Section:
    arms = {SYSTEM_ARM: summary["measures"], **summary["arms"]} if summary["counts"].get("judged_queries") else {}
    caption = f"Means over judged questions; below each its {summary['interval']['confidence']:.0%} bootstrap interval"
    parts = _means(("of the system and of its control arms", caption), "arm", arms, shown, directions)
    lead = "Control arms rank the very same documents: random and last n are the floor, oracle is the ceiling."
    return Section("quality", "How good it is", parts, lead)


def _categories(summary: Mapping[str, Any], shown: Sequence[str], directions: Mapping[str, str]) -> Section:
    captions = "by category", "The system's means, by category"
    parts = _means(captions, "category", summary.get("categories") or {}, shown, directions)
    return Section("categories", "By kind of question", parts)


def _means(
    captions: tuple[str, str],
    heading: str,
    rows: Mapping[str, Measures],
    shown: Sequence[str],
    directions: Mapping[str, str],
) -> list[Part]:
    """The first measure of each row, the system's own standing out where there is one, and a table of all."""
    if not rows or not shown:
        return []
    drawn = [
        Interval(label, entry["value"], entry["low"], entry["high"], label == SYSTEM_ARM or SYSTEM_ARM not in rows)
        for label, measures in rows.items()
        if (entry := measures.get(shown[0])) is not None and entry["value"] is not None
    ]
    return [intervals(drawn, f"{shown[0]} {captions[0]}"), _table(captions[1], heading, rows, shown, directions)]


def _table(
    caption: str, heading: str, rows: Mapping[str, Measures], names: Sequence[str], directions: Mapping[str, str]
) -> Table:
    costs = [name for name in names if directions.get(name) == "lower"]
    return replace(means_table(heading, rows, names, costs, own=SYSTEM_ARM), caption=caption)


def curves(columns: Sequence[ShownRanking], queries: pl.DataFrame) -> Section:
    """Over the questions of which all that have any value have one."""
    for column in columns:
        queries = queries if (judged := column.judged(queries)).is_empty() else judged
    read = {
        "ranks that are read": rank_curves(columns, queries),
        "tokens that are read, documents whole and in order": token_curves(columns, queries),
    }
    parts = [lines(found, f"Recall by {far}", far, "recall") for far, found in read.items() if found]
    return Section("curves", "How far one has to read", parts)


def lost(columns: Sequence[ShownRanking]) -> Section:
    """Where the evidence of each ranking went that was asked again; each judged message is in one place."""
    counts = {one.name: one.insight.losses() for one in columns if one.insight is not None and len(one.insight.places)}
    if not counts:
        return Section("losses", "", [])
    places = list(dict.fromkeys(place for found in counts.values() for place in found))
    rows: list[Row] = [(place, *(found.get(place, 0) for found in counts.values())) for place in places]
    rows.append((Cell("all judged messages", tone="own"), *(sum(found.values()) for found in counts.values())))
    parts: list[Part] = [
        shares({name: missed(found) for name, found in counts.items()}, "Missed evidence by where it was lost"),
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


def _latency(summary: Mapping[str, Any]) -> Section:
    parts = [replace(table, caption=table.columns[0].title) for table in timing_tables(summary)]
    return Section("latency", "How fast it is", parts, "Live questions, one at a time, on the machine of the run.")


def _answers(summary: Mapping[str, Any], directions: Mapping[str, str]) -> Section:
    parts = [
        _table(title.capitalize(), heading, rows, columns, directions)
        for heading, title, rows, columns in answer_tables(summary)
    ]
    lead = "Each question with an answer in the dataset, answered from what the arm found; nothing said counts 0."
    return Section("answers", "What the answers are worth", parts, lead)


def _others(summary: Mapping[str, Any]) -> Section:
    """What measures of something else than questions tell."""
    shown = of_conversations(summary)
    parts = [
        replace(conversations_table("", arms), caption=f"{name.replace('_', ' ')}: means over conversations")
        for name, arms in sections_of_means(summary).items()
        if name not in shown
    ]
    if served := served_table(summary):
        parts.append(replace(served, caption="How concentrated answers are: the documents that took all places"))
    if decided := summary.get("decisions"):
        parts.append(replace(decisions_table(decided), caption="What became of candidates"))
    return Section("others", "What else was measured", parts)


def conversation_sections(run: Run) -> list[Section]:
    """One of each such measure: its curve over budgets, means of every arm; of facts also by compaction and kind."""
    found = []
    for name, arms in of_conversations(run.summary).items():
        table = conversations_table("arm@budget", arms)
        means = replace(table, caption="Means over conversations, with their intervals")
        parts: list[Part] = [_budget_curve(arms, _FIRST[name]), means]
        if name == "survival":
            parts += _of_facts(run.frame("survival"))
        found.append(Section(name, _TITLES[name], parts, _LEADS[name]))
    return found


def conversation_headline(summary: Mapping[str, Any]) -> list[str]:
    """What the system retains, or has at hand, beside the arms that see the raw history; empty where nothing tells."""
    told = []
    for name, arms in of_conversations(summary).items():
        measure = _FIRST[name]
        budgets = sorted({budget for arm in arms if (budget := _budget(arm)) is not None})
        budget = max((one for one in budgets if one <= _BUDGET), default=budgets[-1])
        own = arms[f"{SYSTEM_ARM}@{budget}"][measure]
        others = [
            f"{label.partition('@')[0]} {entries[measure]['value']:.3f}"
            for label, entries in arms.items()
            if _budget(label) == budget and not label.startswith(f"{SYSTEM_ARM}@")
        ]
        bounds = "" if own["low"] is None else f" ({own['low']:.3f} to {own['high']:.3f})"
        beside = f"; beside it: {', '.join(others)}" if others else ""
        over = counted(int(own["n"]), "conversation")
        told.append(
            f"{measure.replace('_', ' ')} under {budget:,} tokens is {own['value']:.3f}{bounds}, over {over}{beside}."
        )
    return [line[0].upper() + line[1:] for line in told]


def of_conversations(summary: Mapping[str, Any]) -> dict[str, dict[str, Measures]]:
    """Measure of conversations -> `arm@budget` -> its means; of those that a page has a section for."""
    return {
        name: dict(section)
        for name, section in sections(summary).items()
        if name in _TITLES and any(arm.startswith(f"{SYSTEM_ARM}@") for arm in section)
    }


def _budget(label: str) -> int | None:
    of = label.partition("@")[2]
    return int(of) if of else None


def _budget_curve(arms: Mapping[str, Measures], measure: str) -> Figure:
    series: dict[str, list[tuple[float, float]]] = {}
    for label, entries in arms.items():
        if (budget := _budget(label)) is not None and (value := entries[measure]["value"]) is not None:
            series.setdefault(label.partition("@")[0], []).append((float(budget), value))
    told = measure.replace("_", " ")
    ordered = {arm: sorted(points) for arm, points in series.items()}
    return lines(ordered, f"{told} by budget", "budget in tokens", told)


def _of_facts(rows: pl.DataFrame) -> Iterator[Part]:
    """What is retained after each compaction, and what became of each kind of fact at the end."""
    budgets: list[int] = rows["budget"].drop_nulls().unique().sort().to_list()
    budget = max((one for one in budgets if one <= _BUDGET), default=budgets[0])
    under = rows.filter(budget=budget)
    retained = under.filter(kind=ALL_KINDS, measure="retained")
    cycles = retained["cycle"].unique().sort().to_list()
    means = retained.group_by("arm", "cycle", maintain_order=True).agg(pl.col("value").mean())
    by_cycle = {(arm, cycle): value for arm, cycle, value in means.iter_rows()}
    reached = dict(retained.filter(arm=SYSTEM_ARM).group_by("cycle").len().iter_rows())
    arms = means["arm"].unique(maintain_order=True).to_list()
    if len(cycles) > 1:
        table: list[Row] = [
            (Cell(arm, tone="own" if arm == SYSTEM_ARM else ""), *(by_cycle.get((arm, one)) for one in cycles))
            for arm in arms
        ]
        if len(set(reached.values())) > 1:
            having = (Cell(reached[one], tone="quiet") for one in cycles)
            table.append((Cell("conversations", tone="quiet"), *having))
        caption = f"Retained after each compaction, under {budget:,} tokens{_of_whom(reached)}"
        yield Table(titled("arm", map(str, cycles)), table, caption)
    yield _by_conversation(under, budget)
    last = pl.col("cycle") == pl.col("cycle").max().over("conversation_id")
    own = under.filter(last, pl.col("arm") == SYSTEM_ARM, pl.col("kind") != ALL_KINDS)
    told = own.group_by("kind", "measure", maintain_order=True).agg(pl.col("value").mean(), pl.len())
    by_kind = {(kind, measure): value for kind, measure, value, _ in told.iter_rows()}
    kinds: Sequence[str] = told["kind"].unique(maintain_order=True).to_list()
    if kinds:
        counts = {kind: n for kind, _, _, n in told.filter(measure="retained").iter_rows()}
        yield Table(
            titled("kind", ("conversations", *STATES)),
            [(kind, counts[kind], *(by_kind.get((kind, one)) for one in STATES)) for kind in kinds],
            f"The system by kind of fact, at the end, under {budget:,} tokens",
        )


def _of_whom(reached: Mapping[int, int]) -> str:
    """That a conversation of few turns has few compactions, where columns average different ones."""
    if len(set(reached.values())) == 1:
        return f", of {counted(next(iter(reached.values())), 'conversation')}"
    return "; short conversations have fewer, so that each column averages others"


def _by_conversation(under: pl.DataFrame, budget: int) -> Table:
    """What the system retains of each conversation at its end, and of all facts together."""
    last = pl.col("cycle") == pl.col("cycle").max().over("conversation_id")
    own = under.filter(last, pl.col("arm") == SYSTEM_ARM, pl.col("kind") == ALL_KINDS)
    told = {
        str(conversation_id): dict(group.select("measure", "value").iter_rows())
        for (conversation_id,), group in own.group_by("conversation_id", maintain_order=True)
    }
    least = sorted(told, key=lambda one: told[one]["retained"])
    facts = sum(one["facts"] for one in told.values())
    rows: list[Row] = [
        (Cell("all facts together", tone="own"), round(facts), *(_weighted(told, one) for one in STATES), "", "")
    ]
    for name in least[:_MOST_CONVERSATIONS]:
        of = told[name]
        costs = (round(of[one]) for one in ("context_tokens", "summaries"))
        rows.append((name, round(of["facts"]), *(of[one] for one in STATES), *costs))
    more = f"; the {_MOST_CONVERSATIONS} that retain least of {len(told):,}" if len(told) > _MOST_CONVERSATIONS else ""
    return Table(
        titled("conversation", ("facts", *STATES, "context_tokens", "summaries")),
        rows,
        f"The system by conversation, at its end, under {budget:,} tokens{more}",
    )


def _weighted(told: Mapping[str, Mapping[str, float]], state: str) -> float:
    """The share of all facts, where a mean counts each conversation alike."""
    return sum(one[state] * one["facts"] for one in told.values()) / sum(one["facts"] for one in told.values())


def contexts_section(summary: Mapping[str, Any]) -> Section:
    """Of each budget what contexts still hold of the evidence, and how."""
    measures, done = summary["measures"], summary.get("compression") or {}
    budgets = [name.partition("@")[2] for name in measures if name.startswith("retained@")]
    parts: list[Part] = []
    if budgets:
        told = [] if are_in_question(summary) else [f"{sentence(UNCHANGED)}."]
        parts.append(Notes([*told, f"{sentence(_MEANT)}.", *([] if done.get("summaries") else [f"{_NO_SUMMARY}."])]))
        parts.append(_curve(measures, budgets))
    if (table := contexts_table(summary, is_whole=True)) is not None:
        named = {} if done.get("summaries") else _BY_DOCUMENTS
        columns = [replace(one, title=named.get(one.title, one.title)) for one in table.columns]
        parts.append(replace(table, columns=columns, caption="By budget, in the assembly's own tokens"))
    if done.get("summaries"):
        parts.append(Facts([(name.replace("_", " "), _plain(value)) for name, value in done.items()]))
    return Section("contexts", "What a model would be shown", parts)


def _curve(measures: Measures, budgets: Sequence[str]) -> Figure:
    curves = {
        kind: [(float(budget), entry["value"]) for budget in budgets if (entry := measures.get(f"{kind}@{budget}"))]
        for kind in ("verbatim", "retained")
    }
    caption = "Evidence that the context under a budget still holds"
    return lines(curves, caption, "budget in tokens", "share of a question's evidence")


def _plain(value: Any) -> str:
    """A number of any size, or what is none, as it is read."""
    if not isinstance(value, (int, float)):
        return str(value)
    return f"{value:,.3g}" if value != int(value) else f"{value:,}"
