"""Candidates as they came."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from lcm.records.document import Candidate


@dataclass(frozen=True, slots=True)
class NoAnnotation:
    """Rates nothing."""

    is_off = True

    def annotate(self, candidates: Sequence[Candidate], said_at: Sequence[datetime]) -> list[Candidate]:
        return list(candidates)
