"""The documents that a batch may see, laid out once: their words, authors, sessions and places in the talk."""

import re
import threading
from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import Stemmer

from lcm.retrieval.text_index.words import load_stop_words, split_words, windows

Numbers = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]

_READ = ("document_id", "text", "conversation_id", "session_id", "seq", "role", "created_at")
_AUTHOR = re.compile(r"([^\W\d_][^:\n]{0,39}): ")  # as extraction writes who speaks
_AUTHOR_SHARE = 0.02  # of the documents, at least, begin with the name of one who speaks
_AUTHOR_DOCUMENTS = 2
_CJK_WINDOW = 2
_KEPT = 4  # haystacks: live queries ask of the same one again and again


@dataclass(frozen=True, slots=True)
class Haystack:
    """Documents in the order of `Batch.documents`; every array has one entry a document, unless it says otherwise."""

    positions: Mapping[str, int]
    """Document id -> its place in every array."""
    contents: Sequence[str]
    """The texts without the name of the speaker before them."""
    authors: Sequence[str | None]
    names: frozenset[str]
    """The words of all authors' names, folded."""
    roles: Sequence[str | None]
    words: Sequence[Sequence[str]]
    """Words that are neither stop words nor names, in order; runs of CJK characters as pairs of neighbours."""
    stems: Sequence[Sequence[str]]
    """Of `words`."""
    talk: Places
    """Places of the documents in the order of the talk: by conversation, session and seq. Not one a document in order,
    but a permutation."""
    sessions: Places
    """The number of the session of each; those of one session stand together in `talk`."""
    days: Numbers
    """Since the Unix epoch."""
    cache: dict[Any, Any] = field(default_factory=dict)
    """What stages have computed from the documents alone, by their own keys."""

    def __len__(self) -> int:
        return len(self.contents)

    def beside(self, values: Numbers, distance: int) -> Numbers:
        """For each document the value of that `distance` places before it in its session, 0 where there is none.

        Args:
            values: shape (n,) or (n, dim).
            distance: negative = behind it.
        """
        found = np.zeros_like(values)
        if distance == 0 or abs(distance) >= len(self):
            return values.copy() if distance == 0 else found
        lenders, takers = self.talk[:-distance], self.talk[distance:]
        if distance < 0:
            lenders, takers = self.talk[-distance:], self.talk[:distance]
        alike = self.sessions[lenders] == self.sessions[takers]
        found[takers[alike]] = values[lenders[alike]]
        return found

    def best_of_session(self, values: Numbers) -> Numbers:
        """For each document the highest value in its session."""
        best = np.full(int(self.sessions.max(initial=-1)) + 1, -np.inf)
        np.maximum.at(best, self.sessions, values)
        return best[self.sessions]

    def without_names(self, text: str) -> str:
        """A query without the names of those who speak, whose turns all hold them; as it is if nothing else is left."""
        if not self.names:
            return text
        rest = re.sub(r"\s+", " ", _names_pattern(self.names).sub(" ", text)).strip()
        return rest if split_words(rest) != ([], []) else text

    def named(self, text: str) -> frozenset[str]:
        """The authors that a query names."""
        said = set(split_words(text)[0])
        return frozenset(a for a in set(self.authors) if a is not None and said & _name_words(a))


def haystack_of(documents: pl.DataFrame) -> Haystack:
    """Lay out documents; the last few haystacks are kept, by all that they were made of."""
    key = documents.select(_READ).hash_rows().to_numpy().tobytes()
    with _lock:
        if key in _haystacks:
            _haystacks.move_to_end(key)
            return _haystacks[key]
    made = _laid_out(documents)
    with _lock:
        _haystacks[key] = made
        while len(_haystacks) > _KEPT:
            _haystacks.popitem(last=False)
    return made


_lock = threading.Lock()
_haystacks: OrderedDict[bytes, Haystack] = OrderedDict()


def _laid_out(documents: pl.DataFrame) -> Haystack:
    texts = documents["text"].fill_null("").to_list()
    begun = [found[1] if (found := _AUTHOR.match(text)) else None for text in texts]
    counts = Counter(author for author in begun if author is not None)
    least = max(_AUTHOR_DOCUMENTS, _AUTHOR_SHARE * len(texts))
    authors = [author if author is not None and counts[author] >= least else None for author in begun]
    contents = [
        text if author is None else text[len(author) + 2 :] for text, author in zip(texts, authors, strict=True)
    ]
    names = frozenset(word for author in set(authors) if author is not None for word in _name_words(author))
    words = [[word for word in content_words(content) if word not in names] for content in contents]
    place = documents.select(
        group=pl.struct("conversation_id", "session_id").rank("dense").cast(pl.Int64) - 1,
        seq=pl.col("seq").fill_null(0),
        days=pl.col("created_at").dt.epoch("ms") / 86_400_000,
    )
    order = place.with_row_index("row").sort("group", "seq", maintain_order=True)["row"]
    return Haystack(
        positions={document_id: position for position, document_id in enumerate(documents["document_id"])},
        contents=contents,
        authors=authors,
        names=names,
        roles=documents["role"].to_list(),
        words=words,
        stems=[[stem_of(word) for word in of_one] for of_one in words],
        talk=order.cast(pl.Int64).to_numpy(),
        sessions=place["group"].to_numpy(),
        days=place["days"].fill_null(0.0).to_numpy(),
    )


def content_words(text: str) -> list[str]:
    """Words without stop words, in order, then runs of CJK characters as pairs of neighbours."""
    words, runs = split_words(text)
    stop_words = load_stop_words("english")
    return [w for w in words if w not in stop_words] + [pair for run in runs for pair in windows(run, _CJK_WINDOW)]


@lru_cache(maxsize=100_000)
def stem_of(word: str) -> str:
    """The word's English stem, by Snowball."""
    stem: str = Stemmer.Stemmer("english").stemWord(word)
    return stem


@lru_cache(maxsize=1000)
def _name_words(author: str) -> frozenset[str]:
    return frozenset(split_words(author)[0])


@lru_cache(maxsize=100)
def _names_pattern(names: frozenset[str]) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(sorted(map(re.escape, names)))})\b(?:['’]s\b)?", re.IGNORECASE)
