"""No admission: everything is worth keeping."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from lcm.protocols.models import Vectors
from lcm.protocols.writing import Assessment, Neighbours
from lcm.records.conversation import Message
from lcm.records.document import Candidate


@dataclass(frozen=True, slots=True)
class AdmitAll:
    """Every candidate passes, and no score is given."""

    is_off = True

    def assess(
        self,
        candidate: Candidate,
        vector: Vectors | None,
        neighbours: Neighbours,
        messages: Sequence[Message],
        now: datetime,
        *,
        incidents: Counter[str],
    ) -> Assessment:
        return Assessment(is_admitted=True, reason="admission is off")
