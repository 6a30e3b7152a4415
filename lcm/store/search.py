"""Search in what was said and what was summarised, through the full-text tables and past them; and what a person types
into it, as full-text expressions and LIKE patterns.

Full-text queries are driven from the full-text table: driven from the rows of a conversation, each would ask it anew.
Ids are found and sorted first, words are read for those alone that are returned.

Source: lossless-claw, 0.6.3 and 0.15.3. Lengths and places of what is typed are UTF-16 units.
"""

import json
import logging
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from operator import itemgetter
from time import monotonic
from typing import Any, Literal, NamedTuple

import regex

from lcm.clock import parse_instant
from lcm.encoding import optional_instant, well_formed
from lcm.errors import LimitError
from lcm.javascript import WHITE_SPACE, trim
from lcm.limits import PATTERN_TEXT_CHARACTERS

_CJK = "\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff"
_CJK_RUN = re.compile(f"[{_CJK}]+")
_LATIN = re.compile(r"[a-zA-Z0-9][\w./-]*", re.ASCII)
_WORD = re.compile(f"[^{WHITE_SPACE}]+")
_PHRASE_OR_WORD = re.compile(f'"([^"]+)"|([^{WHITE_SPACE}]+)')
_EDGES = "`'\"()[]{}<>.,:;!?*_+=|\\/-"

TRIGRAM = 3
"""Characters: a shorter run is in no trigram table."""
_TRIGRAM_WINDOW, _LIKE_WINDOW = 4, 2
_BEFORE, _AFTER, _SHORT = 24, 40, 80


class CjkQuery(NamedTuple):
    """A query with Chinese, Japanese or Korean in it: its runs, and its other words in lower case."""

    runs: tuple[str, ...]
    words: tuple[str, ...]


def match_expression(query: str, *, keeps_phrases: bool = False) -> str:
    """The query as an FTS5 expression in which no character has a meaning of its own: all words must occur.

    Args:
        query: what was typed.
        keeps_phrases: words between two quotation marks must stand side by side; False: marks are dropped.
    """
    if keeps_phrases:
        terms = [phrase or word for phrase, word in _PHRASE_OR_WORD.findall(query)]
        words = [word for term in terms if (word := trim(term.replace('"', "")))]
    else:
        words = [word.replace('"', "") for word in _WORD.findall(query)]
    return " ".join(f'"{word}"' for word in words) or '""'


def contains_cjk(text: str) -> bool:
    return _CJK_RUN.search(text) is not None


def like_terms(query: str) -> list[str]:
    """The phrases and words of a query as a substring search wants them: lower case, without marks around them."""
    found = (_bare(phrase or word) for phrase, word in _PHRASE_OR_WORD.findall(query))
    return list(dict.fromkeys(term for term in found if term)) or [term for term in [_bare(query)] if term]


def like_pattern(term: str) -> str:
    r"""The pattern of `LIKE ? ESCAPE '\'` for a text that holds the term."""
    escaped = re.sub(r"([\\%_])", r"\\\1", term)
    return f"%{escaped}%"


def cjk_query(query: str) -> CjkQuery:
    words = dict.fromkeys(word.lower() for word in _LATIN.findall(query))
    return CjkQuery(tuple(_CJK_RUN.findall(query)), tuple(words))


def trigram_expression(runs: Iterable[str]) -> str:
    """Each run, or one of its windows of 4, must occur."""
    return " AND ".join("(" + " OR ".join(f'"{part}"' for part in _parts(run, _TRIGRAM_WINDOW)) + ")" for run in runs)


def like_windows(run: str) -> list[str]:
    """One of these must occur, where there is no trigram to go by: the run, or its windows of 2."""
    return _parts(run, _LIKE_WINDOW)


def excerpt(text: str, terms: Sequence[str]) -> str:
    """The surroundings of the first term that occurs; of a text without any its beginning."""
    units = _as_units(text)
    lowered = units.lower()
    places = [(at, term) for term in map(_as_units, terms) if (at := lowered.find(term)) >= 0]
    if not places:
        cut = trim(units)
        return well_formed(cut if len(cut) <= _SHORT else f"{cut[: _SHORT - 3].rstrip(WHITE_SPACE)}...")
    at, term = min(places, key=lambda place: place[0])
    start, end = max(0, at - _BEFORE), min(len(units), at + max(len(term), 1) + _AFTER)
    return well_formed(f"{'...' * (start > 0)}{trim(units[start:end])}{'...' * (end < len(units))}")


def _parts(run: str, width: int) -> list[str]:
    if len(run) <= width:
        return [run]
    return list(dict.fromkeys(run[i : i + width] for i in range(len(run) - width + 1)))


def _bare(term: str) -> str:
    return trim(term).strip(_EDGES).lower()


def _as_units(text: str) -> str:
    """The text with one character for each UTF-16 unit."""
    if text.isascii() or max(text) <= "\uffff":
        return text
    return "".join(
        chr(int.from_bytes(pair, "little"))
        for raw in [text.encode("utf-16-le", "surrogatepass")]
        for pair in (raw[i : i + 2] for i in range(0, len(raw), 2))
    )


Order = Literal["time", "relevance", "hybrid"]
"""The newest first; the best; or the best with a discount for age: rank / (1 + .001 for each hour)."""
_BATCH = 200
_MAY_RUN_AWAY = re.compile(r"[*+?{(|]")
"""Without any of these a pattern takes at most as many steps as the text has characters for each of its own, and needs
no bound of time within a text, which costs more than the search of a short one."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SearchBounds:
    """The part of the store that a search looks in."""

    conversations: Sequence[int] | None = None
    """None = all, archived ones too."""
    summaries: Sequence[str] | None = None
    """Only these, and the messages that they were made of; None = all."""
    since: datetime | None = None
    """Not before that instant."""
    before: datetime | None = None
    """Before that instant."""
    limit: int = 50
    now: datetime | None = None
    """From when a hybrid order counts age; None = from the newest message."""

    @property
    def parameters(self) -> dict[str, Any]:
        return {
            "conversations": None if self.conversations is None else json.dumps(list(self.conversations)),
            "summaries": None if self.summaries is None else json.dumps(list(self.summaries)),
            "since": optional_instant(self.since),
            "before": optional_instant(self.before),
            "limit": self.limit,
            "now": optional_instant(self.now),
        }


@dataclass(frozen=True, slots=True)
class SearchSubject:
    """What is searched: messages or summaries."""

    fts: str
    rows: str
    key: str
    joined: str
    content: str
    column: int
    inside: str
    starts: str
    ends: str
    tie: str
    trigrams: str | None = None
    match_in: str = ""
    """The column of the full-text table that counts; empty = all of them."""

    def scope(self, bounds: SearchBounds) -> str:
        """The condition of rows within the bounds: what bounds nothing is not asked of each row."""
        row = self.rows.rpartition(" ")[2]
        conditions: dict[str, object] = {
            f"{row}.conversation_id {_CONVERSATIONS}": bounds.conversations,
            self.inside: bounds.summaries,
            f"{self.ends} >= :since": bounds.since,
            f"{self.starts} < :before": bounds.before,
        }
        return " AND ".join(["TRUE", *(sql for sql, bound in conditions.items() if bound is not None)])

    @property
    def newest_first(self) -> str:
        return f"{self.ends} DESC, {self.tie} DESC"


_CONVERSATIONS = "IN (SELECT value FROM json_each(:conversations))"
_SUMMARIES = "IN (SELECT value FROM json_each(:summaries))"

MESSAGES = SearchSubject(
    fts="messages_fts",
    rows="messages m",
    key="m.message_id",
    joined="m.message_id = messages_fts.rowid",
    content="m.full_text",
    column=-1,
    inside=f"m.message_id IN (SELECT message_id FROM summary_messages WHERE summary_id {_SUMMARIES})",  # noqa: S608
    starts="m.created_at",
    ends="m.created_at",
    tie="m.message_id",
)
WORDS = replace(MESSAGES, content="m.content", column=0, match_in="content")
"""Messages by their words alone, without what their parts say."""

SUMMARIES = SearchSubject(
    fts="summaries_fts",
    rows="summaries s",
    key="s.summary_id",
    joined="s.summary_id = summaries_fts.summary_id",
    content="s.content",
    column=1,
    inside=f"s.summary_id {_SUMMARIES}",
    starts="s.created_at",
    ends="s.created_at",
    tie="s.rowid",
    trigrams="summaries_fts_cjk",
)
COVERED = replace(SUMMARIES, starts="coalesce(s.earliest_at, s.created_at)", ends="coalesce(s.latest_at, s.created_at)")
"""Summaries by when what they cover was said, rather than by when they were made."""
LATEST = replace(COVERED, starts=COVERED.ends)
"""Summaries by when the last of what they cover was said."""


class MessageHit(NamedTuple):
    """A message that was found."""

    number: int
    """Its integer key, which the tools show."""
    message_id: str
    conversation: int
    conversation_id: str
    role: str
    created_at: datetime
    snippet: str


class SummaryHit(NamedTuple):
    """A summary that was found."""

    summary_id: str
    conversation: int
    conversation_id: str
    kind: str
    depth: int
    created_at: datetime
    """Or when what it covers ends, where that is what the search goes by."""
    snippet: str


class RegexScan(NamedTuple):
    """The hits of a regular expression over the store, and why it did not see everything."""

    hits: list[tuple[Any, str]]
    stopped: str = ""


def find(
    connection: sqlite3.Connection,
    subject: SearchSubject,
    query: str,
    bounds: SearchBounds,
    order: Order,
    *,
    keeps_phrases: bool,
    incidents: Counter[str],
    order_cjk: Order = "relevance",
) -> list[tuple[Any, str]]:
    """The rows that hold every word of a query: key and snippet; in the order of time the newest first, of equals too.

    `order_cjk` is that of what the table of trigrams finds.

    Substring search stands in where the full-text table cannot answer: for CJK, and, logged and counted as
    `full_text_error`, where it fails.
    """
    if contains_cjk(query):
        return _find_cjk(connection, subject, query, bounds, order_cjk, incidents)
    match = match_expression(query, keeps_phrases=keeps_phrases)
    match = f"{{{subject.match_in}}} : ({match})" if subject.match_in else match
    try:
        if order == "relevance" and (best := _best(connection, subject, match, bounds)) is not None:
            return best
        keys = _matching(connection, subject, match, bounds, order)
        snippets = _snippets(connection, subject, match, [row for _, row in keys])
        return [(key, snippets[row]) for key, row in keys]
    except sqlite3.Error as error:
        _fell_back(query, error, incidents)
        terms = like_terms(query)
        return _find_like(connection, subject, [[term] for term in terms], terms, bounds)


def scan(
    connection: sqlite3.Connection,
    subject: SearchSubject,
    pattern: "regex.Pattern[str]",
    bounds: SearchBounds,
    *,
    max_rows: int | None,
    seconds: float,
    clock: Callable[[], float] = monotonic,
) -> RegexScan:
    """The rows that a regular expression finds, newest first: key and matched text.

    Args:
        connection: where to look.
        subject: messages or summaries.
        pattern: compiled by the package `regex`, which can stop in the middle of a text.
        bounds: where to look, and how many to find.
        max_rows: how many to look at; None = all.
        seconds: how long to look; the clock is asked before each row.
        clock: seconds that rise.
    """
    deadline = clock() + seconds
    found: list[tuple[Any, str]] = []
    longest, cut = PATTERN_TEXT_CHARACTERS.value, 0
    is_steady = _MAY_RUN_AWAY.search(pattern.pattern) is None
    for seen, (key, content) in enumerate(_newest(connection, subject, bounds)):
        if max_rows is not None and seen >= max_rows:
            return RegexScan(found, f"the newest {max_rows:,} were searched")
        left = deadline - clock()
        cut += len(content) > longest
        try:
            timeout = None if is_steady else left
            match = pattern.search(content, 0, longest, timeout=timeout) if left > 0 else None
        except TimeoutError:
            left = 0
        except MemoryError:
            return RegexScan(found, f"the pattern took too much memory, with the newest {seen:,} searched")
        if left <= 0:
            return RegexScan(found, f"the search ended after {seconds:g} seconds, with the newest {seen:,} searched")
        if match:
            found.append((key, match[0]))
            if len(found) >= bounds.limit:
                break
    unseen = f"the ends of {cut:,} texts were not searched: {PATTERN_TEXT_CHARACTERS.remedy}" if cut else ""
    return RegexScan(found, unseen)


def message_hits(connection: sqlite3.Connection, found: Sequence[tuple[int, str]]) -> list[MessageHit]:
    """What is known of messages that were found, in their order."""
    rows = _known(connection, MESSAGES, "m.message_key, {of}, m.role", found)
    return [MessageHit._make((key, *rows[key], snippet)) for key, snippet in found]


def summary_hits(
    connection: sqlite3.Connection, found: Sequence[tuple[str, str]], subject: SearchSubject = SUMMARIES
) -> list[SummaryHit]:
    """What is known of summaries that were found, in their order."""
    rows = _known(connection, subject, "{of}, s.kind, s.depth", found)
    return [SummaryHit._make((key, *rows[key], snippet)) for key, snippet in found]


def _known(
    connection: sqlite3.Connection, subject: SearchSubject, columns: str, found: Sequence[tuple[Any, str]]
) -> dict[Any, tuple[Any, ...]]:
    """Columns of the rows that were found, and when they were, by their keys; `{of}` names their conversation."""
    columns = columns.format(of="c.conversation_id, coalesce(c.session_key, c.session_id)")
    rows = connection.execute(
        f"""
        SELECT {subject.key}, {columns}, {subject.ends}
        FROM json_each(?) k CROSS JOIN {subject.rows} ON {subject.key} = k.value
        JOIN conversations c USING (conversation_id)
        """,  # noqa: S608 (our own constants)
        (json.dumps([key for key, _ in found]),),
    )
    return {key: (*known, parse_instant(at)) for key, *known, at in rows}


def _matching(
    connection: sqlite3.Connection, subject: SearchSubject, match: str, bounds: SearchBounds, order: Order
) -> list[tuple[Any, int]]:
    """The keys of what matches, each with its full-text row; CROSS JOIN keeps the full-text table outermost."""
    return connection.execute(
        f"""
        SELECT {subject.key}, {subject.fts}.rowid FROM {subject.fts} CROSS JOIN {subject.rows} ON {subject.joined}
        WHERE {subject.fts} MATCH :match AND {subject.scope(bounds)}
        ORDER BY {_first(subject, subject.fts, order)} LIMIT :limit
        """,  # noqa: S608 (our own constants)
        {"match": match, **bounds.parameters},
    ).fetchall()


def _first(subject: SearchSubject, table: str, order: Order) -> str:
    """What rows are sorted by; `table` ranks them, the better the further below 0."""
    now = "julianday(coalesce(:now, (SELECT max(created_at) FROM messages)))"
    age_hours = f"max(0, {now} - julianday({subject.ends})) * 24"
    ranks = {"time": "", "relevance": f"{table}.rank, ", "hybrid": f"{table}.rank / (1 + {age_hours} * 0.001), "}
    return ranks[order] + subject.newest_first


def _best(
    connection: sqlite3.Connection, subject: SearchSubject, match: str, bounds: SearchBounds
) -> list[tuple[Any, str]] | None:
    """The best of what matches, of equals the newest: key and snippet; None where too many are equal.

    Sorted by nothing but the rank, which the full-text table does itself, a snippet is cut only for a row that is read.
    """
    rows = connection.execute(
        f"""
        SELECT {subject.fts}.rank, {subject.ends}, {subject.tie}, {subject.key}, {_snippet(subject)}
        FROM {subject.fts} CROSS JOIN {subject.rows} ON {subject.joined}
        WHERE {subject.fts} MATCH :match AND {subject.scope(bounds)} ORDER BY {subject.fts}.rank
        """,  # noqa: S608 (our own constants)
        {"match": match, **bounds.parameters},
    )
    found: list[tuple[float, str, int, Any, str]] = []
    for row in rows:
        if len(found) >= bounds.limit and row[0] != found[-1][0]:
            break
        if len(found) >= 2 * bounds.limit:
            return None
        found.append(row)
    found.sort(key=itemgetter(1, 2), reverse=True)
    found.sort(key=itemgetter(0))
    return [row[3:] for row in found[: bounds.limit]]


def _snippet(subject: SearchSubject) -> str:
    return f"snippet({subject.fts}, {subject.column}, '', '', '...', 32)"


def _snippets(
    connection: sqlite3.Connection, subject: SearchSubject, match: str, rows: Sequence[int]
) -> dict[int, str]:
    """The words around the match in each row. A sorted query would cut one for each row that it drops, and a row asked
    for by its id begins the match anew: one walk through those between the first and the last does neither."""
    if not rows:
        return {}
    found = connection.execute(
        f"""
        SELECT rowid, {_snippet(subject)} FROM {subject.fts}
        WHERE {subject.fts} MATCH :match AND rowid BETWEEN :first AND :last
          AND +rowid IN (SELECT value FROM json_each(:rows))
        """,  # noqa: S608 (our own constants)
        {"match": match, "first": min(rows), "last": max(rows), "rows": json.dumps(list(rows))},
    )
    return dict(found.fetchall())


def _find_cjk(
    connection: sqlite3.Connection,
    subject: SearchSubject,
    query: str,
    bounds: SearchBounds,
    order: Order,
    incidents: Counter[str],
) -> list[tuple[Any, str]]:
    if subject.trigrams is None:
        terms = like_terms(query)
        return _find_like(connection, subject, [[term] for term in terms], terms, bounds)
    asked = cjk_query(query)
    windows = [like_windows(run) for run in asked.runs]
    terms = [*asked.runs, *(window for run in windows for window in run), *asked.words]
    if all(len(run) >= TRIGRAM for run in asked.runs):
        filters, values = _like_clauses(subject, [[word] for word in asked.words])
        parameters = {**bounds.parameters, **values, "match": trigram_expression(asked.runs)}
        try:
            rows = connection.execute(
                f"""
                SELECT s.summary_id, s.content FROM {subject.trigrams} CROSS JOIN summaries s
                  ON s.summary_id = {subject.trigrams}.summary_id
                WHERE {subject.trigrams} MATCH :match AND {subject.scope(bounds)} {filters}
                ORDER BY {_first(subject, subject.trigrams, order)} LIMIT :limit
                """,  # noqa: S608 (our own constants)
                parameters,
            ).fetchall()
        except sqlite3.Error as error:
            _fell_back(query, error, incidents)
            rows = []
        if rows:
            return [(key, excerpt(content, terms)) for key, content in rows]
    return _find_like(connection, subject, [*windows, *([word] for word in asked.words)], terms, bounds)


def _find_like(
    connection: sqlite3.Connection,
    subject: SearchSubject,
    needed: Sequence[Sequence[str]],
    terms: list[str],
    bounds: SearchBounds,
) -> list[tuple[Any, str]]:
    """The newest rows that hold one of each group of terms."""
    if not needed:
        return []
    clauses, values = _like_clauses(subject, needed)
    try:
        keys = connection.execute(
            f"""
            SELECT {subject.key} FROM {subject.rows} WHERE {subject.scope(bounds)} {clauses}
            ORDER BY {subject.newest_first} LIMIT :limit
            """,  # noqa: S608 (our own constants)
            {**bounds.parameters, **values},
        ).fetchall()
    except sqlite3.OperationalError as error:
        raise LimitError(
            f"{len(terms):,} terms of up to {max(map(len, terms)):,} characters are more than can be searched for as "
            f"substrings ({error}): shorten the query"
        ) from error
    return [(key, excerpt(content, terms)) for key, content in _contents(connection, subject, [key for (key,) in keys])]


def _like_clauses(subject: SearchSubject, needed: Sequence[Sequence[str]]) -> tuple[str, dict[str, str]]:
    clauses, values = "", dict[str, str]()
    for i, group in enumerate(needed):
        names = [f"like_{i}_{j}" for j in range(len(group))]
        values |= {name: like_pattern(term) for name, term in zip(names, group, strict=True)}
        any_of = " OR ".join(f"LOWER({subject.content}) LIKE :{name} ESCAPE '\\'" for name in names)
        clauses += f" AND ({any_of})"
    return clauses, values


def _newest(connection: sqlite3.Connection, subject: SearchSubject, bounds: SearchBounds) -> Iterator[tuple[Any, str]]:
    keys = [
        key
        for (key,) in connection.execute(
            f"SELECT {subject.key} FROM {subject.rows} WHERE {subject.scope(bounds)} ORDER BY {subject.newest_first}",  # noqa: S608
            bounds.parameters,
        )
    ]
    for start in range(0, len(keys), _BATCH):
        yield from _contents(connection, subject, keys[start : start + _BATCH])


def _contents(connection: sqlite3.Connection, subject: SearchSubject, keys: Sequence[Any]) -> list[tuple[Any, str]]:
    rows = dict(
        connection.execute(
            f"""
            SELECT {subject.key}, {subject.content} FROM json_each(?) k
            CROSS JOIN {subject.rows} ON {subject.key} = k.value
            """,  # noqa: S608 (our own constants)
            (json.dumps(list(keys)),),
        ).fetchall()
    )
    return [(key, rows[key]) for key in keys]


def _fell_back(query: str, error: sqlite3.Error, incidents: Counter[str]) -> None:
    incidents["full_text_error"] += 1
    _log.warning("full-text search for %.200r failed (%s): searched for substrings instead", query, error)
