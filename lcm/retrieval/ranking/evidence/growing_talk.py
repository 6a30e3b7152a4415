"""Talks that are kept as they grow: nothing of one is laid out twice."""

import threading
import weakref
from collections import Counter
from collections.abc import Hashable, Sequence
from itertools import chain, islice
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl

from lcm.protocols.retrieval import Batch, VectorIndex
from lcm.records.document import EXCHANGE_SPEAKER
from lcm.retrieval.ranking.evidence.growing_columns import GrowingColumn, GrowingLists
from lcm.retrieval.ranking.evidence.haystack import USERS, Places
from lcm.retrieval.ranking.evidence.speakers import Speakers
from lcm.retrieval.ranking.evidence.talk import Talk
from lcm.retrieval.ranking.evidence.term_segments import Segments, TermSegment, up_to, with_segment
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
TAIL = 64
"""The last documents of a talk, which may yet end: a turn and its reply become one."""


class GrowingTalk:
    """The documents of one memory that some queries see, as they become more; safe to use from several threads."""

    def __init__(self, index: weakref.ref[VectorIndex]) -> None:
        """
        Args:
            index: of the memory: its ids tell one memory's documents from another's.
        """
        self.index = index
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
        self._author_numbers = _Numbers[str]()
        self._author_turns: Counter[str] = Counter()
        self._role_numbers = _Numbers[str | None]()
        self._session_numbers = _Numbers[tuple[str | None, str | None]]()
        self._last_turns: dict[int, tuple[int, int]] = {}
        """Of each session the last turn and its section."""
        self._last_key: tuple[object, ...] | None = None
        self._stem_numbers, self._word_numbers = _Numbers[str](), _Numbers[str]()
        self._vocabulary: list[str] = []
        self._segments: Segments = ()
        self._stem_turns = self._word_turns = self._session_lengths = np.zeros(0, np.int64)
        self._years = range(0)

    def shared(self, batch: Batch) -> int:
        """With how many of the documents that are here those of a batch begin; 0 where they are another memory's."""
        if self.index() is not batch.vector_index:
            return 0
        count = min(len(self._ids), len(batch.documents))
        differs = batch.documents["document_id"].head(count) != self._ids.head(count)
        return int(differs.arg_max() or 0) if differs.any() else count

    def shortened(self, count: int, documents: pl.DataFrame) -> "GrowingTalk | None":
        """The talk as it was before its last documents; itself where it has no more, None where it has many more.

        Those who look at it as it was see what they saw: what is cut is copied.

        Args:
            count: of documents that stay, or a few less: no turn is cut.
            documents: begin with these.
        """
        if count == len(self._turns):
            return self if count else None
        turn = int(self._turns.rows[count])
        count = int(self._begins.rows[turn])
        if not count or len(self._turns) - count > TAIL:
            return None
        cut = GrowingTalk(self.index)
        cut.lock, cut.kept = self.lock, self.kept
        cut._ids = self._ids.head(count)
        cut._positions = dict(self._positions)
        for document_id in self._ids[count:]:
            del cut._positions[document_id]
        cut._last_key = _turn_keys(documents[count - 1 : count].select(_READ))[0]
        for name in ("_turns", "_lengths"):
            setattr(cut, name, getattr(self, name).head(count))
        for name in (
            "_begins",
            "_sessions",
            "_sections",
            "_before",
            "_behind",
            "_days",
            "_facts",
            "_authors",
            "_roles",
        ):
            setattr(cut, name, getattr(self, name).head(turn))
        behind = cut._behind.rows
        behind[behind >= turn] = -1
        cut._stems, cut._words = self._stems.head(count), self._words.head(turn)
        gone = np.arange(turn, len(self._begins))
        cut._author_numbers = _first(self._author_numbers, cut._authors.rows)
        names = list(self._author_numbers)
        cut._author_turns = self._author_turns - Counter(names[one] for one in self._authors.rows[gone] if one >= 0)
        cut._role_numbers = _first(self._role_numbers, cut._roles.rows)
        cut._session_numbers = _first(self._session_numbers, cut._sessions.rows)
        cut._last_turns = dict(self._last_turns)
        for last in reversed(gone):
            before, session = int(self._before.rows[last]), int(self._sessions.rows[last])
            cut._last_turns[session] = before, int(self._sections.rows[before])
            if before < 0:
                del cut._last_turns[session]
        cut._stem_numbers = _first(self._stem_numbers, cut._stems.frozen.numbers)
        cut._word_numbers = _first(self._word_numbers, cut._words.frozen.numbers)
        cut._vocabulary = self._vocabulary[: len(cut._word_numbers)]
        cut._segments = up_to(self._segments, count)
        stems, sizes = self._stems.frozen.of(np.arange(count, len(self._turns)))
        turns = np.repeat(self._turns.rows[count:], sizes)
        held = np.unique(np.stack([turns, stems]), axis=1)[1]  # once a turn
        cut._stem_turns = _less(self._stem_turns, held, len(cut._stem_numbers))
        cut._word_turns = _less(self._word_turns, self._words.frozen.of(gone)[0], len(cut._word_numbers))
        lengths = np.bincount(self._sessions.rows[self._turns.rows[count:]], self._lengths.rows[count:])
        lost = np.zeros(len(self._session_lengths), np.int64)
        lost[: len(lengths)] = lengths
        cut._session_lengths = (self._session_lengths - lost)[: len(cut._session_numbers)]
        known = cut._days.rows[cut._days.rows > 0]
        cut._years = range(year_of(known.min()), year_of(known.max()) + 1) if len(known) else range(0)
        return cut

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
        spans = list(zip(begins.tolist(), [*begins[1:].tolist(), len(new)], strict=True))
        words: list[tuple[str, ...]] = []
        words_of, facts, authors = [], [], []
        for begin, end in spans:
            words += map(content_words, texts[begin:end])  # just before the same text is split for its form
            author = author_of(texts[begin])
            authors.append(-1 if author is None else self._author_numbers[author])
            if author is not None:
                self._author_turns[author] += 1
            content = "\n".join([without_author(texts[begin], author), *texts[begin + 1 : end]])
            facts.append((*form_of(content), asks(content), tells_time(content)))
            words_of.append(list(map(self._word_numbers.__getitem__, dict.fromkeys(chain(*words[begin:end])))))
        stem_numbers = _StemNumbers(self._stem_numbers)
        stems = [list(map(stem_numbers.__getitem__, of_one)) for of_one in words]
        self._stems.extend(stems)
        self._lengths.extend([len(of_one) for of_one in stems])
        self._segments = with_segment(self._segments, TermSegment.of(before, stems))
        stems_of = [list(dict.fromkeys(chain(*stems[begin:end]))) for begin, end in spans]
        new_words = islice(reversed(self._word_numbers), len(self._word_numbers) - len(self._vocabulary))
        self._vocabulary += [*new_words][::-1]
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
            session = self._session_numbers[conversation_id, session_id]
            said_by = kind if kind == "exchange" else role
            last, section = self._last_turns.get(session, (-1, -1))
            section = turn if last < 0 or said_by in USERS else section
            self._last_turns[session] = turn, section
            sessions.append(session)
            sections.append(section)
            before.append(last)
            roles.append(self._role_numbers[said_by])
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
            lock=self.lock,
            kept=self.kept,
        )


def talk_of(batch: Batch) -> Talk:
    """What the queries of a batch see, laid out; a talk that has grown since it was asked for last is grown."""
    with _lock:
        for documents, index, known in _seen:
            if documents() is batch.documents and index() is batch.vector_index:
                return known
        for grown in _talks:
            cut = grown.shortened(grown.shared(batch), batch.documents)
            if cut is not None and (talk := cut.grow(batch.documents)) is not None:
                _talks[:] = [cut, *(one for one in _talks if one is not grown)]
                break
        else:
            made = GrowingTalk(weakref.ref(batch.vector_index))
            talk = made.grow(batch.documents)
            assert talk is not None, "nothing stands before the first document"
            _talks[:] = [made, *_talks[: _KEPT - 1]]
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


class _Numbers(dict[_Key, int]):
    """Things that are numbered as they come: a new one gets the next number."""

    def __missing__(self, key: _Key) -> int:
        number = self[key] = len(self)
        return number


class _StemNumbers(dict[str, int]):
    """Words with the numbers of their stems: most come again and again."""

    def __init__(self, numbers: _Numbers[str]) -> None:
        self._numbers = numbers

    def __missing__(self, word: str) -> int:
        number = self[word] = self._numbers[stem_of(word)]
        return number


def _first(numbers: _Numbers[_Key], used: npt.NDArray[np.int32]) -> _Numbers[_Key]:
    """Those up to the last that is used."""
    found, count = _Numbers(numbers), int(used.max(initial=-1)) + 1
    while len(found) > count:
        found.popitem()
    return found


def _less(counts: Places, gone: npt.NDArray[np.int32], size: int) -> Places:
    """The counts with one less for each time that a number is gone."""
    return (counts - np.bincount(gone, minlength=len(counts)))[:size]


def _counted(counts: Places, size: int, lists: Sequence[Sequence[int]]) -> Places:
    """The counts with one more for each time that a number is in a list; those given are left alone."""
    flat = np.fromiter(chain.from_iterable(lists), np.int64)
    grown = np.bincount(flat, minlength=size)
    grown[: len(counts)] += counts
    return grown
