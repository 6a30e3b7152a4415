import json
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lcm.errors import TranscriptError
from lcm.memory.session import MessagePreparer, live_message
from lcm.memory.session_bootstrap import BootstrapReport, bootstrap
from lcm.store.store import Store
from tests.golden.originals.session_turns import ingest
from tests.lcm.memory.session.session_files import HEADER, NOW, chain, entry, preparer, said, shown, write
from tests.lcm.store.contents import dump
from tests.lcm.store.faults import FaultyConnection, InjectedError

FAITHFUL: dict[str, Any] = {"rules": "original", "import_cap_share": 0.2, "bootstrap_max_tokens": 6000}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "session.jsonl"


def boot(store: Store, path: Path, listening: MessagePreparer | None = None) -> BootstrapReport:
    return bootstrap(store, path, listening or preparer(), NOW, "s", "key")


def hear(store: Store, *texts: str) -> None:
    """Say the texts live in the session, before its file is looked at."""
    messages = [live_message({"role": "user", "content": text}, "s", NOW) for text in texts]
    ingest(store, messages, preparer(), NOW, "s", "key")


def test_a_file_that_did_not_change_changes_nothing(store: Store, path: Path) -> None:
    write(path, chain("a", "b"))
    assert boot(store, path).imported_messages == 2
    before = dump(store)
    report = boot(store, path)
    assert (report.is_bootstrapped, report.reason) == (False, "already bootstrapped")
    assert dump(store) == before


@settings(max_examples=20)
@given(texts=st.lists(st.sampled_from("abc"), max_size=12), cuts=st.lists(st.integers(0, 12), max_size=4))
def test_a_file_that_grows_is_stored_once_however_often_it_is_looked_at(
    texts: list[str], cuts: list[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("session") / "session.jsonl"
    entries = [entry(f"e{i}", f"e{i - 1}" if i else None, text) for i, text in enumerate(texts)]
    for rules in (preparer(), preparer(**FAITHFUL)):
        with Store() as store:
            for number, cut in enumerate([*sorted(cuts), len(texts)]):
                write(path, entries[:cut], 1_767_600_000_000 + number)
                boot(store, path, rules)
            assert said(store, "key") == texts


def test_an_import_keeps_parts_and_instants_and_takes_large_texts_out(path: Path) -> None:
    write(path, chain("x" * 400, "b"))
    with Store() as store:
        boot(store, path, preparer(large_file_threshold_tokens=50))
        first, second = store.messages("key")
        assert [len(first.parts), len(second.parts)] == [1, 1]
        assert first.created_at is not None
        assert first.created_at.isoformat() == "2026-01-05T09:00:01+00:00"
    tool = entry("t", None, "")
    tool["message"] = {"role": "toolResult", "toolName": "read", "content": [{"type": "text", "text": "y" * 400}]}
    with Store() as store:
        boot(store, write(path, [tool]), preparer(large_file_threshold_tokens=50))
        assert said(store, "key")[0].startswith("[LCM Tool Output: file_")


def test_the_first_import_takes_the_newest_within_its_bound_and_the_last_message_anyway(path: Path) -> None:
    write(path, chain("a" * 40, "b" * 40, "c" * 40))  # 10 tokens each
    for bound, kept in ((20, 2), (19, 1), (5, 1)):
        with Store() as store:
            assert boot(store, path, preparer(bootstrap_max_tokens=bound)).imported_messages == kept
            assert said(store, "key")[-1] == "c" * 40


def test_what_was_heard_live_is_known_again_by_its_words(store: Store, path: Path) -> None:
    hear(store, "a")
    report = boot(store, write(path, chain("a", "b")))
    assert (report.imported_messages, report.reason) == (1, "reconciled missing session messages")
    assert said(store, "key") == ["a", "b"]


def test_a_fork_hides_what_was_left_and_going_back_shows_it_again(store: Store, path: Path) -> None:
    common, left = chain("a", "b"), chain("c", "d", parent="e-b")
    other = chain("x", "y", parent="e-b")
    back = chain("z", parent="e-d")
    write(path, [*common, *left], 1)
    boot(store, path)
    write(path, [*common, *left, *other], 2)
    report = boot(store, path)
    assert (report.imported_messages, report.hidden_messages) == (2, 2)
    assert shown(store, "key") == ["a", "b", "x", "y"]
    assert said(store, "key") == ["a", "b", "c", "d", "x", "y"]
    assert len(store.retired("key")) == 2
    write(path, [*common, *left, *other, *back], 3)
    boot(store, path)
    assert shown(store, "key") == ["a", "b", "c", "d", "z"]


def test_a_fork_hides_what_was_heard_live_too(store: Store, path: Path) -> None:
    hear(store, *"abcd")
    boot(store, write(path, [*chain("a", "b", "c", "d"), *chain("x", parent="e-b")]))
    assert shown(store, "key") == ["a", "b", "x"]


def test_rewritten_words_of_a_known_entry_change_no_message(store: Store, path: Path) -> None:
    entries = chain("a", "b")
    write(path, entries, 1)
    boot(store, path)
    entries[0]["message"]["content"] = "shorter"
    write(path, [*entries, *chain("c", parent="e-b")], 2)
    assert boot(store, path).imported_messages == 1
    assert said(store, "key") == ["a", "b", "c"]


def test_by_content_branches_are_read_in_the_order_of_the_file(store: Store, path: Path) -> None:
    write(path, [*chain("a", "b"), *chain("x", parent="e-a")])
    boot(store, path, preparer(**FAITHFUL))
    assert said(store, "key") == ["a", "b", "x"]


def test_too_many_missing_messages_are_not_imported_under_a_cap(path: Path) -> None:
    texts = [f"m{i}" for i in range(53)]
    for length, rules, reason in (
        (51, FAITHFUL, "reconciled missing session messages"),
        (52, FAITHFUL, "reconcile import capped"),
        (52, {}, "reconciled missing session messages"),
    ):
        with Store() as store:
            hear(store, "m0")
            assert boot(store, write(path, chain(*texts[:length])), preparer(**rules)).reason == reason


def test_what_is_only_appended_needs_no_anchor_and_has_no_cap(store: Store, path: Path) -> None:
    write(path, chain("a", "b"), 1)
    boot(store, path, preparer(**FAITHFUL))
    write(path, [*chain("a", "b"), *chain(*[f"m{i}" for i in range(80)], parent="e-b")], 2)
    assert boot(store, path, preparer(**FAITHFUL)).imported_messages == 80


def test_a_line_that_cannot_be_read_is_told_and_the_others_are_kept(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(path, chain("a"))
    path.write_text(f"{path.read_text()}{{torn\n{json.dumps(chain('b', parent='e-a')[0])}\n")
    with Store() as store:
        boot(store, path)
        assert said(store, "key") == ["a", "b"]
    assert "1 lines of the session file cannot be read" in caplog.text


def test_an_empty_file_and_one_that_is_not_there(store: Store, path: Path) -> None:
    with pytest.raises(TranscriptError, match="cannot read the session file"):
        boot(store, path)
    for text in ("", json.dumps(HEADER) + "\n"):
        path.write_text(text)
        assert boot(store, path).reason == "no leaf-path messages in session"


def test_excluded_and_stateless_sessions_leave_the_store_alone(store: Store, path: Path) -> None:
    write(path, chain("a"))
    before = dump(store)
    assert boot(store, path, preparer(ignore_patterns=["key"])).reason == "session excluded by pattern"
    assert boot(store, path, preparer(stateless_patterns=["key"])).reason == "stateless session"
    assert dump(store) == before


def test_heartbeats_of_a_file_are_hidden_where_asked_for_and_not_imported_again(store: Store, path: Path) -> None:
    asked = entry("h1", "e-a", "read HEARTBEAT.md")
    answered = entry("h2", "h1", "HEARTBEAT_OK", "assistant")
    write(path, [*chain("a"), asked, answered], 1)
    assert boot(store, path).hidden_messages == 0
    write(path, [*chain("a"), asked, answered, *chain("b", parent="h2")], 2)
    report = boot(store, path, preparer(prune_heartbeats=True))
    assert (report.imported_messages, report.hidden_messages) == (1, 2)
    assert shown(store, "key") == ["a", "b"]
    assert len(said(store, "key")) == 4


def test_of_a_file_with_several_conversations_the_first_is_the_session(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    chats = [{"id": name, "conversations": [{"from": "human", "value": name}]} for name in ("one", "two")]
    path.write_text(json.dumps(chats))
    with Store() as store:
        boot(store, path)
        assert said(store, "key") == ["one"]
    assert "1 other conversations of the session file are left out" in caplog.text


def test_a_crash_at_any_statement_leaves_the_session_as_it_was_or_bootstrapped(path: Path) -> None:
    """Before the statements of even numbers, and after the others."""

    def opened() -> Store:
        store = Store(opened_at=NOW)
        boot(store, write(path, chain("a", "b"), 1))
        write(path, [*chain("a", "b"), *chain("x", parent="e-a")], 2)
        return store

    with opened() as whole:
        before = dump(whole)
        assert boot(whole, path).hidden_messages == 1
        complete = dump(whole)
    for at in count(1):
        with opened() as store:
            sound = store._connection
            store._connection = FaultyConnection(sound, at, after=at % 2 == 1)
            try:
                boot(store, path)
            except InjectedError:
                store._connection = sound
                assert dump(store) in (before, complete)
            else:
                store._connection = sound
                assert dump(store) == complete
                assert at > 15
                break
