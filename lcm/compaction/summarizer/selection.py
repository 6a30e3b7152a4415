"""Which sentences stand for all of them, within a budget."""

import re
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from rapidfuzz import fuzz, process

from lcm.compaction.summarizer.candidates import CandidateSentences, Floats
from lcm.compaction.summarizer.stated import StatedFacts
from lcm.protocols.models import Vectors

_DECIMALS = 6  # float32 sums differ below them from machine to machine: a tie must stay one
_FULL_WORDS = 8  # from so many words on a sentence is as full as any
_NEAR = 92  # of 100 by edits
_LEAST_COMPARED = 24  # characters: shorter ones differ too much by a letter
_NUMBERS = re.compile(r"\d+")
_MANY_FACTS = 4  # from so many on a sentence states as much as any


@dataclass(frozen=True, slots=True)
class SentenceWeights:
    """What each property of a sentence adds to or takes from its value when sentences are chosen."""

    centrality: float
    coverage: float
    position: float
    speaker: float
    fullness: float
    redundancy: float
    importance: float
    frequency_exponent: float
    cost_exponent: float
    code_share: float
    facts: float


class Known(NamedTuple):
    """What was said before the first sentence is chosen; all in [0, 1]."""

    words: Floats
    """Of each content word the share of its weight that counts as covered."""
    similarity: Floats
    """Of each sentence the cosine to something said."""
    facts: Floats
    """Of each fact the share that counts as stated."""


def centroid(vectors: Vectors, weights: Floats) -> Vectors:
    """The weighted sum of rows at unit length; zeros where they cancel. Shape (dim,)."""
    # Not BLAS, whose last bits depend on the number of threads.
    total: Vectors = np.einsum("nd,n->d", vectors, weights.astype(np.float32))
    length = float(np.sqrt(np.einsum("d,d->", total, total)))
    return total / np.float32(length) if length > 0 else total


def select(
    candidates: CandidateSentences,
    weights: SentenceWeights,
    budget: float,
    stated: StatedFacts,
    known: Known,
) -> list[int]:
    """Choose sentence by sentence the one of highest value that fits into what is left of the budget.

    value = score / cost^cost_exponent, where score =
        centrality · cos(sentence, centroid of all, each weighing the square root of its words)
      + coverage · (weight of its content words not yet covered) / (highest such weight at the beginning)
      + position / (1 + place) + fullness · min(1, words / 8)
      + speaker, if nobody chosen so far speaks so
      − redundancy · highest cosine to a chosen sentence.
    times code_share, if it looks like code; to which is added importance · what its kind counts (`kinds.IMPORTANCE`)
    and facts · min(1, facts that nothing chosen states / 4), where one that has changed since counts as four.
    A content word weighs (sentences that hold it)^frequency_exponent. The choice ends where nothing fits or no score is
    above 0; ties go to the earlier sentence. What has no words is
    never chosen, nor what a chosen sentence says already, or nearly: 92 of 100 by edits, with the same numbers.

    Args:
        budget: tokens.
        stated: the facts of the sentences.
        known: what counts as said beforehand.
    Returns:
        rows, in the order of choice.
    Source: ours; greedy coverage with a redundancy penalty after Carbonell and Goldstein, "The Use of MMR", SIGIR 1998.
    """
    c = candidates
    n = len(c.costs)
    middle = centroid(c.vectors, np.sqrt(c.word_counts))
    word_weights = c.word_uses**weights.frequency_exponent
    uncovered = word_weights * (1 - known.words)
    highest = np.bincount(c.word_rows, word_weights[c.word_ids], n).max(initial=0)
    fixed = (
        weights.centrality * np.einsum("nd,d->n", c.vectors, middle).astype(np.float64)
        + weights.position / (1 + c.places)
        + weights.fullness * np.minimum(1, c.word_counts / _FULL_WORDS)
    )
    unstated = np.where(stated.is_changed, _MANY_FACTS, 1 - known.facts)
    is_open = c.word_counts > 0
    has_turn, has_speaker, has_hour = (np.zeros(ids.max() + 1, bool) for ids in (c.turns, c.speakers, c.hours))
    similarity = known.similarity
    chosen: list[int] = []
    left = budget
    while True:
        gains = np.bincount(c.word_rows, uncovered[c.word_ids], n) / highest if highest else np.zeros(n)
        in_turn = has_turn[c.turns]
        scores = fixed + weights.coverage * gains + weights.speaker * ~has_speaker[c.speakers]
        scores = np.where(c.is_prose, 1, weights.code_share) * (scores - weights.redundancy * similarity)
        new_facts = np.bincount(stated.rows, unstated[stated.ids], n)
        scores += weights.importance * c.importance + weights.facts * np.minimum(1, new_facts / _MANY_FACTS)
        costs = c.costs + np.where(in_turn, 0, c.turn_costs) + np.where(has_hour[c.hours], 0, c.hour_costs)
        values = np.round(scores / np.maximum(costs, 1) ** weights.cost_exponent, _DECIMALS)
        fits = is_open & (costs <= left) & (scores > 0)
        if not fits.any():
            return chosen
        row = int(np.argmax(np.where(fits, values, -np.inf)))
        chosen.append(row)
        left -= costs[row]
        is_open &= (c.texts != c.texts[row]) & ~_nearly(c, row, is_open)
        has_turn[c.turns[row]] = has_speaker[c.speakers[row]] = has_hour[c.hours[row]] = True
        uncovered[c.word_ids[c.word_rows == row]] = 0
        unstated[stated.ids[stated.rows == row]] = 0
        similarity = np.maximum(similarity, np.einsum("nd,d->n", c.vectors, c.vectors[row]))


def _nearly(candidates: CandidateSentences, row: int, is_open: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Which open sentences say nearly what one says, with the same numbers."""
    said = candidates.said
    found = np.zeros(len(said), bool)
    if len(said[row]) < _LEAST_COMPARED:
        return found
    others = np.flatnonzero(is_open)
    scores = process.cdist([said[row]], [said[i] for i in others], scorer=fuzz.ratio, score_cutoff=_NEAR)[0]
    for other in others[scores > 0]:
        found[other] = _NUMBERS.findall(said[other]) == _NUMBERS.findall(said[row])
    return found


def representation(candidates: CandidateSentences, weights: SentenceWeights, chosen: list[int]) -> float:
    """Say how well rows stand for all: max(0, cosine of the two centroids) · share of the content words' weight.

    In [0, 1]; 1 where all rows are chosen.
    """
    c = candidates
    if len(chosen) == len(c.costs):
        return 1.0
    importance = np.sqrt(c.word_counts)
    cosine = float(np.einsum("d,d->", centroid(c.vectors[chosen], importance[chosen]), centroid(c.vectors, importance)))
    word_weights = c.word_uses**weights.frequency_exponent
    is_covered = np.zeros(len(word_weights), bool)
    is_covered[c.word_ids[np.isin(c.word_rows, chosen)]] = True
    total = float(word_weights.sum())
    share = float(word_weights[is_covered].sum()) / total if total else 1.0
    return round(min(max(cosine, 0.0), 1.0) * share, _DECIMALS)
