"""What a run tells of conversations: what survives of their facts, and what it takes to go on with them."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from eval.measures.names import SYSTEM_ARM
from eval.measures.sessions import ALL_KINDS, STATES
from eval.report.figure import lines
from eval.report.parts import Figure, Part, Section
from eval.run import read_table
from eval.shape import sections
from eval.table import Cell, Measures, Row, Table, counted, mean_cell, titled

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
COUNTS = ("facts", "probes", "summaries")
"""Numbers that are neither shares nor costs."""


def conversation_sections(folder: Path, summary: Mapping[str, Any]) -> list[Section]:
    """One of each such measure: its curve over budgets, means of every arm; of facts also by compaction and kind."""
    found = []
    for name, arms in of_conversations(summary).items():
        parts: list[Part] = [_curve(arms, _FIRST[name]), _table(arms)]
        if name == "survival":
            parts += _of_facts(read_table(folder / "survival.parquet"))
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


def _curve(arms: Mapping[str, Measures], measure: str) -> Figure:
    series: dict[str, list[tuple[float, float]]] = {}
    for label, entries in arms.items():
        if (budget := _budget(label)) is not None and (value := entries[measure]["value"]) is not None:
            series.setdefault(label.partition("@")[0], []).append((float(budget), value))
    told = measure.replace("_", " ")
    ordered = {arm: sorted(points) for arm, points in series.items()}
    return Figure(f"{told} by budget", lines(ordered, f"{told} by budget", "budget in tokens", told))


def _table(arms: Mapping[str, Measures]) -> Table:
    names = list(dict.fromkeys(name for entries in arms.values() for name in entries))
    counts = {name: {entry["value"] for entries in arms.values() if (entry := entries.get(name))} for name in COUNTS}
    alike = {name: next(iter(values)) for name, values in counts.items() if len(values) == 1}
    said = "".join(f"; {value:,.1f} {name}".replace(".0 ", " ") for name, value in alike.items())
    shown = [name for name in names if name not in alike]
    rows = [
        (
            Cell(label, tone="own" if label.startswith(f"{SYSTEM_ARM}@") else ""),
            *(mean_cell(entries.get(name), is_cost=name.endswith("tokens") or name in COUNTS) for name in shown),
        )
        for label, entries in arms.items()
    ]
    caption = f"Means over conversations, with their intervals{said}"
    return Table(titled("arm@budget", shown, "mean"), rows, caption)


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
