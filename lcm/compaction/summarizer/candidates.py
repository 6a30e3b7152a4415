"""The sentences of a source as numbers."""

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lcm.compaction.summarizer.kinds import IMPORTANCE
from lcm.compaction.summarizer.passages import Sentence
from lcm.javascript import utf16_length
from lcm.protocols.models import Vectors
from lcm.retrieval.text_index.words import load_stop_words, split_words, windows

_MARKS = re.compile(r"[^\w.]+|\.(?!\w)")
_NUMBERS = re.compile(r"\d+(?:[.,]\d+)*")

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]


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
    return bare if sentence.is_prose else _NUMBERS.sub("0", bare)


def _numbered(values: Iterable[Hashable]) -> Places:
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(value, len(numbers)) for value in values], np.int64)


def _costs(texts: Iterable[str], tokens_per_unit: float) -> Floats:
    return np.array([utf16_length(text) for text in texts], np.float64) * tokens_per_unit
