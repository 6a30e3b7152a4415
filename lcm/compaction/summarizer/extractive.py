"""A summary made of sentences of its source: no model but an embedder's, and the same every time."""

import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from lcm.checks import check_range
from lcm.compaction.facts.done import BEFORE, file_operations, files_line
from lcm.compaction.summarizer.footer import FOOTER, NOTHING_NAMED, footer, names
from lcm.compaction.summarizer.passages import FURTHER, Passages, Sentence, read_source
from lcm.compaction.summarizer.selection import (
    CandidateSentences,
    Known,
    SentenceWeights,
    StatedFacts,
    candidates,
    content_words,
    representation,
    select,
    stated_facts,
    with_changes,
)
from lcm.errors import LcmError
from lcm.javascript import utf16_length
from lcm.protocols.models import Embedder, TokenEstimator, Vectors
from lcm.records.summary import SummaryRequest, SummaryResult

_METHOD = "extractive"
_READ_CHARACTERS = 1000  # of a sentence, by the embedder: beyond stand logs and encoded files
_LEAST_SHARE_FOR_SENTENCES = 0.5  # of the length aimed at
_FILES_SHARE = 0.3
_WORDS_TOUCH = re.compile(r"([。！？｡．」』）】]) ")  # CJK sentences follow each other without a space


@dataclass(frozen=True, slots=True)
class Extractive:
    """The sentences of highest value within the length, in the order of the source: the rule is `selection.select`.

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
        check_range(
            self,
            "centrality",
            "coverage",
            "position",
            "speaker",
            "fullness",
            "redundancy",
            "facts",
            "importance",
            "frequency_exponent",
            "cost_exponent",
            ge=0,
        )
        check_range(self, "footer_share", "code_share", "previous_share", ge=0, le=1)
        check_range(self, "aggressive_share", gt=0, le=1)

    def summarize(self, requests: Sequence[SummaryRequest], *, incidents: Counter[str]) -> list[SummaryResult]:
        before = [read_source(request.previous or "").sentences for request in requests]
        whole = [read_source(request.text, request.previous or "") for request in requests]
        sources = [
            replace(source, sentences=with_changes(source.sentences, previous))
            for source, previous in zip(whole, before, strict=True)
        ]
        read = [
            [sentence.text[:_READ_CHARACTERS] for sentence in (*source.sentences, *previous)]
            for source, previous in zip(sources, before, strict=True)
        ]
        distinct = {text: row for row, text in enumerate(dict.fromkeys(text for texts in read for text in texts))}
        vectors = self.embedder.embed(list(distinct), "document") if distinct else np.zeros((0, 1), np.float32)
        return [
            self._summary(request, source, previous, vectors[[distinct[text] for text in texts]])
            for request, source, previous, texts in zip(requests, sources, before, read, strict=True)
        ]

    def _summary(
        self, request: SummaryRequest, source: Passages, previous: Sequence[Sentence], vectors: Vectors
    ) -> SummaryResult:
        """Summarise one source; the vectors are those of its sentences, then those of the previous summary's."""
        if not source.sentences:
            failure = LcmError("nothing to select from: the text holds no sentence")
            return SummaryResult("", 0.0, _METHOD, failure=failure)
        source_tokens = self._tokens(request.text)
        length = min(request.target_tokens, source_tokens - 1)
        budget = max(1, math.floor(length * self.aggressive_share) if request.is_aggressive else length)
        source = self._with_room_for_rules(source, budget)
        own, said = np.split(vectors, [len(source.sentences)])
        pool = candidates(source.sentences, own, source_tokens / max(1, utf16_length(request.text)))
        stated = stated_facts(source.sentences, previous)
        known = self._known(pool, stated, previous, said)

        def choose(room: int) -> list[int]:
            return select(pool, self._weights(), room, stated, known)

        must = self._rules(source, pool, choose, budget)
        for files, footer_tokens in self._extras(request.text, budget):
            room = budget - footer_tokens - self._tokens(files)
            has_extras = bool(files or footer_tokens)
            if has_extras and room < _LEAST_SHARE_FOR_SENTENCES * budget:
                continue
            text, chosen = self._composed(source, choose(room), room, files, budget if footer_tokens else 0)
            spare = budget - self._tokens(text)
            if footer_tokens and spare > 0:  # there was less to name
                wider = self._composed(source, choose(room + spare), room + spare, files, budget)
                text, chosen = wider if self._tokens(wider[0]) <= budget else (text, chosen)
            if has_extras and not must.issubset(chosen):
                continue
            if not has_extras or (self._tokens(text) <= budget and utf16_length(text) <= utf16_length(request.text)):
                break
        return SummaryResult(text, representation(pool, self._weights(), chosen or [0]), _METHOD, self.embedder.name)

    def _with_room_for_rules(self, source: Passages, budget: int) -> Passages:
        """Without times, if the rules fit into the budget without them alone."""
        rules = [sentence for sentence in source.sentences if sentence.kind == "rule"]
        if not rules or self._tokens(_written(rules)) < budget:
            return source
        untimed = Passages(tuple(replace(one, time="") for one in source.sentences), source.footers)
        fits = self._tokens(_written(one for one in untimed.sentences if one.kind == "rule")) <= budget
        return untimed if fits else source

    def _rules(
        self, source: Passages, pool: CandidateSentences, choose: Callable[[int], list[int]], budget: int
    ) -> set[int]:
        """The rules for which the lines below the sentences must make room: none where there are more than fit."""
        rules = [row for row, sentence in enumerate(source.sentences) if sentence.kind == "rule"]
        if not rules or pool.costs[rules].sum() > budget:
            return set()
        return set(rules).intersection(choose(budget))

    def _composed(
        self, source: Passages, chosen: list[int], room: int, files: str, budget: int
    ) -> tuple[str, list[int]]:
        """A summary of chosen sentences, as far as they fit into `room` tokens, and which stand in it whole.

        Args:
            files: the line of files.
            budget: of the whole, up to which the last line names what is left out; 0 = there is none.
        """
        chosen, body = self._body(source.sentences, chosen, room)
        text = body + files
        if not budget:
            return text, chosen
        kept = set(chosen)
        left_out = [s for row, s in enumerate(source.sentences) if row not in kept and s.kind != "filler"]
        told = [(each.text.split(BEFORE)[0], each.is_prose) for each in left_out]
        dropped = [words for words, is_prose in told if is_prose] or [words for words, _ in told]
        named = names(words for words, _ in told)
        left = budget - self._tokens(text + "\n")
        line = footer(dropped, named, text, source.footers, left, self.token_estimator)
        return f"{text}\n{line}", chosen

    def _extras(self, source: str, budget: int) -> list[tuple[str, int]]:
        """The lines that follow the sentences, as text and as tokens kept free, the fullest choice first."""
        least_footer = self._tokens(f"\n{FOOTER}{NOTHING_NAMED}")
        files, footer_tokens = "", 0
        if self.file_operations:
            share = math.floor(_FILES_SHARE * budget)
            files = "\n" + files_line(file_operations(source), share, self.token_estimator)
        if self.footer:
            most = math.floor((1 - _LEAST_SHARE_FOR_SENTENCES) * budget) - self._tokens(files)
            footer_tokens = max(least_footer, min(most, math.floor(self.footer_share * budget)))
        return list(dict.fromkeys([(files, footer_tokens), (files, 0), ("", 0)]))

    def _known(
        self, pool: CandidateSentences, stated: StatedFacts, previous: Sequence[Sentence], said: Vectors
    ) -> Known:
        """What the previous summary says of it, as far as that counts."""
        words = {word for sentence in previous for word in content_words(sentence.text)[1]}
        known = np.array([word in words for word in pool.words], np.float64)
        similarity = np.zeros(len(pool.costs))
        for row in said:
            similarity = np.maximum(similarity, np.einsum("nd,d->n", pool.vectors, row))
        share = self.previous_share
        return Known(share * known, share * similarity, share * stated.is_known.astype(np.float64))

    def _body(self, sentences: Sequence[Sentence], chosen: list[int], room: int) -> tuple[list[int], str]:
        """Write the chosen sentences; those chosen last are left out while they take more than `room` tokens.

        Returns:
            The sentences that stand there whole, none where only the beginning of the first one fits; and the text.
        """
        while chosen:
            text = _written([sentences[row] for row in sorted(chosen)])
            if self._tokens(text) <= room:
                return chosen, text
            chosen = chosen[:-1]
        first = sentences[0]
        with_speaker = self._cut(first.label + first.text, room)
        return [], with_speaker if len(with_speaker) > len(first.label) else self._cut(first.text, room)

    def _cut(self, text: str, room: int) -> str:
        """As much of the beginning as `room` tokens hold, whole words where there is one; at least a character."""
        low, high = 1, len(text)
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self._tokens(text[:middle]) <= room else (low, middle - 1)
        if low == len(text) or text[low].isspace():
            return text[:low]
        return (text[:low].rsplit(maxsplit=1)[0] if len(text[:low].split()) > 1 else text[:low]).rstrip()

    def _weights(self) -> SentenceWeights:
        return SentenceWeights(**{each.name: getattr(self, each.name) for each in fields(SentenceWeights)})

    def _tokens(self, text: str) -> int:
        return self.token_estimator.count([text])[0]


def _written(sentences: Iterable[Sentence]) -> str:
    """A line for each line of the source: before a turn's first its time, if its hour was not named before, and its
    speaker; before the others an indentation."""
    lines: list[str] = []
    hours = {""}
    for _, turn in itertools.groupby(sentences, key=lambda sentence: sentence.turn):
        said = list(turn)
        hint = "" if said[0].hour in hours else said[0].hint
        hours.add(said[0].hour)
        begin = hint + said[0].label
        for _, line in itertools.groupby(said, key=lambda sentence: sentence.place):
            lines.append(begin + _WORDS_TOUCH.sub(r"\1", " ".join(sentence.text for sentence in line)))
            begin = FURTHER
    return "\n".join(lines)
