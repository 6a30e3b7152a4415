"""Where a run loses messages, and what became of one, on the terminal."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from eval.ladder.explanation import DROPPED, FELL, ROSE, STAYED, Explanation, Shown
from eval.ladder.losses import FIRST, FOUND, LATE, NO_MISS, REASONS, missed, most_missed, places_in_order
from eval.measures.means import ALL
from eval.table import Column
from lcm.retrieval.ranking.pipeline import SOURCE
from pipelines.views.terminal import say, show_table

_MEANT = {
    FOUND: f"among the first {FIRST} documents",
    LATE: f"ranked, and behind the first {FIRST} at every stage",
    SOURCE: "not found by the source",
    **REASONS,
}

_SHOWN, _BESIDE = 200, 60
"""Characters of a text by itself, and of one in a table."""
_MOST_TRIALS, _MOST_TAKEN, _MOST_QUESTIONS = 5, 5, 5


def show_losses(
    folder: Path, rows: pl.DataFrame, counts: Mapping[str, Mapping[str, int]], texts: Mapping[str, str]
) -> None:
    """How many judged messages are in each place, by category where they are lost, and the questions that miss most.

    Args:
        texts: query id -> its words.
    """
    places, total = places_in_order(rows), len(rows)
    lost = missed({place: counts[ALL][place] for place in places})
    n, without = sum(lost.values()), sum(counts[ALL].get(place, 0) for place in NO_MISS)
    told = f": {' + '.join(f'{place} {times:,}' for place, times in lost.items())} = {n:,}" if lost else ""
    say(f"{folder}: {n:,} of {total - without:,} judged messages are missed by the first {FIRST} documents{told}")
    if without:
        say(f"{without:,} more are neither found nor missed: their questions have no value")
    lines = ((place, counts[ALL][place], counts[ALL][place] / total, meant(place)) for place in places)
    show_table(("place", Column("messages", "number"), Column("share", "share", 1), "a message there"), lines)
    by_category = [
        (
            name or "-",
            sum(of.values()),
            of.get(FOUND, 0),
            ", ".join(f"{place} {of[place]:,}" for place in places if place in missed(of)) or "-",
        )
        for name, of in counts.items()
        if name != ALL
    ]
    show_table(("category", Column("judged", "number"), Column("found", "number"), "missed"), by_category)
    if worst := most_missed(rows, _MOST_QUESTIONS):
        _show_worst(rows, worst, texts)
        say(f"next: {shlex.join(['lcm', 'why', worst[0], '--run', str(folder)])}")


def _show_worst(rows: pl.DataFrame, query_ids: Sequence[str], texts: Mapping[str, str]) -> None:
    lines = []
    for query_id in query_ids:
        of = rows.filter(query_id=query_id)
        misses = f"{of.filter(~pl.col('place').is_in([FOUND, *NO_MISS])).height} of {of.height}"
        lines.append((query_id, misses, of["category"][0] or "-", _short(texts.get(query_id, ""), _BESIDE)))
    show_table(("question", "misses", "category", "asks"), lines)


def meant(place: str) -> str:
    """What is so of a message in a place."""
    return _MEANT.get(place, f"lost by the stage {place}")


def show_explanation(found: Explanation, contexts: Sequence[Shown], said: Mapping[str, str]) -> None:
    """What became of one message: the cause first, then its ladder.

    Args:
        said: message id -> its words.
    """
    say(f"{found.query.query_id} ({found.query.category}): {_short(found.query.text)}")
    say(f"{found.expected}: {_short(said.get(found.expected, ''))}")
    say(f"{found.headline}")
    if found.document_id is not None:
        by = [f"{name} at rank {rank} ({score:.3g})" for name, rank, score in _found_by(found)]
        say(", found by: ".join([f"document {found.document_id}", *([", ".join(by)] if by else [])]))
        if not found.ladder.is_empty():
            _show_ladder(found)
    if not found.taken_by.is_empty():
        say("what took its place")
        taken = (
            (rank, before, document_id, _short(found.texts.get(document_id, ""), _BESIDE))
            for document_id, rank, before in found.taken_by.head(_MOST_TAKEN).iter_rows()
        )
        show_table((Column("rank", "number"), Column("before", "number"), "document", "says"), taken)
    if found.trials:
        keeps = found.trials[0].rank <= FIRST
        say("tried, what would have kept it" if keeps else f"tried, and none lets it be among the first {FIRST}")
        trials = ((trial.change, trial.rank) for trial in found.trials[:_MOST_TRIALS])
        show_table(("change", Column("rank", "number")), trials)
    elif found.is_tried:
        say("tried: no stage left out, limit or pool made larger moves it up")
    elif found.place != FOUND and found.place not in REASONS:
        say("nothing is tried: without the stage that first gives scores the ranking has no order")
    if contexts:
        shown = ((one.budget_tokens, one.tokens, one.how, one.why) for one in contexts)
        show_table((Column("budget", "number"), Column("context", "number"), "shown", "why"), shown)


def _found_by(found: Explanation) -> Iterator[tuple[str, int, float]]:
    return found.found_by.select("branch", "rank", "score").iter_rows()


def _show_ladder(found: Explanation) -> None:
    """The steps that did something, and the names of the others."""
    rows, idle, before = [], [], None
    for row in found.ladder.iter_rows(named=True):
        if row["event"] == STAYED and row["score"] == before:
            idle.append(row["stage"])
        else:
            score = None if row["score"] is None else f"{row['score']:.4g}"
            rows.append((row["stage"], None if score is None else row["rank"], score, _happened(row)))
        before = row["score"]
    show_table(("stage", Column("rank", "number"), Column("score", "number"), "what happened"), rows)
    if idle:
        say(f"left it as it was: {', '.join(idle)}")
    for like_id in found.ladder["like_id"].drop_nulls().unique(maintain_order=True):
        say(f"{like_id}: {_short(found.texts.get(like_id, ''))}")


def _happened(row: Mapping[str, Any]) -> str:
    moved = row["event"]
    if moved in (ROSE, FELL):
        moved = f"{moved} from {row['rank_before']}"
    elif moved == DROPPED and row["score_before"] is not None:
        moved = f"{moved}, from rank {row['rank_before']}"
    like = row["like_id"] or row["stood_for_by"]
    told = [moved, *([row["reason"]] if row["reason"] else []), *([f"like {like}"] if like else [])]
    return "; ".join(told)


def _short(text: str, characters: int = _SHOWN) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= characters else f"{plain[:characters]}..."
