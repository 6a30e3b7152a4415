"""The tables of a run, or of the points of a sweep, that a terminal and a page both show."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from eval.measures.names import ANSWER_MEASURES, SYSTEM_ARM
from eval.run import EMBEDDING
from eval.shape import sections
from eval.table import Column, Measures, Table, counted, means_table, titled

UNCHANGED = "nothing folds or was chosen for contexts here"
_ABOUT_CONTEXTS = ("assembly", "authored", "compaction", "scheduling", "guidance", "session", "summary_documents")
_RETAINED = ("retained", "context_tokens", "verbatim", "summarised", "reachable", "expansions")
_COSTS = ("context_tokens", "expansions")
_FIRST_SHOWN = ("retained", "recoverable", "missing", "context_tokens")
"""Of what survives: what a narrow terminal has room for."""
_COUNTS = ("facts", "probes", "summaries")
"""Numbers that are neither shares nor costs."""
_ANSWERS = (*ANSWER_MEASURES[:6], "abstention_precision", *ANSWER_MEASURES[6:])


def answer_tables(summary: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Measures], list[str]]]:
    """Heading, title, rows and columns of each table; none where nothing was answered."""
    unpaired = summary.get("answers", {})
    arms = {SYSTEM_ARM: summary["measures"], **summary["arms"]}
    of_arms = {arm: {**measures, **unpaired.get(arm, {})} for arm, measures in arms.items()}
    for heading, title, rows in (
        ("answers", "mean over the queries of each kind", of_arms),
        ("category", "the system's answers, by category", summary["categories"]),
    ):
        told = {row: {name: measures[name] for name in _ANSWERS if name in measures} for row, measures in rows.items()}
        columns = [name for name in _ANSWERS if any(name in measures for measures in told.values())]
        if columns:
            yield heading, title, {row: measures for row, measures in told.items() if measures}, columns


def haystack(counts: Mapping[str, int]) -> str:
    """What a run searched, in numbers."""
    return ", ".join(counted(counts[f"{noun}s"], noun) for noun in ("workspace", "message", "document"))


def are_in_question(summary: Mapping[str, Any]) -> bool:
    """Whether something folded, or was chosen for contexts or for measures of them; of a run that does not say what
    was chosen, it was."""
    if (summary.get("compression") or {}).get("summaries") or "changed" not in summary:
        return True
    return any(key.partition(".")[0] in _ABOUT_CONTEXTS or "retention" in key for key in summary["changed"])


def contexts_table(summary: Mapping[str, Any], *, is_whole: bool = False) -> Table | None:
    """Of each budget what of the evidence contexts hold, and how; None where no context was measured.

    Args:
        is_whole: whether what is 0 in all of them stands there too.
    """
    measures = summary["measures"]
    budgets = [name.partition("@")[2] for name in measures if name.startswith("retained@")]
    rows = {
        budget: {name: measures[f"{name}@{budget}"] for name in _RETAINED if f"{name}@{budget}" in measures}
        for budget in budgets
    }
    told = [name for name in _RETAINED if any(is_whole or (row.get(name) or {}).get("value") for row in rows.values())]
    return means_table("budget", rows, told or _RETAINED, _COSTS) if rows else None


def sections_of_means(summary: Mapping[str, Any]) -> dict[str, dict[str, Measures]]:
    """Measure of conversations -> arm -> its means; of those that tell nothing else."""
    found = {}
    for name, section in sections(summary).items():
        arms = {arm: entries for arm, entries in section.items() if isinstance(entries, Mapping) and entries}
        every = [one for entries in arms.values() for one in entries.values()]
        if name != "answers" and every and all(isinstance(one, Mapping) and "value" in one for one in every):
            found[name] = arms
    return found


def conversations_table(heading: str, arms: Mapping[str, Measures]) -> Table:
    """Means over conversations of each arm: what tells most first, tokens and counts without places."""
    every = dict.fromkeys(name for entries in arms.values() for name in entries)
    names = [*(name for name in _FIRST_SHOWN if name in every), *(name for name in every if name not in _FIRST_SHOWN)]
    costs = [name for name in names if name.endswith("_tokens") or name in _COUNTS]
    return means_table(heading, arms, names, costs, own=SYSTEM_ARM)


def timing_tables(summary: Mapping[str, Any]) -> Iterator[Table]:
    """Of what was timed, each part by its quantiles, and of how many."""
    for name, section in summary.get("timing", {}).items():
        if name not in ("seconds", EMBEDDING) and section:
            quantiles = [one for one in next(iter(section.values())) if one == "n" or one.endswith("_ms")]
            told = f"{name.removesuffix('_ms').replace('_', ' ')}, ms"
            columns = titled(told, (one.removesuffix("_ms") for one in quantiles), digits=2)
            rows = [(part, *(values[one] for one in quantiles)) for part, values in section.items()]
            yield Table(columns, rows)


def decisions_table(decisions: Mapping[str, int]) -> Table:
    """What became of candidates."""
    total = sum(decisions.values())
    columns = (Column("candidates", "label"), Column("decided", "number"), Column("share", "share", 1))
    return Table(columns, [(action, n, n / total) for action, n in decisions.items()])


def served_table(summary: Mapping[str, Any]) -> Table | None:
    """How concentrated the answers of each arm are; None of a run that does not tell."""
    names = ("k", "places", "documents")
    columns = (*titled("served", names), Column("top 10 take", "share", 1))
    told = summary.get("served", {})
    rows = [(arm, *(one[name] for name in names), one["top_10_share"]) for arm, one in told.items()]
    return Table(columns, rows) if rows else None


def served_lines(summary: Mapping[str, Any]) -> list[str]:
    """What the system served, in a line; none where it served nothing, or the run does not tell."""
    return [
        f"served: {counted(one['documents'], 'document')} in {counted(one['places'], 'place')} of answers "
        f"(k = {one['k']:,}); the ten most served take {one['top_10_share']:.1%}"
        for arm, one in summary.get("served", {}).items()
        if arm == SYSTEM_ARM
    ]


def embedding_lines(summary: Mapping[str, Any]) -> list[str]:
    """Report the requests, tokens and price of vectors from a server in one line; empty for a local embedder."""
    spent = summary.get("timing", {}).get(EMBEDDING)
    if not spent:
        return []
    requests, texts, tokens, cached = (spent.get(name, 0) for name in ("requests", "texts", "tokens", "cached"))
    price = f", price {spent['price']:.4g}" if "price" in spent else ""
    asked = f"{counted(texts, 'text')} asked in {counted(requests, 'request')}, {tokens:,} tokens{price}"
    return [f"embedding: {counted(cached, 'text')} cached, {asked}"]


_TIMES = (Column("p50, ms", "number", 2), Column("exact p50, ms", "number", 2), Column("faster", "number"))
"""Of live queries, where any were timed: each search beside the same by exact search, and how many were faster."""
_RECALLS = (Column("recall of exact", "number"), Column("recall@10", "number"))


def index_table(summary: Mapping[str, Any]) -> Table | None:
    """All searches of a run, then those of each way; None of an exact index."""
    found = summary.get("index_search") or {}
    told = {name: one for name, one in {"all": found, **found}.items() if isinstance(one, Mapping) and one}
    times = {name: _times(summary, name) for name in told}
    timed = _TIMES if any(map(any, times.values())) else ()
    columns = (*titled("vector index", ("searches",)), Column("share", "share", 0), *_RECALLS)
    rows = [
        (_worded(name), one["searches"], one["share"], one["recall"], one["recall@10"], *times[name][: len(timed)])
        for name, one in told.items()
    ]
    return Table((*columns, *timed), rows) if rows else None


def searches_table(summaries: Sequence[Mapping[str, Any] | None]) -> Table | None:
    """A row a point that finished, a column a way: the share of the searches that it answered, and their recall; None
    where all are exact."""
    searched = {i: one for i, one in enumerate(summaries) if one is not None and one.get("index_search")}
    found = {i: one["index_search"] for i, one in searched.items()}
    ways = {name for one in found.values() for name, told in one.items() if isinstance(told, Mapping)}
    ordered = sorted(ways, key=lambda name: (int(name.partition("_")[2]), name))
    times = {i: _times(one, "all") for i, one in searched.items()}
    timed = [place for place in range(len(_TIMES)) if any(one[place] for one in times.values())]
    rows = [
        (
            str(i),
            one["searches"],
            one["recall"],
            one["recall@10"],
            *(f"{one[way]['share']:.0%} at {_share(one[way]['recall'])}" if way in one else None for way in ordered),
            *(times[i][place] for place in timed),
        )
        for i, one in found.items()
    ]
    columns = (*titled("point", ("searches",)), *_RECALLS, *(Column(_worded(way), "number") for way in ordered))
    return Table((*columns, *(_TIMES[place] for place in timed)), rows) if rows else None


def _times(summary: Mapping[str, Any], way: str) -> tuple[float | None, float | None, str | None]:
    """None where nothing was timed."""
    times = summary.get("timing", {}).get("latency_ms") or {}
    suffix = "" if way == "all" else f"_{way}"
    own, exact = times.get(f"dense{suffix}", {}), times.get(f"dense_exact{suffix}", {})
    return own.get("p50_ms"), exact.get("p50_ms"), f"{exact['slower']} of {exact['n']}" if "slower" in exact else None


def _worded(way: str) -> str:
    return way.replace("_", " of ")


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
