"""Deduplication against the nearest documents: a judge decides, and a merging makes one record of two.

Source: memory-lancedb-pro, smart-extractor.

What a preference for something of a brand names ("I like fries from McDonalds") is its preference-slots.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from lcm.checks import check_range
from lcm.javascript import WHITE_SPACE, trim
from lcm.protocols.models import Vectors
from lcm.protocols.writing import Judgement, Merged, Neighbour, Neighbours
from lcm.records.document import Candidate, Document
from lcm.writing.deduplication import batch
from lcm.writing.lifecycle import ALWAYS_MERGED

MAX_BRAND_LENGTH, MAX_ITEMS_LENGTH = 24, 80
MAX_ENGLISH_BRAND_LENGTH, MAX_ENGLISH_ITEMS_LENGTH = 40, 80

_S = f"[{WHITE_SPACE}]"
_SEPARATORS = "。！？!?；;，,、"
_NAME = "\u4e00-\u9fffA-Za-z0-9&·'\\-"
_CHINESE = re.compile(
    rf"(?:^|[{_SEPARATORS}{WHITE_SPACE}])(?:我|用户)?(?:很|更|还)?(?:喜欢|爱吃|偏爱|常吃|想吃)(?:吃|喝|用|买)?"
    rf"([{_NAME}]{{1,{MAX_BRAND_LENGTH}}})的([{_NAME}{WHITE_SPACE}、，,/]{{1,{MAX_ITEMS_LENGTH}}})"
)
_ENGLISH = re.compile(
    rf"\b(?:(?:i|user){_S}+)?(?:(?:really|still|also){_S}+)?(?:like|love|prefer|enjoy){_S}+"
    rf"([a-z0-9'&\-{WHITE_SPACE}]{{1,{MAX_ENGLISH_ITEMS_LENGTH}}}){_S}+from{_S}+"
    rf"([a-z0-9'&\-{WHITE_SPACE}]{{1,{MAX_ENGLISH_BRAND_LENGTH}}})",
    re.ASCII | re.IGNORECASE,
)
_SPEAKER = re.compile(rf"(?:^|(?<=[\n\r\u2028\u2029]))\[(?:用户|助手)\]{_S}*")
_BLANKS = re.compile(f"{_S}+")
_LEADING_QUOTES = re.compile("^[\"'“”‘’「『《]+")
_TRAILING_MARKS = re.compile("[\"'“”‘’」』》。！？!?，,；;：:]+$")
_ARTICLES = re.compile(rf"\b(?:a|an|the){_S}+", re.ASCII | re.IGNORECASE)
_STOPPER = re.compile("因为|所以|但是|不过|if |when |because |but ", re.IGNORECASE)
_LIST_SEPARATOR = re.compile(rf"以及|[、,，/及与和]|{_S}and{_S}|{_S}&{_S}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Preference:
    """A brand and what of it is liked, as tokens."""

    brand: str
    items: tuple[str, ...]
    """At least one."""

    @property
    def is_atomic(self) -> bool:
        return len(self.items) == 1


def preference(text: str) -> Preference | None:
    """What a text likes; the Chinese pattern goes before the English one."""
    normal = _normal(text)
    for pattern, brand_group, items_group in ((_CHINESE, 1, 2), (_ENGLISH, 2, 1)):
        found = pattern.search(normal)
        if found is not None:
            brand, items = token(found[brand_group]), _items(found[items_group])
            if brand and items:
                return Preference(brand, items)
    return None


def atomic_preference(text: str) -> Preference | None:
    """The same where exactly one thing is liked."""
    found = preference(text)
    return found if found is not None and found.is_atomic else None


def token(text: str) -> str:
    """A name as it is compared: no quotes around it, no final punctuation, articles or white space, in lower case."""
    bare = _TRAILING_MARKS.sub("", _LEADING_QUOTES.sub("", _normal(text)))
    return _BLANKS.sub("", _ARTICLES.sub("", bare)).lower()


def _normal(text: str) -> str:
    return trim(_BLANKS.sub(" ", _SPEAKER.sub("", text)))


def _items(listed: str) -> tuple[str, ...]:
    clause = _STOPPER.split(listed, maxsplit=1)[0] or listed  # what begins with "when" is not cut to nothing
    return tuple(filter(None, map(token, _LIST_SEPARATOR.split(clause))))


class Judge(Protocol):
    """Decides what a candidate is to documents that say nearly the same.

    Laws: a decision that needs a document names one of `near`; deterministic for equal replies.
    """

    def judge(self, candidate: Candidate, near: Sequence[Neighbour], *, incidents: Counter[str]) -> Judgement:
        """Decide; `near` is best first and not empty."""
        ...


class Merge(Protocol):
    """Makes one record of two; None where that cannot be done."""

    def merge(self, document: Document, candidate: Candidate) -> Merged | None: ...


@dataclass(frozen=True, slots=True)
class NearestDocuments:
    """Of the nearest `pool_size` documents those with a score of `min_score` are alike; the judge sees `shown` of them.

    score = 1 / (1 + distance) = 1 / (2 - cosine), as the plugin's store gives it: 0.7 is a cosine of 0.571. None alike:
    create. A preference for another item of the same brand than every alike document names: create. A profile is never
    judged: it is merged into the nearest document if that is a profile, of `profile_min_score`.
    """

    judging: Judge
    merging: Merge | None = None
    """None: what would be merged becomes a document of its own."""
    batch_threshold: float = 0.85
    """Cosine above which a candidate is the twin of an earlier one of its extraction."""
    min_score: float = 0.7
    profile_min_score: float = 0.3
    """The lowest score that a cosine can have is 1/3."""
    pool_size: int = 5
    shown: int = 3
    is_off = False

    def __post_init__(self) -> None:
        check_range(self, "batch_threshold", ge=-1, le=1)
        check_range(self, "min_score", "profile_min_score", gt=0, le=1)
        check_range(self, "pool_size", "shown", ge=1)
        if not callable(getattr(self.judging, "judge", None)):
            raise TypeError(f"judging must have judge(), got {self.judging!r}")
        if self.merging is not None and not callable(getattr(self.merging, "merge", None)):
            raise TypeError(f"merging must have merge(), got {self.merging!r}")

    def twins(self, vectors: Vectors) -> list[int | None]:
        return batch.twins(vectors, self.batch_threshold)

    def judge(
        self, candidate: Candidate, vector: Vectors | None, neighbours: Neighbours, *, incidents: Counter[str]
    ) -> Judgement:
        if vector is None:
            return Judgement("create", "no vector to compare with")
        if candidate.category in ALWAYS_MERGED:
            return self._place_profile(candidate, vector, neighbours)
        pool = neighbours.nearest(vector, self.pool_size, active_only=True)
        alike = [near for near in pool if near.cosine >= cosine_of_score(self.min_score)]
        if not alike:
            return Judgement("create", "nothing alike")
        if _is_another_item(candidate, alike):
            return Judgement("create", "another item of the same brand")
        return self.judging.judge(candidate, alike[: self.shown], incidents=incidents)

    def merge(self, document: Document, candidate: Candidate) -> Merged | None:
        return None if self.merging is None else self.merging.merge(document, candidate)

    def _place_profile(self, candidate: Candidate, vector: Vectors, neighbours: Neighbours) -> Judgement:
        # The original searches ended documents too; here the follower of one stands for it.
        for near in neighbours.nearest(vector, 1, active_only=True):
            is_near = near.cosine >= cosine_of_score(self.profile_min_score)
            if is_near and near.document.category == candidate.category:
                return Judgement("merge", "the nearest document is a profile too", near.document)
        return Judgement("create", "the nearest document is no profile")


def cosine_of_score(score: float) -> float:
    """The cosine c of which score = 1 / (2 - c)."""
    return 2 - 1 / score


def score_of_cosine(cosine: float) -> float:
    return 1 / (2 - cosine)


def _is_another_item(candidate: Candidate, alike: Sequence[Neighbour]) -> bool:
    """Whether the candidate and every document name the same brand, and each document another item than it."""
    if candidate.category != "preferences":
        return False
    own = atomic_preference(candidate.content or candidate.text)
    if own is None:
        return False
    others = [atomic_preference(near.document.text) for near in alike]
    return all(other is not None and other.brand == own.brand and other.items != own.items for other in others)
