"""The turns nearest to the middle of all: whole turns, no model but an embedder's, and the same every time."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lcm.checks import check_range
from lcm.compaction.quality import clamped, cosine
from lcm.compaction.summarizer.chain import has_words
from lcm.errors import LcmError, ModelError
from lcm.protocols.models import Embedder, Vectors
from lcm.records.summary import SummaryRequest, SummaryResult

_METHOD = "extractive"


@dataclass(frozen=True, slots=True)
class Centroid:
    """The ceil(n · density) turns, at least one, with the highest cosine to the mean of all n, in their order, with a
    space between them; ties go to the earlier one. confidence = their mean cosine, clamped to [0, 1].

    n are the turns with a letter or digit; the others, such as calls of tools, say nothing that could be chosen. A
    request without turns is taken line by line. The length aimed at, the previous summary and `is_aggressive` are
    not read: what asks for less asks for a lower density. What does not fit into one window of the embedder is not
    looked at.

    Source: libravdb memory 1.3.5, mathematical reference, section 5; details 1.4.4.
    """

    embedder: Embedder
    density: float = 0.4
    """Of a request that does not say it."""
    min_turns: int = 1
    """Fewer are not summarised."""

    def __post_init__(self) -> None:
        check_range(self, "density", gt=0, le=1)
        check_range(self, "min_turns", ge=1)

    def summarize(self, requests: Sequence[SummaryRequest], *, incidents: Counter[str]) -> list[SummaryResult]:
        turns = [_turns(request) for request in requests]
        worded = [[text for text in given if has_words(text)] for given in turns]
        rows = {text: row for row, text in enumerate(dict.fromkeys(text for said in worded for text in said))}
        try:
            vectors = self.embedder.embed(list(rows), "document") if rows else np.zeros((0, 1), np.float32)
        except ModelError as failure:
            return [self._failed(failure)] * len(requests)
        return [
            self._summary(len(given), said, vectors[[rows[text] for text in said]], request.density)
            for request, given, said in zip(requests, turns, worded, strict=True)
        ]

    def chosen(self, vectors: Vectors, asked_density: float | None = None) -> dict[int, float]:
        """The places of the turns that a summary is made of, in order, with their cosines to the mean.

        Args:
            vectors: shape (n, dim), n >= 1; row i embeds turn i.
            asked_density: the share to choose; outside (0, 1] or None = as set.
        """
        density = asked_density if asked_density is not None and 0 < asked_density <= 1 else self.density
        centroid = vectors.astype(np.float32).mean(axis=0, dtype=np.float32)
        scores = [cosine(vector, centroid) for vector in vectors]
        best = sorted(range(len(scores)), key=lambda place: -scores[place])
        return {place: scores[place] for place in sorted(best[: max(1, math.ceil(len(scores) * density))])}

    def _summary(
        self, given: int, turns: Sequence[str], vectors: Vectors, asked_density: float | None
    ) -> SummaryResult:
        """Of those of the `given` turns that have words."""
        if given < self.min_turns:
            return self._failed(LcmError(f"{self.min_turns} turns are needed for a summary, got {given}"))
        if not turns:
            return self._failed(LcmError(f"none of {given} turns has words"))
        scores = self.chosen(vectors, asked_density)
        text = " ".join(turns[place].strip() for place in scores)
        confidence = clamped(sum(scores.values()) / len(scores))
        embedded = dict(zip(turns, vectors, strict=True))
        return SummaryResult(
            text, confidence, _METHOD, self.embedder.name, tokens=len(text.split()), turn_vectors=embedded
        )

    def _failed(self, failure: LcmError) -> SummaryResult:
        return SummaryResult("", 0.0, _METHOD, self.embedder.name, failure)


def _turns(request: SummaryRequest) -> Sequence[str]:
    return request.turns or [line for line in request.text.splitlines() if line.strip()]
