"""What an experiment tells of an external memory: which of its queries have a value, and what a reader must know."""

from collections.abc import Iterator, Sequence

import polars as pl

from eval.experiment.workspace import WorkspaceResult
from eval.external.reading import ASKED_SCHEMA
from eval.measures.measure import QUERY_VALUES_SCHEMA

ALIGNED = "aligned"
"""The measure: the share of the texts that a query was answered with of which it is known for which messages they
stand."""
_STANDING = pl.sum_horizontal("named", "exact", "near")
_TEXTS = pl.sum_horizontal("named", "exact", "near", "none", "foreign", "early")


def asked_of(results: Sequence[WorkspaceResult]) -> pl.DataFrame | None:
    """What was asked of an external memory, in all workspaces: rows of `ASKED_SCHEMA`; None: the system is none."""
    asked = [one.external.asked for one in results if one.external is not None]
    return pl.concat(asked) if asked else None


def with_value(rows: pl.DataFrame, asked: pl.DataFrame, *, by_messages: bool) -> pl.DataFrame:
    """The rows of queries that have a value.

    Args:
        by_messages: whether the value depends on the messages that texts stand for.
    """
    without = [*_unanswered(asked), *(_unjudged(asked) if by_messages else [])]
    return rows.filter(~pl.col("query_id").is_in(without))


def _unanswered(asked: pl.DataFrame) -> list[str]:
    """The queries that came to no answer: nothing is known of what the memory would have said."""
    return asked.filter(pl.col("fault").is_not_null())["query_id"].to_list()


def _unjudged(asked: pl.DataFrame) -> list[str]:
    """The queries that were answered with texts of which none could be aligned: whether they hold the evidence nobody
    can say."""
    return asked.filter(pl.col("fault").is_null(), pl.col("none") > 0, _STANDING == 0)["query_id"].to_list()


def aligned_values(asked: pl.DataFrame) -> pl.DataFrame:
    """Rows of `QUERY_VALUES_SCHEMA`: of each query that was answered with any text."""
    told = asked.filter(pl.col("fault").is_null(), _TEXTS > 0)
    return told.select("query_id", measure=pl.lit(ALIGNED), value=1 - pl.col("none") / _TEXTS).select(
        list(QUERY_VALUES_SCHEMA)
    )


def flags_of_external(results: Sequence[WorkspaceResult]) -> Iterator[str]:
    """What a reader of the numbers must know of an external memory, a line each."""
    recorded = [one.external for one in results if one.external is not None]
    if (asked := asked_of(results)) is None:
        return
    told = recorded[0].told
    who = f"external memory {' '.join(filter(None, [told.name, told.version])) or '(it does not say its name)'}"
    faulted = asked.filter(pl.col("fault").is_not_null())
    answered = len(asked) - len(faulted)
    if not answered:
        first = next((f": {one}" for one in faulted["detail"].drop_nulls()), "")
        yield f"{who} answered none of {len(asked):,} queries and has no number{first}"
        return
    yield f"{who} answered {answered:,} of {len(asked):,} queries"
    if len(faulted):
        kinds = faulted["fault"].value_counts(sort=True).iter_rows()
        why = ", ".join(f"{times:,} {kind}" for kind, times in kinds)
        yield f"{len(faulted):,} queries have no value, not 0: {why}; the means are of the others"
    sums = asked.select(pl.col(list(ASKED_SCHEMA)[5:]).sum()).row(0, named=True)
    total = sum(sums.values())
    if total:
        standing = sums["named"] + sums["exact"] + sums["near"]
        yield (
            f"{standing:,} of {total:,} texts stand for messages ({standing / total:.1%}): {sums['named']:,} named, "
            f"{sums['exact']:,} by their words, {sums['near']:,} nearly; {sums['none']:,} could not be aligned"
        )
    if without := len(_unjudged(asked)):
        yield f"{without:,} queries were answered with nothing that could be aligned: unjudged, they have no value"
    partly = asked.filter(pl.col("none") > 0, _STANDING > 0).height
    if partly:
        yield f"{partly:,} queries were answered with some texts that could not be aligned: a lower bound of recall"
    if sums["foreign"] or sums["early"]:
        yield (
            f"{sums['foreign']:,} texts were said in another workspace and {sums['early']:,} were not added yet: "
            "the memory is not reset between workspaces; they count as wrong"
        )
    covered = pl.concat([one.brought["source_message_ids"].list.len() for one in recorded])
    many = covered.filter(covered > 1)
    if len(many):
        yield (
            f"{len(many):,} of {len(covered):,} texts stand for several messages, {sum(many) / len(many):.1f} on "
            "average: finding one counts for each, so recall grows with their size; nDCG and tokens@k tell that cost"
        )
