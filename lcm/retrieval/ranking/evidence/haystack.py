"""The documents that a batch may see, laid out once as turns: their words, authors, sessions and places in the talk."""

import threading
from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, repeat
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl

from lcm.records.document import EXCHANGE_SPEAKER
from lcm.retrieval.lookup import KeptBeside
from lcm.retrieval.ranking.evidence.speakers import Speakers
from lcm.retrieval.ranking.evidence.standard_scores import standardised
from lcm.retrieval.ranking.evidence.text_facts import author_of, content_words, stems_of, without_author
from lcm.retrieval.ranking.turns import turn_of

Numbers = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]

USERS = ("user", "exchange")
"""Roles of turns in which the user speaks."""
_READ = ("document_id", "text", "conversation_id", "session_id", "seq", "role", "created_at", "kind")
_KEPT = 4  # haystacks: live queries ask of the same one again and again


@dataclass(frozen=True, slots=True)
class Haystack:
    """Turns in the order of `Batch.documents`; every array has one entry a turn, unless it says otherwise.

    A turn is a document, or all passages that one message or step was cut into.
    """

    positions: Mapping[str, int]
    """Document id -> its place among the documents."""
    turns: Places
    """Of each document the place of its turn in every other array."""
    passage_stems: Sequence[Sequence[str]]
    """Of each document."""
    contents: Sequence[str]
    """The texts without the name of the speaker before them."""
    authors: Sequence[str | None]
    speakers: Speakers
    roles: Sequence[str | None]
    """Of an exchange, in which a user and an assistant speak, `exchange`."""
    words: Sequence[Sequence[str]]
    """Words that are neither stop words nor names, in order; runs of CJK characters as pairs of neighbours."""
    stems: Sequence[Sequence[str]]
    """Of `words`."""
    talk: Places
    """Places of the turns in the order of the talk: by conversation, session and seq. Not one a turn in order, but a
    permutation."""
    sessions: Places
    """The number of the session of each; those of one session stand together in `talk`."""
    sections: Places
    """The number of its section: from one turn of the user up to the next, in a session."""
    progress: Numbers
    """How far on it was said, from 0 to 1: by time, of equal or unknown times by place in the conversation."""
    days: Numbers
    """Since the Unix epoch."""
    cache: dict[Any, Any] = field(default_factory=dict)
    """What stages have computed from the documents alone, by their own keys."""

    def __len__(self) -> int:
        return len(self.sessions)

    def places_of(self, document_ids: pl.Series) -> Places:
        """The place of each document, -1 of one that is not seen."""
        found = map(self.positions.get, document_ids.to_list(), repeat(-1))
        return np.fromiter(found, np.int64, len(document_ids))

    def standardised(self, values: Numbers) -> Numbers:
        """Standard scores among all turns, or all documents."""
        return standardised(values)

    def beside(self, values: Numbers, distance: int) -> Numbers:
        """For each turn the value of that `distance` places before it in its session, 0 where there is none.

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

    def around(self, radius: int) -> Places:
        """Shape (n, 2 radius + 1): the places of each turn and of those up to `radius` before and behind it in its
        session, -1 where there is none."""
        found = np.full((len(self), 2 * radius + 1), -1)
        found[:, radius] = np.arange(len(self))
        for distance in range(1, min(radius, len(self) - 1) + 1):
            lenders, takers = self.talk[:-distance], self.talk[distance:]
            alike = self.sessions[lenders] == self.sessions[takers]
            found[takers[alike], radius - distance] = lenders[alike]
            found[lenders[alike], radius + distance] = takers[alike]
        return found

    def best_of(self, groups: Places, values: Numbers) -> Numbers:
        """For each turn the highest value in its group, as `sessions` or `sections` number them."""
        return highest(groups, values)[groups]


def highest(groups: Places, values: Numbers) -> Numbers:
    """Of each group the highest value of its members."""
    best = np.full(int(groups.max(initial=-1)) + 1, -np.inf)
    np.maximum.at(best, groups, values)
    return best


def haystack_of(documents: pl.DataFrame) -> Haystack:
    """Lay out documents; the last few haystacks are kept, by all that they were made of."""
    return _by_frame(documents)


def _by_content(documents: pl.DataFrame) -> Haystack:
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
_by_frame = KeptBeside(_by_content, _KEPT)  # hashing every row costs what a query does


def _laid_out(documents: pl.DataFrame) -> Haystack:
    firsts, turns = np.unique(turn_of(documents).to_numpy(), return_inverse=True)
    texts = documents["text"].fill_null("").to_list()
    is_exchange = documents["kind"] == "exchange"
    texts = [EXCHANGE_SPEAKER.sub("", text) if both else text for text, both in zip(texts, is_exchange, strict=True)]
    begun = [author_of(texts[row]) for row in firsts]
    speakers = Speakers.among(Counter(author for author in begun if author is not None), len(begun))
    authors = [author if author in speakers.authors else None for author in begun]
    for row, author in zip(firsts, authors, strict=True):
        texts[row] = without_author(texts[row], author)
    words = [speakers.not_named(content_words(text)) for text in texts]
    stems = [stems_of(of_one) for of_one in words]
    heads = documents[firsts]
    place = heads.select(
        group=pl.struct("conversation_id", "session_id").rank("dense").cast(pl.Int64) - 1,
        seq=pl.col("seq").fill_null(0),
        days=pl.col("created_at").dt.epoch("ms") / 86_400_000,
        role=pl.when(kind="exchange").then(pl.col("kind")).otherwise("role"),
    )
    talk = place.with_row_index("row").sort("group", "seq", maintain_order=True)
    order, sessions = talk["row"].cast(pl.Int64).to_numpy(), place["group"].to_numpy()
    sections = _sections(order, sessions, talk["role"].is_in(USERS).fill_null(value=False).to_numpy())
    return Haystack(
        positions={document_id: position for position, document_id in enumerate(documents["document_id"])},
        turns=turns,
        passage_stems=stems,
        contents=["\n".join(passages) for passages in _by_turn(texts, turns)],
        authors=authors,
        speakers=speakers,
        roles=place["role"].to_list(),
        words=_joined(_by_turn(words, turns)),
        stems=_joined(_by_turn(stems, turns)),
        talk=order,
        sessions=sessions,
        sections=sections,
        progress=_progress(heads),
        days=place["days"].fill_null(0.0).to_numpy(),
    )


_Said = TypeVar("_Said")


def _by_turn(of_documents: Sequence[_Said], turns: Places) -> list[list[_Said]]:
    """What the documents of each turn have, one list a turn."""
    found: list[list[_Said]] = [[] for _ in range(int(turns.max(initial=-1)) + 1)]
    for turn, said in zip(turns.tolist(), of_documents, strict=True):
        found[turn].append(said)
    return found


def _joined(of_turns: Sequence[Sequence[tuple[str, ...]]]) -> list[tuple[str, ...]]:
    """What the passages of each turn have, one behind another."""
    return [passages[0] if len(passages) == 1 else tuple(chain.from_iterable(passages)) for passages in of_turns]


def _sections(talk: Places, sessions: Places, is_user: npt.NDArray[np.bool_]) -> Places:
    """Of each turn its section.

    Args:
        talk: places in the order of the talk.
        is_user: of each, in that order, whether the user speaks.
    """
    begins = is_user | (np.diff(sessions[talk], prepend=-1) != 0)
    sections = np.empty(len(talk), np.int64)
    sections[talk] = np.cumsum(begins) - 1
    return sections


def _progress(heads: pl.DataFrame) -> Numbers:
    """Of each turn, by its first document, how far on it was said."""
    place = pl.struct("created_at", "seq").rank("dense") - 1
    return heads.select(place / place.max().clip(1)).to_series().to_numpy()
