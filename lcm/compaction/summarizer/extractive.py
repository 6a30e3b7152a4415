"""Summaries made of their source's own sentences or turns: no model but an embedder's, and the same every time."""

import itertools
import math
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from rapidfuzz import fuzz, process

from lcm.checks import check_range
from lcm.compaction.facts.done import BEFORE, file_operations, files_line
from lcm.compaction.facts.finding import statements_in
from lcm.compaction.facts.reading import Kind, Statement
from lcm.compaction.quality import clamped, cosine
from lcm.compaction.summarizer.chain import has_words
from lcm.compaction.summarizer.footer import FOOTER, NOTHING_NAMED, footer, names
from lcm.compaction.summarizer.passages import (
    FURTHER,
    IMPORTANCE,
    TOOL,
    Passages,
    Sentence,
    content_words,
    read_source,
)
from lcm.errors import LcmError, ModelError, UnrecordedReplyError
from lcm.javascript import utf16_length
from lcm.protocols.models import Embedder, TokenEstimator, Vectors
from lcm.records.summary import SummaryRequest, SummaryResult

_METHOD = "extractive"
_READ_CHARACTERS = 1000  # of a sentence, by the embedder: beyond stand logs and encoded files
_LEAST_SHARE_FOR_SENTENCES = 0.5  # of the length aimed at
_FILES_SHARE = 0.3
_WORDS_TOUCH = re.compile(r"([。！？｡．」』）】]) ")  # CJK sentences follow each other without a space
_MARKS = re.compile(r"[^\w.]+|\.(?!\w)")
_FIGURES = re.compile(r"\d+(?:[.,]\d+)*")
_NUMBERS = re.compile(r"\d+")
_LABEL = re.compile(r"^[\w.-]+[\"'`*]*\s*(?:=|:|\bis(?: now)?|\bwas)\s*(?=[\"'`*\d+-])")
_TOLD_OTHERWISE: tuple[Kind, ...] = ("name", "question", "rule")
"""A footer names names; what rules and questions are worth is in `IMPORTANCE`."""
_LONGEST_BEFORE = 80  # characters: a longer one would be a sentence of its own
_DECIMALS = 6  # float32 sums differ below them from machine to machine: a tie must stay one
_FULL_WORDS = 8  # from so many words on a sentence is as full as any
_MANY_FACTS = 4  # from so many on a sentence states as much as any
_NEAR = 92  # of 100 by edits
_LEAST_COMPARED = 24  # characters: shorter ones differ too much by a letter
_Floats = npt.NDArray[np.float64]
_Subject = tuple[Kind, str]


@dataclass(frozen=True, slots=True)
class Extractive:
    """The sentences of highest value within the length, in the order of the source: the rule is `_Pool.select`.

    A line holds the sentences of one turn, with its speaker; the first of each hour has its time before it. Then
    follow what was done to files, and what the source holds besides; both count towards the length, and are left out
    where sentences would have less than half of it, or where a rule would be lost for them though all rules fit; times
    give way to rules likewise. The length aimed at is `target_tokens`, below the source's own, and no summary is longer
    than its source. A sentence that is longer than that is cut after a word.

    What the previous summary says counts less; where a sentence gives another value than it, that one follows:
    `port: 9090 (before: 8080)`. confidence = max(0, cos(centroid of the chosen sentences, centroid of
    all)) · share of the content words' weight that the chosen hold.

    Source: ours; after Radev et al., "Centroid-based summarization of multiple documents", 2004.
    """

    embedder: Embedder
    token_estimator: TokenEstimator
    file_operations: bool = True
    """Add the line `Files: …`."""
    footer: bool = True
    """Add the last line `Expand for details about: …`."""
    footer_share: float = 0.3
    """Of the length, what the last line may take; it and the line of files together take at most half."""
    centrality: float = 1.0
    coverage: float = 1.0
    position: float = 0.5
    speaker: float = 0.8
    fullness: float = 0.4
    redundancy: float = 0.2
    facts: float = 0.5
    """For numbers, dates, outcomes and files that a sentence states and nothing chosen does, most for four or more."""
    importance: float = 1.0
    """What a sentence's kind counts: rules and instructions of a user, decisions, open questions, errors, changes."""
    frequency_exponent: float = 0.8
    """A content word weighs (sentences that hold it) ** this."""
    cost_exponent: float = 0.3
    """A sentence's score is divided by tokens ** this: 0 ignores its length, 1 counts by the token."""
    code_share: float = 0.2
    """What the score of a line that looks like code counts beside that of prose."""
    previous_share: float = 0.5
    """How much of what the previous summary says counts as said: 0 = nothing, 1 = all."""
    aggressive_share: float = 0.6
    """Of the length aimed at, when the first answer was too long."""

    def __post_init__(self) -> None:
        weights = ("centrality", "coverage", "position", "speaker", "fullness", "redundancy", "facts", "importance")
        check_range(self, *weights, "frequency_exponent", "cost_exponent", ge=0)
        check_range(self, "footer_share", "code_share", "previous_share", ge=0, le=1)
        check_range(self, "aggressive_share", gt=0, le=1)

    def summarize(self, requests: Sequence[SummaryRequest], *, incidents: Counter[str]) -> list[SummaryResult]:
        before = [read_source(request.previous or "").sentences for request in requests]
        sources = [
            replace(source, sentences=with_changes(source.sentences, previous))
            for request, previous in zip(requests, before, strict=True)
            for source in [read_source(request.text, previous)]
        ]
        read = [
            [sentence.text[:_READ_CHARACTERS] for sentence in (*source.sentences, *previous)]
            for source, previous in zip(sources, before, strict=True)
        ]
        rows = {text: row for row, text in enumerate(dict.fromkeys(itertools.chain.from_iterable(read)))}
        vectors = self.embedder.embed(list(rows), "document") if rows else np.zeros((0, 1), np.float32)
        return [
            self._summary(request, source, previous, vectors[[rows[text] for text in texts]])
            for request, source, previous, texts in zip(requests, sources, before, read, strict=True)
        ]

    def _summary(
        self, request: SummaryRequest, source: Passages, previous: Sequence[Sentence], vectors: Vectors
    ) -> SummaryResult:
        """Summarise one source; the vectors are those of its sentences, then those of the previous summary's."""
        if not source.sentences:
            failure = LcmError("nothing to select from: the text holds no sentence")
            return SummaryResult("", 0.0, _METHOD, failure=failure)
        source_tokens, source_units = self._tokens(request.text), utf16_length(request.text)
        length = min(request.target_tokens, source_tokens - 1)
        budget = max(1, math.floor(length * self.aggressive_share) if request.is_aggressive else length)
        source = self._with_room_for_rules(source, budget)
        pool = _Pool(self, source.sentences, previous, vectors, source_tokens / max(1, source_units))
        must = pool.rules_within(budget)
        for files, footer_tokens in self._extras(request.text, budget):
            room = budget - footer_tokens - self._tokens(files)
            has_extras = bool(files or footer_tokens)
            if has_extras and room < _LEAST_SHARE_FOR_SENTENCES * budget:
                continue
            text, chosen = self._composed(source, pool.select(room), room, files, budget if footer_tokens else 0)
            spare = budget - self._tokens(text)
            if footer_tokens and spare > 0:  # there was less to name
                wider = self._composed(source, pool.select(room + spare), room + spare, files, budget)
                text, chosen = wider if self._tokens(wider[0]) <= budget else (text, chosen)
            is_short = self._tokens(text) <= budget and utf16_length(text) <= source_units
            if not has_extras or (must.issubset(chosen) and is_short):
                break
        return SummaryResult(text, pool.representation(chosen or [0]), _METHOD, self.embedder.name)

    def _with_room_for_rules(self, source: Passages, budget: int) -> Passages:
        """Without times, if the rules fit into the budget without them alone."""
        if not source.rules or self._tokens(_written(source.sentences, "rule")) < budget:
            return source
        untimed = Passages(tuple(replace(one, time="") for one in source.sentences), source.footers)
        return untimed if self._tokens(_written(untimed.sentences, "rule")) <= budget else source

    def _extras(self, source: str, budget: int) -> list[tuple[str, int]]:
        """The lines that follow the sentences, as text and as tokens kept free, the fullest choice first."""
        files, footer_tokens = "", 0
        if self.file_operations:
            share = math.floor(_FILES_SHARE * budget)
            files = "\n" + files_line(file_operations(source), share, self.token_estimator)
        if self.footer:
            most = math.floor((1 - _LEAST_SHARE_FOR_SENTENCES) * budget) - self._tokens(files)
            least = self._tokens(f"\n{FOOTER}{NOTHING_NAMED}")
            footer_tokens = max(least, min(most, math.floor(self.footer_share * budget)))
        return list(dict.fromkeys([(files, footer_tokens), (files, 0), ("", 0)]))

    def _composed(
        self, source: Passages, chosen: list[int], room: int, files: str, budget: int
    ) -> tuple[str, list[int]]:
        """A summary of chosen sentences, as far as they fit into `room` tokens, and which stand in it whole.

        Args:
            files: the line of files.
            budget: of the whole, up to which the last line names what is left out; 0 = there is none.
        """
        text = ""
        while chosen and self._tokens(text := _written([source.sentences[row] for row in sorted(chosen)])) > room:
            chosen = chosen[:-1]
        if not chosen:
            first = source.sentences[0]
            text = self._cut(first.label + first.text, room)
            text = text if len(text) > len(first.label) else self._cut(first.text, room)
        text += files
        if not budget:
            return text, chosen
        kept = set(chosen)
        left_out = [one for row, one in enumerate(source.sentences) if row not in kept and one.kind != "filler"]
        told = [(one.text.split(BEFORE)[0], one.is_prose) for one in left_out]
        dropped = [words for words, is_prose in told if is_prose] or [words for words, _ in told]
        named = names(words for words, _ in told)
        left = budget - self._tokens(text + "\n")
        return f"{text}\n{footer(dropped, named, text, source.footers, left, self.token_estimator)}", chosen

    def _cut(self, text: str, room: int) -> str:
        """As much of the beginning as `room` tokens hold, whole words where there is one; at least a character."""
        low, high = 1, len(text)
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self._tokens(text[:middle]) <= room else (low, middle - 1)
        if low == len(text) or text[low].isspace():
            return text[:low]
        return (text[:low].rsplit(maxsplit=1)[0] if len(text[:low].split()) > 1 else text[:low]).rstrip()

    def _tokens(self, text: str) -> int:
        return self.token_estimator.count([text])[0]


def _written(sentences: Iterable[Sentence], kind: str | None = None) -> str:
    """A line for each line of the source: before a turn's first its time, if its hour was not named before, and its
    speaker; before the others an indentation.

    Args:
        kind: of the sentences that are written; None = all are.
    """
    lines: list[str] = []
    hours = {""}
    told = (sentence for sentence in sentences if kind in (None, sentence.kind))
    for _, turn in itertools.groupby(told, key=lambda sentence: sentence.turn):
        said = list(turn)
        hint = "" if said[0].hour in hours else said[0].hint
        hours.add(said[0].hour)
        begin = hint + said[0].label
        for _, line in itertools.groupby(said, key=lambda sentence: sentence.place):
            lines.append(begin + _WORDS_TOUCH.sub(r"\1", " ".join(sentence.text for sentence in line)))
            begin = FURTHER
    return "\n".join(lines)


class _Pool:
    """The sentences of a source as numbers, each array of shape (n,) where nothing else is said."""

    def __init__(
        self,
        weights: Extractive,
        sentences: Sequence[Sentence],
        previous: Sequence[Sentence],
        vectors: Vectors,
        tokens_per_unit: float,
    ) -> None:
        """
        Args:
            weights: by which sentences are chosen.
            sentences: at least one, in the order of the source.
            previous: those of the summary before.
            vectors: of the sentences, then of those before.
            tokens_per_unit: what a UTF-16 unit of the source costs.
        """

        def costs(texts: Iterable[str]) -> _Floats:
            return np.array([utf16_length(text) for text in texts], np.float64) * tokens_per_unit

        n = len(sentences)
        self.weights = weights
        self.vectors = vectors[:n]
        self.places = np.array([sentence.place for sentence in sentences], np.int64)
        self.turns = _numbered(sentence.turn for sentence in sentences)
        self.speakers = _numbered(sentence.speaker for sentence in sentences)
        self.hours = _numbered(sentence.hour for sentence in sentences)
        self.texts = _numbered(map(_sameness, sentences))
        self.said = [sentence.text.casefold() for sentence in sentences]
        self.rules = [row for row, sentence in enumerate(sentences) if sentence.kind == "rule"]
        self.importance = np.array([IMPORTANCE[sentence.kind] for sentence in sentences], np.float64)
        self.is_prose = np.array([sentence.is_prose for sentence in sentences], bool)
        self.costs = costs(f"{sentence.text} " for sentence in sentences)
        self.turn_costs = costs(sentence.label for sentence in sentences)
        """Of the first sentence of a turn besides: its speaker."""
        self.hour_costs = costs(sentence.hint for sentence in sentences)
        """Of the first sentence of an hour besides: its time."""
        counted = [content_words(sentence.text) for sentence in sentences]
        self.word_counts = np.array([count for count, _ in counted], np.float64)
        numbers: dict[str, int] = {}
        ids = [numbers.setdefault(word, len(numbers)) for _, words in counted for word in words]
        self.word_ids = np.array(ids, np.int64)
        """Sentence `word_rows[i]` holds content word `word_ids[i]`, once."""
        self.word_rows = np.repeat(np.arange(n), [len(words) for _, words in counted])
        uses = np.bincount(self.word_ids, minlength=len(numbers)).astype(np.float64)
        self.word_weights = uses**weights.frequency_exponent
        """Shape (words,)."""
        self.stated = stated_facts(sentences, previous)
        share = weights.previous_share
        words_before = {word for sentence in previous for word in content_words(sentence.text)[1]}
        self.known_words = share * np.array([word in words_before for word in numbers], np.float64)
        self.known_facts = share * self.stated.is_known.astype(np.float64)
        similarity = np.zeros(n)
        for vector in vectors[n:]:
            similarity = np.maximum(similarity, np.einsum("nd,d->n", self.vectors, vector))
        self.similarity = share * similarity
        """The highest to what was said before, as far as that counts."""

    def select(self, budget: float) -> list[int]:
        """Choose sentence by sentence the one of highest value that fits into what is left of a budget of tokens.

        value = score / cost^cost_exponent, where score =
            centrality · cos(sentence, centroid of all, each weighing the square root of its words)
          + coverage · (weight of its content words not yet covered) / (highest such weight at the beginning)
          + position / (1 + place) + fullness · min(1, words / 8)
          + speaker, if nobody chosen so far speaks so
          − redundancy · highest cosine to a chosen sentence.
        times code_share, if it looks like code; to which is added importance · what its kind counts (`IMPORTANCE`) and
        facts · min(1, facts that nothing chosen states / 4), where one that has changed since counts as four. A content
        word weighs (sentences that hold it)^frequency_exponent. The choice ends where nothing fits or no score is above
        0; ties go to the earlier sentence. What has no words is never chosen, nor what a chosen sentence says already,
        or nearly: 92 of 100 by edits, with the same numbers.

        Returns:
            rows, in the order of choice.
        Source: ours; greedy coverage with a redundancy penalty after Carbonell and Goldstein, "The Use of MMR", SIGIR
        1998.
        """
        w, n, stated = self.weights, len(self.costs), self.stated
        uncovered = self.word_weights * (1 - self.known_words)
        highest = np.bincount(self.word_rows, self.word_weights[self.word_ids], n).max(initial=0)
        middle = _middle(self.vectors, np.sqrt(self.word_counts))
        fixed = (
            w.centrality * np.einsum("nd,d->n", self.vectors, middle).astype(np.float64)
            + w.position / (1 + self.places)
            + w.fullness * np.minimum(1, self.word_counts / _FULL_WORDS)
        )
        unstated = np.where(stated.is_changed, _MANY_FACTS, 1 - self.known_facts)
        is_open = self.word_counts > 0
        has_turn, has_speaker, has_hour = (
            np.zeros(ids.max() + 1, bool) for ids in (self.turns, self.speakers, self.hours)
        )
        similarity = self.similarity
        chosen: list[int] = []
        while True:
            gains = np.bincount(self.word_rows, uncovered[self.word_ids], n) / highest if highest else np.zeros(n)
            scores = fixed + w.coverage * gains + w.speaker * ~has_speaker[self.speakers]
            scores = np.where(self.is_prose, 1, w.code_share) * (scores - w.redundancy * similarity)
            new_facts = np.bincount(stated.rows, unstated[stated.ids], n)
            scores += w.importance * self.importance + w.facts * np.minimum(1, new_facts / _MANY_FACTS)
            turn_costs = np.where(has_turn[self.turns], 0, self.turn_costs)
            costs = self.costs + turn_costs + np.where(has_hour[self.hours], 0, self.hour_costs)
            values = np.round(scores / np.maximum(costs, 1) ** w.cost_exponent, _DECIMALS)
            fits = is_open & (costs <= budget) & (scores > 0)
            if not fits.any():
                return chosen
            row = int(np.argmax(np.where(fits, values, -np.inf)))
            chosen.append(row)
            budget -= costs[row]
            is_open &= (self.texts != self.texts[row]) & ~self._says_nearly(row, is_open)
            has_turn[self.turns[row]] = has_speaker[self.speakers[row]] = has_hour[self.hours[row]] = True
            uncovered[self.word_ids[self.word_rows == row]] = 0
            unstated[stated.ids[stated.rows == row]] = 0
            similarity = np.maximum(similarity, np.einsum("nd,d->n", self.vectors, self.vectors[row]))

    def _says_nearly(self, row: int, is_open: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Which open sentences say nearly what one says, with the same numbers."""
        found = np.zeros(len(self.said), bool)
        if len(self.said[row]) < _LEAST_COMPARED:
            return found
        others = np.flatnonzero(is_open)
        told = [self.said[other] for other in others]
        scores = process.cdist([self.said[row]], told, scorer=fuzz.ratio, score_cutoff=_NEAR)[0]
        for other in others[scores > 0]:
            found[other] = _NUMBERS.findall(self.said[other]) == _NUMBERS.findall(self.said[row])
        return found

    def rules_within(self, budget: int) -> set[int]:
        """The rules for which the lines below the sentences must make room: none where there are more than fit."""
        if not self.rules or self.costs[self.rules].sum() > budget:
            return set()
        return set(self.rules).intersection(self.select(budget))

    def representation(self, chosen: list[int]) -> float:
        """Say how well rows stand for all: max(0, cosine of the two centroids) · share of the content words' weight.

        In [0, 1]; 1 where all rows are chosen.
        """
        if len(chosen) == len(self.costs):
            return 1.0
        roots = np.sqrt(self.word_counts)
        middles = _middle(self.vectors[chosen], roots[chosen]), _middle(self.vectors, roots)
        likeness = float(np.einsum("d,d->", *middles))
        is_covered = np.zeros(len(self.word_weights), bool)
        is_covered[self.word_ids[np.isin(self.word_rows, chosen)]] = True
        total = float(self.word_weights.sum())
        share = float(self.word_weights[is_covered].sum()) / total if total else 1.0
        return round(min(max(likeness, 0.0), 1.0) * share, _DECIMALS)


def _middle(vectors: Vectors, weights: _Floats) -> Vectors:
    """The weighted sum of rows at unit length; zeros where they cancel. Shape (dim,)."""
    # Not BLAS, whose last bits depend on the number of threads.
    total: Vectors = np.einsum("nd,n->d", vectors, weights.astype(np.float32))
    length = float(np.sqrt(np.einsum("d,d->", total, total)))
    return total / np.float32(length) if length > 0 else total


def _sameness(sentence: Sentence) -> str:
    """Equal where two sentences say the same but for case and punctuation; lines that are no prose, but for numbers."""
    bare = _MARKS.sub(" ", sentence.text.casefold()).strip() or sentence.text
    return bare if sentence.is_prose else _FIGURES.sub("0", bare)


def _numbered(values: Iterable[Hashable]) -> npt.NDArray[np.int64]:
    """Numbers from 0 without gaps, equal where values are."""
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(value, len(numbers)) for value in values], np.int64)


class StatedFacts(NamedTuple):
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
    """Find the facts of sentences, in order, beside those of the summary before."""
    found = [_statements(sentence) for sentence in sentences]
    last = _last_values(found)
    places = {subject: place for place, subject in enumerate(last)}
    pairs = [
        (row, place)
        for row, statements in enumerate(found)
        for place in sorted({places[one.kind, one.key] for one in statements if last[one.kind, one.key] == one.value})
    ]
    known = _last_values(map(_statements, before))
    was = [(known.get(subject), value) for subject, value in last.items()]
    rows, ids = np.array(pairs, np.int64).reshape(-1, 2).T
    is_known = np.array([old == value for old, value in was], bool)
    return StatedFacts(rows, ids, is_known, np.array([old not in (None, value) for old, value in was], bool))


def _last_values(found: Iterable[Sequence[Statement]]) -> dict[_Subject, str]:
    return {(one.kind, one.key): one.value for statements in found for one in statements}


def _statements(sentence: Sentence) -> Sequence[Statement]:
    found = statements_in(sentence.label + sentence.text if sentence.speaker == TOOL else sentence.text)
    return [one for one in found if one.kind not in _TOLD_OTHERWISE]


def with_changes(sentences: Sequence[Sentence], before: Sequence[Sentence]) -> tuple[Sentence, ...]:
    """The sentences, with what the summary before said instead behind those that say otherwise.

    Of what is labelled, preferred or decided: `port: 9090 (before: 8080)`. The label of another number is a guess.
    """
    said = {subject: one for sentence in before for subject, one in _labelled(sentence).items()}
    return tuple(_with_change(sentence, said) for sentence in sentences) if said else tuple(sentences)


def _with_change(sentence: Sentence, said: Mapping[_Subject, Statement]) -> Sentence:
    if BEFORE in sentence.text:
        return sentence
    own = _labelled(sentence).items()
    changed = (said[subject].said for subject, one in own if subject in said and said[subject].value != one.value)
    was = next((_LABEL.sub("", words).strip() for words in changed if len(words) <= _LONGEST_BEFORE), "")
    if not was:
        return sentence
    kind = "change" if sentence.kind == "plain" else sentence.kind
    return replace(sentence, text=f"{sentence.text}{BEFORE}{was})", kind=kind)


def _labelled(sentence: Sentence) -> dict[_Subject, Statement]:
    kinds = ("identifier", "preference", "decision")
    return {
        (one.kind, one.key): one
        for one in _statements(sentence)
        if one.value and (one.kind in kinds or (one.kind == "number" and one.key.endswith(" number")))
    }


@dataclass(frozen=True, slots=True)
class Centroid:
    """The ceil(n · density) turns, at least one, with the highest cosine to the mean of all n, in their order, with a
    space between them; ties go to the earlier one. confidence = their mean cosine, clamped to [0, 1].

    n are the turns with a letter or digit; the others, such as calls of tools, say nothing that could be chosen. A
    request without turns is taken line by line. The length aimed at, the previous summary and `is_aggressive` are
    not read: what asks for less asks for a lower density. What does not fit into one window of the embedder is not
    looked at.

    Source: libravdb memory 1.3.5, mathematical reference, section 5; details 1.4.4.
    """

    embedder: Embedder
    density: float = 0.4
    """Of a request that does not say it."""
    min_turns: int = 1
    """Fewer are not summarised."""

    def __post_init__(self) -> None:
        check_range(self, "density", gt=0, le=1)
        check_range(self, "min_turns", ge=1)

    def summarize(self, requests: Sequence[SummaryRequest], *, incidents: Counter[str]) -> list[SummaryResult]:
        turns = [one.turns or [line for line in one.text.splitlines() if line.strip()] for one in requests]
        worded = [[text for text in given if has_words(text)] for given in turns]
        rows = {text: row for row, text in enumerate(dict.fromkeys(itertools.chain.from_iterable(worded)))}
        try:
            vectors = self.embedder.embed(list(rows), "document") if rows else np.zeros((0, 1), np.float32)
        except UnrecordedReplyError:
            raise
        except ModelError as failure:
            return [self._failed(failure)] * len(requests)
        return [
            self._failed(LcmError(f"{self.min_turns} turns are needed for a summary, got {len(given)}"))
            if len(given) < self.min_turns
            else self._failed(LcmError(f"none of {len(given)} turns has words"))
            if not said
            else self._summary(said, vectors[[rows[text] for text in said]], request.density)
            for request, given, said in zip(requests, turns, worded, strict=True)
        ]

    def chosen(self, vectors: Vectors, asked: float | None = None) -> dict[int, float]:
        """The places of the turns that a summary is made of, in order, with their cosines to the mean.

        Args:
            vectors: shape (n, dim), n >= 1; row i embeds turn i.
            asked: the share to choose; outside (0, 1] or None = as set.
        """
        density = asked if asked is not None and 0 < asked <= 1 else self.density
        mean = vectors.astype(np.float32).mean(axis=0, dtype=np.float32)
        scores = [cosine(vector, mean) for vector in vectors]
        best = sorted(range(len(scores)), key=lambda place: -scores[place])
        return {place: scores[place] for place in sorted(best[: max(1, math.ceil(len(scores) * density))])}

    def _summary(self, turns: Sequence[str], vectors: Vectors, asked: float | None) -> SummaryResult:
        scores = self.chosen(vectors, asked)
        text = " ".join(turns[place].strip() for place in scores)
        confidence = clamped(sum(scores.values()) / len(scores))
        embedded = dict(zip(turns, vectors, strict=True))
        return SummaryResult(
            text, confidence, _METHOD, self.embedder.name, tokens=len(text.split()), turn_vectors=embedded
        )

    def _failed(self, failure: LcmError) -> SummaryResult:
        return SummaryResult("", 0.0, _METHOD, self.embedder.name, failure)
