"""Where a run loses messages, and the ladder of one, on the terminal."""

from collections.abc import Mapping

import polars as pl

from eval.ladder.ladder import Ladders
from eval.ladder.losses import places_in_order
from eval.ladder.places import FIRST, FOUND, LATE
from eval.ladder.unseen import REASONS
from eval.measures.means import ALL
from lcm.retrieval.ranking.pipeline import SOURCE
from pipelines.views.terminal import say, show_table

_MEANT = {
    FOUND: f"among the first {FIRST} documents",
    LATE: f"ranked, and behind the first {FIRST} at every stage",
    SOURCE: "not found by the source",
    **REASONS,
}


def show_losses(rows: pl.DataFrame, counts: Mapping[str, Mapping[str, int]]) -> None:
    """How many judged messages are in each place, and by category where they are lost."""
    places, total = places_in_order(rows), len(rows)
    missed = [f"{place} {counts[ALL][place]:,}" for place in places if place != FOUND]
    n = total - counts[ALL].get(FOUND, 0)
    told = f": {' + '.join(missed)} = {n:,}" if missed else ""
    say(f"{n:,} of {total:,} judged messages are missed by the first {FIRST} documents{told}")
    lines = ((place, f"{counts[ALL][place]:,}", f"{counts[ALL][place] / total:.1%}", meant(place)) for place in places)
    show_table(("place", "messages", "share", "a message there"), lines, ("messages", "share"))
    by_category = [
        (
            name or "-",
            f"{sum(of.values()):,}",
            f"{of.get(FOUND, 0):,}",
            ", ".join(f"{place} {of[place]:,}" for place in places if place in of and place != FOUND) or "-",
        )
        for name, of in counts.items()
        if name != ALL
    ]
    show_table(("category", "judged", "found", "missed"), by_category, ("judged", "found"))


def meant(place: str) -> str:
    """What is so of a message in a place."""
    return _MEANT.get(place, f"lost by the stage {place}")


def show_ladders(found: Ladders, message_id: str) -> None:
    """The ladders of the documents that were made of a message."""
    for document_id in found.covers.filter(message_id=message_id)["document_id"]:
        say(f"document {document_id}")
        branches = found.found_by.filter(document_id=document_id).select("branch", "rank", "score").iter_rows()
        show_table(("branch", "rank", "score"), branches, ("rank", "score"))
        steps = found.steps.filter(document_id=document_id).select("stage", "rank", "score", "event").iter_rows()
        show_table(("stage", "rank", "score", "event"), steps, ("rank", "score"))
