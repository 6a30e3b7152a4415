"""Weights of evidence, learnt over many kinds of talk at once.

A piece of evidence is a judged message, or a quotation, and as near as the documents that hold it: ln(sum of e^s) over
these. Loss of a piece: ln(1 + e^(o - s)), where o is ln(sum of e^s) over the question's documents that hold none. A
question weighs the number of its pieces to the power of .4; the questions of one kind together weigh what the kind
weighs, however many they are. To that comes l2 times the sum of squared weights of columns scaled to unit deviation,
which is the root of the kinds' mean variance.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from evidence_rows import Evidence, Numbers, Places
from scipy.optimize import minimize

L2 = 0.3
_POWER = 0.4
_STEPS = 200
_FLAT = 1e-6
Bounds = tuple[float | None, float | None]
"""The least and the most that a weight may be; None = any."""
Learnt = Sequence[tuple[Evidence, npt.NDArray[np.bool_], float]]
"""Kinds, which of their questions are learnt from, and what each kind weighs."""


def fitted(
    data: Learnt, bounds: Mapping[str, Bounds], l2: float = L2, start: Mapping[str, float] | None = None
) -> dict[str, float]:
    """The weights of columns.

    Args:
        data: what to learn from; a kind of weight 0 is passed over.
        bounds: the columns to use, and between what the weight of each lies.
        l2: how much large weights cost.
        start: weights to begin from: where many documents hold a piece they decide which of them is learnt.
    """
    parts = [
        _rows(evidence, chosen, weight, list(bounds))
        for evidence, chosen, weight in data
        if weight > 0 and chosen.any()
    ]
    rows = _joined(parts)
    x, is_evidence, share = rows.values, rows.is_evidence, rows.shares / rows.shares.sum()
    scale = np.sqrt(np.mean([part.values.var(axis=0, dtype=np.float64) for part in parts], axis=0))
    scale[scale < _FLAT] = 1.0
    x /= scale.astype(np.float32)
    of_questions, of_pieces = _Segments(rows.questions), _Segments(rows.pieces)
    asked = of_questions.of_each[rows.holders[of_pieces.starts]]

    def loss(w: Numbers) -> tuple[float, Numbers]:
        scores = (x @ w.astype(np.float32)).astype(np.float64)
        others, other_shares = of_questions.log_sum(np.where(is_evidence, -np.inf, scores))
        found, found_shares = of_pieces.log_sum(scores[rows.holders])
        margin = others[asked] - found
        pull = share / (1 + np.exp(-margin))
        slope = np.bincount(asked, pull, len(others))[of_questions.of_each] * other_shares
        slope -= np.bincount(rows.holders, pull[of_pieces.of_each] * found_shares, len(scores))
        value = float((share * np.logaddexp(0, margin)).sum() + l2 * (w @ w))
        return value, (x.T @ slope.astype(np.float32)).astype(np.float64) + 2 * l2 * w

    begun = np.array([(start or {}).get(column, 0.0) for column in bounds]) * scale
    scaled = [
        (None if least is None else least * size, None if most is None else most * size)
        for (least, most), size in zip(bounds.values(), scale, strict=True)
    ]
    found = minimize(loss, begun, jac=True, method="L-BFGS-B", bounds=scaled, options={"maxiter": _STEPS})
    return dict(zip(bounds, (found.x / scale).tolist(), strict=True))


def scored(evidence: Evidence, weights: Mapping[str, float]) -> Numbers:
    """The weighted sum of every row."""
    scores: Numbers = evidence.of(list(weights)).astype(np.float64) @ np.array(list(weights.values()))
    return scores


class _Rows(NamedTuple):
    """What is learnt from: rows, and the pieces of evidence that they hold."""

    values: npt.NDArray[np.float32]
    is_evidence: npt.NDArray[np.bool_]
    questions: Places
    """Of each row, ascending."""
    holders: Places
    """Rows that hold a piece: those of one piece stand together."""
    pieces: Places
    """Of each holder, ascending."""
    shares: Numbers
    """What each piece weighs."""


class _Segments:
    """Values that belong together, as numbers that ascend say."""

    def __init__(self, numbers: Places) -> None:
        is_first = np.r_[True, numbers[1:] != numbers[:-1]]
        self.starts, self.of_each = np.flatnonzero(is_first), np.cumsum(is_first) - 1

    def log_sum(self, values: Numbers) -> tuple[Numbers, Numbers]:
        """ln(sum of e^value) of each segment, and the share of each value in it."""
        highest = np.maximum.reduceat(values, self.starts)
        shares = np.exp(values - highest[self.of_each])
        sums = np.add.reduceat(shares, self.starts)
        return highest + np.log(sums), shares / sums[self.of_each]


def _rows(evidence: Evidence, chosen: npt.NDArray[np.bool_], weight: float, columns: Sequence[str]) -> _Rows:
    """What a kind gives to learn from: evidence, and what is hard to tell from it.

    A question teaches nothing where no document holds a piece, or all do.
    """
    questions, is_evidence = evidence.questions, evidence.is_evidence
    is_taken = is_evidence | evidence.is_hard
    counts = np.bincount(evidence.pieces, minlength=len(evidence))
    others = np.bincount(questions[is_taken & ~is_evidence], minlength=len(evidence))
    held = np.bincount(questions[is_evidence], minlength=len(evidence))
    is_learnt = chosen & (held > 0) & (others > 0)
    rows = np.flatnonzero(is_taken & is_learnt[questions])
    pull = np.where(is_learnt, np.maximum(counts, 1) ** _POWER, 0.0)
    share = weight * pull / pull.sum() / np.maximum(counts, 1)
    holders, pieces = evidence.holds[is_learnt[questions[evidence.holds[:, 0]]]].T
    order = np.argsort(pieces, kind="stable")
    known = np.unique(pieces)
    return _Rows(
        evidence.of(columns)[rows],
        is_evidence[rows],
        questions[rows],
        np.searchsorted(rows, holders[order]),
        np.searchsorted(known, pieces[order]),
        share[evidence.pieces[known]],
    )


def _joined(parts: Sequence[_Rows]) -> _Rows:
    """The rows of several kinds, whose questions, rows and pieces are numbered on."""
    before = np.cumsum(
        [(0, 0, 0), *((part.questions[-1] + 1, len(part.values), len(part.shares)) for part in parts)], axis=0
    )
    numbered = [
        part._replace(questions=part.questions + a, holders=part.holders + b, pieces=part.pieces + c)
        for part, (a, b, c) in zip(parts, before, strict=False)
    ]
    return _Rows(*(np.concatenate(column) for column in zip(*numbered, strict=True)))
