"""`lcm doctor`: a table, an exit code, and a copy before anything is repaired."""

import shutil
from pathlib import Path

import pytest

from lcm.records.summary import Summary
from lcm.store.sqlite import connect
from lcm.store.store import Store
from pipelines.cli import BAD_INPUT
from tests.lcm.store.contents import TOKENS, talk
from tests.pipelines.conftest import Lcm
from tests.support.workspaces import minute


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with Store(tmp_path / "memory.db") as store:
        store.ingest(talk(5), TOKENS)
    return tmp_path / "memory.db"


def spoil(path: Path, sql: str) -> None:
    connection = connect(path)
    connection.execute(sql)
    connection.close()


def test_a_sound_store_is_left_alone(lcm: Lcm, path: Path) -> None:
    finished = lcm("doctor", str(path), "repair=true")
    assert (finished.code, "fail" in finished.stdout) == (0, False)
    finished = lcm("doctor", str(path), "repair=summaries", "embedder=hashing")
    assert (finished.code, "no summary does harm" in finished.stdout) == (0, True)
    assert not list(path.parent.glob("*.backup"))


def test_a_full_text_table_is_made_anew_after_a_copy(lcm: Lcm, path: Path) -> None:
    spoil(path, "DELETE FROM messages_fts WHERE rowid = 3")
    found = lcm("doctor", str(path))
    assert found.code == 1
    assert "messages_fts" in found.stdout
    assert "repair=true" in found.stdout
    repaired = lcm("doctor", str(path), "repair=true")
    assert repaired.code == 0
    (copy,) = path.parent.glob("*.backup")
    assert str(copy) in repaired.stdout
    shutil.copy(copy, path.with_name("copy.db"))
    assert lcm("doctor", str(path.with_name("copy.db"))).code == 1
    with Store(path) as store:
        assert store.messages() == list(talk(5).messages)


def test_what_follows_from_nothing_is_not_repaired(lcm: Lcm, path: Path) -> None:
    spoil(path, "DELETE FROM context_items WHERE message_id = 2")
    finished = lcm("doctor", str(path), "repair=true")
    assert finished.code == 1
    assert "messages_reachable" in finished.stdout
    assert not list(path.parent.glob("*.backup"))


def test_totals_are_worked_anew_but_never_follow_a_damaged_lineage(lcm: Lcm, path: Path) -> None:
    """Else a summary that names a source of another conversation would pass, and show what was said there."""
    compacted(path)
    assert lcm("doctor", str(path)).code == 0
    sound = totals(path)
    spoil(path, "UPDATE summaries SET descendant_count = 7, earliest_at = 'soon'")
    assert lcm("doctor", str(path)).code == 1
    assert lcm("doctor", str(path), "repair=true").code == 0
    assert totals(path) == sound
    spoil(path, "UPDATE summaries SET descendant_count = 7")
    spoil(path, "DELETE FROM summary_messages WHERE message_id = 2")
    spoil(path, "DELETE FROM messages_fts WHERE rowid = 3")
    before = totals(path)
    repaired = lcm("doctor", str(path), "repair=true")
    assert repaired.code == 1
    assert "summary_totals waits until these find nothing" in repaired.stdout
    assert totals(path) == before
    with Store(path) as store, store.reading() as connection:
        assert connection.execute("SELECT count(*) FROM messages_fts WHERE rowid = 3").fetchone() == (1,)


def compacted(path: Path) -> None:
    """Messages 1 and 2 of `talk` are a leaf."""
    with Store(path) as store:
        entries = store.context("talk")[:2]
        leaf = Summary(
            "a", "talk", "leaf", 0, "words of a", 4, minute(9), minute(1), minute(2),
            source_message_token_count=sum(entry.tokens for entry in entries),
            source_ids=tuple(entry.item_id for entry in entries),
        )  # fmt: skip
        store.replace_range("talk", entries[0].ordinal, entries[-1].ordinal, leaf)


def totals(path: Path) -> list[tuple[object, ...]]:
    with Store(path) as store, store.reading() as connection:
        return connection.execute("SELECT * FROM summaries ORDER BY summary_id").fetchall()


def test_a_store_that_was_cut_names_what_can_be_restored(lcm: Lcm, path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    refused = lcm("doctor", str(path))
    assert refused.code == BAD_INPUT
    assert "restore a copy of it, or move it away and make it again" in refused.stderr
    assert "lcm doctor" not in refused.stderr
    copy = path.with_name(f"{path.name}.20260101T000000.backup")
    copy.write_bytes(b"")
    assert f"the last copy beside it: {copy}" in lcm("doctor", str(path)).stderr


def test_harmful_summaries_are_told_and_made_again(lcm: Lcm, path: Path) -> None:
    compacted(path)
    spoil(path, "UPDATE summaries SET content = 'x' || char(10) || '[Truncated from 9 tokens]'")
    found = lcm("doctor", str(path))
    assert found.code == 0
    assert "was cut (new)" in found.stdout
    repaired = lcm("doctor", str(path), "repair=summaries", "summarizer=extractive", "embedder=hashing")
    assert repaired.code == 0
    assert "harmful summaries made again" in repaired.stdout
    assert len(list(path.parent.glob("*.backup"))) == 1
