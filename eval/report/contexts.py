"""What a run tells of the contexts that were assembled for its questions."""

from collections.abc import Mapping, Sequence
from typing import Any

from eval.report.figure import lines
from eval.report.parts import Facts, Figure, Notes, Part, Section
from eval.table import Measures, Table, mean_cell, sentence, titled

UNCHANGED = "nothing folds or was chosen for contexts here"
_ABOUT_CONTEXTS = ("assembly", "authored", "compaction", "scheduling", "guidance", "session", "summary_documents")
_KINDS = ("verbatim", "summarised", "reachable", "retained", "context_tokens")
_BY_DOCUMENTS = {"summarised": "summarised: in part, by a passage", "reachable": "reachable: less of it, by a passage"}
"""Headings where no summary was made."""
_MEANT = (
    "summarised: at least half of a message's words stand, in order, in a summary or a recalled document that covers "
    "it; reachable: one covers it with fewer"
)
_NO_SUMMARY = (
    "No summary was made here: what counts as summarised or reachable is a message of which a recalled document, "
    "mostly a passage, holds a part"
)


def are_in_question(summary: Mapping[str, Any]) -> bool:
    """Whether something folded, or was chosen for contexts or for measures of them; of a run that does not say what
    was chosen, it was."""
    if (summary.get("compression") or {}).get("summaries") or "changed" not in summary:
        return True
    return any(key.partition(".")[0] in _ABOUT_CONTEXTS or "retention" in key for key in summary["changed"])


def contexts_section(summary: Mapping[str, Any]) -> Section | None:
    """Of each budget what contexts still hold of the evidence, and how."""
    measures, done = summary["measures"], summary.get("compression") or {}
    budgets = [name.partition("@")[2] for name in measures if name.startswith("retained@")]
    parts: list[Part] = []
    if budgets:
        told = [] if are_in_question(summary) else [f"{sentence(UNCHANGED)}."]
        parts.append(Notes([*told, f"{sentence(_MEANT)}.", *([] if done.get("summaries") else [f"{_NO_SUMMARY}."])]))
        parts += [_curve(measures, budgets), _table(measures, budgets, {} if done.get("summaries") else _BY_DOCUMENTS)]
    if done.get("summaries"):
        parts.append(Facts([(name.replace("_", " "), _plain(value)) for name, value in done.items()]))
    return Section("contexts", "What a model would be shown", parts) if parts else None


def _curve(measures: Measures, budgets: Sequence[str]) -> Figure:
    curves = {
        kind: [(float(budget), entry["value"]) for budget in budgets if (entry := measures.get(f"{kind}@{budget}"))]
        for kind in ("verbatim", "retained")
    }
    drawn = lines(curves, "evidence in the context by budget", "budget in tokens", "share of a question's evidence")
    return Figure("Evidence that the context under a budget still holds", drawn)


def _table(measures: Measures, budgets: Sequence[str], named: Mapping[str, str]) -> Table:
    rows = [
        (budget, *(mean_cell(measures.get(f"{kind}@{budget}"), is_cost=kind == "context_tokens") for kind in _KINDS))
        for budget in budgets
    ]
    columns = titled("budget", (named.get(kind, kind) for kind in _KINDS), "mean")
    return Table(columns, rows, "By budget, in the assembly's own tokens")


def _plain(value: Any) -> str:
    """A number of any size, or what is none, as it is read."""
    return (
        f"{value:,.3g}"
        if isinstance(value, float) and value != int(value)
        else f"{value:,}"
        if isinstance(value, (int, float))
        else str(value)
    )
