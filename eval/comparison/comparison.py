"""Several systems side by side: which is better than the baseline by what, which worse, and what each costs.

A run's system is held against its own control arms in the same way.
"""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl

from eval.comparison.pairing import Pairing, disagreements, shared_queries, unknown_settings
from eval.dataset.dataset import generated_label
from eval.measures.means import Entry
from eval.measures.names import ANSWER_HEADLINE, among, kind_of
from eval.run import Run
from eval.table import interval
from lcm.errors import LcmError

_USUAL = ("recall@10", "nDCG@10", "recall@2000t", "tokens@10")
"""Measures that are compared unless others are asked for, as far as all sides have them; those of sessions, where only
sessions are judged."""
_OF_CONTEXTS = ("retained", "context_tokens")
"""Of these the first budget's."""
_MOST_OTHERS = 5
_TOKENS = ("tokens", "context_tokens")
_RESAMPLES = 10_000
PRICE = "price of all vectors"
"""The name of the price of a side's vectors, each requested once, where costs are told."""


@dataclass(frozen=True, slots=True)
class Standing:
    """A side among the others."""

    side: Run
    is_baseline: bool
    means: Mapping[str, Entry]
    """Measure -> value, n, low, high, over the questions that all sides were asked."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Sides held against the first of them, by the questions that all were asked."""

    standings: tuple[Standing, ...]
    """Best first, by the measure that decides: by the mean, of a side that lacks questions by its difference from the
    baseline over those that it has, for only these are comparable."""
    by: str
    measures: tuple[str, ...]
    rows: pl.DataFrame
    """Of `PAIRED_SCHEMA`, `side` being the place among the standings: best first within a measure."""
    queries: int
    """That all were asked."""
    notes: tuple[str, ...]
    alpha: float
    confidence: float

    @property
    def baseline(self) -> Standing:
        return next(one for one in self.standings if one.is_baseline)

    @property
    def title(self) -> str:
        others = [one.side.name for one in self.standings if not one.is_baseline]
        return f"{others[0] if len(others) == 1 else f'{len(others)} systems'} against {self.baseline.side.name}"

    @property
    def label(self) -> str:
        """What stands beside the numbers where questions were generated."""
        return generated_label(self.baseline.side.summary["dataset"])

    @property
    def costs(self) -> frozenset[str]:
        """The measures of which less is better."""
        return frozenset(self.rows.filter("lower_is_better")["measure"])

    def row(self, standing: Standing, measure: str) -> Mapping[str, Any] | None:
        """None of the baseline, and where the two have no question of the measure in common."""
        found = self.rows.filter(side=self.standings.index(standing), measure=measure)
        return next(found.iter_rows(named=True), None)

    @property
    def unit(self) -> str:
        """What sides are paired by."""
        return "conversations" if self.baseline.side.is_of_conversations else "judged questions"

    @property
    def judged(self) -> int:
        """Of the questions, those that the measure that decides judges."""
        return int(self.baseline.means[self.by]["n"] or 0) if self.by in self.baseline.means else 0

    @property
    def paired(self) -> tuple[int, int]:
        """The least and the most pairs that a side is held against the baseline by, where it is by any."""
        n = self.rows.filter(measure=self.by)["n"].to_list() or [self.judged]
        return min(n), max(n)

    def lacking(self, standing: Standing) -> int:
        """How many of the questions that the baseline has a value of a side has none of, by the measure that
        decides."""
        row = self.row(standing, self.by)
        return 0 if row is None else self.judged - row["n"]

    @property
    def has_price(self) -> bool:
        """Tell whether a side pays for its vectors."""
        return any(one.side.embedding_price for one in self.standings)

    def paid(self) -> dict[str, list[tuple[int, float, float, float | None, float | None]]]:
        """Points of quality over cost, by what is paid: tokens, milliseconds, the price of vectors where one has any.

        Of each side of which the cost is known: its place among the standings, the cost, the mean of the deciding
        measure, and the ends of its interval."""
        tokens = next((name for name in self.measures if kind_of(name) in _TOKENS and name != self.by), None)
        found: dict[str, list[tuple[int, float, float, float | None, float | None]]] = {}
        for i, one in enumerate(self.standings):
            costs = {} if tokens is None else {f"{tokens}, mean a question": one.means.get(tokens, {}).get("value")}
            costs["ms a live question, median"] = (one.side.latency_ms or {}).get("p50_ms")
            costs |= {PRICE: one.side.embedding_price} if self.has_price else {}
            mean = one.means.get(self.by)
            for cost, at in costs.items():
                if at is not None and mean is not None and mean["value"] is not None:
                    found.setdefault(cost, []).append((i, at, mean["value"], mean["low"], mean["high"]))
        return found


def compared(
    sides: Sequence[Run],
    by: str | None = None,
    measures: Sequence[str] = (),
    cluster: Literal["none", "workspace"] = "none",
) -> Comparison:
    """Hold sides against the first of them.

    Holm corrects over all rows: every measure of every side.

    Args:
        by: the measure that sides are sorted by; None = the first that is no cost.
        measures: that are compared; none = the usual ones, as far as all sides have them.
    Raises:
        LcmError: if they share no question, or one and the same was measured otherwise.
    """
    baseline, *others = sides
    notes = [*baseline.summary.get("notes", ()), *(note for side in others for note in _differences(baseline, side))]
    notes += [f"{side.name}: {flag}" for side in sides for flag in side.of_external]
    queries = shared_queries(sides)
    asked = {side: f"{len(side.queries):,}" for side in sides}
    if queries.is_empty():
        told = "; ".join(f"{side.name} asks {n} of {side.summary['dataset']['name']}" for side, n in asked.items())
        raise LcmError(f"no question was put to all of them: {told}; evaluate all over the same dataset=")
    if any(len(queries) < len(side.queries) for side in sides):
        counts = ", ".join(f"{side.name} {n}" for side, n in asked.items())
        notes.append(f"compared over the {len(queries):,} questions that all were asked, of: {counts}")
    costs = {name for side in sides for name, way in side.directions.items() if way == "lower"}
    if not baseline.measures:
        raise LcmError(f"{baseline.name} has no number to be compared by: name another baseline first")
    measured = [side for side in others if side.measures]  # an external memory that did not run has no number
    known = [name for name in baseline.measures if all(name in side.measures for side in measured)]
    for name in (*measures, *([by] if by else [])):
        if known and name not in known:
            raise LcmError(_unknown(name, known, [baseline, *measured]))
    chosen = _chosen(known, by, measures)
    if not measures and (alike := [name for name in chosen if name != by and _is_same(sides, queries, name)]):
        notes.append(f"all are equal by {', '.join(alike)}")
        chosen = [name for name in chosen if name not in alike] or chosen
    by = by or next((name for name in chosen if name not in costs), chosen[0])
    tests = len(others) * len(chosen)
    pairing = Pairing(resamples=max(_RESAMPLES, 40 * tests), cluster=cluster)
    rows = pairing.rows(baseline, others, chosen, queries)
    if (untold := pairing.untold(rows)) is not None:
        notes.append(untold)
    means = [pairing.means(side, queries, chosen) for side in sides]
    sign = 1 if by in costs else -1
    values = [_comparable(means, rows, by, i) for i in range(len(sides))]
    order = sorted(range(len(sides)), key=lambda i: (values[i] is None, sign * (values[i] or 0.0)))
    place = {old - 1: new for new, old in enumerate(order)}
    ranked = rows.with_columns(
        side=pl.col("side").replace_strict(place, return_dtype=pl.Int64),
        at=pl.col("measure").replace_strict({name: i for i, name in enumerate(chosen)}, return_dtype=pl.Int64),
    )
    return Comparison(
        standings=tuple(Standing(sides[i], i == 0, means[i]) for i in order),
        by=by,
        measures=tuple(chosen),
        rows=ranked.sort("at", "side").drop("at"),
        queries=len(queries),
        notes=tuple(notes),
        alpha=pairing.alpha,
        confidence=pairing.confidence,
    )


def _comparable(means: Sequence[Mapping[str, Entry]], rows: pl.DataFrame, by: str, i: int) -> float | None:
    """The mean that a side is ranked by: of one that lacks questions of the baseline's the baseline's mean, moved by
    the difference over those that both have. None where there is nothing to compare."""
    base, own = means[0].get(by), means[i].get(by)
    if i == 0 or base is None or own is None:
        return None if own is None else own["value"]
    row = next(rows.filter(side=i - 1, measure=by).iter_rows(named=True), None)
    if row is None or base["value"] is None:
        return None
    return own["value"] if row["n"] == base["n"] == own["n"] else base["value"] + float(row["difference"])


def _differences(baseline: Run, side: Run) -> list[str]:
    """What two sides were not made alike in, and may differ by.

    Raises:
        LcmError: if one and the same question got numbers that do not mean the same.
    """
    found = list(disagreements(baseline, side))
    if of_measures := next((one for one in found if one.is_of_measures), None):
        raise LcmError(f"{of_measures.told(baseline.name, side.name)}; evaluate both alike")
    told = [one.told(baseline.name, side.name) for one in found]
    unknown, both = ", ".join(unknown_settings(baseline, side)), f"{baseline.name} and {side.name}"
    return [*told, *([f"{both} are not known to agree in {unknown}: a config.yaml is missing"] if unknown else [])]


def _is_same(sides: Sequence[Run], queries: pl.DataFrame, measure: str) -> bool:
    """Whether no question has another value at any side."""
    columns = ["query_id", "value"]
    first, *others = (
        side.values.filter(measure=measure).join(queries, on="query_id", how="semi").select(columns).sort("query_id")
        for side in sides
    )
    return all(one.equals(first) for one in others)


def _unknown(measure: str, known: Sequence[str], sides: Sequence[Run]) -> str:
    """That some sides lack a measure, and which, where others have it."""
    lacking = [side.name for side in sides if measure not in side.measures]
    where = f"; without it: {', '.join(lacking)}" if len(lacking) < len(sides) else ""
    near = difflib.get_close_matches(measure, known, n=1, cutoff=0.7)
    meant = f"; did you mean {near[0]}?" if near else ""
    return f"{measure} is not known of all of them: choose from: {', '.join(known)}{where}{meant}"


def _chosen(known: Sequence[str], by: str | None, measures: Sequence[str]) -> list[str]:
    """The measures to compare, in order; the one that sides are sorted by first."""
    if not known:
        raise LcmError("no measure is known of all of them: evaluate them with the same measures=")
    chosen = list(measures)
    if not chosen:
        contexts = [name for kind in _OF_CONTEXTS for name in [one for one in known if kind_of(one) == kind][:1]]
        chosen = [*among((*_USUAL, *ANSWER_HEADLINE), known), *contexts] or list(known[:_MOST_OTHERS])
    return list(dict.fromkeys([*([by] if by else []), *chosen]))


_BY = (("recall@10", "recall@5"), ANSWER_HEADLINE)
"""Of rankings and of answers: the first of each that a run has is what its arms are held by."""


def against_controls(run: Run) -> list[str]:
    """A line for rankings and one for answers: by recall@10 better than which arms, by how much, worse than which, and
    which it cannot be told from.

    The system is held against each arm query by query, as `lcm compare` holds systems. None is told where there is no
    arm, or nothing that both are measured by.
    """
    measures = (measure for names in _BY for measure in among(names, run.summary["measures"])[:1])
    return [line for measure in measures if (line := _against(run, measure)) is not None]


def _against(run: Run, measure: str) -> str | None:
    arms = [arm for arm, measures in run.summary["arms"].items() if measure in measures]
    if not arms:
        return None
    values = run.per_query.filter(measure=measure).select("arm", "query_id", "measure", "value")
    of_arms = [run.having(arm, values=values.filter(arm=arm).drop("arm")) for arm in arms]
    pairing = Pairing()
    rows = pairing.rows(run, of_arms, [measure])
    if rows.is_empty():
        return None
    words = {"worse": "better than", "better": "worse than", "cannot tell": "not told from", "same": "the same as"}
    found: dict[str, list[tuple[float, str]]] = {verdict: [] for verdict in words}
    for row in rows.iter_rows(named=True):  # turned: how far the system is above the arm
        arm, above = arms[row["side"]], -row["difference"]
        ends = {"low": None, "high": None} if row["low"] is None else {"low": -row["high"], "high": -row["low"]}
        text = arm if row["verdict"] == "same" else f"{arm} {above:+.3f} {interval({**row, **ends})}"
        found[row["verdict"]].append((abs(above), text))  # the nearest first
    parts = [f"{words[verdict]} {', '.join(text for _, text in sorted(of))}" for verdict, of in found.items() if of]
    corrected = f" (paired by query, p < {pairing.alpha:g}, Holm over {len(rows)} arms)" if len(rows) > 1 else ""
    return f"by {measure} the system is {'; '.join(parts)}{corrected}"
