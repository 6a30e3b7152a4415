"""A whole talk laid out for evidence of a few of its turns, and kept as it grows: nothing of it is laid out twice."""

import threading
import weakref
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl

from lcm.protocols.retrieval import Batch, VectorIndex
from lcm.records.document import EXCHANGE_SPEAKER
from lcm.retrieval.ranking.evidence.growing_columns import GrowingColumn, GrowingLists, NumberLists
from lcm.retrieval.ranking.evidence.haystack import USERS, Numbers, Places
from lcm.retrieval.ranking.evidence.speakers import Speakers
from lcm.retrieval.ranking.evidence.term_segments import Segments, TermSegment, held, with_segment
from lcm.retrieval.ranking.evidence.text_facts import (
    asks,
    author_of,
    content_words,
    form_of,
    stem_of,
    tells_time,
    without_author,
)
from lcm.retrieval.ranking.evidence.time_expressions import year_of
from lcm.retrieval.ranking.turns import CUT_KINDS

_READ = ("document_id", "text", "conversation_id", "session_id", "seq", "kind", "role", "created_at")
_KEPT = 4  # talks: what is asked live is one that grows, or a few by who asks
_AT_ONCE = 4096  # documents that are read together
_MOST_TERMS = 4096  # whose holders are kept of one moment


@dataclass(frozen=True, slots=True)
class Talk:
    """A talk at one moment: its turns in the order in which they became known, every array one entry a turn unless it
    says otherwise. What grows behind it is not seen.

    A turn is a document, or all passages that one message or step was cut into. Names of speakers count among words.
    """

    documents: int
    positions: Mapping[str, int]
    """Document id -> its number, of later documents too."""
    turns: npt.NDArray[np.int32]
    """Of each document its turn."""
    begins: npt.NDArray[np.int32]
    """The first document of each."""
    sessions: npt.NDArray[np.int32]
    sections: npt.NDArray[np.int32]
    """From one turn of the user up to the next, in a session."""
    before: npt.NDArray[np.int32]
    """The turn before each in its session, -1 where there is none."""
    behind: npt.NDArray[np.int32]
    """The turn behind each in its session, -1 where there is none; or one that is not seen yet."""
    days: Numbers
    authors: npt.NDArray[np.int32]
    """The number of what may be a speaker's name, at the beginning; -1 where there is none."""
    author_numbers: Mapping[str, int]
    roles: npt.NDArray[np.int32]
    role_names: Sequence[str | None]
    facts: npt.NDArray[np.float32]
    """Shape (n, 5): words, names, and whether it speaks of the speaker, asks, and tells a time."""
    speakers: Speakers
    lengths: npt.NDArray[np.int32]
    """Stems of each document."""
    stems: NumberLists
    """Of each document."""
    words: NumberLists
    """Of each turn, those that differ."""
    stem_numbers: Mapping[str, int]
    word_numbers: Mapping[str, int]
    vocabulary: Sequence[str]
    """The words by their numbers, later ones too."""
    segments: Segments
    """Which documents hold each stem."""
    stem_turns: Places
    """How many turns hold each stem."""
    word_turns: Places
    """How many turns hold each word."""
    session_lengths: Places
    """Stems of each session."""
    years: range
    """In which something was said."""
    grown: "GrowingTalk"
    counts: dict[Hashable, int] = field(default_factory=dict)
    """How many hold what was asked for."""
    cache: dict[Hashable, Any] = field(default_factory=dict)
    """What stages have computed of this moment, by their own keys."""

    def __len__(self) -> int:
        return len(self.sessions)

    @property
    def name_stems(self) -> Sequence[int]:
        """The numbers of the stems that are names of those who speak."""
        return [self.stem_numbers[stem] for name in self.speakers.names if (stem := stem_of(name)) in self.stem_numbers]

    def held(self, stem: str) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """The documents that hold a stem, ascending, and how often."""
        return held(self.segments, self.stem_numbers.get(stem, -1))

    def ends(self, turns: Places) -> Places:
        """Of some turns the document behind the last."""
        following = np.minimum(turns + 1, len(self) - 1)
        return np.where(turns + 1 < len(self), self.begins[following], self.documents).astype(np.int64)

    def next_to(self, turns: Places, step: int) -> Places:
        """The turn before (-1) or behind (1) each in its session; -1 where there is none, and of -1."""
        found = (self.before if step < 0 else self.behind)[turns].astype(np.int64)
        found[(turns < 0) | (found >= len(self))] = -1
        return found

    def holder_count(self, stem: str, of: Hashable) -> int:
        """How many documents hold a stem, or turns, sessions, or windows of so many turns to each side.

        Args:
            of: `documents`, `turns`, `sessions`, or the number.
        """
        key = stem, of
        found = self.counts.get(key)
        if found is None:
            if len(self.counts) > _MOST_TERMS:
                self.counts.clear()
            found = self.counts[key] = self._holder_count(stem, of)
        return found

    def _holder_count(self, stem: str, of: Hashable) -> int:
        documents = self.held(stem)[0]
        if of == "documents" or not len(documents):
            return len(documents)
        turns = self.turns[documents].astype(np.int64)
        if of == "turns":
            return int(np.count_nonzero(np.diff(turns, prepend=-1)))
        if of == "sessions":
            return int(np.count_nonzero(np.bincount(self.sessions[turns])))
        assert isinstance(of, int)
        is_near = np.zeros(len(self), np.bool_)
        is_near[turns] = True
        for step in (-1, 1):
            near = turns
            for _ in range(of):
                near = self.next_to(near, step)
                near = near[near >= 0]
                is_near[near] = True
        return int(np.count_nonzero(is_near))


class GrowingTalk:
    """The documents of one memory that some queries see, as they become more; safe to use from several threads."""

    def __init__(self, index: VectorIndex) -> None:
        """
        Args:
            index: of the memory: its ids tell one memory's documents from another's.
        """
        self.index = weakref.ref(index)
        self.lock = threading.RLock()
        self.kept: dict[Hashable, Any] = {}
        """What stages keep of all documents and grow themselves, by their own keys."""
        self._ids = pl.Series(dtype=pl.String)
        self._positions: dict[str, int] = {}
        self._turns, self._begins = GrowingColumn(np.int32), GrowingColumn(np.int32)
        self._sessions, self._sections = GrowingColumn(np.int32), GrowingColumn(np.int32)
        self._before, self._behind = GrowingColumn(np.int32), GrowingColumn(np.int32)
        self._days, self._facts = GrowingColumn(np.float64), GrowingColumn(np.float32, 5)
        self._authors, self._roles = GrowingColumn(np.int32), GrowingColumn(np.int32)
        self._lengths, self._stems, self._words = GrowingColumn(np.int32), GrowingLists(), GrowingLists()
        self._author_numbers: dict[str, int] = {}
        self._author_turns: Counter[str] = Counter()
        self._role_numbers: dict[str | None, int] = {}
        self._session_numbers: dict[tuple[str | None, str | None], int] = {}
        self._last_turns: dict[int, tuple[int, int]] = {}
        """Of each session the last turn and its section."""
        self._last_key: tuple[object, ...] | None = None
        self._stem_numbers: dict[str, int] = {}
        self._word_numbers: dict[str, int] = {}
        self._vocabulary: list[str] = []
        self._segments: Segments = ()
        self._stem_turns = self._word_turns = self._session_lengths = np.zeros(0, np.int64)
        self._years = range(0)

    def is_before(self, documents: pl.DataFrame) -> bool:
        """Whether the documents begin with those that are here."""
        count = len(self._ids)
        return count <= len(documents) and documents["document_id"].head(count).equals(self._ids)

    def grow(self, documents: pl.DataFrame) -> Talk | None:
        """Take in what is new of some documents, that begin with those that are here; None where the first of them
        belongs to the last turn here: a turn is taken in as a whole."""
        new = documents[len(self._ids) :].select(_READ)
        if len(new):
            keys = _turn_keys(new)
            if keys[0] is not None and keys[0] == self._last_key:
                return None
            is_first = [
                key is None or key != before for key, before in zip(keys, [self._last_key, *keys], strict=False)
            ]
            firsts = np.flatnonzero(is_first)
            begun = firsts[np.diff(firsts // _AT_ONCE, prepend=-1) > 0].tolist()
            for begin, end in zip(begun, [*begun[1:], len(new)], strict=True):
                self._take_in(new[begin:end], is_first[begin:end])
            self._last_key = keys[-1]
        self._ids = documents["document_id"]
        return self._seen()

    def _take_in(self, new: pl.DataFrame, is_first: Sequence[bool]) -> None:
        """Take in documents of whole turns."""
        before, turns_before = len(self._turns), len(self._begins)
        texts = [
            EXCHANGE_SPEAKER.sub("", text) if kind == "exchange" else text
            for text, kind in zip(new["text"].fill_null(""), new["kind"], strict=True)
        ]
        self._positions.update(zip(new["document_id"], range(before, before + len(new)), strict=True))
        begins = np.flatnonzero(is_first)
        self._turns.extend(turns_before + np.cumsum(is_first) - 1)
        self._begins.extend(before + begins)
        words = [content_words(text) for text in texts]
        stems = [[_number(self._stem_numbers, stem_of(word)) for word in of_one] for of_one in words]
        self._stems.extend(stems)
        self._lengths.extend([len(of_one) for of_one in stems])
        self._segments = with_segment(self._segments, TermSegment.of(before, stems))
        stems_of, words_of, facts, authors = [], [], [], []
        for begin, end in zip(begins.tolist(), [*begins[1:].tolist(), len(new)], strict=True):
            author = author_of(texts[begin])
            authors.append(-1 if author is None else _number(self._author_numbers, author))
            if author is not None:
                self._author_turns[author] += 1
            content = "\n".join([without_author(texts[begin], author), *texts[begin + 1 : end]])
            facts.append((*form_of(content), asks(content), tells_time(content)))
            stems_of.append(list(dict.fromkeys(stem for one in stems[begin:end] for stem in one)))
            said = dict.fromkeys(word for one in words[begin:end] for word in one)
            words_of.append([_number(self._word_numbers, word) for word in said])
            self._vocabulary += list(
                islice(reversed(self._word_numbers), len(self._word_numbers) - len(self._vocabulary))
            )[::-1]
        self._authors.extend(authors)
        self._facts.extend(facts)
        self._words.extend(words_of)
        self._stem_turns = _counted(self._stem_turns, len(self._stem_numbers), stems_of)
        self._word_turns = _counted(self._word_turns, len(self._word_numbers), words_of)
        self._place(new[begins], np.add.reduceat(self._lengths.rows[before:], begins))

    def _place(self, heads: pl.DataFrame, lengths: Places) -> None:
        """Put turns behind those of their sessions.

        Args:
            heads: the first document of each.
            lengths: stems of each.
        """
        days = (heads["created_at"].dt.epoch("ms") / 86_400_000).fill_null(0.0).to_numpy()
        self._days.extend(days)
        if len(known := days[days > 0]):
            of_both = [*self._years, year_of(known.min()), year_of(known.max())]
            self._years = range(min(of_both), max(of_both) + 1)
        numbered = len(self._sessions)
        sessions, sections, before, roles = [], [], [], []
        columns = heads.select("conversation_id", "session_id", "role", "kind").iter_rows()
        for turn, (conversation_id, session_id, role, kind) in enumerate(columns, start=numbered):
            session = _number(self._session_numbers, (conversation_id, session_id))
            said_by = kind if kind == "exchange" else role
            last, section = self._last_turns.get(session, (-1, -1))
            section = turn if last < 0 or said_by in USERS else section
            self._last_turns[session] = turn, section
            sessions.append(session)
            sections.append(section)
            before.append(last)
            roles.append(_number(self._role_numbers, said_by))
        self._sessions.extend(sessions)
        self._sections.extend(sections)
        self._before.extend(before)
        self._roles.extend(roles)
        self._behind.extend(np.full(len(heads), -1))
        has_before = np.flatnonzero(np.array(before) >= 0)
        self._behind.rows[np.array(before)[has_before]] = has_before + numbered
        grown = np.bincount(sessions, lengths, len(self._session_numbers)).astype(np.int64)
        grown[: len(self._session_lengths)] += self._session_lengths
        self._session_lengths = grown

    def _seen(self) -> Talk:
        return Talk(
            documents=len(self._turns),
            positions=self._positions,
            turns=self._turns.rows,
            begins=self._begins.rows,
            sessions=self._sessions.rows,
            sections=self._sections.rows,
            before=self._before.rows,
            behind=self._behind.rows,
            days=self._days.rows,
            authors=self._authors.rows,
            author_numbers=self._author_numbers,
            roles=self._roles.rows,
            role_names=list(self._role_numbers),
            facts=self._facts.rows,
            speakers=Speakers.among(self._author_turns, len(self._begins)),
            lengths=self._lengths.rows,
            stems=self._stems.frozen,
            words=self._words.frozen,
            stem_numbers=self._stem_numbers,
            word_numbers=self._word_numbers,
            vocabulary=self._vocabulary,
            segments=self._segments,
            stem_turns=self._stem_turns,
            word_turns=self._word_turns,
            session_lengths=self._session_lengths,
            years=self._years,
            grown=self,
        )


def talk_of(batch: Batch) -> Talk:
    """What the queries of a batch see, laid out; a talk that has grown since it was asked for last is grown."""
    with _lock:
        for documents, index, known in _seen:
            if documents() is batch.documents and index() is batch.vector_index:
                return known
        alike = (one for one in _talks if one.index() is batch.vector_index and one.is_before(batch.documents))
        growing = next(alike, None)
        talk = None if growing is None else growing.grow(batch.documents)
        if growing is None or talk is None:
            growing = GrowingTalk(batch.vector_index)
            talk = growing.grow(batch.documents)
            assert talk is not None, "nothing stands before the first document"
        _talks[:] = [growing, *(one for one in _talks if one is not growing)][:_KEPT]
        _seen[:] = [(weakref.ref(batch.documents), weakref.ref(batch.vector_index), talk), *_seen[: _KEPT - 1]]
        return talk


_lock = threading.RLock()
_talks: list[GrowingTalk] = []
_seen: list[tuple[weakref.ref[pl.DataFrame], weakref.ref[VectorIndex], Talk]] = []


def _turn_keys(documents: pl.DataFrame) -> list[tuple[object, ...] | None]:
    """What the passages of one turn, which stand together, have in common; None of a document that is a turn."""
    columns = documents.select("conversation_id", "session_id", "seq", "kind").iter_rows()
    return [key if key[2] is not None and key[3] in CUT_KINDS else None for key in columns]


_Key = TypeVar("_Key", bound=Hashable)


def _number(numbers: dict[_Key, int], key: _Key) -> int:
    """The number of something, the next one if it is new."""
    return numbers.setdefault(key, len(numbers))


def _counted(counts: Places, size: int, lists: Sequence[Sequence[int]]) -> Places:
    """The counts with one more for each time that a number is in a list; those given are left alone."""
    flat = np.fromiter((one for of_one in lists for one in of_one), np.int64)
    grown = np.bincount(flat, minlength=size)
    grown[: len(counts)] += counts
    return grown
