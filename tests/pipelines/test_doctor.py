"""`lcm doctor`: a table, an exit code, and a copy before anything is repaired."""

import shutil
from pathlib import Path

import pytest

from lcm.store.connection import connect
from lcm.store.store import Store
from pipelines.cli import BAD_INPUT
from tests.lcm.store.contents import TOKENS, talk
from tests.pipelines.conftest import Lcm


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
    assert finished.code == 0
    assert "fail" not in finished.stdout
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


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["missing.db"], "no such file"),
        ([], "lcm doctor STORE"),
        (["repair=maybe", "x"], "repair must be true or false"),
    ],
)
def test_wrong_arguments_are_one_line(lcm: Lcm, arguments: list[str], said: str) -> None:
    finished = lcm("doctor", *arguments)
    assert said in finished.stdout + finished.stderr
    assert finished.code == (BAD_INPUT if arguments else 0)


def test_what_is_no_store_cannot_be_checked(lcm: Lcm, tmp_path: Path) -> None:
    (tmp_path / "words.db").write_text("these are words, and more of them than a header would have " * 20)
    assert lcm("doctor", str(tmp_path / "words.db")).code == BAD_INPUT
