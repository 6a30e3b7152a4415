"""How well a summary stands for its source: by an embedder, and what is wrong with it though it reads like one.

It is no smaller, it is the source's beginning, or rules are lost.
"""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lcm.compaction.facts.done import FILES
from lcm.compaction.summarizer.footer import FOOTER
from lcm.compaction.summarizer.passages import content_words, in_code, is_user_rule, may_hold_rule, read_source
from lcm.protocols.models import Vectors
from lcm.records.conversation import Message
from lcm.records.summary import DIRECTIVE_MARK, FALLBACK_MARK
from lcm.text import sentences

Floats = npt.NDArray[np.floating[Any]]
_KEPT_SHARE = 0.6  # of a rule's content words, in one line of the summary
_NAMING = (FOOTER.rstrip(), FILES.rstrip())
_MARKED_AS_CUT = re.compile(
    rf"(?:\n?\[(?:Truncated|Capped)[^\]\n]*\]\s*|\s*{re.escape(FALLBACK_MARK)}\s*|\s*{re.escape(DIRECTIVE_MARK)}\s*)+$"
)


class SummaryHarm(NamedTuple):
    """What a summary does to a context that it should not."""

    is_no_smaller: bool = False
    is_cut: bool = False
    """It is the beginning of its source."""
    lost_rules: tuple[str, ...] = ()
    """Sentences in which a user obliges or forbids, and that stand in no line of it."""

    @property
    def incidents(self) -> Iterator[str]:
        """As a run counts them."""
        if self.is_no_smaller:
            yield "a summary is no smaller than its source"
        if self.is_cut:
            yield "a summary is the cut beginning of its source"
        if self.lost_rules:
            yield "a summary lost rules of the user"

    def __bool__(self) -> bool:
        return self.is_no_smaller or self.is_cut or bool(self.lost_rules)


def summary_harm(
    summary: str,
    source: str,
    rules: Iterable[str],
    summary_tokens: int,
    source_tokens: int,
    most_rules: int | None = None,
) -> SummaryHarm:
    """Hold a summary against what it stands for.

    Args:
        summary: its words.
        source: the text that it was made of.
        rules: those in the source, as `rules_found` and `rules_of_summaries` find them.
        summary_tokens: of its words.
        source_tokens: that its sources cost in the context.
        most_rules: no more rules are looked at once so many were found to be lost; None = all are.
    """
    return SummaryHarm(
        is_no_smaller=summary_tokens >= source_tokens > 0,
        is_cut=is_cut(summary, source),
        lost_rules=tuple(islice(lost_rules(summary, rules), most_rules)),
    )


def is_cut(summary: str, source: str) -> bool:
    """Say whether a summary is the beginning of its source, whatever mark stands behind it or before it."""
    unmarked = _MARKED_AS_CUT.sub("", summary.removeprefix(FALLBACK_MARK))
    words, whole = " ".join(unmarked.split()), " ".join(source.split())
    return bool(words) and words != whole and whole.startswith(words)


def lost_rules(summary: str, rules: Iterable[str]) -> Iterator[str]:
    """The rules of which no line of the summary holds three of five content words; what the lines on files and on what
    it left out only name, it does not keep."""
    lines: list[set[str]] | None = None
    for rule in rules:
        if lines is None:
            told = (line for line in summary.splitlines() if not line.lstrip().startswith(_NAMING))
            lines = [set(content_words(line)[1]) for line in told]
        words = set(content_words(rule)[1])
        if words and max((len(words & line) for line in lines), default=0) < _KEPT_SHARE * len(words):
            yield rule


def rules_found(messages: Iterable[Message]) -> Iterator[str]:
    """The sentences in which a user obliges or forbids, as guidance reads them, as they are come to: to read a sentence
    takes a while, and who looks for one need not read all."""
    for message in messages:
        is_said = message.role == "user" and not any(part.part_type == "tool" for part in message.parts)
        if is_said and may_hold_rule(message.content):
            lines = message.content.splitlines()
            prose = "\n".join(line for line, is_code in zip(lines, in_code(lines), strict=True) if not is_code)
            yield from filter(is_user_rule, map(str.strip, sentences(prose)))


def rules_of_summaries(contents: Sequence[str]) -> list[str]:
    """The rules that summaries name as a user's; each once."""
    return list(dict.fromkeys(rule for content in contents for rule in read_source(content).rules))


class SummaryQuality(NamedTuple):
    """How well a summary stands for its turns: cosines in [-1, 1]."""

    align: float
    """Of the summary to the mean of its turns."""
    cover: float
    """Of the summary to each turn, the negative ones counted as 0, on average."""

    @property
    def confidence(self) -> float:
        """(align + cover) / 2, clamped to [0, 1]."""
        return clamped((self.align + self.cover) / 2)


def summary_quality(turns: Vectors, summary: Vectors) -> SummaryQuality:
    """Hold a summary against its turns.

    Args:
        turns: shape (n, dim), n >= 1: the turns as the summarizer was shown them, embedded.
        summary: shape (dim,).

    Source: libravdb memory 1.4.4; the mathematical reference of 1.3.5 knows only what each summarizer says itself.
    """
    mean = turns.astype(np.float32).mean(axis=0, dtype=np.float32)
    cover = sum(max(0.0, cosine(summary, turn)) for turn in turns) / len(turns)
    return SummaryQuality(cosine(summary, mean), cover)


def cosine(one: Floats, other: Floats) -> float:
    """In double precision; 0 where a vector is zero, or the widths differ."""
    if one.shape != other.shape:
        return 0.0
    first, second = one.astype(np.float64), other.astype(np.float64)
    length = math.sqrt(float(first @ first)) * math.sqrt(float(second @ second))
    return float(first @ second) / length if length else 0.0


def clamped(value: float) -> float:
    """To [0, 1]; what is no number counts as 0."""
    return 0.0 if math.isnan(value) else min(1.0, max(0.0, value))
