"""An answer in the very sentences of what was said: no model, the same every time.

Source: ours.
"""

import logging
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lcm.checks import check_range
from lcm.compaction.summarizer.sentences import sentences
from lcm.context.answerer.answerer import Answer, GrantedReader, Question
from lcm.context.recall.describe import DescribedSummary
from lcm.context.recall.expansion import ReachedMessage
from lcm.errors import GrantError
from lcm.protocols.models import TokenEstimator
from lcm.retrieval.text_index.words import load_stop_words, query_words, split_words, windows

_log = logging.getLogger(__name__)
_STOP_WORDS = load_stop_words("english")
_CJK_WINDOW = 2
_QUESTION_MARKS = ("?", "？", "؟")


class ReadText(NamedTuple):
    """A text that the answerer has read: a summary or a message."""

    summary_id: str
    """The summary, or the leaf that stands for the message; empty for a message in no summary."""
    number: int | None
    """The integer key of a message."""
    text: str
    tokens: int


class _Sentence(NamedTuple):
    source: int
    place: int
    text: str
    words: Counter[str]


@dataclass(frozen=True, slots=True)
class Extractive:
    """Reads from the summaries that speak most of the question down to their messages, and quotes what is nearest.

    The next summary read is the one whose words cover most of the question; ties in the order found. Sentences are
    ranked by BM25 over all that was read, and told in the order in which they were read, each with its source. A
    question is no answer: it is told only where no statement speaks of what is asked.
    """

    max_sentences: int = 12
    k1: float = 1.2
    """Of BM25: how soon repetition stops counting."""
    b: float = 0.75
    """Of BM25: how much long sentences are held back."""

    def __post_init__(self) -> None:
        check_range(self, "max_sentences", ge=1)
        check_range(self, "k1", ge=0)
        check_range(self, "b", ge=0, le=1)

    def answer(self, question: Question, reader: GrantedReader) -> Answer:
        wanted = set(_words(question.prompt)) or set(_words(question.prompt, drops=False))
        sources, read, is_truncated = _read(question, wanted, reader)
        best = self._best([source.text for source in sources], wanted)
        lines: list[tuple[_Sentence, str]] = []
        for sentence in best:
            source = sources[sentence.source]
            cited = f"[{source.summary_id}]" if source.number is None else f"[msg#{source.number}]"
            line = f"- {sentence.text} {cited}"
            told = _told([*lines, (sentence, line)])
            if _tokens(reader.token_estimator, told) > question.max_tokens:
                is_truncated = True
                break
            lines.append((sentence, line))
        used = [sources[sentence.source] for sentence, _ in sorted(lines, key=lambda row: row[0][:2])]
        return Answer(
            _told(lines) or f"Nothing in the {len(sources)} texts that were read speaks of this.",
            tuple(dict.fromkeys(source.summary_id for source in used if source.summary_id)),
            tuple(dict.fromkeys(source.number for source in used if source.number is not None)),
            read,
            sum(source.tokens for source in sources),
            is_truncated,
        )

    def _best(self, texts: Sequence[str], wanted: set[str]) -> list[_Sentence]:
        """The sentences that speak of it, the nearest first; one that repeats another is told once."""
        cut = list(_sentences(texts))
        spread = Counter(word for one in cut for word in one.words.keys() & wanted)
        mean = sum(one.words.total() for one in cut) / max(1, len(cut)) or 1.0

        def score(one: _Sentence) -> float:
            length = self.k1 * (1 - self.b + self.b * one.words.total() / mean)
            return math.fsum(
                math.log1p((len(cut) - spread[word] + 0.5) / (spread[word] + 0.5))
                * one.words[word]
                * (self.k1 + 1)
                / (one.words[word] + length)
                for word in sorted(one.words.keys() & wanted)
            )

        scored = [(score(one), one) for one in cut]
        ranked = sorted((row for row in scored if row[0] > 0), key=lambda row: (-row[0], row[1].source, row[1].place))
        unique: dict[str, _Sentence] = {}
        told = [one for _, one in ranked if not one.text.endswith(_QUESTION_MARKS)] or [one for _, one in ranked]
        for one in told:
            unique.setdefault(one.text, one)
        return list(unique.values())[: self.max_sentences]


def _read(question: Question, wanted: set[str], reader: GrantedReader) -> tuple[list[ReadText], int, bool]:
    """What was read, how many summaries were expanded, and whether something did not fit."""
    sources = _said(reader.messages(question.messages)) if question.messages else []
    is_truncated = len(sources) < len(question.messages)
    waiting: list[tuple[int, int, str]] = []
    seen: set[str] = set()

    def queue(summary_id: str, text: str) -> None:
        if summary_id not in seen:
            seen.add(summary_id)
            waiting.append((-len(wanted & set(_words(text, drops=False))), len(seen), summary_id))

    kept_back = reader.remaining_tokens // 2
    for summary_id in question.summary_ids:
        described = _described(summary_id, reader) if reader.remaining_tokens > kept_back else None
        if described is not None:
            sources.append(described)
        queue(summary_id, described.text if described else "")
    read = 0
    while waiting and reader.remaining_tokens > 0:
        waiting.sort()
        _, _, summary_id = waiting.pop(0)
        found = reader.expand([summary_id], depth=1, token_cap=reader.remaining_tokens, has_messages=True)
        read += 1
        is_truncated = is_truncated or found.is_truncated
        for root in found.roots:
            for child in root.children:
                sources.append(ReadText(child.summary_id, None, child.content, child.tokens))
                queue(child.summary_id, child.content)
            sources += _said(root.messages)
    return sources, read, is_truncated or bool(waiting)


def _described(summary_id: str, reader: GrantedReader) -> ReadText | None:
    """The summary's own words; None where they do not fit."""
    try:
        described = reader.describe(summary_id)
    except GrantError as refusal:
        _log.info("%s is read without its summary: %s", summary_id, refusal)
        return None
    assert isinstance(described, DescribedSummary)
    content = described.summary.content
    return ReadText(summary_id, None, content, _tokens(reader.token_estimator, content))


def _said(messages: Sequence[ReachedMessage]) -> list[ReadText]:
    return [ReadText(said.leaf_id, said.number, said.text, said.tokens) for said in messages]


def _sentences(texts: Sequence[str]) -> Iterator[_Sentence]:
    for number, text in enumerate(texts):
        for place, cut in enumerate(sentences(text)):
            if line := " ".join(cut.split()):
                yield _Sentence(number, place, line, Counter(_words(line, drops=False)))


def _told(lines: Sequence[tuple[_Sentence, str]]) -> str:
    return "\n".join(line for _, line in sorted(lines, key=lambda row: row[0][:2]))


def _words(text: str, *, drops: bool = True) -> list[str]:
    """Words without accents and case, CJK as overlapping pairs; stop words dropped unless nothing else is there."""
    words, runs = split_words(text)
    pairs = [pair for run in runs for pair in windows(run, _CJK_WINDOW)]
    return [*(query_words(words, _STOP_WORDS, is_alone=not pairs) if drops else words), *pairs]


def _tokens(estimator: TokenEstimator, text: str) -> int:
    return estimator.count([text])[0]
