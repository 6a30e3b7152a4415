"""What the texts of a talk say without a model: their words, how they are put, who speaks, and when; and, where much is
seen, a pool: the documents that are worth a closer look, for evidence of these alone."""

import calendar
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from lcm.checks import check_range
from lcm.protocols.contract import Contract, contract_of
from lcm.protocols.retrieval import Batch, Numbers, Places, Source, numbers_of
from lcm.retrieval.frames import beside, places, query_runs, taken
from lcm.retrieval.indexing import bm25_coverage, bm25_idf, bm25_norms, bm25_scores
from lcm.retrieval.ranking.evidence.talk import Excerpt, Talk, talk_of, told_apart, with_evidence
from lcm.retrieval.ranking.evidence.text_facts import FORM
from lcm.retrieval.source.indexes import POOLED, filled
from lcm.text import stem

_ASKER = re.compile(
    r"\b(?:I|[Ii]ch|[Jj]e|[Jj](?=['’])|[Yy]o|[Ee]u|[Яя]|[Мм]не|[Мм]еня)\b|[我私僕俺]|わたし|ぼく|내가|제가|나는|저는"
)
_ASKS_WHEN = re.compile(r"^\s*(?:when|how long|since when)\b|\b(?:what|which) (?:year|month|date|day|week|time)", re.I)
_ASKS_NOW = re.compile(
    r"\b(?:now|nowadays|currently|current|at present|at the moment|today|still|any ?more|no longer|these days|latest"
    r"|newest|most recent(?:ly)?|in the end|final|finally|eventually|end(?:ed)? up|settled? on|at last"
    r"|jetzt|inzwischen|mittlerweile|maintenant|ahora|actualmente|agora|сейчас|теперь)\b|现在|目前|今は|지금",
    re.I,
)
_MONTHS = {name.lower(): number for number, name in enumerate(calendar.month_name) if name}
_MONTHS |= {name.lower(): number for number, name in enumerate(calendar.month_abbr) if name}
_NUMBERS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "couple": 2, "few": 3}
_UNIT_DAYS = {"day": 1, "week": 7, "month": 30, "year": 365}
_MONTH = "|".join(sorted((name.title() for name in _MONTHS), key=len, reverse=True))
_DATE = re.compile(
    rf"(?:\b(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?)?\b(?P<month>{_MONTH})\b\.?"
    r"(?:\s+(?P<after>\d{1,2})(?:st|nd|rd|th)?\b)?"
    r"(?:,?\s*(?:of\s+)?(?P<year>(?:19|20)\d\d)\b)?"
)
_ISO = re.compile(r"\b((?:19|20)\d\d)-(\d\d?)(?:-(\d\d?))?\b")
_EAST_ASIAN = re.compile(r"((?:19|20)\d\d)\s?[年년]\s?(\d\d?)\s?[月월](?:\s?(\d\d?)\s?[日号號일])?")
_DOTTED = re.compile(r"\b(\d\d?)\.\s?(\d\d?)\.\s?((?:19|20)\d\d)\b")  # the day comes first wherever dots stand
_AGO = re.compile(rf"\b(\d+|{'|'.join(_NUMBERS)})(?:\s+of)?\s+(day|week|month|year)s?\s+ago\b", re.IGNORECASE)
_LAST = re.compile(r"\b(?:last|past|previous)\s+(week|weekend|month|year)\b", re.IGNORECASE)
_MOST_SPEAKERS = 2  # of a session in which form tells an answer
_DAY = re.compile(r"\b(today|yesterday)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class WordEvidence:
    """Add columns: standard scores among all turns that the query may see, but for shares in [0, 1].

    BM25 is of stems without stop words, author names left out of both sides, since a name matches half of all turns.
    `words_window` and `words_wide_window`: of the text from `window` and `wide_window` turns before to as many behind,
    in the session; `words_before`: of the turn before; `words_after_question`: of the turn before, where positive and
    that turn ends in a question mark; `words_passage`: of the document alone, where a turn was cut into several;
    `covered_passage`: the share of the query's stems, by idf, that the document holds; `words_session` and
    `covered_session`: of the session's text.

    Source: ours.
    """

    window: int = 2
    wide_window: int = 3

    def __post_init__(self) -> None:
        check_range(self, "window", "wide_window", ge=1)

    contract = Contract(makes=(
        "words_window", "words_wide_window", "words_before", "words_after_question", "words_passage", "covered_passage",
        "words_session", "covered_session",
    ))  # fmt: skip

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        texts = batch.queries["text"]

        def evidence(seen: Excerpt, row: int) -> list[Numbers]:
            talk = seen.talk
            passage, turn, window, wide_window, session = talk.kept(self, lambda: self._held_by(talk))
            terms = [stem(word) for word in talk.speakers.query_words(texts[row])]
            turns, documents, sessions = seen.numbers, seen.documents, talk.sessions[seen.numbers]
            words = seen.standardised(turn.scores(terms)[turns])
            return [
                seen.standardised(window.scores(terms)[turns]),
                seen.standardised(wide_window.scores(terms)[turns]),
                seen.beside(words, 1),
                seen.beside(words.clip(0.0) * talk.forms[turns, FORM.index("asks")], 1),
                seen.standardised(passage.scores(terms)[documents]),
                passage.coverage(terms)[documents],
                seen.standardised(session.scores(terms)[sessions]),
                session.coverage(terms)[sessions],
            ]

        return with_evidence(frame, batch, self.contract.makes, evidence, max(self.window, self.wide_window))

    def _held_by(self, talk: Talk) -> list["HeldTerms"]:
        """What passages, turns, windows, wide windows and sessions hold."""
        held, lengths, turns = talk.held, talk.lengths, talk.turns
        passages = HeldTerms(held, lengths)
        of_turns = HeldTerms(held, lengths, turns[:, np.newaxis]) if talk.is_cut else passages
        around = [HeldTerms(held, lengths, talk.around(radius)[turns]) for radius in (self.window, self.wide_window)]
        return [passages, of_turns, *around, HeldTerms(held, lengths, talk.sessions[turns][:, np.newaxis])]


class HeldTerms:
    """BM25 of places that documents make up: a place holds what the documents hold that count in it."""

    def __init__(
        self, held: Callable[[str], tuple[Places, Numbers]], lengths: Numbers, takers: Places | None = None
    ) -> None:
        """
        Args:
            held: gives the documents that hold a term, ascending, and how often.
            lengths: terms of each document.
            takers: shape (documents, any): the places that each document counts in, -1 = none; None = every document
                is a place.
        """
        self._held, self._takers = held, takers
        self._known: dict[str, tuple[Places, Numbers]] = {}
        """For queries share words and ask twice."""
        self._norms = bm25_norms(lengths if takers is None else self._taken(np.arange(len(takers)), lengths))

    def scores(self, terms: Sequence[str]) -> Numbers:
        """BM25 of every place; terms that come twice count once."""
        return bm25_scores(self._postings(terms), self._norms)

    def coverage(self, terms: Sequence[str]) -> Numbers:
        """The share of the terms that are anywhere, weighed by their idf, that each place holds."""
        return bm25_coverage(self._postings(terms), len(self._norms))

    def _postings(self, terms: Sequence[str]) -> Iterator[tuple[Places, Numbers]]:
        for term in dict.fromkeys(terms):
            if term not in self._known:
                places, times = self._held(term)
                if self._takers is not None:
                    taken = self._taken(places, times)
                    places = np.flatnonzero(taken)
                    times = taken[places]
                self._known[term] = places, times
            if len(self._known[term][0]):
                yield self._known[term]

    def _taken(self, documents: Places, numbers: Numbers) -> Numbers:
        """What every place gets of a number of each of these documents."""
        assert self._takers is not None
        takers = self._takers[documents]
        is_one = takers >= 0
        gifts = np.broadcast_to(numbers[:, np.newaxis], takers.shape)[is_one]
        found = np.bincount(takers[is_one], weights=gifts, minlength=int(self._takers.max(initial=-1)) + 1)
        return found.astype(np.float64)  # of no gifts they are whole numbers


@dataclass(frozen=True, slots=True)
class FormEvidence:
    """Add columns that do not depend on the query: facts are long, rare-worded, full of names and in the first person;
    questions are not answers.

    They tell of a talk between two named people: they are 0 for documents that begin with no name, for what an
    assistant or a tool says is long for other reasons, and in a session where more than two people speak, for at a
    meeting short remarks answer too. Standard scores: `form_length`, of ln(1 + words); `form_rarity`, of the mean idf
    of its stems; `form_names`, of ln(1 + words that begin with a capital letter inside a sentence). 0 or 1:
    `form_first_person`, whether it speaks of the speaker; `form_question`, whether its first line ends in a question
    mark.

    Source: ours.
    """

    contract = Contract(makes=("form_length", "form_rarity", "form_names", "form_first_person", "form_question"))

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        forms = self.contract.makes
        return with_evidence(frame, batch, forms, lambda seen, row: seen.kept(FormEvidence, lambda: _forms(seen)))


def _forms(seen: Excerpt) -> list[Numbers]:
    """One array a column of `FormEvidence`."""
    talk, turns = seen.talk, seen.numbers
    if not talk.speakers.authors:
        return [np.zeros(len(seen))] * len(FormEvidence.contract.makes)
    rarity, is_talk = (one[turns] for one in talk.kept(FormEvidence, lambda: (_rarity(talk), _is_between_two(talk))))
    words, names, first_person, asks = talk.forms[turns, : FORM.index("asks") + 1].T
    scaled = [seen.standardised(one) for one in (np.log1p(words), rarity, np.log1p(names))]
    return [one * is_talk for one in (*scaled, first_person, asks)]


def _rarity(talk: Talk) -> Numbers:
    """The mean idf of the stems of each turn."""
    held = talk.counted(talk.said.stems)
    idf = bm25_idf(np.bincount(held.indices, minlength=held.shape[1]), len(talk))
    found: Numbers = held @ idf / np.maximum(held.sum(axis=1), 1.0)
    return found


def _is_between_two(talk: Talk) -> Numbers:
    """1 of each turn where one who is named says it, in a session where no more than two such people speak; else 0."""
    is_named = talk.authors >= 0
    pairs = np.unique(np.stack([talk.sessions[is_named], talk.authors[is_named]]), axis=1)
    speakers = np.bincount(pairs[0], minlength=int(talk.sessions.max(initial=-1)) + 1)
    found: Numbers = (is_named & (speakers[talk.sessions] <= _MOST_SPEAKERS)).astype(np.float64)
    return found


@dataclass(frozen=True, slots=True)
class SpeakerEvidence:
    """Add columns of 0 and 1: a question about somebody is mostly answered by what that person said. Where a query
    names exactly one of those who speak: `asked_speaks` of documents that begin with that name, `other_speaks` of those
    that begin with another. A query that names nobody, or several, leaves both 0; so do documents that begin with no
    name. Of these, where a query says I (in English, German, French, Spanish, Portuguese, Russian, Chinese, Japanese or
    Korean), `asker_speaks` tells which the user speaks in.

    Source: ours.
    """

    contract = Contract(makes=("asked_speaks", "other_speaks", "asker_speaks"))

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        texts = batch.queries["text"]

        def evidence(seen: Excerpt, row: int) -> list[Numbers]:
            talk, authors = seen.talk, seen.talk.authors[seen.numbers]
            named = talk.speakers.named(texts[row])
            is_asked, is_named = np.zeros(len(seen), np.bool_), authors >= 0
            if len(named) == 1:
                is_asked = authors == talk.talks.authors[next(iter(named))]
            is_other = is_named & ~is_asked & (len(named) == 1)
            is_asker = ~is_named & talk.is_user[seen.numbers] & says_i(texts[row])
            return [one.astype(np.float64) for one in (is_asked, is_other, is_asker)]

        return with_evidence(frame, batch, self.contract.makes, evidence)


def says_i(text: str) -> bool:
    """Whether a query speaks of who asks."""
    return _ASKER.search(text) is not None


class Span(NamedTuple):
    """Days since the Unix epoch; `end` is the first day behind."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class TimeEvidence:
    """Add columns.

    `said_then`: 1 of what was said in a span of days that the query names (`spans`), less the farther
    from it: 2 ** (-days / half-life), of its own behind the span, for people tell what has been, and before it;
    `told_when_asked`: 1 of a turn with a word of time, where the query asks when; `later_if_now`: how far on among all
    turns a turn was said, in [0, 1], where the query asks how things stand now, or stood in the end: what was said
    later holds.

    Source: ours.
    """

    behind_half_life_days: float = 3.0
    before_half_life_days: float = 1.0

    def __post_init__(self) -> None:
        check_range(self, "behind_half_life_days", "before_half_life_days", gt=0)

    contract = Contract(makes=("said_then", "told_when_asked", "later_if_now"))

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        texts, asked_at = batch.queries["text"], batch.queries["asked_at"]

        def evidence(seen: Excerpt, row: int) -> list[Numbers]:
            talk, turns, nothing = seen.talk, seen.numbers, np.zeros(len(seen))
            named = spans(texts[row], asked_at[row].date(), talk.years)
            return [
                self._nearness(talk.days[turns], named) if named else nothing,
                talk.forms[turns, FORM.index("tells_time")] if _ASKS_WHEN.search(texts[row]) else nothing,
                talk.progress[turns] if _ASKS_NOW.search(texts[row]) else nothing,
            ]

        return with_evidence(frame, batch, self.contract.makes, evidence)

    def _nearness(self, days: Numbers, named: Sequence[Span]) -> Numbers:
        nearest = np.zeros(len(days))
        for start, end in named:
            before, behind = np.maximum(start - days, 0.0), np.maximum(days - end, 0.0)
            weights = 2.0 ** (-before / self.before_half_life_days - behind / self.behind_half_life_days)
            nearest = np.maximum(nearest, weights)
        return nearest


def spans(text: str, asked_on: date, years: range) -> list[Span]:
    """The spans that a text names.

    A month without a year is that month of every year talked in, a date without a year likewise. Months are read where
    they begin with a capital letter, so that "may" is none.

    Args:
        text: of a query.
        asked_on: what "last week" and "two days ago" count from.
        years: that something was said in.
    """
    return [*_dates(text, years), *_distances(text, asked_on)]


def _dates(text: str, years: range) -> Iterator[Span]:
    for found in _DATE.finditer(text):
        month = _MONTHS[found["month"].lower()]
        named = found["day"] or found["after"]
        for year in [int(found["year"])] if found["year"] else years:
            yield from _span(year, month, int(named) if named else None)
    for found in (*_ISO.finditer(text), *_EAST_ASIAN.finditer(text)):
        yield from _span(int(found[1]), int(found[2]), int(found[3]) if found[3] else None)
    for found in _DOTTED.finditer(text):
        yield from _span(int(found[3]), int(found[2]), int(found[1]))


def _distances(text: str, asked_on: date) -> Iterator[Span]:
    today = _number(asked_on)
    for found in _AGO.finditer(text):
        unit, count = _UNIT_DAYS[found[2].lower()], found[1].lower()
        distance = unit * (_NUMBERS[count] if count in _NUMBERS else min(int(count), 100 * 365 // unit))
        yield Span(today - distance - unit // 2, today - distance + unit // 2 + 1)
    for found in _LAST.finditer(text):
        unit = _UNIT_DAYS.get(found[1].lower(), 7)
        yield Span(today - 2 * unit + 1, today)
    for found in _DAY.finditer(text):
        start = today - (found[1].lower() == "yesterday")
        yield Span(start, start + 1)


def _span(year: int, month: int, day: int | None) -> Iterator[Span]:
    """The day, or the month where no day is given; nothing where there is no such day."""
    if not (1 <= month <= 12 and 1 <= year <= 9998):
        return
    length = calendar.monthrange(year, month)[1]
    if day is None:
        start = date(year, month, 1)
        yield Span(_number(start), _number(start + timedelta(days=length)))
    elif 1 <= day <= length:
        yield Span(_number(date(year, month, day)), _number(date(year, month, day)) + 1)


def _number(day: date) -> int:
    return (day - date(1970, 1, 1)).days


_UNRANKED = 2**31
_NONE = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class Pool:
    """What a source finds; of a query that sees more than `whole_documents`, a pool of it, and what stands beside that.

    A pool holds the `best` documents of each branch of the source; as many as `speakers` more of what the source found
    by the one whom the query names, or by the user where it says I; `times` more of what was said in a time that it
    names; and the turns before and behind the first `neighbours` of each branch. Its rows have the column `pooled`:
    stages of evidence look at these, and at turns around them, and no longer at every document.

    Source: ours.
    """

    source: Source
    whole_documents: int = 4000
    best: int = 150
    speakers: int = 50
    times: int = 50
    neighbours: int = 20

    def __post_init__(self) -> None:
        check_range(self, "best", ge=1)
        check_range(self, "whole_documents", "speakers", "times", "neighbours", ge=0)

    @property
    def contract(self) -> Contract:
        return replace(contract_of(self.source), fills=filled(self.source))

    def candidates(self, batch: Batch) -> pl.DataFrame:
        found = self.source.candidates(batch)
        if len(batch.documents) <= self.whole_documents:
            return found
        talk, ids = talk_of(batch), batch.documents["document_id"]
        numbers, ranks = talk.rows_of(batch.documents, found["document_id"]), _best_ranks(found)
        rows = {query_id: row for row, query_id in enumerate(batch.queries["query_id"].to_list())}
        kept, near, firsts = [_NONE], [_NONE], []
        first = 0
        for length, query_id in query_runs(found):
            here = slice(first, first + length)
            chosen, others = self._pooled(batch, rows[query_id], talk, numbers[here], ranks[here])
            kept.append(first + chosen)
            near.append(others)
            firsts.append(first)
            first += length
        queries = [np.repeat(firsts, list(map(len, parts[1:]))).astype(np.int64) for parts in (kept, near)]
        lenders, beside_them = (pl.Series(rows.astype(np.uint32)) for rows in (queries[1], np.concatenate(near)))
        around = pl.DataFrame([found["query_id"][lenders], found["asked_at"][lenders], ids[beside_them]])
        pool = pl.concat([taken(found, np.concatenate(kept)), around], how="diagonal")
        pool = taken(pool, np.argsort(np.concatenate(queries), kind="stable"))
        return beside(pool, [pl.Series(POOLED, np.ones(len(pool), np.bool_))])

    def _pooled(self, batch: Batch, row: int, talk: Talk, numbers: Places, ranks: Places) -> tuple[Places, Places]:
        """Which rows of a query are in its pool, and the numbers of the documents beside them.

        Args:
            numbers: of the documents of its rows.
            ranks: the best rank of each in any branch, from 1.
        """
        text, asked_at = batch.queries["text"][row], batch.queries["asked_at"][row]
        turns = talk.turns[numbers]
        is_kept = ranks <= self.best
        for wanted, most in (
            (_is_by(talk, turns, text), self.speakers),
            (_is_then(talk, turns, text, asked_at.date()), self.times),
        ):
            further = np.flatnonzero(wanted & ~is_kept)
            is_kept[further[np.argsort(ranks[further], kind="stable")[:most]]] = True
        centres = turns[ranks <= self.neighbours]
        near = np.concatenate([talk.near(1)[centres], talk.near(-1)[centres]])
        is_near = np.zeros(len(talk.numbers), np.bool_)
        is_near[talk.documents_of(told_apart(near[near >= 0], len(talk))[0])[0]] = True
        is_near[numbers[is_kept & (numbers >= 0)]] = False
        return np.flatnonzero(is_kept), np.flatnonzero(is_near)


def _best_ranks(found: pl.DataFrame) -> Places:
    """The best rank of each row in any branch; of a row without one its place in its query."""
    ranks = [numbers_of(found[name], _UNRANKED) for name in found.columns if name.endswith("_rank")]
    best = np.min(ranks, axis=0) if ranks else np.full(len(found), _UNRANKED)
    return np.where(best == _UNRANKED, places(found) + 1, best).astype(np.int64)


def _is_by(talk: Talk, turns: Places, text: str) -> npt.NDArray[np.bool_]:
    """Which turns the one has said whom a query names, or the user, where it says I."""
    named = talk.speakers.named(text)
    found = np.zeros(len(turns), np.bool_)
    if len(named) == 1:
        found |= talk.authors[turns] == talk.talks.authors[next(iter(named))]
    elif says_i(text):
        found |= talk.is_user[turns]
    return found


def _is_then(talk: Talk, turns: Places, text: str, asked_on: date) -> npt.NDArray[np.bool_]:
    """Which turns were said in a time that a query names."""
    days, found = talk.days[turns], np.zeros(len(turns), np.bool_)
    for start, end in spans(text, asked_on, talk.years):
        found |= (days >= start) & (days < end)
    return found
