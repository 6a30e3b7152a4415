"""Weights of evidence, learnt over many kinds of talk at once.

Loss of a question: over its evidence the mean of -ln(e^s / (e^s + sum of e^s over all that is none)). It weighs the
number of its evidence to the power of .4; the questions of one kind together weigh what the kind weighs, however many
they are. To that comes l2 times the sum of squared weights of columns scaled to unit deviation, which is the root of
the kinds' mean variance.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from evidence_rows import Evidence, Numbers
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
        start: weights to begin from: the loss is convex, so they change the time alone.
    """
    parts = [
        _rows(evidence, chosen, weight, list(bounds)) for evidence, chosen, weight in data if weight > 0 and chosen.any()
    ]
    x, is_evidence, share = (np.concatenate([part[i] for part in parts]) for i in (0, 1, 3))
    ends = np.cumsum([0, *(part[2].max(initial=-1) + 1 for part in parts)])
    group = np.concatenate([part[2] + end for part, end in zip(parts, ends, strict=False)])
    share /= share[is_evidence].sum()
    scale = np.sqrt(np.mean([part[0].var(axis=0, dtype=np.float64) for part in parts], axis=0))
    scale[scale < _FLAT] = 1.0
    x /= scale.astype(np.float32)
    starts = np.flatnonzero(np.r_[True, group[1:] != group[:-1]])
    segment = np.repeat(np.arange(len(starts)), np.diff(np.r_[starts, len(group)]))
    weight = np.where(is_evidence, share, 0.0)

    def loss(w: Numbers) -> tuple[float, Numbers]:
        scores = (x @ w.astype(np.float32)).astype(np.float64)
        others = np.where(is_evidence, -np.inf, scores)
        highest = np.maximum.reduceat(others, starts)
        shares = np.exp(others - highest[segment])
        sums = np.add.reduceat(shares, starts)
        margin = (highest + np.log(sums))[segment] - scores
        pull = weight / (1 + np.exp(-margin))
        slope = np.add.reduceat(pull, starts)[segment] * shares / sums[segment] - pull
        value = float((weight * np.logaddexp(0, margin)).sum() + l2 * (w @ w))
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


def _rows(
    evidence: Evidence, chosen: npt.NDArray[np.bool_], weight: float, columns: Sequence[str]
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.bool_], npt.NDArray[np.int64], Numbers]:
    """Of the rows to learn from: values, whether they are evidence, their question, and what they weigh as evidence.

    A question teaches nothing where no document is evidence, or all are.
    """
    questions, target = evidence.questions, evidence.is_evidence
    is_taken = target | evidence.is_hard
    counts = np.bincount(questions[target], minlength=len(evidence))
    others = np.bincount(questions[is_taken & ~target], minlength=len(evidence))
    is_learnt = chosen & (counts > 0) & (others > 0)
    rows = is_taken & is_learnt[questions]
    pull = np.where(is_learnt, np.maximum(counts, 1) ** _POWER, 0.0)
    share = weight * pull / pull.sum() / np.maximum(counts, 1)
    return evidence.of(columns)[rows], target[rows], questions[rows], share[questions[rows]]
