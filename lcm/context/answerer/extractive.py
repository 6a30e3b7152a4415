"""An answer in the very sentences of what was said: no model, the same every time.

Source: ours.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lcm.checks import check_range
from lcm.context.answerer.answerer import Answer, GrantedReader, Question
from lcm.context.answerer.sentence_ranking import RankedSentence, question_words, ranked_sentences, words_of
from lcm.context.recall.describe import DescribedSummary
from lcm.context.recall.expansion import ReachedMessage
from lcm.errors import GrantError
from lcm.protocols.models import TokenEstimator

_log = logging.getLogger(__name__)


class ReadText(NamedTuple):
    """A text that the answerer has read: a summary or a message."""

    summary_id: str
    """The summary, or the leaf that stands for the message; empty for a message in no summary."""
    number: int | None
    """The integer key of a message."""
    text: str
    tokens: int


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
        wanted = question_words(question.prompt)
        sources, read, is_truncated = _read(question, wanted, reader)
        best = ranked_sentences([source.text for source in sources], wanted, self.k1, self.b)
        lines: list[tuple[RankedSentence, str]] = []
        for sentence in best[: self.max_sentences]:
            source = sources[sentence.source]
            cited = f"[{source.summary_id}]" if source.number is None else f"[msg#{source.number}]"
            line = f"- {sentence.text} {cited}"
            told = _told([*lines, (sentence, line)])
            if _tokens(reader.token_estimator, told) > question.max_tokens:
                is_truncated = True
                break
            lines.append((sentence, line))
        used = [sources[sentence.source] for sentence, _ in sorted(lines, key=_as_read)]
        return Answer(
            _told(lines) or f"Nothing in the {len(sources)} texts that were read speaks of this.",
            tuple(dict.fromkeys(source.summary_id for source in used if source.summary_id)),
            tuple(dict.fromkeys(source.number for source in used if source.number is not None)),
            read,
            sum(source.tokens for source in sources),
            is_truncated,
        )


def _read(question: Question, wanted: set[str], reader: GrantedReader) -> tuple[list[ReadText], int, bool]:
    """What was read, how many summaries were expanded, and whether something did not fit."""
    sources = _said(reader.messages(question.messages)) if question.messages else []
    is_truncated = len(sources) < len(question.messages)
    waiting: list[tuple[int, int, str]] = []
    seen: set[str] = set()

    def queue(summary_id: str, text: str) -> None:
        if summary_id not in seen:
            seen.add(summary_id)
            waiting.append((-len(wanted & set(words_of(text, drops=False))), len(seen), summary_id))

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


def _told(lines: Sequence[tuple[RankedSentence, str]]) -> str:
    return "\n".join(line for _, line in sorted(lines, key=_as_read))


def _as_read(row: tuple[RankedSentence, str]) -> tuple[int, int]:
    return row[0].source, row[0].place


def _tokens(estimator: TokenEstimator, text: str) -> int:
    return estimator.count([text])[0]
