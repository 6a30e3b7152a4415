"""Summaries of windows by an open T5: in batches, yet each as if it were alone."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from lcm.compaction.summarizer.t5_decoding import BeamSearch, DecodingSearch, GreedySearch, decode
from lcm.compaction.summarizer.t5_model import Floats, T5Model

CLOSE_CALL_NATS = 1e-4
"""Padding and batch-mates move a sum of logits by about a hundredth of it."""


class Window(NamedTuple):
    """What a T5 reads at once."""

    ids: list[int]
    """Prefix, text and end token."""
    limit: int
    """Tokens of its summary, at most."""
    is_last: bool = True
    """Its summary is the result, of which the confidence is asked for."""


class WindowSummary(NamedTuple):
    """A window's summary."""

    text: str
    confidence: float
    """0 where it is not asked for."""
    ids: list[int]
    """Its tokens, without the one that ends it."""
    margin: float
    """How near the closest choice between two tokens was, in nats."""


@dataclass(frozen=True, slots=True)
class Writing:
    """How windows become summaries."""

    model: T5Model
    beams: int
    """1 = greedy."""
    length_penalty: float
    """A text of n tokens scores Σ log p / n ** length_penalty; of no effect on greedy search."""
    batch_size: int
    """Rows decoded at once, a row a beam."""

    def write(self, asked: Sequence[Window]) -> list[WindowSummary]:
        """Summarise windows in batches of like length, the longest first; a result for each, in order."""
        size = max(1, self.batch_size // self.beams)
        size = max(1, min(size, math.ceil(len(asked) / self.model.thread_count)))
        order = sorted(range(len(asked)), key=lambda i: -len(asked[i].ids))
        batches = [order[begin : begin + size] for begin in range(0, len(order), size)]
        written: dict[int, WindowSummary] = {}
        found = self.model.threads.map(lambda batch: self._write_batch([asked[i] for i in batch]), batches)
        for batch, summaries in zip(batches, found, strict=True):
            written.update(zip(batch, summaries, strict=True))
        return [written[i] for i in range(len(asked))]

    def _write_batch(self, batch: Sequence[Window]) -> list[WindowSummary]:
        encoded = [self.model.encode(window.ids) for window in batch]
        searches = [self._search(window) for window in batch]
        decode(self.model, encoded, searches)
        for place, search in enumerate(searches):
            if len(batch) > 1 and not search.margin >= CLOSE_CALL_NATS:
                searches[place] = self._search(batch[place])
                decode(self.model, [encoded[place]], [searches[place]])
        return [self._summary(*one) for one in zip(batch, encoded, searches, strict=True)]

    def _search(self, window: Window) -> DecodingSearch:
        if self.beams == 1:
            return GreedySearch(window.limit, self.model.end_ids)
        return BeamSearch(self.beams, self.length_penalty, window.limit, self.model.end_ids)

    def _summary(self, window: Window, encoded: Floats, search: DecodingSearch) -> WindowSummary:
        tokens = search.tokens
        ids = tokens[:-1] if tokens[-1] in self.model.end_ids else tokens
        text = self.model.tokenizer.decode(ids, skip_special_tokens=True).strip()
        if not window.is_last or not text:
            return WindowSummary(text, 0.0, ids, search.margin)
        confidence = min(1.0, float(np.exp(self.model.log_probabilities(encoded, ids).mean())))
        return WindowSummary(text, confidence, ids, search.margin)
