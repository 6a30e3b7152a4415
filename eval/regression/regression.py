"""Has a candidate become worse than a baseline, on the same queries; which of these changed, and what did each rank."""

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import polars as pl

from eval.comparison.pairing import PAIRED_SCHEMA, Pairing, require_comparable, unknown_settings
from eval.dataset.dataset import Dataset
from eval.measures.coverage import with_near_duplicates
from eval.measures.means import ALL
from eval.measures.names import SYSTEM_ARM
from eval.run import Run
from eval.significance import least_p_value
from lcm.checks import check_range
from lcm.encoding import well_formed
from lcm.redaction import redacted
from lcm.transcript.passages import utterance

_SHARE = re.compile(r"(\d+(?:\.\d+)?) ?%")


@dataclass(frozen=True, slots=True)
class RankedDocument:
    """A document at its rank in one side's answer."""

    document_id: str
    covers_evidence: bool
    workspace_id: str
    message_ids: tuple[str, ...]
    """The ids of the messages that the document was made of."""
    text: str | None = None
    """The words of these messages; None where the dataset is not at hand."""


@dataclass(frozen=True, slots=True)
class ChangedQuery:
    """A query that lost, or won, in some measure."""

    query_id: str
    category: str
    text: str
    evidence: int
    """Messages that are its evidence."""
    values: Mapping[str, tuple[float, float]]
    """Measure -> baseline's and candidate's value, of those that differ."""
    baseline: tuple[RankedDocument, ...] | None
    """From rank 1 on; None where the ranking is not at hand."""
    candidate: tuple[RankedDocument, ...] | None


def changed_queries(
    baseline: Run, candidate: Run, measures: Sequence[str], costs: Collection[str], at_most: int, depth: int
) -> tuple[tuple[ChangedQuery, ...], tuple[ChangedQuery, ...]]:
    """The queries that lost in a measure of quality, and those that won and lost in none; what changed most is first.

    Sorted by the change in the first measure, then in the second and so on, then by query id. Costs such as tokens make
    no query worse or better unless nothing else is measured.
    """
    quality = [measure for measure in measures if measure not in costs] or list(measures)
    sign = -1 if quality[0] in costs else 1
    both = baseline.values.join(candidate.values, on=["query_id", "measure"], suffix="_after").filter(
        pl.col("measure").is_in(list(measures)) & (pl.col("value") != pl.col("value_after"))
    )
    gains = (
        both.filter(pl.col("measure").is_in(quality))
        .with_columns(gain=sign * (pl.col("value_after") - pl.col("value")))
        .pivot("measure", on_columns=quality, index="query_id", values="gain", maintain_order=True)
        .with_columns(pl.col(measure).fill_null(0.0) for measure in quality)
    )
    lost = pl.min_horizontal(quality) < 0
    worse = gains.filter(lost).sort(*quality, "query_id").head(at_most)
    descending = [*[True] * len(quality), False]
    better = gains.filter(~lost).sort(*quality, "query_id", descending=descending).head(at_most)
    changed = {one["query_id"]: one for one in baseline.queries.join(both, on="query_id", how="semi").to_dicts()}
    evidence = {query_id: query["evidence"] or () for query_id, query in changed.items()}
    rankings = [_ranked(side, evidence, depth) if len(worse) or len(better) else None for side in (baseline, candidate)]

    def told(query_id: str) -> ChangedQuery:
        query, values = changed[query_id], both.filter(query_id=query_id)
        moved = {measure: pair for measure, *pair in values.select("measure", "value", "value_after").iter_rows()}
        return ChangedQuery(
            query_id,
            query["category"],
            query["text"],
            len(evidence[query_id]),
            {measure: (moved[measure][0], moved[measure][1]) for measure in measures if measure in moved},
            *(None if ranking is None else tuple(ranking.get(query_id, ())) for ranking in rankings),
        )

    of_worse, of_better = (tuple(map(told, one["query_id"])) for one in (worse, better))
    return of_worse, of_better


def _ranked(run: Run, evidence: Mapping[str, Sequence[str]], depth: int) -> dict[str, list[RankedDocument]] | None:
    """Query id -> what the system ranked first; None where only the summary and the values are at hand."""
    if not all((run.folder / name).exists() for name in ("run.parquet", "documents.parquet")):
        return None
    columns = ("arm", "workspace_id", "query_id", "document_id", "rank")
    ranked = with_near_duplicates(run.frame("run", columns, ("stands_for",))).filter(
        pl.col("query_id").is_in(list(evidence)), pl.col("rank") <= depth, arm=SYSTEM_ARM
    )
    documents = run.frame("documents", ("workspace_id", "document_id", "source_message_ids"))
    joined = ranked.join(documents, on=["workspace_id", "document_id"], how="left", maintain_order="left").sort("rank")
    found: dict[str, list[RankedDocument]] = {}
    named = ("query_id", "workspace_id", "document_id", "source_message_ids")
    for query_id, workspace, document, sources in joined.select(named).iter_rows():
        covers = not set(evidence[query_id]).isdisjoint(sources or ())
        found.setdefault(query_id, []).append(RankedDocument(document, covers, workspace, tuple(sources or ())))
    return found


Gate = Literal["fine", "regressed", "cannot tell"]
EXIT_CODES: dict[Gate, int] = {"fine": 0, "regressed": 1, "cannot tell": 3}
"""2 is that of a command that could not compare at all."""

GATED_SCHEMA: dict[str, pl.DataType] = {
    **{name: kind for name, kind in PAIRED_SCHEMA.items() if name != "side"},
    "tolerance": pl.Float64(),
    "detectable": pl.Float64(),
    "gate": pl.String(),
}
"""A paired row, its limits in the measure's units, and what the gate says; all null of a measure that is told only."""


@dataclass(frozen=True, slots=True)
class GatedComparison:
    """What the gate says of a candidate beside a baseline, and the rows that it rests on."""

    baseline: Run
    candidate: Run
    rows: pl.DataFrame
    """Of `GATED_SCHEMA`, one a group and measure."""
    gate: Gate
    worse: tuple[ChangedQuery, ...]
    """Worst first."""
    better: tuple[ChangedQuery, ...]
    """Best first."""
    left_out: tuple[str, ...]
    """Measures that neither run has."""
    costs: frozenset[str]
    """The measures of which less is better."""
    unknown: tuple[str, ...]
    """Settings that may differ, for the configuration of a side does not tell them."""
    alpha: float
    confidence: float
    notes: tuple[str, ...] = ()
    """What else a reader must know: the queries that could not be paired."""

    @property
    def shows_rankings(self) -> bool:
        return any(query.baseline or query.candidate for query in (*self.worse, *self.better))

    def noting(self, note: str) -> "GatedComparison":
        """The same, with one more note."""
        return replace(self, notes=(*self.notes, note))

    @property
    def exit_code(self) -> int:
        return EXIT_CODES[self.gate]


def limits_of(measure: str, settings: Mapping[str, float | str], mean: float = 1.0) -> tuple[float, float]:
    """Tolerance and detectable of a measure, in its units: losses up to the first are accepted, one of the second must
    not pass unseen.

    Args:
        settings: each as a number, or both as shares of the baseline's mean such as `10%`.
    Raises:
        ValueError: naming the measure and what is wrong.
    """
    if not isinstance(settings, Mapping) or set(settings) != {"tolerance", "detectable"}:
        got = ", ".join(map(str, settings)) or "nothing" if isinstance(settings, Mapping) else repr(settings)
        raise ValueError(f"measures.{measure} must have tolerance and detectable, got {got}")
    tolerance, detectable = settings["tolerance"], settings["detectable"]
    for name, value in (("tolerance", tolerance), ("detectable", detectable)):
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < math.inf
        if not (is_number or (isinstance(value, str) and _SHARE.fullmatch(value))):
            raise ValueError(f"measures.{measure}.{name} must be a number >= 0 or a share such as 10%, got {value!r}")
    if isinstance(tolerance, str) != isinstance(detectable, str):
        told = f"tolerance and detectable must be of one kind, got {tolerance} and {detectable}"
        raise ValueError(f"measures.{measure}.{told}")
    shares = [float(one.removesuffix("%")) / 100 if isinstance(one, str) else one for one in (tolerance, detectable)]
    if not shares[0] < shares[1]:
        raise ValueError(f"measures.{measure}.detectable must be > tolerance, got {detectable} and {tolerance}")
    scale = abs(mean) if isinstance(tolerance, str) else 1.0
    return shares[0] * scale, shares[1] * scale


class Unpaired(NamedTuple):
    """What of a measure could not be paired: external memories leave queries unanswered, or unjudged."""

    of_baseline: int
    """Queries of which the candidate has no value."""
    of_candidate: int
    value: float
    """The sum of the baseline's values of those that the candidate lacks."""

    @classmethod
    def of(cls, baseline: Run, candidate: Run, measure: str) -> "Unpaired":
        ours, theirs = (side.values.filter(measure=measure) for side in (baseline, candidate))
        lacking = ours.join(theirs, on="query_id", how="anti")
        return cls(len(lacking), len(theirs.join(ours, on="query_id", how="anti")), float(lacking["value"].sum()))

    def may_hide(self, paired: int) -> float:
        """The loss over all queries, if the candidate lost all that the baseline found for those that it lacks: no
        number of the candidate's, but what cannot be excluded."""
        return self.value / (paired + self.of_baseline)


def notes_of(unpaired: Mapping[str, Unpaired]) -> Iterator[str]:
    """What was left out, a line for the measures that lack the same."""
    by_numbers: dict[tuple[int, int], list[str]] = {}
    for measure, one in unpaired.items():
        if one.of_baseline or one.of_candidate:
            by_numbers.setdefault(one[:2], []).append(measure)
    for (of_baseline, of_candidate), measures in by_numbers.items():
        yield (
            f"{', '.join(measures)}: left out are {of_baseline:,} queries of which the candidate has no value, and "
            f"{of_candidate:,} of which the baseline has none; they count for neither, and not as 0"
        )


def _limits() -> dict[str, dict[str, float | str]]:
    return {
        "recall@10": {"tolerance": 0.01, "detectable": 0.05},
        "nDCG@10": {"tolerance": 0.01, "detectable": 0.05},
        "session.recall@5": {"tolerance": 0.01, "detectable": 0.05},
    }


@dataclass(frozen=True, slots=True)
class Regression(Pairing):
    """Judges a candidate against a baseline: which measures count, and by what limits.

    A row is a measure in a group of queries: all of them, or one category; what it says of better and worse is told by
    `Pairing`, of whose tests the gated rows over all queries are one family and those of categories another. The gate
    adds limits to a row. With d the mean of candidate minus baseline, turned so that more is better, a row is

    - `regressed` if the permutation test, corrected over its family by Holm, has p < alpha, and d < -tolerance;
    - else `cannot tell` if the interval of d goes below -detectable, if fewer than `least_queries` were judged and
      any of them changed, or if d < -tolerance and the test could not have found that whatever it was; over all queries
      also if those that the candidate, an external memory, leaves without a value could hide a loss of `detectable`;
    - else `fine`.

    The whole is regressed if any row is, else it cannot be told if that holds of a row over all queries, else fine.
    A small category alone can therefore fail a candidate, but not leave it undecided.
    """

    measures: Mapping[str, Mapping[str, float | str] | None] = field(default_factory=_limits)
    """Measure -> its `tolerance` and `detectable`, in its units or as a share of the baseline's mean; null leaves it
    out. A measure that neither run has is passed over."""
    told: Sequence[str] = ("tokens@10",)
    """Measures that are told beside those, without a test, and fail nothing: what a gain costs. Named with limits, one
    is gated."""
    by_category: bool = True
    changed_queries: int = 10
    """Of those that got worse, and of those that got better, that are reported."""
    depth: int = 10
    """Ranks of them that are shown."""

    def __post_init__(self) -> None:
        if not self._gated():
            raise ValueError("measures must name at least one measure")
        for measure, settings in self._gated().items():
            limits_of(measure, settings)
        Pairing.__post_init__(self)
        check_range(self, "changed_queries", ge=0)
        check_range(self, "depth", ge=1)

    def compare(self, baseline: Run, candidate: Run) -> GatedComparison:
        """Judge every row.

        Raises:
            LcmError: if the two cannot be compared, or the draws are too few for so many tests.
        """
        gated = require_comparable(baseline, candidate, list(self._gated()))
        known = set(baseline.measures) & set(candidate.measures) & {*baseline.directions, *candidate.directions}
        told = [name for name in self._told() if name in known]
        measures = [*gated, *told]
        rows = self.rows(baseline, [candidate], measures, by_category=self.by_category, untested=told)
        family = pl.col("group") == ALL
        tests = {is_whole: rows.filter(family if is_whole else ~family)["p"].count() for is_whole in (True, False)}
        unpaired = {measure: Unpaired.of(baseline, candidate, measure) for measure in measures}
        judged = [
            self._judged(row, tests[row["group"] == ALL], unpaired[row["measure"]])
            for row in rows.iter_rows(named=True)
        ]
        rows = pl.DataFrame(judged, schema=GATED_SCHEMA, orient="row")
        costs = frozenset(rows.filter("lower_is_better")["measure"])
        worse, better = changed_queries(baseline, candidate, measures, costs, self.changed_queries, self.depth)
        return GatedComparison(
            baseline=baseline,
            candidate=candidate,
            rows=rows,
            gate=_whole(rows),
            worse=worse,
            better=better,
            left_out=tuple(name for name in (*self._gated(), *self._told()) if name not in measures),
            costs=costs,
            unknown=tuple(unknown_settings(baseline, candidate)),
            alpha=self.alpha,
            confidence=self.confidence,
            notes=tuple(notes_of(unpaired)),
        )

    def _gated(self) -> dict[str, Mapping[str, float | str]]:
        named = {name.replace("_at_", "@"): settings for name, settings in self.measures.items()}
        return {name: settings for name, settings in named.items() if settings is not None}

    def _told(self) -> list[str]:
        named = {name.replace("_at_", "@") for name in self.measures}
        return [name for name in self.told if name not in named]

    def _judged(self, row: Mapping[str, Any], tests: int, unpaired: Unpaired) -> dict[str, Any]:
        """A paired row, with its limits and what the gate says.

        Args:
            tests: in the row's family.
        """
        settings = self._gated().get(row["measure"])
        if settings is None:
            return {**row, "tolerance": None, "detectable": None, "gate": None}
        tolerance, detectable = limits_of(row["measure"], settings, row["baseline"])
        limited = {**row, "tolerance": tolerance, "detectable": detectable}
        gate = self._gate(limited, tests)
        if gate == "fine" and row["group"] == ALL and unpaired.may_hide(row["n"]) > detectable:
            gate = "cannot tell"
        return {**limited, "gate": gate}

    def _gate(self, row: Mapping[str, Any], tests: int) -> Gate:
        if row["changed"] == 0:
            return "fine"
        sign = -1 if row["lower_is_better"] else 1
        is_beyond = sign * row["difference"] < -row["tolerance"]
        if is_beyond and row["verdict"] == "worse":
            return "regressed"
        # Holm's first step asks the most of a test; what cannot reach that might be missed however bad it is.
        is_testable = (
            row["n"] >= self.least_queries and least_p_value(row["units"], self.resamples) * tests < self.alpha
        )
        worst = row["high"] if row["lower_is_better"] else row["low"]
        if worst is None or sign * worst < -row["detectable"] or (is_beyond and not is_testable):
            return "cannot tell"
        return "fine" if row["n"] >= self.least_queries else "cannot tell"


def _whole(rows: pl.DataFrame) -> Gate:
    if (rows["gate"] == "regressed").any():
        return "regressed"
    if (rows.filter(group=ALL)["gate"] == "cannot tell").any():
        return "cannot tell"
    return "fine"


def with_words(comparison: GatedComparison, dataset: Dataset) -> GatedComparison:
    """The same, each document of the queries that changed with what its messages say."""
    said = {
        (transcript.workspace_id, message.message_id): well_formed(redacted(utterance(message)))
        for transcript in dataset.transcripts
        for message in transcript.messages
    }

    def worded(ranking: tuple[RankedDocument, ...] | None) -> tuple[RankedDocument, ...] | None:
        told = ([said.get((one.workspace_id, message)) for message in one.message_ids] for one in ranking or ())
        texts = (" / ".join(filter(None, words)) or None for words in told)
        return ranking and tuple(replace(one, text=text) for one, text in zip(ranking, texts, strict=True))

    worse, better = (
        tuple(replace(one, baseline=worded(one.baseline), candidate=worded(one.candidate)) for one in queries)
        for queries in (comparison.worse, comparison.better)
    )
    return replace(comparison, worse=worse, better=better)
