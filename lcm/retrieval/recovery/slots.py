"""The events that a question names, each as a few terms: its slots."""

from collections.abc import Collection
from dataclasses import dataclass

from lcm.checks import check_range
from lcm.retrieval.recovery import vocabulary
from lcm.retrieval.terms import Terms


@dataclass(frozen=True, slots=True)
class Slots:
    """Cuts a question at its clauses and keeps the terms that name something.

    A clause of at most `short_terms` terms is one slot; of a longer one the first and the last `edge_terms` are a slot
    each. At most `most_slots`, all different; where no clause has any, the first `edge_terms` of the whole question.

    Source: libravdb memory 1.4.4, which keeps words like "came" and "happened".
    """

    short_terms: int = 3
    edge_terms: int = 4
    most_slots: int = 4
    extra_stop_words: Collection[str] = ()
    """In lower case."""

    def __post_init__(self) -> None:
        check_range(self, "short_terms", "edge_terms", "most_slots", ge=1)

    def of(self, question: str, terms: Terms) -> list[tuple[str, ...]]:
        found: dict[tuple[str, ...], None] = {}
        for clause in vocabulary.pattern("clause_breaks").split(question):
            kept = self._named(clause, terms)
            if len(kept) > self.short_terms:
                found |= dict.fromkeys([tuple(kept[: self.edge_terms]), tuple(kept[-self.edge_terms :])])
            elif kept:
                found[tuple(kept)] = None
        if not found and (kept := self._named(question, terms)):
            found[tuple(kept[: self.edge_terms])] = None
        return list(found)[: self.most_slots]

    def _named(self, text: str, terms: Terms) -> list[str]:
        left_out = vocabulary.words("intent_stop_words") | vocabulary.words("slot_stop_words")
        return [term for term in terms.of(text) if term not in left_out and term not in self.extra_stop_words]
