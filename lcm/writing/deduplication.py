"""Deduplication: twins of one extraction, and what a candidate is to the nearest documents.

A judge decides, by rule or by a language model, and a merging makes one record of two. What a preference for something
of a brand names ("I like fries from McDonalds") is its preference-slots.

Source: memory-lancedb-pro, smart-extractor and batchDedup; the prompts are ours.
"""

import logging
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from typing import Any, Protocol, cast

import numpy as np
import numpy.typing as npt

from lcm.checks import check_range
from lcm.encoding import well_formed
from lcm.javascript import WHITE_SPACE, trim
from lcm.language_model.replies import asked
from lcm.protocols.contract import Contract
from lcm.protocols.models import LanguageModel, Vectors
from lcm.protocols.writing import Judgement, Merged, Neighbour, Neighbours
from lcm.records.document import Action, Candidate, Document
from lcm.text import words_in
from lcm.writing.lifecycle import ALWAYS_MERGED, MERGED, VERSIONED, fact_key
from lcm.writing.new_document import shown_words


@dataclass(frozen=True, slots=True)
class KeepAll:
    """Every candidate is its own, however like another it is."""

    contract = Contract(is_off=True)
    _reason = "deduplication is off"

    def twins(self, vectors: Vectors) -> list[int | None]:
        return [None] * len(vectors)

    def judge(
        self, candidate: Candidate, vector: Vectors | None, neighbours: Neighbours, *, incidents: Counter[str]
    ) -> Judgement:
        return Judgement("create", self._reason)

    def merge(self, document: Document, candidate: Candidate) -> Merged | None:
        return None


_BLOCK = 256
"""Rows whose cosines are worked out at once."""


@dataclass(frozen=True, slots=True)
class TwinsOnly(KeepAll):
    """What is no twin becomes a document: the plugin without a language model, which has nobody to ask."""

    batch_threshold: float = 0.85
    """Cosine above which a candidate is the twin of an earlier one of its extraction."""
    contract = Contract()
    _reason = "nobody to ask"

    def __post_init__(self) -> None:
        check_range(self, "batch_threshold", ge=-1, le=1)

    def twins(self, vectors: Vectors) -> list[int | None]:
        return twins(vectors, self.batch_threshold)


def twins(vectors: npt.NDArray[np.floating], threshold: float) -> list[int | None]:
    """For each row the first earlier one whose cosine with it is above the threshold; None = its own.

    A row that is a twin itself makes no others; a row of zeros has none. All cosines in float64.
    """
    rows = np.asarray(vectors, dtype=np.float64)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    unit = np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)
    first: list[int | None] = [None] * len(rows)
    is_own = np.ones(len(rows), dtype=bool)
    for start in range(0, len(rows), _BLOCK):
        block = unit[start : start + _BLOCK] @ unit[start:].T > threshold
        for i, above in enumerate(block, start=start):
            if is_own[i]:
                alike = np.flatnonzero(is_own[i + 1 :] & above[i + 1 - start :]) + i + 1
                is_own[alike] = False
                for j in alike:
                    first[j] = i
    return first


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

    def __post_init__(self) -> None:
        check_range(self, "batch_threshold", ge=-1, le=1)
        check_range(self, "min_score", "profile_min_score", gt=0, le=1)
        check_range(self, "pool_size", "shown", ge=1)
        if not callable(getattr(self.judging, "judge", None)):
            raise TypeError(f"judging must have judge(), got {self.judging!r}")
        if self.merging is not None and not callable(getattr(self.merging, "merge", None)):
            raise TypeError(f"merging must have merge(), got {self.merging!r}")

    def twins(self, vectors: Vectors) -> list[int | None]:
        return twins(vectors, self.batch_threshold)

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


DECISIONS = ("create", "skip", "merge", "supersede", "support", "contextualize", "contradict")
TARGETING = frozenset({"merge", "supersede", "support", "contextualize", "contradict"})
"""Decisions that are about one of the documents."""
EXACT = frozenset({"supersede", "contradict"})
"""Of those the ones that are dropped where the reply names no document; the others then mean the nearest."""

_JUDGE = resources.files("lcm.writing").joinpath("prompts", "judge.txt").read_text("utf-8")
_OTHERWISE = "deduplication creates"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ModelJudge:
    """The model's decision, as far as its reply can be understood; create where it cannot.

    Incidents: `judge_no_reply`, `judge_no_decision`, `judge_no_match`.
    """

    language_model: LanguageModel

    def judge(self, candidate: Candidate, near: Sequence[Neighbour], *, incidents: Counter[str]) -> Judgement:
        shown = _shown(candidate, near)
        found, reply, problem = asked(self.language_model, _JUDGE, shown, "decision", otherwise=_OTHERWISE)
        if found is None:
            incidents["judge_no_reply"] += 1
            return Judgement("create", problem)
        judgement = hardened(found, near, incidents=incidents)
        return replace(judgement, audit={**judgement.audit, "reply": reply})


def hardened(reply: Mapping[str, Any], near: Sequence[Neighbour], *, incidents: Counter[str]) -> Judgement:
    """The judgement that a reply {decision, match_index, reason, context_label} means.

    A decision that is missing or unknown is create. match_index counts from 1 and must be a number among those shown;
    without one supersede and contradict become create, and the others are about the nearest.
    """
    named = reply.get("decision")
    decision = named.lower() if isinstance(named, str) else ""
    if decision not in DECISIONS:
        _log.warning("%s: %r is no decision", _OTHERWISE, named)
        incidents["judge_no_decision"] += 1
        return Judgement("create", f"{named!r} is no decision")
    label = reply.get("context_label")
    label = label if isinstance(label, str) else None
    reason = str(reply.get("reason") or "the model gave no reason")
    if decision not in TARGETING:
        return Judgement(cast(Action, decision), reason, None, label)
    index = reply.get("match_index")
    if isinstance(index, bool) or not isinstance(index, int | float) or not 1 <= index <= len(near):
        if decision in EXACT:
            incidents["judge_no_match"] += 1
            return Judgement("create", f"{decision} names no document that was shown")
        index = 1
    if index != int(index):
        incidents["judge_no_match"] += 1
        return Judgement("create", f"{decision} names document {index}, which is between two", None, label)
    return Judgement(cast(Action, decision), reason, near[int(index) - 1].document, label)


def _shown(candidate: Candidate, near: Sequence[Neighbour]) -> dict[str, Any]:
    return {
        "candidate": {"category": candidate.category, **shown_words(candidate)},
        "existing": [
            {
                "index": index,
                "category": neighbour.document.category,
                "abstract": well_formed(neighbour.document.text),
                "overview": well_formed(neighbour.document.overview),
                "score": round(score_of_cosine(neighbour.cosine), 3),
            }
            for index, neighbour in enumerate(near, start=1)
        ],
    }


@dataclass(frozen=True, slots=True)
class LineMerge:
    """At each level the candidate's lines, then those of the document that none of them repeats: nothing is lost.

    A line repeats another that holds it, whatever the case of letters and the white space.
    """

    def merge(self, document: Document, candidate: Candidate) -> Merged | None:
        return Merged(
            text=_joined(candidate.text, document.text),
            overview=_joined(candidate.overview, document.overview),
            content=_joined(candidate.content, document.content),
        )


def _joined(newer: str, older: str) -> str:
    lines = [line for text in (newer, older) for line in text.splitlines() if line.strip()]
    keys = [_key(line) for line in lines]
    kept = (line for i, line in enumerate(lines) if not _is_repeated(keys[i], keys[:i], keys[i + 1 :]))
    return "\n".join(kept)


def _is_repeated(key: str, before: Iterable[str], after: Iterable[str]) -> bool:
    """Whether a line before it holds it, or a longer one after it."""
    return any(key in other for other in before) or any(key in other and key != other for other in after)


def _key(line: str) -> str:
    return " ".join(line.casefold().split())


_MERGE = resources.files("lcm.writing").joinpath("prompts", "merge.txt").read_text("utf-8")


@dataclass(frozen=True, slots=True)
class ModelMerge:
    """The model's record; None where it gives none."""

    language_model: LanguageModel

    def merge(self, document: Document, candidate: Candidate) -> Merged | None:
        shown = {"category": candidate.category, "existing": shown_words(document), "new": shown_words(candidate)}
        otherwise = f"not merged into {document.document_id}"
        found, reply, _ = asked(self.language_model, _MERGE, shown, "abstract", otherwise=otherwise)
        if found is None:
            return None
        said = (found.get(key) for key in ("abstract", "overview", "content"))
        text, overview, content = (trim(value) if isinstance(value, str) else "" for value in said)
        if not text:
            _log.warning("%s: no abstract in the reply %.200r", otherwise, reply)
            return None
        return Merged(text, overview, content)
