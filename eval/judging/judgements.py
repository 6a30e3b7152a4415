"""What judges say of documents: each judgement on disk, what all say together, and what a measure is by it.

A model's judgements of many queries give a mean with little noise and an unknown error; people's of few queries say how
large that error is. With y what people measure and f what the model does:

    mean = mean(y) + lambda * (mean(f of the others) - mean(f of those that people judged))

lambda = 0 is people's mean alone; the best lambda grows with the correlation of y and f, and is estimated from the same
queries. The interval is valid however wrong the model is; a useless one only makes it no narrower than people's own.

Source: Angelopoulos, Bates, Fannjiang, Jordan, Zrnic 2023, "Prediction-powered inference"; the lambda of Angelopoulos,
Duchi, Zrnic 2023, "PPI++".
"""

import json
import math
import os
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from itertools import combinations
from pathlib import Path
from statistics import NormalDist
from typing import Literal

import numpy as np
import polars as pl

from eval.answering import agreement_of
from eval.dataset.collection import JUDGED_SCHEMA
from eval.dataset.dataset import QRELS_SCHEMA
from eval.measures.measure import RunReading
from eval.measures.retrieval import Retrieval
from lcm.checks import check_choice, check_range
from lcm.encoding import to_json
from lcm.errors import LcmError
from lcm.given import read_whole

FILE = "judgements.jsonl"
Kind = Literal["human", "file", "model"]
"""Who judged: a person, whoever made a file, a language model. An earlier one counts before a later one."""
_ORDER: tuple[Kind, ...] = ("human", "file", "model")
State = Literal["judged", "skipped", "withdrawn"]
GRADES = {"relevant": 2, "partly": 1, "not": 0}
"""What a judge may say, and the relevance that it stands for."""
Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a judge said of one document for one query; a later one of the same judge stands in place of it."""

    query_id: str
    document_id: str
    """The message, by the id that `lcm datasets write` gives it."""
    relevance: int | None
    """0 is not relevant; None where nothing was decided."""
    judge: str
    kind: Kind = "human"
    state: State = "judged"
    judged_at: str = ""
    """ISO 8601."""

    def __post_init__(self) -> None:
        check_choice(self, kind=Kind, state=State)
        check_range(self, "relevance", ge=0, is_whole=True, or_null=True)
        for name in ("query_id", "document_id", "judge", "judged_at"):
            if not isinstance(getattr(self, name), str):
                raise ValueError(f"{name} must be text, got {getattr(self, name)!r}")
        if (self.relevance is None) == (self.state == "judged"):
            raise ValueError(f"relevance must be null unless the state is judged, got {self.relevance!r}")

    @property
    def pair(self) -> Pair:
        return self.query_id, self.document_id


class JudgementFile:
    """The judgements of a folder, of whichever judges: one JSON object a line, on disk when `add` returns."""

    def __init__(self, folder: Path) -> None:
        """Read what is there; half a line at the end, of a process that was killed, is cut off. Where nothing is, the
        folder is made when something is added.

        Raises:
            LcmError: naming the line that is no judgement.
        """
        self.path = folder / FILE
        content = read_whole(self.path) if self.path.exists() else b""
        whole, last = content[: content.rfind(b"\n") + 1], content[content.rfind(b"\n") + 1 :]
        if last:
            try:
                json.loads(last)
            except (ValueError, RecursionError):
                os.truncate(self.path, len(whole))
            else:  # an editor left out the end of the line
                whole = content + b"\n"
                self._append(b"\n")
        self._judgements = [self._read(number, line) for number, line in enumerate(whole.splitlines(), start=1)]

    def add(self, judgements: Iterable[Judgement]) -> None:
        """Write judgements to the end of the file, and wait until they are on disk."""
        added = list(judgements)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._append("".join(f"{to_json(asdict(one))}\n" for one in added).encode())
        self._judgements += added

    def of(self, judge: str) -> dict[Pair, Judgement]:
        """What a judge last said of each pair, but for what was withdrawn; in the order of judging."""
        last: dict[Pair, Judgement] = {}
        for one in self._judgements:
            if one.judge == judge:
                last.pop(one.pair, None)
                last[one.pair] = one
        return {pair: one for pair, one in last.items() if one.state != "withdrawn"}

    def judges(self) -> dict[str, str]:
        """Judge -> which kind of judge it is, in the order of appearance."""
        return {one.judge: one.kind for one in self._judgements}

    def __iter__(self) -> Iterator[Judgement]:
        """What stands of every judge."""
        for judge in self.judges():
            yield from self.of(judge).values()

    def _append(self, lines: bytes) -> None:
        with self.path.open("ab") as file:
            file.write(lines)
            file.flush()
            os.fsync(file.fileno())

    def _read(self, number: int, line: bytes) -> Judgement:
        try:
            record = json.loads(line)
            return Judgement(**{one.name: record[one.name] for one in fields(Judgement)})
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise LcmError(f"{self.path} line {number} is no judgement ({error}): mend it, or take it out") from error


def qrels_of(judgements: Iterable[Judgement], kinds: Collection[Kind] = _ORDER) -> pl.DataFrame:
    """Rows of `JUDGED_SCHEMA` by the judges of some kinds, by query and document as they were first judged.

    People count before files, and files before models; of several judges of one kind the middle one counts, and of two
    in the middle the stricter.
    """
    said: dict[Pair, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for one in judgements:
        if one.relevance is not None and one.kind in kinds:
            said[one.pair][one.kind].append(one.relevance)
    rows = []
    for pair, by_kind in said.items():
        first = sorted(next(by_kind[kind] for kind in _ORDER if kind in by_kind))
        rows.append((*pair, first[(len(first) - 1) // 2]))
    return pl.DataFrame(rows, schema=JUDGED_SCHEMA, orient="row")


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far two judges agree over what both judged."""

    judges: tuple[str, str]
    n: int
    equal: float
    """The share to which both gave the same relevance."""
    kappa: float | None
    """Cohen's; None where both gave one and the same to everything, so that chance explains all."""


def agreements(file: JudgementFile) -> list[Agreement]:
    """Of every two judges that have judged something in common."""
    said = {
        judge: {pair: one.relevance for pair, one in file.of(judge).items() if one.relevance is not None}
        for judge in file.judges()
    }
    found = []
    for one, other in combinations(said, 2):
        if both := said[one].keys() & said[other].keys():
            shares = agreement_of([(said[one][pair], said[other][pair]) for pair in both])
            found.append(Agreement((one, other), len(both), *shares))
    return found


@dataclass(frozen=True, slots=True)
class PoweredMean:
    """A mean with its interval."""

    value: float
    low: float
    high: float
    weight: float
    """lambda: how much the model was listened to, in [0, 1]."""
    n: int
    others: int
    """Queries that the model alone judged."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A measure of one ranking, over the queries whose whole pool was judged; None where nobody judged enough."""

    people: PoweredMean | None
    """By people alone: the classical interval."""
    model: float | None
    """By the model alone, over all that it judged: its error is not known."""
    both: PoweredMean | None
    """By people and a model: prediction-powered."""


def estimated(
    measure: str,
    reading: RunReading,
    messages: Mapping[str, tuple[str, str]],
    pool: pl.DataFrame,
    judgements: Collection[Judgement],
    confidence: float,
) -> Estimate:
    """Estimate the mean of a measure over the queries of a pool; where nothing is relevant, a query counts as 0.

    Args:
        messages: document id -> workspace and message id.
    """
    by_query = dict(pool.group_by("query_id", maintain_order=True).agg("document_id").iter_rows())

    def values(*kinds: Kind) -> dict[str, float]:
        """Query -> the measure by these kinds of judges, of queries whose whole pool they judged, or skipped."""
        decided = {one.pair for one in judgements if one.kind in kinds}
        rows = [
            (query, messages[document][1], relevance)
            for query, document, relevance in qrels_of(judgements, kinds).iter_rows()
            if document in messages
        ]
        qrels = pl.DataFrame(rows, schema=QRELS_SCHEMA, orient="row")
        no_sessions = reading.dataset.session_qrels.clear()
        dataset = replace(reading.dataset, qrels=qrels, session_qrels=no_sessions, repaired_qrels=None)
        found = Retrieval(names=[measure], levels=["message"]).rows(replace(reading, dataset=dataset))
        of_query = dict(found.filter(measure=measure).select("query_id", "value").iter_rows())
        whole = (query for query, ids in by_query.items() if decided.issuperset((query, one) for one in ids))
        return {query: of_query.get(query, 0.0) for query in whole}

    people, model = values("human", "file"), values("model")
    both = [query for query in people if query in model]
    others = [value for query, value in model.items() if query not in people]
    powered = None
    if len(both) >= 2 and len(others) >= 2:
        powered = powered_mean([people[one] for one in both], [model[one] for one in both], others, confidence)
    alone = list(people.values())
    return Estimate(
        people=powered_mean(alone, alone, [], confidence) if len(alone) >= 2 else None,
        model=float(np.mean(list(model.values()))) if model else None,
        both=powered,
    )


def powered_mean(
    people: Sequence[float],
    model: Sequence[float],
    others: Sequence[float],
    confidence: float = 0.95,
    weight: float | None = None,
) -> PoweredMean:
    """Estimate a mean over all queries.

    Args:
        people: shape (n,), of the queries that people judged.
        model: shape (n,), of the same queries by the model's judgements.
        others: shape (m,), of the queries that the model alone judged.
        weight: lambda, in [0, 1]; None = the best one. 0 is the classical interval of people's values alone.
    Raises:
        ValueError: if fewer than two queries were judged by people, or the model's values are not of the same queries.
    """
    y, f, g = (np.asarray(values, dtype=np.float64) for values in (people, model, others))
    n, m = len(y), len(g)
    if n < 2:
        raise ValueError(f"people must have judged at least 2 queries, got {n}")
    if len(f) != n:
        raise ValueError(f"model must hold one value for each of people's {n} queries, got {len(f)}")
    if m < 2:
        weight = 0.0
    elif weight is None:
        weight = _best_weight(y, f, g)
    rectified = y - weight * f
    variance = rectified.var(ddof=1) / n
    value = float(rectified.mean())
    if weight:
        value += weight * float(g.mean())
        variance += weight**2 * g.var(ddof=1) / m
    half = NormalDist().inv_cdf((1 + confidence) / 2) * math.sqrt(variance)
    return PoweredMean(value, value - half, value + half, weight, n, m)


def _best_weight(y: np.ndarray, f: np.ndarray, g: np.ndarray) -> float:
    """cov(y, f) / ((1 + n / m) var(f)), the least variance, kept in [0, 1]."""
    everywhere = np.concatenate([f, g])
    if np.ptp(everywhere) == 0:  # its variance need not come out as 0
        return 0.0
    best = float(np.cov(y, f, ddof=1)[0, 1]) / ((1 + len(y) / len(g)) * float(everywhere.var(ddof=1)))
    return min(max(best, 0.0), 1.0)
