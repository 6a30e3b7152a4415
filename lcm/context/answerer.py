"""Who answers a question from what was compacted: by quoting what was said, or by a language model.

Source: ours; the model's way from lossless-claw 0.6.3, whose sub-agent calls the tools itself; here they are called for
it, and the task is in our words.
"""

import logging
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any, NamedTuple

from lcm.checks import check_range
from lcm.context.recall.expansion import ExpansionResult, ReachedMessage, most_units
from lcm.context.recall.reader import Reader
from lcm.context.recall.recall import Answer, Question, begun
from lcm.encoding import to_json
from lcm.errors import ModelError
from lcm.language_model.replies import names, object_in
from lcm.protocols.models import LanguageModel, TokenEstimator
from lcm.retrieval.indexing import bm25_idf
from lcm.text import load_stop_words, pairs, query_words, sentences, split_words, words_in

_STOP_WORDS = load_stop_words("english")
_QUESTION_MARKS = ("?", "？", "؟")
_TEXTS_AT_HAND = 4096
_log = logging.getLogger(__name__)


class RankedSentence(NamedTuple):
    """A sentence of a text, and how near it is to a question."""

    score: float
    """Of BM25, above 0."""
    source: int
    """The place of its text among those that were read."""
    place: int
    """Its own within that text."""
    text: str
    covered: float
    """The share of the question's words that stand in it."""


def question_words(question: str) -> set[str]:
    """The words of a question that say what it is about; all of them where only stop words are left."""
    return set(words_of(question)) or set(words_of(question, drops=False))


def words_of(text: str, *, drops: bool = True) -> list[str]:
    """Words without accents and case, CJK as overlapping pairs; stop words dropped unless nothing else is there."""
    if not drops:
        return words_in(text)
    found, runs = split_words(text)
    return query_words(found, _STOP_WORDS, is_alone=not runs) + pairs(runs)


def rarity(words: set[str], counted: Sequence[Counter[str]]) -> dict[str, float]:
    """Of each word: BM25's weight of how few of the counted sentences hold it."""
    spread = Counter(word for one in counted for word in one.keys() & words)
    n = len(counted)
    return {word: float(bm25_idf(spread[word], n)) for word in words}


def ranked_sentences(texts: Sequence[str], wanted: set[str], k1: float = 1.2, b: float = 0.75) -> list[RankedSentence]:
    """The sentences of texts that speak of the wanted words, the nearest first; one that repeats another is told once.

    A question is no answer: sentences that ask are told only where no other speaks of what is wanted.

    Args:
        k1: of BM25: how soon repetition stops counting.
        b: of BM25: how much long sentences are held back.
    """
    cut = [(number, place, *one) for number, text in enumerate(texts) for place, one in enumerate(counted_in(text))]
    lengths = [one.total() for *_, one in cut]
    mean = sum(lengths) / max(1, len(cut)) or 1.0
    weight = rarity(wanted, [one for *_, one in cut])
    ranked = []
    for (source, place, line, words), length in zip(cut, lengths, strict=True):
        held = sorted(words.keys() & wanted)
        spread = k1 * (1 - b + b * length / mean)
        score = math.fsum(weight[word] * words[word] * (k1 + 1) / (words[word] + spread) for word in held)
        if score > 0:
            ranked.append(RankedSentence(score, source, place, line, len(held) / len(wanted)))
    ranked.sort(key=lambda one: (-one.score, one.source, one.place))
    told = [one for one in ranked if not one.text.endswith(_QUESTION_MARKS)] or ranked
    unique: dict[str, RankedSentence] = {}
    for one in told:
        unique.setdefault(one.text, one)
    return list(unique.values())


@lru_cache(maxsize=_TEXTS_AT_HAND)
def counted_in(text: str) -> tuple[tuple[str, Counter[str]], ...]:
    """The sentences of a text, each as a line with how often each word stands in it."""
    lines = (" ".join(cut.split()) for cut in sentences(text))
    return tuple((line, Counter(words_of(line, drops=False))) for line in lines if line)


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

    def answer(self, question: Question, reader: Reader) -> Answer:
        wanted = question_words(question.prompt)
        sources, read, is_truncated = _read(question, wanted, reader)
        best = ranked_sentences([source.text for source in sources], wanted, self.k1, self.b)
        lines: list[tuple[tuple[int, int], str]] = []
        for sentence in best[: self.max_sentences]:
            source = sources[sentence.source]
            cited = f"[{source.summary_id}]" if source.number is None else f"[msg#{source.number}]"
            more = sorted([*lines, ((sentence.source, sentence.place), f"- {sentence.text} {cited}")])
            if _tokens(reader.token_estimator, "\n".join(line for _, line in more)) > question.max_tokens:
                is_truncated = True
                break
            lines = more
        used = [sources[at] for (at, _), _ in lines]
        return Answer(
            "\n".join(line for _, line in lines)
            or f"Nothing in the {len(sources)} texts that were read speaks of this.",
            tuple(dict.fromkeys(source.summary_id for source in used if source.summary_id)),
            tuple(dict.fromkeys(source.number for source in used if source.number is not None)),
            read,
            sum(source.tokens for source in sources),
            is_truncated,
        )


def _read(question: Question, wanted: set[str], reader: Reader) -> tuple[list[ReadText], int, bool]:
    """What was read, how many summaries were expanded, and whether something did not fit."""
    sources = _said(reader.messages(question.messages)) if question.messages else []
    is_truncated = len(sources) < len(question.messages)
    waiting: list[tuple[int, int, str]] = []
    seen: set[str] = set()

    def queue(summary_id: str, text: str) -> None:
        if summary_id not in seen:
            seen.add(summary_id)
            waiting.append((-len(wanted & set(words_of(text, drops=False))), len(seen), summary_id))

    for summary_id, summary in begun(question, reader):
        content = "" if summary is None else summary.content
        if summary is not None:
            sources.append(ReadText(summary_id, None, content, _tokens(reader.token_estimator, content)))
        queue(summary_id, content)
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


def _said(messages: Sequence[ReachedMessage]) -> list[ReadText]:
    return [ReadText(said.leaf_id, said.number, said.text, said.tokens) for said in messages]


def _tokens(estimator: TokenEstimator, text: str) -> int:
    return estimator.count([text])[0]


_TASK = resources.files(__package__).joinpath("answerer_task.txt").read_text("utf-8")


@dataclass(slots=True)
class _Evidence:
    """What the model was shown so far."""

    lines: list[str]
    summary_ids: set[str]
    tokens: int = 0
    expanded: int = 0
    is_truncated: bool = False

    def add_summary(self, summary_id: str, kind: str, text: str, tokens: int, time_range: str = "") -> None:
        if summary_id not in self.summary_ids:
            self.summary_ids.add(summary_id)
            self.tokens += tokens
            self.lines.append(to_json({"summary": summary_id, "kind": kind, "range": time_range, "text": text}))

    def add_message(self, said: ReachedMessage) -> None:
        self.tokens += said.tokens
        shown = {"message": said.number, "summary": said.leaf_id, "role": said.role, "text": said.text}
        self.lines.append(to_json(shown))

    def add(self, found: ExpansionResult) -> None:
        self.is_truncated = self.is_truncated or found.is_truncated
        for root in found.roots:
            self.expanded += 1
            for child in root.children:
                self.add_summary(child.summary_id, child.kind, child.content, child.tokens)
            for said in root.messages:
                self.add_message(said)


@dataclass(frozen=True, slots=True)
class Llm:
    """Shows a model the summaries to begin with and what lies beneath; expands what it then asks for; asks again.

    Half of the grant is kept for what it asks for. Ids that it was not shown are not cited; a longer answer is cut
    after a sentence.
    """

    language_model: LanguageModel
    follow_ups: int = 1
    """How often it may ask for more."""

    def __post_init__(self) -> None:
        check_range(self, "follow_ups", ge=0)

    def answer(self, question: Question, reader: Reader) -> Answer:
        evidence = _first_evidence(question, reader)
        system = _TASK.replace("{max_tokens}", str(question.max_tokens))
        for round_number in range(self.follow_ups + 1):
            reply = self._reply(system, question, evidence, reader)
            wanted = _known(reply.get("expand"), evidence.summary_ids)
            if not wanted or round_number == self.follow_ups or reader.remaining_tokens <= 0:
                break
            evidence.add(reader.expand(wanted, depth=1, token_cap=reader.remaining_tokens, has_messages=True))
        text, is_cut = _cut(str(reply["answer"]).strip(), question.max_tokens, reader.token_estimator)
        return Answer(
            text,
            tuple(_known(reply.get("citedIds"), evidence.summary_ids)),
            (),
            evidence.expanded,
            evidence.tokens,
            is_cut or evidence.is_truncated or reply.get("truncated") is True,
        )

    def _reply(self, system: str, question: Question, evidence: _Evidence, reader: Reader) -> dict[str, Any]:
        head = to_json({"question": question.prompt, "budget_tokens": reader.remaining_tokens})
        text = self.language_model.reply(system, "\n".join([head, "evidence:", *evidence.lines]), names("answer"))
        found = object_in(text, "answer")
        if found is None or not isinstance(found.get("answer"), str):
            raise ModelError(f"the reply holds no JSON object with an answer: {text[:200]!r}")
        if not found["answer"].strip() and not found.get("expand"):
            raise ModelError("the reply's answer is empty")
        return found


def _first_evidence(question: Question, reader: Reader) -> _Evidence:
    evidence = _Evidence([], set())
    for said in reader.messages(question.messages) if question.messages else ():
        evidence.add_message(said)
    kept_back = reader.remaining_tokens // 2
    shown: list[str] = []
    for summary_id, summary in begun(question, reader):
        if summary is None:
            evidence.is_truncated = True
            continue
        (tokens,) = reader.token_estimator.count([summary.content])
        time_range = f"{summary.earliest_at or '?'} to {summary.latest_at or '?'}"
        evidence.add_summary(summary_id, summary.kind, summary.content, tokens, time_range)
        shown.append(summary_id)
    cap = reader.remaining_tokens - kept_back
    if shown and cap > 0:
        evidence.add(reader.expand(shown, depth=1, token_cap=cap, has_messages=question.needs_messages))
    return evidence


def _known(ids: object, shown: set[str]) -> list[str]:
    """The ids of a reply that it was shown, each once."""
    given: Sequence[object] = ids if isinstance(ids, list) else []
    return list(dict.fromkeys(one for one in given if isinstance(one, str) and one in shown))


def _cut(text: str, max_tokens: int, estimator: TokenEstimator) -> tuple[str, bool]:
    """As many whole sentences as fit, at least something of the first; and whether anything is missing."""
    if estimator.count([text])[0] <= max_tokens:
        return text, False
    kept = ""
    for sentence in sentences(text):
        if estimator.count([(kept + sentence).rstrip()])[0] > max_tokens:
            break
        kept += sentence
    if not kept:
        kept = text[: most_units(text, max_tokens, lambda units: text[:units], estimator)]
    return kept.rstrip(), True
