"""A summary made of sentences of its source: no model but an embedder's, and the same every time."""

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields

import numpy as np

from lcm.checks import check_range
from lcm.compaction.summarizer.candidates import CandidateSentences, Floats, candidates, content_words
from lcm.compaction.summarizer.file_operations import file_operations, files_line
from lcm.compaction.summarizer.footer import FOOTER, NOTHING_NAMED, footer
from lcm.compaction.summarizer.passages import FURTHER, Passages, Sentence, read_source
from lcm.compaction.summarizer.selection import SentenceWeights, representation, select
from lcm.errors import LcmError
from lcm.javascript import utf16_length
from lcm.protocols.models import Embedder, TokenEstimator, Vectors
from lcm.records.summary import SummaryRequest, SummaryResult

_METHOD = "extractive"
_READ_CHARACTERS = 1000  # of a sentence, by the embedder: beyond stand logs and encoded files
_LEAST_SHARE_FOR_SENTENCES = 0.5  # of the length aimed at
_FILES_SHARE = 0.3
_FOOTER_SHARE = 0.15
_WORDS_TOUCH = re.compile(r"([。！？｡．」』）】]) ")  # CJK sentences follow each other without a space


@dataclass(frozen=True, slots=True)
class Extractive:
    """The sentences of highest value within the length, in the order of the source: the rule is `selection.select`.

    A line holds the sentences of one turn, with its speaker; the first of each hour has its time before it. Then
    follow what was done to files, and what the source holds besides; both count towards the length, and are left out
    where sentences would have less than half of it. The length aimed at is `target_tokens`, below the source's own, and
    no summary is longer than its source. A sentence that is longer than that is cut after a word.

    What the previous summary says counts less. confidence = max(0, cos(centroid of the chosen sentences, centroid of
    all)) · share of the content words' weight that the chosen hold.

    Source: ours; after Radev et al., "Centroid-based summarization of multiple documents", 2004.
    """

    embedder: Embedder
    token_estimator: TokenEstimator
    file_operations: bool = True
    """Add the line `Files: …`."""
    footer: bool = True
    """Add the last line `Expand for details about: …`."""
    centrality: float = 1.0
    coverage: float = 1.0
    position: float = 0.5
    speaker: float = 0.8
    fullness: float = 0.4
    redundancy: float = 0.2
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
            "importance",
            "frequency_exponent",
            "cost_exponent",
            ge=0,
        )
        check_range(self, "code_share", "previous_share", ge=0, le=1)
        check_range(self, "aggressive_share", gt=0, le=1)

    def summarize(self, requests: Sequence[SummaryRequest], *, incidents: Counter[str]) -> list[SummaryResult]:
        sources = [read_source(request.text, request.previous or "") for request in requests]
        before = [read_source(request.previous or "").sentences for request in requests]
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
        own, said = np.split(vectors, [len(source.sentences)])
        pool = candidates(source.sentences, own, source_tokens / max(1, utf16_length(request.text)))
        known_words, known_similarity = self._known(pool, previous, said)
        for files, footer_tokens in self._extras(request.text, budget):
            room = budget - footer_tokens - self._tokens(files)
            has_extras = bool(files or footer_tokens)
            if has_extras and room < _LEAST_SHARE_FOR_SENTENCES * budget:
                continue
            chosen = select(pool, self._weights(), room, known_words, known_similarity)
            chosen, body = self._body(source.sentences, chosen, room)
            text = body + files
            if footer_tokens:
                kept = set(chosen)
                left_out = [s for row, s in enumerate(source.sentences) if row not in kept and s.kind != "filler"]
                dropped = [each.text for each in left_out if each.is_prose] or [each.text for each in left_out]
                text += "\n" + footer(dropped, text, source.footers, footer_tokens, self.token_estimator)
            if not has_extras or (self._tokens(text) <= budget and utf16_length(text) <= utf16_length(request.text)):
                break
        return SummaryResult(text, representation(pool, self._weights(), chosen), _METHOD, self.embedder.name)

    def _extras(self, source: str, budget: int) -> list[tuple[str, int]]:
        """The lines that follow the sentences, as text and as tokens kept free, the fullest choice first."""
        least_footer = self._tokens(f"\n{FOOTER}{NOTHING_NAMED}")
        files, footer_tokens = "", 0
        if self.file_operations:
            share = math.floor(_FILES_SHARE * budget)
            files = "\n" + files_line(file_operations(source), share, self.token_estimator)
        if self.footer:
            footer_tokens = max(least_footer, math.floor(_FOOTER_SHARE * budget))
        return list(dict.fromkeys([(files, footer_tokens), (files, 0), ("", 0)]))

    def _known(self, pool: CandidateSentences, previous: Sequence[Sentence], said: Vectors) -> tuple[Floats, Floats]:
        """How much of each content word, and of each sentence, the previous summary says."""
        words = {word for sentence in previous for word in content_words(sentence.text)[1]}
        known = np.array([word in words for word in pool.words], np.float64)
        similarity = np.zeros(len(pool.costs))
        for row in said:
            similarity = np.maximum(similarity, np.einsum("nd,d->n", pool.vectors, row))
        return self.previous_share * known, self.previous_share * similarity

    def _body(self, sentences: Sequence[Sentence], chosen: list[int], room: int) -> tuple[list[int], str]:
        """Write the chosen sentences; those chosen last are left out while they take more than `room` tokens."""
        while chosen:
            text = _written([sentences[row] for row in sorted(chosen)])
            if self._tokens(text) <= room:
                return chosen, text
            chosen = chosen[:-1]
        first = sentences[0]
        with_speaker = self._cut(first.label + first.text, room)
        return [0], with_speaker if len(with_speaker) > len(first.label) else self._cut(first.text, room)

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
