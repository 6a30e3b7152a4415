"""A rule in place of a language model: cosines, words, fact keys and preference slots decide."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from lcm.checks import check_range
from lcm.protocols.writing import Judgement, Neighbour
from lcm.records.document import Candidate, Document
from lcm.text import words_in
from lcm.writing.deduplication.nearest import atomic_preference
from lcm.writing.lifecycle import MERGED, VERSIONED, fact_key


@dataclass(frozen=True, slots=True)
class RuleJudge:
    """The first of these that holds, for the nearest document of the candidate's category; if there is none: create.

    With `new` the share of the candidate's distinct words that the document lacks, and `lost` the share of the
    document's that the candidate lacks:

    1. It says the same again (cosine >= same_cosine and new <= same_words, or the same item of the same brand): support
       for preferences, entities and patterns, skip for any other category.
    2. A preference or an entity that extraction wrote an abstract of, with the same fact key, and cosine >=
       topic_cosine: merge where the candidate keeps what the document says (lost <= refined_words), else supersede. In
       a message as it was said, what stands before a colon is its author rather than its topic.
    3. A preference, an entity or a pattern, and cosine >= merge_cosine: merge.
    4. Otherwise create.

    Whether two texts contradict each other, or hold in different contexts, it cannot tell. Ours.
    """

    same_cosine: float = 0.95
    same_words: float = 0.1
    topic_cosine: float = 0.6
    refined_words: float = 0.0
    merge_cosine: float = 0.85

    def __post_init__(self) -> None:
        check_range(self, "same_cosine", "topic_cosine", "merge_cosine", ge=-1, le=1)
        check_range(self, "same_words", "refined_words", ge=0, le=1)

    def judge(self, candidate: Candidate, near: Sequence[Neighbour], *, incidents: Counter[str]) -> Judgement:
        nearest = next((n for n in near if n.document.category == candidate.category), None)
        if nearest is None:
            return Judgement("create", "nothing alike in its category")
        document, cosine = nearest.document, nearest.cosine
        words, known = _words(candidate), _words(document)
        new, lost = _missing_share(words, known), _missing_share(known, words)
        audit = {"cosine": cosine, "new": new, "lost": lost}
        if (cosine >= self.same_cosine and new <= self.same_words) or _is_same_item(candidate, document):
            if candidate.category in MERGED:
                return Judgement("support", "says the same again", document, "general", audit)
            return Judgement("skip", "says the same again", document, None, audit)
        if cosine >= self.topic_cosine and _is_same_fact(candidate, document):
            if lost <= self.refined_words:
                return Judgement("merge", "refines what is known of its topic", document, None, audit)
            return Judgement("supersede", "says something else of the same topic", document, None, audit)
        if candidate.category in MERGED and cosine >= self.merge_cosine:
            return Judgement("merge", "nearly the same", document, None, audit)
        return Judgement("create", "nothing that says the same", None, None, audit)


def _words(record: Candidate | Document) -> frozenset[str]:
    return frozenset(words_in(f"{record.text}\n{record.content}", "han"))


def _missing_share(words: frozenset[str], known: frozenset[str]) -> float:
    return len(words - known) / len(words) if words else 0.0


def _is_same_item(candidate: Candidate, document: Document) -> bool:
    if candidate.category != "preferences":
        return False
    own = atomic_preference(candidate.content or candidate.text)
    return own is not None and own == atomic_preference(document.text)


def _is_same_fact(candidate: Candidate, document: Document) -> bool:
    if candidate.category not in VERSIONED or not candidate.content or not document.content:
        return False
    known = document.metadata.get("fact_key") or fact_key(document.category, document.text)
    return known is not None and known == fact_key(candidate.category, candidate.text)
