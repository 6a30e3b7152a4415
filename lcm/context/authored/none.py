"""Nothing is authored."""

from collections import Counter
from dataclasses import dataclass

from lcm.records.document import AuthoredNode


@dataclass(frozen=True, slots=True)
class NothingAuthored:
    """There are no authored documents."""

    idle_because = "authored=none"

    def nodes(self, *, incidents: Counter[str]) -> list[AuthoredNode]:
        return []
