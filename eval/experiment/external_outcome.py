"""What an experiment tells of an external memory: which of its queries have a value, and what a reader must know."""

from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from eval.experiment.workspace import WorkspaceResult
from eval.external.ranking import External
from eval.external.reading import HOW
from eval.measures.measure import QUERY_VALUES_SCHEMA, Measure
from eval.measures.names import CONTEXT_COSTS, CONTEXT_MEASURES, EXTERNAL_MEMORY, HAS_NO_NUMBER
from lcm.errors import LcmError
from lcm.memory.system import System
from lcm.redaction import redacted

ALIGNED = "aligned"
"""The measure: the share of the texts that a query was answered with of which it is known for which messages they
stand."""
_OF_CONTEXTS = [name for name in CONTEXT_MEASURES if name not in CONTEXT_COSTS]
"""The measures that depend on the messages which a context's texts stand for."""
_STANDING = pl.sum_horizontal("named", "exact", "near")
_TEXTS = pl.sum_horizontal("named", "exact", "near", "none", "foreign", "early")


def refuse_sessions(system: System, measures: Mapping[str, Measure]) -> None:
    """Refuse measures that play sessions themselves, of ours, where an external memory is to be measured.

    Raises:
        LcmError: naming the first.
    """
    for name, measure in measures.items() if isinstance(system.ranking, External) else ():
        if measure.plays_sessions:
            raise LcmError(
                f"measures={name} plays sessions itself, and would measure this system's own assembly, not the "
                "external memory: leave it out"
            )


def asked_of(results: Sequence[WorkspaceResult]) -> pl.DataFrame | None:
    """What was asked of an external memory, in all workspaces: rows of `ASKED_SCHEMA`; None: the system is none."""
    asked = [one.external.asked for one in results if one.external is not None]
    return pl.concat(asked) if asked else None


def with_value(rows: pl.DataFrame, asked: pl.DataFrame, *, by_messages: bool) -> pl.DataFrame:
    """The rows of queries that have a value.

    Args:
        by_messages: whether the value depends on the messages that texts stand for.
    """
    without = [*unanswered(asked), *(unjudged(asked) if by_messages else [])]
    of_contexts = _unjudged_contexts(asked).join(pl.DataFrame({"name": _OF_CONTEXTS}), how="cross")
    of_nobody = of_contexts.select("query_id", measure=pl.format("{}@{}", "name", "unjudged_budgets"))
    return rows.filter(~pl.col("query_id").is_in(without)).join(
        of_nobody, on=["query_id", "measure"], how="anti", maintain_order="left"
    )


def without_answer(asked: pl.DataFrame | None) -> int:
    """How many queries came to none."""
    return 0 if asked is None else len(unanswered(asked))


def unanswered(asked: pl.DataFrame) -> list[str]:
    """The queries that came to no answer: nothing is known of what the memory would have said."""
    return asked.filter(pl.col("fault").is_not_null())["query_id"].to_list()


def unjudged(asked: pl.DataFrame) -> list[str]:
    """The queries that were answered with texts of which none could be aligned: whether they hold the evidence nobody
    can say."""
    return asked.filter(pl.col("fault").is_null(), pl.col("none") > 0, _STANDING == 0)["query_id"].to_list()


def _unjudged_contexts(asked: pl.DataFrame) -> pl.DataFrame:
    """query_id and budget of the contexts of whose texts none could be aligned: what they hold nobody can say."""
    return asked.select("query_id", "unjudged_budgets").explode("unjudged_budgets").drop_nulls()


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
    name = " ".join(filter(None, recorded[0].told[:2])) or "(it does not say its name)"
    covered = pl.concat([one.brought["source_message_ids"].list.len() for one in recorded])
    notes = [f"says: {'; '.join(recorded[0].told.notes)}"] if recorded[0].told.notes else []
    lines = (*_of_queries(asked), *notes, *_of_texts(asked, covered), *_of_numbers(asked))
    yield from (f"{EXTERNAL_MEMORY} {name} {line}" for line in lines)


def _of_queries(asked: pl.DataFrame) -> Iterator[str]:
    faulted = asked.filter(pl.col("fault").is_not_null())
    if len(faulted) == len(asked):
        first = next((f": {_line(one)}" for one in faulted["detail"].drop_nulls()), "")
        yield f"answered none of {len(asked):,} queries and {HAS_NO_NUMBER}{first}"
        return
    yield f"answered {len(asked) - len(faulted):,} of {len(asked):,} queries"
    if len(faulted):
        kinds = faulted.group_by("fault").agg(times=pl.len(), detail=pl.col("detail").drop_nulls().first())
        rows = kinds.sort("times", "fault", descending=[True, False]).iter_rows()
        why = ", ".join(f"{times:,} {kind}{_first(kind, detail)}" for kind, times, detail in rows)
        yield f"gave no answer to {len(faulted):,}, which have no value, not 0: {why}; means are of the others"
    if without := len(unjudged(asked)):
        all_of_it = f", and the ranking {HAS_NO_NUMBER}" if without + len(faulted) == len(asked) else ""
        told = f"answered {without:,} queries with nothing that could be aligned: they are unjudged and have no value"
        yield f"{told}{all_of_it}"
    if contexts := len(_unjudged_contexts(asked)):
        yield f"gave {contexts:,} contexts of which nothing could be aligned: what they retain is unjudged"
    if partly := asked.filter(pl.col("none") > 0, _STANDING > 0).height:
        yield f"answered {partly:,} queries with some texts that could not be aligned: a lower bound of their recall"


def _first(kind: str, detail: str | None) -> str:
    """The first reason that was given for a fault of a kind."""
    told = _line(detail or "").removeprefix(f"{kind}: ")
    return f" ({told})" if told else ""


def _line(told: str) -> str:
    """What a memory said, on one line that no terminal obeys, without what looks like a key."""
    plain = " ".join(redacted(told).split())
    return "".join(one if one.isprintable() else "\ufffd" for one in plain)


def _of_numbers(asked: pl.DataFrame) -> Iterator[str]:
    """True where every answer of the memory had fewer texts than were asked for."""
    answered = asked.filter(pl.col("fault").is_null(), pl.col("could_give") > 0)
    if len(answered) and (answered["given"] < answered["could_give"]).all():
        most, wanted = (max(answered[name]) for name in ("given", "could_give"))
        yield f"gave {most} texts at most, never the {wanted} asked for: what is measured @{wanted} is @{most}"


def _of_texts(asked: pl.DataFrame, covered: pl.Series) -> Iterator[str]:
    """
    Args:
        covered: of each text that was returned, how many messages it stands for.
    """
    sums = asked.select(pl.col(HOW).sum()).row(0, named=True)
    if not (total := sum(sums.values())):
        return
    standing = sums["named"] + sums["exact"] + sums["near"]
    yield (
        f"returned {total:,} texts, of which {standing:,} stand for messages ({standing / total:.1%}): "
        f"{sums['named']:,} named, {sums['exact']:,} by their words, {sums['near']:,} nearly; "
        f"{sums['none']:,} could not be aligned"
    )
    if sums["foreign"] or sums["early"]:
        yield (
            f"returned {sums['foreign']:,} texts of another workspace and {sums['early']:,} that were not added yet: "
            "it is not reset between workspaces; they count as wrong"
        )
    many = covered.filter(covered > 1)
    if len(many):
        yield (
            f"returned {len(many):,} texts of {len(covered):,} that stand for several messages, "
            f"{sum(many) / len(many):.1f} on average: finding one counts for each, so recall grows with their size; "
            "nDCG and tokens@k tell that cost"
        )
