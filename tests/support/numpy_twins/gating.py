"""Many texts in one call to the gate, against its compiled patterns and numpy."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from eval.benchmark import corpus
from eval.benchmark.timing import Comparison, DisagreementError, Target, compared_times, take_turns
from lcm.checks import check_range
from lcm.writing.admission.gating import LOADS, GateSignals, Gating, load_patterns

TARGET = Target("at most", 1.5)
_TOLERANCE = 1e-9  # of G
_CLAUSES = (
    "I prefer the window seat on 2025-03-14.",
    "My colleague Ann moved it to 30/06/2026.",
    "Fixed it in sidecar/store/cache.go by allocating in NewCache().",
    "GET https://api.example.org/v2/users returned 503 at commit 3f9c1e7b2a.",
    "We decided to merge origin/main and run `make test` again.",
    "```\nfunc TestCache(t *testing.T) {}\n```",
)
"""Every other text ends with one of them: in the synthetic words no pattern fires."""

_Known = tuple[Sequence[float], Sequence[float]]
_Scores = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class GateOverhead:
    """`Gating.signals` against a loop over the same patterns, its matches weighted and mixed in numpy.

    Both are given the cosines of what is known; a pattern that weighs in several loads is asked once on either side.
    """

    gate: Gating
    texts: int

    def __post_init__(self) -> None:
        check_range(self, "texts", ge=1)

    def run(self, repeats: int, seed: int) -> list[Comparison]:
        texts = [
            f"{text} {_CLAUSES[i // 2 % len(_CLAUSES)]}" if i % 2 else text
            for i, text in enumerate(corpus.texts(self.texts, seed))
        ]
        cosines = np.random.default_rng([seed, 4]).uniform(
            0, 1, (self.texts, self.gate.turn_hits + self.gate.memory_hits)
        )
        known: list[_Known] = [(row[: self.gate.turn_hits], row[self.gate.turn_hits :]) for row in cosines.tolist()]
        tokens = np.array(self.gate.token_estimator.count(texts))
        bare = _bare(self.gate, texts, tokens, cosines)
        rounds = take_turns(lambda: lambda: self.gate.signals(texts, known), lambda: bare, _check, repeats)
        facts = {
            "texts": self.texts,
            "mean_characters": float(np.mean([len(text) for text in texts])),
            "promoted": float(np.mean([found.is_passed for found in self.gate.signals(texts, known)])),
        }
        return [compared_times("gating", "µs a text", 1e6 / self.texts, rounds, TARGET, facts)]


def _bare(gate: Gating, texts: Sequence[str], tokens: npt.NDArray[np.int64], cosines: _Scores) -> Callable[[], _Scores]:
    patterns = load_patterns(gate.rules)
    counted = [name for name in patterns.compiled if name in patterns.weights["specificity"]]
    asked = [name for name in patterns.compiled if name not in counted]
    search = [patterns.compiled[name].search for name in asked]
    find = [patterns.compiled[name].findall for name in counted]
    weights = np.array([[patterns.weights[load].get(name, 0.0) for name in counted + asked] for load in LOADS])
    place = LOADS.index("specificity")

    def scores() -> _Scores:
        counts = np.array([[len(one(text)) for one in find] + [bool(one(text)) for one in search] for text in texts])
        sums = np.minimum(counts, 1) @ weights.T
        density, load, _, action, technical = sums.T
        specificity = np.minimum(counts @ weights[place] / np.maximum(tokens / 100, 1), 1)
        load, action, technical = (np.minimum(column, 1) for column in (load, action, technical))
        turns, memories = cosines[:, : gate.turn_hits], cosines[:, gate.turn_hits :]
        frequency = np.minimum((turns >= gate.turn_cosine).sum(1) / gate.turn_saturation, 1)
        saturation = np.minimum((memories >= gate.memory_cosine).sum(1) / gate.memory_saturation, 1)
        w = gate.weights
        conversational = w["w1c"] * (1 - memories.mean(1)) + w["w2c"] * frequency * (1 - saturation) + w["w3c"] * load
        share = np.minimum(density / gate.technical_norm, 1)
        mixed: _Scores = (1 - share) * conversational + share * (
            w["w1t"] * specificity + w["w2t"] * action + w["w3t"] * technical
        )
        return mixed

    return scores


def _check(ours: Sequence[GateSignals], bare: _Scores) -> None:
    if not np.allclose([found.g for found in ours], bare, rtol=0, atol=_TOLERANCE):
        raise DisagreementError("the gate and its bare patterns gave different scores")
