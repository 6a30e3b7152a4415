"""What queries are ranked among: the documents that stand, laid out as turns of a talk, and excerpts of it.

A turn is a document, or all passages that one message or step was cut into.
"""

import threading
from collections.abc import Callable, Hashable, Sequence
from functools import cached_property
from itertools import chain, repeat
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.sparse import csr_array

from lcm.protocols.retrieval import Batch, Numbers, Places
from lcm.records.document import EXCHANGE_SPEAKER
from lcm.retrieval.frames import CUT_KINDS, KeptBeside, beside, columns_of, places_of, query_runs
from lcm.retrieval.ranking.evidence.text_facts import FORM, Speakers, author_of, read_text
from lcm.retrieval.source.indexes import POOLED
from lcm.text import is_cyrillic, stem

USERS = ("user", "exchange")
"""Roles of turns in which the user speaks; an exchange has no other role."""
_READ = ("document_id", "text", "conversation_id", "session_id", "seq", "kind", "role", "created_at")
_KEPT = 4  # talks of a memory: what is asked live is one that grows, or a few by who asks
_FLAT = 1e-9  # spread below which nothing stands out
_NEVER = np.iinfo(np.int64).min
_DAY_MS = 86_400_000
_NAMES, _ASKS, _CAPTION = (FORM.index(name) for name in ("names", "asks", "has_caption"))
Flags = npt.NDArray[np.bool_]
_Key = TypeVar("_Key", bound=Hashable)
_Made = TypeVar("_Made")


class _Numbered(dict[_Key, int]):
    """Things that are numbered as they come: a new one gets the next number."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[_Key] = []
        """By their numbers."""

    def __missing__(self, key: _Key) -> int:
        number = self[key] = len(self)
        self.names.append(key)
        return number


class _Keeping:
    """Keeps what stages have computed of it, by their own keys."""

    def __init__(self, lock: threading.RLock) -> None:
        self.lock, self._made = lock, dict[Hashable, Any]()

    def kept(self, key: Hashable, make: Callable[[], _Made]) -> _Made:
        """What `make` has made, once."""
        with self.lock:
            if key not in self._made:
                self._made[key] = make()
            made: _Made = self._made[key]
            return made


class Talks(_Keeping):
    """What was read in the documents of one memory, each once, and the talks that queries see of them; safe to use
    from several threads."""

    def __init__(self) -> None:
        super().__init__(threading.RLock())
        self.documents: _Numbered[str] = _Numbered()
        self.words: _Numbered[str] = _Numbered()
        self.stems: _Numbered[str] = _Numbered()
        self.authors: _Numbered[str] = _Numbered()
        """What may be names of speakers."""
        self.roles: _Numbered[str | None] = _Numbered()
        self._turns: _Numbered[Hashable] = _Numbered()
        self.sessions: _Numbered[Hashable] = _Numbered()
        self.places = np.zeros((6, 0), np.int64)
        """Of each document turn, session, role, author (-1 = none), seq and the time of creation in milliseconds, both
        `_NEVER` where there is none."""
        self.forms = np.zeros((0, 2, len(FORM)))
        """Of each document, as it stands and behind what may be a name."""
        self.spans = np.zeros((3, 0), np.int64)
        """Of each document where its words begin, where those of what may be a name do, and where they end."""
        self.said = np.zeros(0, np.int32)
        """The words of all documents."""
        self.stem_of = np.zeros(0, np.int32)
        """Of each word that was read."""
        self._talks: dict[bytes, Talk] = {}
        self._of: KeptBeside[pl.DataFrame, Talk] = KeptBeside(self._talk, _KEPT)

    def of(self, documents: pl.DataFrame) -> "Talk":
        """The talk of some documents, oldest first; the last few are kept."""
        return self._of(documents)

    def _talk(self, documents: pl.DataFrame) -> "Talk":
        with self.lock:
            ids = documents["document_id"].to_list()
            numbers = np.fromiter(map(self.documents.get, ids, repeat(-1)), np.int64, len(ids))
            if len(new := np.flatnonzero(numbers < 0)):
                numbers[new] = np.arange(len(self.documents), len(self.documents) + len(new))
                self._read(documents.select(_READ)[pl.Series(new.astype(np.uint32))])
            key = numbers.tobytes()
            self._talks[key] = found = self._talks.pop(key, None) or Talk(self, numbers)
            for oldest in list(self._talks)[:-_KEPT]:
                del self._talks[oldest]
            return found

    def _read(self, documents: pl.DataFrame) -> None:
        """Take in documents that are new."""
        places, forms, lists, name_sizes = [], [], [], []
        seqs = documents["seq"].fill_null(_NEVER)
        created = documents["created_at"].dt.epoch("ms").fill_null(_NEVER)
        for document_id, text, conversation_id, session_id, seq, kind, role in documents.drop("created_at").iter_rows():
            said = EXCHANGE_SPEAKER.sub("", text or "") if kind == "exchange" else text or ""
            author = author_of(said)
            whole = read_text(said)
            rest = whole if author is None else read_text(said[len(author) + 2 :])
            name = () if author is None else read_text(author).words
            is_passage = kind in CUT_KINDS and seq is not None
            self.documents[document_id]  # numbered
            places.append(
                (
                    self._turns[(conversation_id, session_id, seq, kind) if is_passage else document_id],
                    self.sessions[conversation_id, session_id],
                    self.roles[kind if kind == "exchange" else role],
                    -1 if author is None else self.authors[author],
                )
            )
            forms.append((whole.form, rest.form))
            lists.append((*rest.words, *name))
            name_sizes.append(len(name))
        sizes = np.array(list(map(len, lists)), np.int64)
        words = np.fromiter(map(self.words.__getitem__, chain.from_iterable(lists)), np.int32, int(sizes.sum()))
        self._learn_stems()
        ends = len(self.said) + np.cumsum(sizes)
        new = np.concatenate([np.array(places, np.int64).T, [seqs.to_numpy()], [created.to_numpy()]])
        self.places = np.concatenate([self.places, new], axis=1)
        self.forms = np.concatenate([self.forms, np.array(forms)])
        self.spans = np.concatenate([self.spans, [ends - sizes, ends - name_sizes, ends]], axis=1)
        self.said = np.append(self.said, words)

    def _learn_stems(self) -> None:
        new = self.words.names[len(self.stem_of) :]
        self.stem_of = np.append(self.stem_of, np.array([self.stems[stem(word)] for word in new], np.int32))


def talk_of(batch: Batch) -> "Talk":
    """What the queries of a batch see; laid out once while their memory is open and these documents stand."""
    if Talks not in batch.derived:
        batch.derived.setdefault(Talks, Talks())
    talks: Talks = batch.derived[Talks]
    return talks.of(batch.documents)


class _Said(NamedTuple):
    """The words of a talk, but for the names of those who speak: turn by turn, numbered as `Talks` does."""

    words: npt.NDArray[np.int32]
    stems: npt.NDArray[np.int32]
    documents: Places
    """Of each word."""


class Talk(_Keeping):
    """Documents at one moment: arrays of an entry a turn, in the order in which turns came, unless they say otherwise.

    What is not asked for is not laid out.
    """

    def __init__(self, talks: Talks, numbers: Places) -> None:
        """
        Args:
            numbers: of the documents, in their order, among all that were read.
        """
        super().__init__(talks.lock)
        self.talks, self.numbers = talks, numbers
        turns, sessions, roles, authors, seqs, created = talks.places[:, numbers]
        place_of = np.empty(int(turns.max(initial=-1)) + 1, np.int64)
        place_of[turns[::-1]] = np.arange(len(numbers))[::-1]  # of equal ones the first stays
        self._is_first = place_of[turns] == np.arange(len(numbers))
        self.turns: Places = (np.cumsum(self._is_first) - 1)[place_of[turns]]
        """Of each document the number of its turn."""
        firsts = self._firsts = np.flatnonzero(self._is_first)
        self.sessions: Places = told_apart(sessions[firsts], len(talks.sessions))[1]
        """The number of the session of each."""
        names, authors = talks.authors.names, authors[firsts]
        counts = np.bincount(authors[authors >= 0], minlength=len(names))
        self.speakers = Speakers.among({names[one]: int(counts[one]) for one in np.flatnonzero(counts)}, len(firsts))
        self._is_speaker = np.array([name in self.speakers.authors for name in names], np.bool_)
        self.authors: Places = np.where(self._is_speaker[authors], authors, -1) if names else authors
        """The number in `Talks.authors` of who speaks, -1 where none is named."""
        self.roles: Places = roles[firsts]
        """In `Talks.roles`."""
        self.is_user: Flags = np.array([role in USERS for role in talks.roles], np.bool_)[self.roles]
        self._seqs, self._created = seqs[firsts], created[firsts]
        self.days: Numbers = np.where(self._created == _NEVER, 0.0, self._created / _DAY_MS)
        """Since the Unix epoch."""
        self._held: dict[str, tuple[Places, Numbers]] = {}
        self._near: dict[int, Places] = {}
        self._excerpts: dict[int, tuple[Places, Excerpt]] = {}
        self._rows: tuple[pl.Series, Places] | None = None

    def __len__(self) -> int:
        return len(self._firsts)

    @property
    def is_cut(self) -> bool:
        """Some turns are of several documents."""
        return len(self) != len(self.numbers)

    @cached_property
    def order(self) -> Places:
        """The turns by session and seq: not one a turn in order, but a permutation."""
        return np.lexsort((np.where(self._seqs == _NEVER, 0, self._seqs), self.sessions))

    @cached_property
    def sections(self) -> Places:
        """The number of the section of each: from one turn of the user up to the next, in a session."""
        begins = self.is_user[self.order] | (np.diff(self.sessions[self.order], prepend=-1) != 0)
        sections = np.empty(len(self), np.int64)
        sections[self.order] = np.cumsum(begins) - 1
        return sections

    @cached_property
    def progress(self) -> Numbers:
        """How far on it was said, from 0 to 1: by time, of equal or unknown times by place in the conversation."""
        order = np.lexsort((self._seqs, self._created))
        is_later = (np.diff(self._created[order]) != 0) | (np.diff(self._seqs[order]) != 0)
        ranks = np.empty(len(self))
        ranks[order] = np.cumsum(np.append(False, is_later))[: len(self)]
        found: Numbers = ranks / max(1.0, ranks.max(initial=0.0))
        return found

    @cached_property
    def years(self) -> range:
        """In which something was said."""
        known = self.days[self.days > 0].astype("datetime64[D]").astype("datetime64[Y]").astype(np.int64) + 1970
        return range(int(known.min()), int(known.max()) + 1) if len(known) else range(0)

    def near(self, distance: int) -> Places:
        """Of each turn the one that stands so far before it in its session, or behind it; -1 where there is none.

        Args:
            distance: negative = behind it.
        """
        if distance not in self._near:
            found = np.full(len(self), -1)
            if distance == 0:
                found = np.arange(len(self))
            elif (apart := abs(distance)) < len(self):
                before, behind = self.order[:-apart], self.order[apart:]
                is_one = self.sessions[before] == self.sessions[behind]
                lenders, takers = (before, behind) if distance > 0 else (behind, before)
                found[takers[is_one]] = lenders[is_one]
            self._near[distance] = found
        return self._near[distance]

    def around(self, radius: int) -> Places:
        """Shape (n, 2 radius + 1): each turn and those up to `radius` before and behind it, -1 where there is none."""
        return np.stack([self.near(distance) for distance in range(radius, -radius - 1, -1)], axis=1)

    @cached_property
    def _by_turn(self) -> tuple[Places, Places]:
        """The documents, turn by turn, and where those of each begin, and those of the last end."""
        ends = np.cumsum(np.bincount(self.turns, minlength=len(self)))
        return np.argsort(self.turns, kind="stable"), np.append(0, ends)

    def documents_of(self, turns: Places) -> tuple[Places, Places]:
        """The documents of some turns, one turn behind another, and how many each has."""
        documents, begun = self._by_turn
        return documents[runs(begun[turns], begun[turns + 1])], begun[turns + 1] - begun[turns]

    @cached_property
    def said(self) -> _Said:
        talks, documents = self.talks, self._by_turn[0]
        begun, name_begun, ends = talks.spans[:, self.numbers[documents]]
        ends = np.where(self._is_named[documents], name_begun, ends)
        words, owners = talks.said[runs(begun, ends)], np.repeat(documents, ends - begun)
        if self.speakers.names:
            is_word = ~self._is_name()[words]
            words, owners = words[is_word], owners[is_word]
        return _Said(words, talks.stem_of[words], owners)

    def counted(self, terms: npt.NDArray[np.int32]) -> csr_array:
        """How often each turn holds each of the words, or stems, of `said`: turns by terms."""
        begun = np.searchsorted(self.turns[self.said.documents], np.arange(len(self) + 1))
        shape = len(self), max(len(self.talks.words), len(self.talks.stems))
        found = csr_array((np.ones(len(terms)), terms, begun), shape)
        found.sum_duplicates()
        return found

    @property
    def _is_named(self) -> Flags:
        """Of each document whether it begins with the name of one who speaks."""
        found: Flags = self._is_first.copy()
        found[self._firsts] = self.authors >= 0
        return found

    def _is_name(self) -> Flags:
        """Of each word whether it is a name of one who speaks; Cyrillic ones are told by their stems."""
        talks = self.talks
        found = np.zeros(len(talks.words), np.bool_)
        for name in self.speakers.names:
            if not is_cyrillic(name) and name in talks.words:
                found[talks.words[name]] = True
            elif is_cyrillic(name) and name in talks.stems:
                found[: len(talks.stem_of)] |= talks.stem_of == talks.stems[name]
        return found

    @cached_property
    def lengths(self) -> Numbers:
        """Words of each document, but for names."""
        return np.bincount(self.said.documents, minlength=len(self.numbers)).astype(np.float64)

    def held(self, stem: str) -> tuple[Places, Numbers]:
        """The documents that hold a stem, ascending, and how often."""
        if stem not in self._held:
            is_it = self.said.stems == self.talks.stems.get(stem, -1)
            found, counts = np.unique(self.said.documents[is_it], return_counts=True)
            self._held[stem] = found, counts.astype(np.float64)
        return self._held[stem]

    @cached_property
    def forms(self) -> Numbers:
        """Shape (n, `FORM`): what was said, behind the name of who speaks."""
        documents, begun = self._by_turn
        forms = self.talks.forms[self.numbers[documents], self._is_named[documents].astype(np.int64)]
        if not self.is_cut:
            return forms
        starts, turns = begun[:-1], self.turns[documents]
        captions = np.cumsum(forms[:, _CAPTION]) - forms[:, _CAPTION]
        forms[captions > captions[starts][turns], _NAMES] = 0.0  # behind a caption, in the same turn
        found = np.maximum.reduceat(forms, starts, axis=0)
        found[:, :2] = np.add.reduceat(forms[:, :2], starts, axis=0)
        found[:, _ASKS] = forms[starts, _ASKS]
        return found

    @cached_property
    def everything(self) -> "Excerpt":
        return Excerpt(self, np.arange(len(self)), np.arange(len(self)))

    def excerpt(self, documents: Places, radius: int) -> "Excerpt":
        """The turns of some documents, and those up to `radius` before and behind each in its session.

        The last one of each radius stays at hand: several stages look at the rows of one query.
        """
        known = self._excerpts.get(radius)
        if known is None or not np.array_equal(known[0], documents):
            turns = told_apart(self.turns[documents], len(self))[0]
            near = np.concatenate([self.near(distance)[turns] for distance in range(-radius, radius + 1)])
            numbers = told_apart(near[near >= 0], len(self))[0]
            known = self._excerpts[radius] = documents, Excerpt(self, numbers, np.searchsorted(numbers, turns))
        return known[1]

    def rows_of(self, documents: pl.DataFrame, ids: pl.Series) -> Places:
        """Of documents of this talk their places, -1 of what is not in it; those asked for last stay at hand."""
        if self._rows is None or not self._rows[0].equals(ids):
            found = map(places_of(documents).get, ids.to_list(), repeat(-1))
            rows = np.fromiter(found, np.int64, len(ids))
            self._rows = ids, np.where(rows < len(self.numbers), rows, -1)
        return self._rows[1]


class Excerpt(_Keeping):
    """Turns that a query is ranked among, all of a talk or some: arrays of an entry a turn unless they say otherwise.

    Standard scores are among the turns asked for; how often words are, and what vectors are compared with, is counted
    over the whole talk.
    """

    def __init__(self, talk: Talk, numbers: Places, asked: Places) -> None:
        """
        Args:
            numbers: of the turns in the talk, ascending.
            asked: places of those that were asked for; the others stand around them.
        """
        super().__init__(talk.lock)
        self.talk, self.numbers, self.asked = talk, numbers, asked
        self.is_everything = len(asked) == len(talk)
        self.sessions, self.sections = talk.sessions[numbers], talk.sections[numbers]
        self.documents, sizes = talk.documents_of(numbers)
        self.turns = np.repeat(np.arange(len(numbers)), sizes)
        """Of each document the place of its turn."""
        self._near: dict[int, Places] = {}

    def __len__(self) -> int:
        return len(self.numbers)

    @cached_property
    def place_of(self) -> Places:
        """Of each document of the talk its place in `documents`, -1 of one that is not there."""
        return _place_of(self.documents, len(self.talk.numbers))

    def near(self, distance: int) -> Places:
        """As `Talk.near`, by places."""
        if distance not in self._near:
            near = self.talk.near(distance)[self.numbers]
            self._near[distance] = np.where(near >= 0, self._turn_place_of[near], -1)
        return self._near[distance]

    @cached_property
    def _turn_place_of(self) -> Places:
        return _place_of(self.numbers, len(self.talk))

    def beside(self, values: Numbers, distance: int) -> Numbers:
        """For each turn the value of that `distance` places before it in its session, 0 where there is none.

        Args:
            values: shape (n,) or (n, dim).
            distance: negative = behind it.
        """
        found, near = np.zeros_like(values), self.near(distance)
        is_there = near >= 0
        found[is_there] = values[near[is_there]]
        return found

    def standardised(self, values: Numbers) -> Numbers:
        """(x - mean) / standard deviation of turns, or of documents, among those of the turns that were asked for; 0
        where all are equal."""
        counted = values[self.asked if len(values) == len(self) else self._are_asked]
        spread = counted.std() if len(counted) else 0.0
        return (values - counted.mean()) / spread if spread > _FLAT else np.zeros_like(values)

    @cached_property
    def _are_asked(self) -> Flags:
        """Of each document whether its turn was asked for."""
        is_asked = np.zeros(len(self), np.bool_)
        is_asked[self.asked] = True
        return is_asked[self.turns]


Evidence = Callable[[Excerpt, int], Sequence[Numbers]]


def with_evidence(
    frame: pl.DataFrame, batch: Batch, names: Sequence[str], evidence: Evidence, radius: int = 0
) -> pl.DataFrame:
    """Add Float64 columns; a row whose document the batch does not show gets 0.

    Args:
        frame: candidates, the rows of a query together; with a column `POOLED` each query sees an excerpt of its rows.
        batch: what they were asked of.
        names: of the columns.
        evidence: gives for the query in one row of `batch.queries` one array a column, one value a turn, which all its
            passages share, or one a document.
        radius: how many turns around those of its rows it looks at in an excerpt.
    """
    talk, is_pooled = talk_of(batch), POOLED in frame.columns
    places = talk.rows_of(batch.documents, frame["document_id"])
    rows = {query_id: row for row, query_id in enumerate(batch.queries["query_id"].to_list())}
    found = np.zeros((len(names), len(frame)))
    first = 0
    for length, query_id in query_runs(frame):
        here = places[first : first + length]
        is_known = here >= 0
        if is_known.any():
            known = here[is_known]
            seen = talk.excerpt(known, radius) if is_pooled else talk.everything
            documents = seen.place_of[known]
            turns = seen.turns[documents]
            for column, of_one in enumerate(evidence(seen, rows[query_id])):
                found[column, first : first + length][is_known] = of_one[
                    turns if len(of_one) == len(seen) else documents
                ]
        first += length
    return beside(frame, columns_of(names, found))


def highest(groups: Places, values: Numbers) -> Numbers:
    """Of each group, as `sessions` or `sections` number them, the highest value of its members."""
    best = np.full(int(groups.max(initial=-1)) + 1, -np.inf)
    np.maximum.at(best, groups, values)
    return best


def told_apart(numbers: Places, count: int) -> tuple[Places, Places]:
    """Those that differ, ascending, and the place of each among them: `np.unique`, sooner than by sorting.

    Args:
        count: above all of them.
    """
    places = np.zeros(count, np.int64)
    places[numbers] = 1
    found = np.flatnonzero(places)
    places[found] = np.arange(len(found))
    return found, places[numbers]


def runs(begun: Places, ends: Places) -> Places:
    """The numbers from each beginning up to its end, one run behind another."""
    sizes = ends - begun
    behind = np.cumsum(sizes)
    found: Places = np.repeat(begun - (behind - sizes), sizes) + np.arange(sizes.sum())
    return found


def _place_of(numbers: Places, count: int) -> Places:
    found = np.full(count, -1)
    found[numbers] = np.arange(len(numbers))
    return found
