"""How concentrated the answers of a run are, in a line of the system and in a table of all arms."""

from collections.abc import Mapping
from typing import Any

from eval.measures.names import SYSTEM_ARM
from eval.report.plain import counted

HEADINGS = ("served", "k", "places", "documents", "top 10 take")


def served_rows(summary: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """A row an arm below `HEADINGS`; none of a run that does not tell."""
    return [
        (arm, *(f"{one[name]:,}" for name in ("k", "places", "documents")), f"{one['top_10_share']:.1%}")
        for arm, one in summary.get("served", {}).items()
    ]


def served_lines(summary: Mapping[str, Any]) -> list[str]:
    """What the system served, in a line; none where it served nothing, or the run does not tell."""
    return [
        f"served: {counted(one['documents'], 'document')} in {counted(one['places'], 'place')} of answers "
        f"(k = {one['k']:,}); the ten most served take {one['top_10_share']:.1%}"
        for arm, one in summary.get("served", {}).items()
        if arm == SYSTEM_ARM
    ]
