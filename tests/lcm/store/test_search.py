"""Search finds what is there, newest or best first, within its bounds, however it has to look."""

import logging
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from itertools import count
from typing import Any

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from lcm.store.conversations import conversation_rows
from lcm.store.search import (
    COVERED,
    MESSAGES,
    SUMMARIES,
    Order,
    SearchBounds,
    SearchSubject,
    excerpt,
    find,
    like_terms,
    match_expression,
    message_hits,
    scan,
    summary_hits,
)
from lcm.store.store import Store
from lcm.token_estimator import Utf16Units
from tests.lcm.compaction.contexts import message
from tests.lcm.context.recall.dags import START, fold, talk

WORDS = ("kettle", "goat", "river", "stone")
ALL = SearchBounds()


def found_in(
    store: Store,
    query: str,
    bounds: SearchBounds = ALL,
    order: Order = "time",
    subject: SearchSubject = MESSAGES,
    **how: Any,
) -> list[tuple[Any, str]]:
    """Keys and snippets."""
    asked = {"keeps_phrases": True, "incidents": Counter[str]()} | how
    with store.reading() as connection:
        return find(connection, subject, query, bounds, order, **asked)


def numbers(store: Store, query: str, bounds: SearchBounds = ALL, order: Order = "time", **how: Any) -> list[int]:
    found = found_in(store, query, bounds, order, **how)
    with store.reading() as connection:
        return [hit.number for hit in message_hits(connection, found)]


def summaries(store: Store, query: str, bounds: SearchBounds = ALL, subject: SearchSubject = SUMMARIES) -> list[str]:
    found = found_in(store, query, bounds, subject=subject)
    with store.reading() as connection:
        return [hit.snippet for hit in summary_hits(connection, found, subject)]


@settings(max_examples=25)
@given(
    st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=4), min_size=1, max_size=8),
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=2, unique=True),
    st.integers(1, 5),
)
def test_words_are_found_as_a_plain_scan_finds_them(lines: list[list[str]], wanted: list[str], limit: int) -> None:
    with Store() as store:
        talk(store, "talk", [" ".join(line) for line in lines])
        expected = [i for i, line in enumerate(lines, start=1) if set(wanted) <= set(line)][::-1]
        assert numbers(store, " ".join(wanted), SearchBounds(limit=limit)) == expected[:limit]
        assert sorted(numbers(store, " ".join(wanted), order="relevance")) == sorted(expected)
        assert numbers(store, " ".join(wanted), SearchBounds(conversations=[2])) == []


@given(st.text())
def test_no_query_is_an_error(query: str) -> None:
    with Store() as store:
        talk(store, "talk", ["kettle 会議"])
        numbers(store, query)
        numbers(store, query, keeps_phrases=False)


def test_phrases_are_kept_or_dropped() -> None:
    with Store() as store:
        talk(store, "talk", ["the blue kettle", "a kettle and a blue door"])
        assert numbers(store, '"blue kettle"') == [1]
        assert numbers(store, '"blue kettle"', keeps_phrases=False) == [2, 1]
    assert match_expression('say "blue kettle" now', keeps_phrases=True) == '"say" "blue kettle" "now"'


def test_hours_bound_a_search_from_since_up_to_before() -> None:
    with Store() as store:
        talk(store, "talk", ["goat"] * 4)  # at minutes 1 to 4
        since, before = START + timedelta(minutes=2), START + timedelta(minutes=4)
        assert numbers(store, "goat", SearchBounds(since=since, before=before)) == [3, 2]


def test_summaries_are_dated_by_what_they_cover_or_when_they_were_made() -> None:
    with Store() as store:
        talk(store, "talk", ["one", "two"])
        fold(store, "talk", 0, 2, "goats")
        bounds = SearchBounds(before=START + timedelta(minutes=2))
        assert summaries(store, "goats", bounds) == []
        assert summaries(store, "goats", bounds, COVERED) == ["goats"]


def test_stems_and_cjk_are_found_in_messages_and_summaries() -> None:
    with Store() as store:
        talk(store, "talk", ["来週の火曜日に東京で会議があります, running late", "goats"])
        fold(store, "talk", 0, 1, "来週、東京で会議, running late")
        for query in ("会議", "東京で会議", "来週 会議", "会", "run"):
            assert numbers(store, query) == [1], query
            assert summaries(store, query) == ["来週、東京で会議, running late"], query


def test_archived_and_hidden_messages_are_found() -> None:
    with Store() as store:
        talk(store, "before", ["goat one"])
        talk(store, "talk", ["goat two"])
        store._connection.execute("UPDATE conversations SET active = 0, session_key = 'talk' WHERE conversation_id = 1")
        store._connection.execute("UPDATE messages SET hidden_at = created_at")
        assert numbers(store, "goat") == [2, 1]
        with store.reading() as connection:
            assert conversation_rows(connection, "talk") == [1, 2]


def test_a_failing_index_is_survived_logged_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    with Store() as store:
        talk(store, "talk", ["the goat is here", "the river"])
        store._connection.execute("DROP TABLE messages_fts")
        incidents = Counter[str]()
        with caplog.at_level(logging.WARNING):
            found = found_in(store, "GOAT the", incidents=incidents)
        assert found == [(1, "the goat is here")]
        assert incidents == {"full_text_error": 1}
        assert "searched for substrings instead" in caplog.text


def test_a_full_text_search_of_a_conversation_is_driven_from_the_index() -> None:
    with Store() as store:
        talk(store, "talk", ["goat"])
        seen: list[str] = []
        store._connection.set_trace_callback(seen.append)
        numbers(store, "goat", SearchBounds(conversations=[1]))
        store._connection.set_trace_callback(None)
        (asked,) = [sql for sql in seen if "CROSS JOIN messages m" in sql and "MATCH" in sql]
        plan = [row[3] for row in store._connection.execute(f"EXPLAIN QUERY PLAN {asked}")]
        assert plan[0].startswith("SCAN messages_fts VIRTUAL TABLE")
        assert plan[1].startswith("SEARCH m USING INTEGER PRIMARY KEY")


def scanned(store: Store, pattern: str, **how: object) -> tuple[list[object], str]:
    with store.reading() as connection:
        asked = {"max_rows": None, "seconds": 5.0} | how
        found = scan(connection, MESSAGES, regex.compile(pattern), SearchBounds(limit=2), **asked)  # type: ignore[arg-type]
    return found.hits, found.stopped


def test_a_regular_expression_goes_newest_first_and_stops_at_its_limits() -> None:
    with Store() as store:
        talk(store, "talk", ["Goat 1", "goat 2", "goat 3", "goat 4", "none"])
        assert scanned(store, r"goat \d") == ([(4, "goat 4"), (3, "goat 3")], "")
        assert scanned(store, r"Goat \d", max_rows=2) == ([], "the newest 2 were searched")
        ticks = count()
        found, stopped = scanned(store, "Goat", seconds=3, clock=lambda: float(next(ticks)))
        assert (found, stopped) == ([], "the search ended after 3 seconds, with the newest 2 searched")
        talk(store, "explosive", ["ab" * 60 + "c"])
        assert scanned(store, r"(a|b|ab)*c\d", seconds=0.05)[1].startswith("the search ended after 0.05 seconds")


def test_an_excerpt_counts_utf16_units() -> None:
    text = "😀" * 30 + "goat" + "😀" * 40
    assert excerpt(text, ["goat"]) == f"...{'😀' * 12}goat{'😀' * 20}..."
    assert excerpt("goat", ["goat"]) == "goat", "at the very beginning too"
    assert excerpt("goat" + "z" * 90, ["goat"]) == f"goat{'z' * 40}..."
    assert excerpt("x" + "z" * 90, ["x"]) == f"x{'z' * 40}...", "a term of one letter"
    assert like_terms('"Blue kettle" (GOAT), goat') == ["blue kettle", "goat"]


def test_bounds_of_summaries_hold_what_lies_beneath() -> None:
    with Store() as store:
        talk(store, "talk", ["goat one", "goat two", "goat three"])
        first = fold(store, "talk", 0, 2, "goats")
        assert numbers(store, "goat", replace(SearchBounds(), summaries=[first])) == [2, 1]
        assert numbers(store, "goat", SearchBounds(summaries=[])) == []


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sampled_from(["goat", "goat goat", "goat sea", "sea"]), max_size=30), st.integers(1, 12))
def test_the_best_are_those_of_a_sort_of_all(lines: list[str], limit: int) -> None:
    """Where many are equal too, and with the snippet that the table cuts of each."""
    with Store() as store:
        store.append("c", [message(number, line) for number, line in enumerate(lines)], Utf16Units())
        with store.reading() as connection:
            sorted_all = connection.execute(
                """
                SELECT m.message_id, snippet(messages_fts, -1, '', '', '...', 32)
                FROM messages_fts JOIN messages m ON m.message_id = messages_fts.rowid WHERE messages_fts MATCH 'goat'
                ORDER BY messages_fts.rank, m.created_at DESC, m.message_id DESC LIMIT ?
                """,
                (limit,),
            ).fetchall()
        assert found_in(store, "goat", SearchBounds(limit=limit), "relevance") == sorted_all
