"""Harmful summaries of a store, found and made again."""

import sqlite3
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from lcm.compaction.lossless.lossless import Lossless
from lcm.compaction.resummarising import Resummarised, harmful_summaries, resummarise
from lcm.compaction.summarizer.extractive import Extractive
from lcm.errors import LcmError, StoreError
from lcm.protocols.compaction import Summarizer
from lcm.records.conversation import Transcript
from lcm.records.summary import Summary, SummaryRequest, SummaryResult
from lcm.retrieval.embedder.hashing import Hashing
from lcm.store.doctor import recompute_totals, scan
from lcm.store.store import Store
from lcm.token_estimator import Utf16Units
from tests.lcm.compaction.contexts import message
from tests.support.workspaces import minute

TOKENS = Utf16Units()
RULE = "Never push to main without asking me."
EXTRACTIVE = Extractive(Hashing(), TOKENS)


def told(text: str, summary_id: str, sources: Sequence[str], depth: int = 0) -> Summary:
    tokens = TOKENS.count([text])[0]
    kind = "condensed" if depth else "leaf"
    return Summary(summary_id, "talk", kind, depth, text, tokens, minute(100), source_ids=tuple(sources))  # type: ignore[arg-type]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Two leaves, the first of which lost a rule and the second of which is cut, and what they were condensed to."""
    filler = "The parser loops on empty input, and the tests of the parser are slow. " * 6
    said = [message(1, f"{RULE} {filler}"), message(2, filler, "assistant"), message(3, filler + "Buy a kettle.")]
    store = Store(tmp_path / "memory.db")
    store.ingest(Transcript("talk", tuple(said)), TOKENS)
    ids = [m.message_id for m in said]
    entries = store.context("talk")
    first = told("The parser loops.", "a", ids[:2])
    store.replace_range("talk", entries[0].ordinal, entries[1].ordinal, first, 300, 200)
    second = told(f"{filler[:90]}\n[Truncated from 90 tokens]", "b", ids[2:])
    store.replace_range("talk", entries[2].ordinal, entries[2].ordinal, second, 200, 100)
    entries = store.context("talk")
    above = told("The parser loops, and tests are slow.", "c", ["a", "b"], depth=1)
    store.replace_range("talk", entries[0].ordinal, entries[-1].ordinal, above, 100, 50)
    with store.writing() as connection:
        recompute_totals(connection)
    return store


def made_again(store: Store, summarizer: Summarizer) -> Resummarised:
    settings = Lossless(summarizer, TOKENS, leaf_target_tokens=120, condensed_target_tokens=80)
    return resummarise(store, settings, incidents=Counter())


def test_harmful_summaries_are_made_again_and_the_rule_reaches_the_top(store: Store) -> None:
    with store:
        harm = {one.summary.summary_id: one.harm for one in harmful_summaries(store)}
        assert (harm["a"].lost_rules, harm["b"].is_cut) == ((RULE,), True)
        assert "c" not in harm, "its sources state no rule: they have lost it"
        done = made_again(store, EXTRACTIVE)
        assert (done.made, done.left, harmful_summaries(store)) == (("a", "b", "c"), (), [])
        by_id = store.summaries_by_id(["a", "b", "c"])
        assert all(RULE in by_id[name].content for name in "ac")
        assert all(one.token_count == TOKENS.count([one.content])[0] for one in by_id.values())
        assert by_id["c"].descendant_token_count == by_id["a"].token_count + by_id["b"].token_count
        with store.reading() as connection:
            wrong = {check.name: check.status for check in scan(connection) if check.status != "pass"}
        assert not [name for name, status in wrong.items() if "fts" in name or ("total" in name and status == "fail")]
        again = made_again(store, EXTRACTIVE)
        assert (again.made, again.left) == ((), ())


@dataclass(frozen=True, slots=True)
class Saying:
    text: str
    failure: LcmError | None = None

    def summarize(self, requests: Sequence[SummaryRequest], *, incidents: Counter[str]) -> list[SummaryResult]:
        return [SummaryResult(self.text, 0.5, "said", failure=self.failure) for _ in requests]


def test_where_the_summarizer_has_nothing_better_they_stay(store: Store) -> None:
    with store:
        before = store.summaries()
        for summarizer in (Saying("", LcmError("no words")), Saying("The parser loops. " * 300), Saying("")):
            done = made_again(store, summarizer)
            assert (done.made, set(done.left)) == ((), {"a", "b"})
            assert store.summaries() == before


def test_nothing_is_written_where_another_writer_was_there_meanwhile(store: Store) -> None:
    @dataclass(frozen=True, slots=True)
    class Meddling:
        def summarize(self, requests: Sequence[SummaryRequest], *, incidents: Counter[str]) -> list[SummaryResult]:
            with store.writing() as connection:
                connection.execute("UPDATE summaries SET content = 'other words' WHERE summary_id = 'b'")
            return EXTRACTIVE.summarize(requests, incidents=incidents)

    with store:
        with pytest.raises(StoreError, match="summary 'b' is no longer what was to be made again; try again"):
            made_again(store, Meddling())
        assert store.summaries_by_id(["a"])["a"].content == "The parser loops."


def test_a_write_that_breaks_off_leaves_all_as_it_was(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks_off(connection: sqlite3.Connection) -> int:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr("lcm.compaction.resummarising.recompute_totals", breaks_off)
    with store:
        before = store.summaries()
        with pytest.raises((sqlite3.OperationalError, LcmError)):
            made_again(store, EXTRACTIVE)
        assert store.summaries() == before


def test_the_document_of_a_summary_follows_it(store: Store) -> None:
    with store:
        with store.writing() as connection:
            connection.execute(
                "INSERT INTO documents (document_id, conversation_id, session_id, kind, text, category, scope, "
                "importance, confidence, temporal_type, access_count, decay_tier, tokens, created_at) VALUES "
                "('a', 1, 's', 'summary', 'old', 'other', 'x', 0.5, 1.0, 'static', 0, 'working', 1, '2026-01-01')"
            )
        made_again(store, EXTRACTIVE)
        with store.reading() as connection:
            (text,) = connection.execute("SELECT text FROM documents WHERE document_id = 'a'").fetchone()
        assert text == store.summaries_by_id(["a"])["a"].content
