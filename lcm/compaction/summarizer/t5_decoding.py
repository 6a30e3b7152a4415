"""From logits to tokens: the likeliest next one, or the likeliest of several texts that are followed side by side."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple, Protocol

import numpy as np

from lcm.compaction.summarizer.t5_model import Floats, T5Model, log_totals


class DecodingSearch(Protocol):
    """The search for one text's summary, told of the logits step by step."""

    is_done: bool
    tokens: list[int]
    """Of the summary, once it is done; the end token, if it came, is the last."""
    margin: float
    """How near the closest of its choices was, in nats: sums that differ by much less lead to the same tokens."""

    @property
    def last_ids(self) -> list[int]:
        """The last token of each row that is followed, once there is one."""
        ...

    def advance(self, logits: Floats) -> list[int]:
        """Take in the logits of each row, shape (rows, vocabulary); returns which row each of the next continues."""
        ...


class GreedySearch:
    """The likeliest token at each step, up to the end token or `limit` tokens."""

    def __init__(self, limit: int, end_ids: frozenset[int]) -> None:
        self.is_done = False
        self.tokens: list[int] = []
        self.margin = np.inf
        self._limit = limit
        self._end_ids = end_ids

    @property
    def last_ids(self) -> list[int]:
        return self.tokens[-1:]

    def advance(self, logits: Floats) -> list[int]:
        chosen = int(logits[0].argmax())
        others = logits[0].copy()
        others[chosen] = -np.inf
        self.margin = min(self.margin, float(logits[0, chosen] - others.max()))
        self.tokens.append(chosen)
        self.is_done = chosen in self._end_ids or len(self.tokens) == self._limit
        return [] if self.is_done else [0]


class _Beam(NamedTuple):
    score: float
    tokens: list[int]


class BeamSearch:
    """Beam search with the choices of transformers' (4.57): early_stopping false, no sampling, no penalties.

    A finished text of n tokens scores Σ log p / n ** length_penalty. The search ends when as many are finished as there
    are beams and the best running one, at its present length, scores no better than the worst of them; or at `limit`.
    """

    def __init__(self, beams: int, length_penalty: float, limit: int, end_ids: frozenset[int]) -> None:
        self.is_done = False
        self.tokens: list[int] = []
        self.margin = np.inf
        self._beams = beams
        self._length_penalty = length_penalty
        self._limit = limit
        self._end_ids = end_ids
        self._running = [_Beam(0.0, [])]
        self._finished: list[_Beam] = []

    @property
    def last_ids(self) -> list[int]:
        return [beam.tokens[-1] for beam in self._running]

    def advance(self, logits: Floats) -> list[int]:
        parents, candidates = self._best(logits)
        length = len(candidates[0].tokens)
        ended = [beam.tokens[-1] in self._end_ids or length == self._limit for beam in candidates]
        penalty = length**self._length_penalty
        # Those beyond the first `beams` are there to replace running ones that end, not to end themselves.
        ends = [
            _Beam(beam.score / penalty, beam.tokens)
            for beam, has_ended in zip(candidates[: self._beams], ended, strict=False)
            if has_ended
        ]
        ranked = sorted([*self._finished, *ends], key=lambda beam: -beam.score)
        if ends:
            self._note_gaps([beam.score for beam in ranked[: self._beams + 1]])
        self._finished = ranked[: self._beams]
        going_on = [place for place, has_ended in enumerate(ended) if not has_ended][: self._beams]
        self._running = [candidates[place] for place in going_on]
        self.is_done = not going_on or not self._may_improve(self._running[0].score / penalty)
        if self.is_done:
            self.tokens = self._finished[0].tokens
        return [] if self.is_done else [parents[place] for place in going_on]

    def _best(self, logits: Floats) -> tuple[list[int], list[_Beam]]:
        """The best continuations, enough for all beams to go on however many end, and the row that each continues."""
        before = np.array([beam.score for beam in self._running])
        scores = (logits + (before - log_totals(logits))[:, None]).ravel()
        count = min((1 + len(self._end_ids)) * self._beams, len(scores))
        nearby = np.argpartition(-scores, min(count, len(scores) - 1))[: count + 1]
        order = nearby[np.lexsort((nearby, -scores[nearby]))]
        self._note_gaps(scores[order].tolist())
        rows, ids = np.divmod(order[:count], logits.shape[1])
        beams = [
            _Beam(float(scores[place]), [*self._running[row].tokens, int(token)])
            for place, row, token in zip(order, rows, ids, strict=False)
        ]
        return rows.tolist(), beams

    def _may_improve(self, best_running: float) -> bool:
        if len(self._finished) < self._beams:
            return True
        worst_finished = self._finished[-1].score
        self._note_gaps([best_running, worst_finished])
        return best_running > worst_finished

    def _note_gaps(self, scores: Sequence[float]) -> None:
        self.margin = min([self.margin, *(abs(one - other) for one, other in pairwise(scores))])


def decode(model: T5Model, encoded: Sequence[Floats], searches: Sequence[DecodingSearch]) -> None:
    """Drive the searches to their ends side by side, one for each encoded text; a finished one leaves the batch."""
    longest = max(map(len, encoded))
    hidden = np.zeros((len(encoded), longest, encoded[0].shape[1]), np.float32)
    mask = np.zeros((len(encoded), longest), np.int64)
    for row, states in enumerate(encoded):
        hidden[row, : len(states)] = states
        mask[row, : len(states)] = 1
    logits, past = model.first_step(hidden, mask)
    owners = list(range(len(searches)))
    while kept := list(_advance(searches, owners, logits)):
        rows = [row for row, _ in kept]
        if rows != list(range(len(owners))):
            # Beams of one text share what the encoder gave: as long as they are the same beams' it stays in place.
            moves_text = [owners[row] for row in rows] != owners
            past = {name: state[rows] if moves_text or ".decoder." in name else state for name, state in past.items()}
            mask = mask[rows] if moves_text else mask
        owners = [owner for _, owner in kept]
        ids = [token for search in searches if not search.is_done for token in search.last_ids]
        logits, past = model.next_step(ids, mask, past)


def _advance(searches: Sequence[DecodingSearch], owners: Sequence[int], logits: Floats) -> Iterator[tuple[int, int]]:
    """Show each search its rows; gives the rows that are continued, and whose they are."""
    begin = 0
    while begin < len(owners):
        owner = owners[begin]
        end = begin + owners[begin:].count(owner)
        for parent in searches[owner].advance(logits[begin:end]):
            yield begin + parent, owner
        begin = end
