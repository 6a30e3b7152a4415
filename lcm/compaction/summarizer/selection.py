"""Which sentences stand for all of them, within a budget."""

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from rapidfuzz import fuzz, process

from lcm.compaction.facts.done import BEFORE
from lcm.compaction.facts.finding import statements_in
from lcm.compaction.facts.reading import Kind, Statement
from lcm.compaction.summarizer.kinds import IMPORTANCE, TOOL
from lcm.compaction.summarizer.passages import Sentence
from lcm.javascript import utf16_length
from lcm.protocols.models import Vectors
from lcm.retrieval.text_index.words import load_stop_words, split_words, windows

_MARKS = re.compile(r"[^\w.]+|\.(?!\w)")
_FIGURES = re.compile(r"\d+(?:[.,]\d+)*")
Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]
_TOLD_OTHERWISE: tuple[Kind, ...] = ("name", "question", "rule")
"""A footer names names; what rules and questions are worth is in `kinds.IMPORTANCE`."""
_LONGEST_BEFORE = 80  # characters: a longer one would be a sentence of its own
_LABEL = re.compile(r"^[\w.-]+[\"'`*]*\s*(?:=|:|\bis(?: now)?|\bwas)\s*(?=[\"'`*\d+-])")
Subject = tuple[Kind, str]
_DECIMALS = 6  # float32 sums differ below them from machine to machine: a tie must stay one
_FULL_WORDS = 8  # from so many words on a sentence is as full as any
_NEAR = 92  # of 100 by edits
_LEAST_COMPARED = 24  # characters: shorter ones differ too much by a letter
_NUMBERS = re.compile(r"\d+")
_MANY_FACTS = 4  # from so many on a sentence states as much as any


@dataclass(frozen=True, slots=True)
class CandidateSentences:
    """Sentences in the order of the source, as numbers; shapes (n,) but for the vectors."""

    vectors: Vectors
    places: Places
    """How many turns stand before each one's."""
    turns: Places
    speakers: Places
    hours: Places
    """From 0 without gaps, as turns, speakers and texts are."""
    texts: Places
    """Equal where two sentences say the same but for case and punctuation; lines that are no prose, but for numbers."""
    said: tuple[str, ...]
    """The sentences themselves, in lower case."""
    importance: Floats
    """What each gains by its kind."""
    is_prose: npt.NDArray[np.bool_]
    costs: Floats
    """Tokens of each."""
    turn_costs: Floats
    """Tokens that the first sentence of a turn costs besides: its speaker."""
    hour_costs: Floats
    """Tokens that the first sentence of an hour costs besides: its time."""
    word_counts: Floats
    words: tuple[str, ...]
    """The content words of all sentences; an id is a place in it."""
    word_rows: Places
    """Sentence `word_rows[i]` holds content word `word_ids[i]`, once."""
    word_ids: Places
    word_uses: Floats
    """Of each content word: how many sentences hold it."""


def candidates(sentences: Sequence[Sentence], vectors: Vectors, tokens_per_unit: float) -> CandidateSentences:
    """Count what selection needs.

    Args:
        sentences: at least one.
        vectors: row i embeds sentences[i].
        tokens_per_unit: of the source: what a UTF-16 unit of it costs.
    """
    counts, rows, ids = [], [], []
    known: dict[str, int] = {}
    uses: Counter[int] = Counter()
    for row, sentence in enumerate(sentences):
        count, words = content_words(sentence.text)
        counts.append(count)
        own = [known.setdefault(word, len(known)) for word in words]
        uses.update(own)
        ids += own
        rows += [row] * len(own)
    return CandidateSentences(
        vectors=vectors,
        places=np.array([sentence.place for sentence in sentences], np.int64),
        turns=_numbered(sentence.turn for sentence in sentences),
        speakers=_numbered(sentence.speaker for sentence in sentences),
        hours=_numbered(sentence.hour for sentence in sentences),
        texts=_numbered(map(_sameness, sentences)),
        said=tuple(sentence.text.casefold() for sentence in sentences),
        importance=np.array([IMPORTANCE[sentence.kind] for sentence in sentences], np.float64),
        is_prose=np.array([sentence.is_prose for sentence in sentences], bool),
        costs=_costs((f"{sentence.text} " for sentence in sentences), tokens_per_unit),
        turn_costs=_costs((sentence.label for sentence in sentences), tokens_per_unit),
        hour_costs=_costs((sentence.hint for sentence in sentences), tokens_per_unit),
        word_counts=np.array(counts, np.float64),
        words=tuple(known),
        word_rows=np.array(rows, np.int64),
        word_ids=np.array(ids, np.int64),
        word_uses=np.array([uses[word] for word in range(len(known))], np.float64),
    )


def content_words(text: str) -> tuple[int, list[str]]:
    """Count the words of a text, and give the distinct ones that are no English stop words and no single letters.

    Neighbouring CJK characters count as a word two by two.
    """
    stop_words = load_stop_words("english")
    words, runs = split_words(text)
    pairs = [pair for run in runs for pair in windows(run, 2)]
    told = [word for word in words if len(word) > 1 and word not in stop_words]
    return len(words) + len(pairs), list(dict.fromkeys([*told, *pairs]))


def _sameness(sentence: Sentence) -> str:
    bare = _MARKS.sub(" ", sentence.text.casefold()).strip() or sentence.text
    return bare if sentence.is_prose else _FIGURES.sub("0", bare)


def _numbered(values: Iterable[Hashable]) -> Places:
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(value, len(numbers)) for value in values], np.int64)


def _costs(texts: Iterable[str], tokens_per_unit: float) -> Floats:
    return np.array([utf16_length(text) for text in texts], np.float64) * tokens_per_unit


@dataclass(frozen=True, slots=True)
class StatedFacts:
    """Which sentence states which fact; of a fact with several values the last one alone counts."""

    rows: npt.NDArray[np.int64]
    """Sentence `rows[i]` states fact `ids[i]`, once."""
    ids: npt.NDArray[np.int64]
    """From 0 without gaps."""
    is_known: npt.NDArray[np.bool_]
    """Of each fact: whether the summary before states it with this value."""
    is_changed: npt.NDArray[np.bool_]
    """Of each fact: whether the summary before states it with another value."""


def stated_facts(sentences: Sequence[Sentence], before: Sequence[Sentence] = ()) -> StatedFacts:
    """Find the facts of sentences.

    Args:
        sentences: in order.
        before: those of the summary before.
    """
    found = [_statements(sentence) for sentence in sentences]
    last = _last_values(found)
    places = {subject: place for place, subject in enumerate(last)}
    pairs = [
        (row, place)
        for row, statements in enumerate(found)
        for place in sorted({places[one.kind, one.key] for one in statements if last[one.kind, one.key] == one.value})
    ]
    known = _last_values(map(_statements, before))
    rows, ids = np.array(pairs, np.int64).reshape(-1, 2).T
    was = [known.get(subject) for subject in last]
    is_known = [old == value for old, value in zip(was, last.values(), strict=True)]
    is_changed = [old not in (None, value) for old, value in zip(was, last.values(), strict=True)]
    return StatedFacts(rows, ids, np.array(is_known, bool), np.array(is_changed, bool))


def with_changes(sentences: Sequence[Sentence], before: Sequence[Sentence]) -> tuple[Sentence, ...]:
    """The sentences, with what the summary before said instead behind those that say otherwise.

    Of what is labelled, preferred or decided: `port: 9090 (before: 8080)`. The label of another number is a guess.
    """
    said = {(one.kind, one.key): one for each in before for one in _statements(each) if _is_labelled(one)}
    return tuple(_with_change(sentence, said) for sentence in sentences) if said else tuple(sentences)


def _with_change(sentence: Sentence, said: Mapping[Subject, Statement]) -> Sentence:
    if BEFORE in sentence.text:
        return sentence
    own = {(one.kind, one.key): one for one in _statements(sentence) if _is_labelled(one)}
    changed = (said[key].said for key, one in own.items() if key in said and said[key].value != one.value)
    was = next((_value(words) for words in changed if len(words) <= _LONGEST_BEFORE), "")
    if not was:
        return sentence
    kind = "change" if sentence.kind == "plain" else sentence.kind
    return replace(sentence, text=f"{sentence.text}{BEFORE}{was})", kind=kind)


def _is_labelled(one: Statement) -> bool:
    is_number = one.kind == "number" and one.key.endswith(" number")
    return bool(one.value) and (is_number or one.kind in ("identifier", "preference", "decision"))


def _value(words: str) -> str:
    """Of `port: 8080` the number."""
    return _LABEL.sub("", words).strip()


def _last_values(found: Iterable[Sequence[Statement]]) -> dict[Subject, str]:
    """Each subject with the value that was stated last."""
    return {(one.kind, one.key): one.value for statements in found for one in statements}


def _statements(sentence: Sentence) -> Sequence[Statement]:
    found = statements_in(sentence.label + sentence.text if sentence.speaker == TOOL else sentence.text)
    return [one for one in found if one.kind not in _TOLD_OTHERWISE]


@dataclass(frozen=True, slots=True)
class SentenceWeights:
    """What each property of a sentence adds to or takes from its value when sentences are chosen."""

    centrality: float
    coverage: float
    position: float
    speaker: float
    fullness: float
    redundancy: float
    importance: float
    frequency_exponent: float
    cost_exponent: float
    code_share: float
    facts: float


class Known(NamedTuple):
    """What was said before the first sentence is chosen; all in [0, 1]."""

    words: Floats
    """Of each content word the share of its weight that counts as covered."""
    similarity: Floats
    """Of each sentence the cosine to something said."""
    facts: Floats
    """Of each fact the share that counts as stated."""


def centroid(vectors: Vectors, weights: Floats) -> Vectors:
    """The weighted sum of rows at unit length; zeros where they cancel. Shape (dim,)."""
    # Not BLAS, whose last bits depend on the number of threads.
    total: Vectors = np.einsum("nd,n->d", vectors, weights.astype(np.float32))
    length = float(np.sqrt(np.einsum("d,d->", total, total)))
    return total / np.float32(length) if length > 0 else total


def select(
    candidates: CandidateSentences,
    weights: SentenceWeights,
    budget: float,
    stated: StatedFacts,
    known: Known,
) -> list[int]:
    """Choose sentence by sentence the one of highest value that fits into what is left of the budget.

    value = score / cost^cost_exponent, where score =
        centrality · cos(sentence, centroid of all, each weighing the square root of its words)
      + coverage · (weight of its content words not yet covered) / (highest such weight at the beginning)
      + position / (1 + place) + fullness · min(1, words / 8)
      + speaker, if nobody chosen so far speaks so
      − redundancy · highest cosine to a chosen sentence.
    times code_share, if it looks like code; to which is added importance · what its kind counts (`kinds.IMPORTANCE`)
    and facts · min(1, facts that nothing chosen states / 4), where one that has changed since counts as four.
    A content word weighs (sentences that hold it)^frequency_exponent. The choice ends where nothing fits or no score is
    above 0; ties go to the earlier sentence. What has no words is
    never chosen, nor what a chosen sentence says already, or nearly: 92 of 100 by edits, with the same numbers.

    Args:
        budget: tokens.
        stated: the facts of the sentences.
        known: what counts as said beforehand.
    Returns:
        rows, in the order of choice.
    Source: ours; greedy coverage with a redundancy penalty after Carbonell and Goldstein, "The Use of MMR", SIGIR 1998.
    """
    c = candidates
    n = len(c.costs)
    middle = centroid(c.vectors, np.sqrt(c.word_counts))
    word_weights = c.word_uses**weights.frequency_exponent
    uncovered = word_weights * (1 - known.words)
    highest = np.bincount(c.word_rows, word_weights[c.word_ids], n).max(initial=0)
    fixed = (
        weights.centrality * np.einsum("nd,d->n", c.vectors, middle).astype(np.float64)
        + weights.position / (1 + c.places)
        + weights.fullness * np.minimum(1, c.word_counts / _FULL_WORDS)
    )
    unstated = np.where(stated.is_changed, _MANY_FACTS, 1 - known.facts)
    is_open = c.word_counts > 0
    has_turn, has_speaker, has_hour = (np.zeros(ids.max() + 1, bool) for ids in (c.turns, c.speakers, c.hours))
    similarity = known.similarity
    chosen: list[int] = []
    left = budget
    while True:
        gains = np.bincount(c.word_rows, uncovered[c.word_ids], n) / highest if highest else np.zeros(n)
        in_turn = has_turn[c.turns]
        scores = fixed + weights.coverage * gains + weights.speaker * ~has_speaker[c.speakers]
        scores = np.where(c.is_prose, 1, weights.code_share) * (scores - weights.redundancy * similarity)
        new_facts = np.bincount(stated.rows, unstated[stated.ids], n)
        scores += weights.importance * c.importance + weights.facts * np.minimum(1, new_facts / _MANY_FACTS)
        costs = c.costs + np.where(in_turn, 0, c.turn_costs) + np.where(has_hour[c.hours], 0, c.hour_costs)
        values = np.round(scores / np.maximum(costs, 1) ** weights.cost_exponent, _DECIMALS)
        fits = is_open & (costs <= left) & (scores > 0)
        if not fits.any():
            return chosen
        row = int(np.argmax(np.where(fits, values, -np.inf)))
        chosen.append(row)
        left -= costs[row]
        is_open &= (c.texts != c.texts[row]) & ~_nearly(c, row, is_open)
        has_turn[c.turns[row]] = has_speaker[c.speakers[row]] = has_hour[c.hours[row]] = True
        uncovered[c.word_ids[c.word_rows == row]] = 0
        unstated[stated.ids[stated.rows == row]] = 0
        similarity = np.maximum(similarity, np.einsum("nd,d->n", c.vectors, c.vectors[row]))


def _nearly(candidates: CandidateSentences, row: int, is_open: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Which open sentences say nearly what one says, with the same numbers."""
    said = candidates.said
    found = np.zeros(len(said), bool)
    if len(said[row]) < _LEAST_COMPARED:
        return found
    others = np.flatnonzero(is_open)
    scores = process.cdist([said[row]], [said[i] for i in others], scorer=fuzz.ratio, score_cutoff=_NEAR)[0]
    for other in others[scores > 0]:
        found[other] = _NUMBERS.findall(said[other]) == _NUMBERS.findall(said[row])
    return found


def representation(candidates: CandidateSentences, weights: SentenceWeights, chosen: list[int]) -> float:
    """Say how well rows stand for all: max(0, cosine of the two centroids) · share of the content words' weight.

    In [0, 1]; 1 where all rows are chosen.
    """
    c = candidates
    if len(chosen) == len(c.costs):
        return 1.0
    importance = np.sqrt(c.word_counts)
    cosine = float(np.einsum("d,d->", centroid(c.vectors[chosen], importance[chosen]), centroid(c.vectors, importance)))
    word_weights = c.word_uses**weights.frequency_exponent
    is_covered = np.zeros(len(word_weights), bool)
    is_covered[c.word_ids[np.isin(c.word_rows, chosen)]] = True
    total = float(word_weights.sum())
    share = float(word_weights[is_covered].sum()) / total if total else 1.0
    return round(min(max(cosine, 0.0), 1.0) * share, _DECIMALS)
