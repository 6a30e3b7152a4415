"""No deduplication: everything becomes a document."""

from collections import Counter
from dataclasses import dataclass

from lcm.protocols.models import Vectors
from lcm.protocols.writing import Judgement, Merged, Neighbours
from lcm.records.document import Candidate, Document


@dataclass(frozen=True, slots=True)
class KeepAll:
    """Every candidate is its own, however like another it is."""

    is_off = True

    def twins(self, vectors: Vectors) -> list[int | None]:
        return [None] * len(vectors)

    def judge(
        self, candidate: Candidate, vector: Vectors | None, neighbours: Neighbours, *, incidents: Counter[str]
    ) -> Judgement:
        return Judgement("create", "deduplication is off")

    def merge(self, document: Document, candidate: Candidate) -> Merged | None:
        return None
