"""How sure a summary is: by what its maker says, and by what an embedder says."""

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lcm.compaction.summary_quality import SummaryQuality, clamped, summary_quality
from lcm.errors import ModelError
from lcm.protocols.models import Embedder
from lcm.records.rules import VersionedRules
from lcm.records.summary import SummaryResult

EXTRACTIVE = "extractive"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ClusterConfidence:
    """The summarizer's own. By the rules of `1.4.4`: (align + cover) / 2, of an abstractive summary mixed with its own;
    an abstractive summary that is not aligned is made again from the turns' own words.

    Source: libravdb memory 1.3.5 and 1.4.4.
    """

    rules: VersionedRules
    embedder: Embedder
    preservation_threshold: float
    embedding_share: float
    backend_share: float

    def quality(self, turns: Sequence[str], result: SummaryResult, incidents: Counter[str]) -> SummaryQuality | None:
        """Hold a summary against its turns; None where they could not be embedded."""
        known = result.turn_vectors if result.model == self.embedder.name else {}
        unknown = [turn for turn in turns if turn not in known]
        try:
            *rows, summary = self.embedder.embed([*unknown, result.text], "document")
        except ModelError as failure:
            _log.warning("a summary could not be held against its turns: %s", failure)
            incidents["summary not held against its turns: its maker's confidence stands"] += 1
            return None
        found = {**known, **dict(zip(unknown, rows, strict=True))}
        return summary_quality(np.array([found[turn] for turn in turns]), summary)

    def is_judging(self, result: SummaryResult) -> bool:
        """Say whether a summary may be refused for being far from what was said."""
        return self.rules == "1.4.4" and result.method != EXTRACTIVE

    def is_lost(self, result: SummaryResult, quality: SummaryQuality | None) -> bool:
        """Say whether an abstractive summary is too far from what was said."""
        return self.is_judging(result) and quality is not None and quality.align < self.preservation_threshold

    def of(self, result: SummaryResult, quality: SummaryQuality | None) -> float:
        """The confidence of a summary, in [0, 1]."""
        own = clamped(result.confidence)
        if self.rules != "1.4.4" or quality is None:
            return own
        if result.method == EXTRACTIVE:
            return quality.confidence
        return clamped(self.embedding_share * quality.confidence + self.backend_share * own)
