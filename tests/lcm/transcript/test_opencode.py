"""OpenCode: what an export, the tree and the database have in common, and what each has of its own."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lcm.records.conversation import Message, Transcript
from lcm.transcript.folders import recorded_files
from lcm.transcript.opencode import OpenCodeReader, beside
from lcm.transcript.parts import rebuild_record
from lcm.transcript.reading import joined, read_pieces, reader_of
from lcm.transcript.recorded_file import RecordedFile
from tests.conftest import ROOT
from tests.lcm.transcript.recordings import columns, read, write

READER = OpenCodeReader()
EXPORT = json.loads((ROOT / "tests" / "recordings" / "opencode.json").read_text())
SESSION = EXPORT["info"]["id"]
TABLES = """
    CREATE TABLE session (id TEXT PRIMARY KEY, parent_id TEXT, title TEXT, revert TEXT, time_created INTEGER);
    CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, data TEXT);
    CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, data TEXT);
    CREATE TABLE todo (session_id TEXT, content TEXT, position INTEGER);
"""
IDS = ("id", "sessionID", "messageID")


def tree(folder: Path, *exports: dict[str, Any]) -> Path:
    """Write sessions as the tree keeps them."""
    for export in exports:
        session = export["info"]
        write(folder / "session" / "0a1b2c" / f"{session['id']}.json", session, indent=2)
        for message in export["messages"]:
            info = message["info"]
            write(folder / "message" / session["id"] / f"{info['id']}.json", info, indent=2)
            for part in message["parts"]:
                write(folder / "part" / info["id"] / f"{part['id']}.json", part, indent=2)
        if "todos" in export:
            write(folder / "todo" / f"{session['id']}.json", export["todos"])
    return folder


def database(path: Path, *exports: dict[str, Any]) -> Path:
    """Write sessions as the database keeps them: ids in columns, and the rest as `data`."""
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(TABLES)
        for export in exports:
            info = export["info"]
            revert = json.dumps(info["revert"]) if "revert" in info else None
            row = (info["id"], info.get("parentID"), info.get("title"), revert, info["time"]["created"])
            connection.execute("INSERT INTO session VALUES (?, ?, ?, ?, ?)", row)
            for message in reversed(export["messages"]):
                told, said_at = message["info"], message["info"]["time"]["created"]
                row = (told["id"], info["id"], said_at, _data(told))
                connection.execute("INSERT INTO message VALUES (?, ?, ?, ?)", row)
                for part in reversed(message["parts"]):
                    row = (part["id"], told["id"], info["id"], _data(part))
                    connection.execute("INSERT INTO part VALUES (?, ?, ?, ?)", row)
            for position, todo in enumerate(export.get("todos", [])):
                connection.execute("INSERT INTO todo VALUES (?, ?, ?)", (info["id"], todo["content"], position))
    return path


def _data(record: dict[str, Any]) -> str:
    return json.dumps({key: value for key, value in record.items() if key not in IDS})


def told(path: Path) -> list[Transcript]:
    """Return what is read of a file or a folder of which nothing is put aside."""
    found = []
    for file in recorded_files([path]):
        found += joined(read_pieces(file, reader_of(file)))
        assert (file.quarantine, file.doubts) == ([], [])
    return found


def session(*messages: tuple[str, list[dict[str, Any]]], **info: Any) -> dict[str, Any]:
    """Return an export of these roles and parts."""
    said = []
    for number, (role, parts) in enumerate(messages, start=1):
        ids = {"id": f"msg_{number}", "sessionID": "ses_1"}
        named = [
            {"id": f"prt_{number}_{place}", "sessionID": "ses_1", "messageID": ids["id"], **part}
            for place, part in enumerate(parts, start=1)
        ]
        time = {"created": 1767603600000 + number}
        said.append({"info": {**ids, "role": role, "time": time}, "parts": named})
    return {"info": {"id": "ses_1", "title": "A", "time": {"created": 1767603600000}} | info, "messages": said}


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **more}


def messages(path: Path) -> dict[str, tuple[Message, ...]]:
    return {one.conversation_id: one.messages for one in told(path)}


def test_the_export_the_tree_and_the_database_of_a_session_are_the_same_messages(tmp_path: Path) -> None:
    stored = tree(tmp_path / "storage", EXPORT)
    export = messages(ROOT / "tests" / "recordings" / "opencode.json")
    assert [*export] == [SESSION, f"{SESSION}~msg_7q05"]
    assert messages(stored) == messages(stored / "session" / "0a1b2c" / f"{SESSION}.json") == export
    assert messages(tmp_path / "storage" / "session") == export
    assert messages(database(tmp_path / "opencode.db", EXPORT)) == export


def test_words_are_what_was_said_and_what_tools_gave_back() -> None:
    asked, answered, _, summed_up = messages(ROOT / "tests" / "recordings" / "opencode.json")[SESSION]
    assert asked.content == "Where do we keep the tide tables? See @notes.md"
    assert str(asked.created_at) == "2026-01-05 09:01:00+00:00"
    assert [part.part_type for part in asked.parts] == ["text", "text", "file"]
    assert asked.parts[2].metadata["raw"]["filename"] == "notes.md"
    assert answered.content.split("\n") == [
        "In var/tides.sqlite, loaded by src/cache.py.",
        "src/cache.py:12: tide_table = load('var/tides.sqlite')",
        "Cannot read a binary file",
    ]
    assert [part.part_type for part in answered.parts] == [
        *("step_start", "reasoning", "tool", "tool", "text", "step_finish", "patch"),
    ]
    given = '{"filePath":"/srv/tides/var/tides.sqlite"}'
    assert columns(answered)[3] == ("tool", None, "call_2", "read", given, '"Cannot read a binary file"')
    assert summed_up.content.startswith("So far")
    (undone, _) = messages(ROOT / "tests" / "recordings" / "opencode.json")[f"{SESSION}~msg_7q05"]
    assert undone.content == "Move them to Postgres."


@settings(max_examples=5, deadline=None)
@given(
    said=st.lists(
        st.tuples(
            st.sampled_from(["user", "assistant"]),
            st.lists(st.sampled_from([text("a"), text("b", synthetic=True), {"type": "later"}, {"type": "tool"}])),
        ),
        min_size=1,
        max_size=11,
    ),
    undone=st.none() | st.integers(1, 13),
)
@example(said=[("user", [text("a"), text("b")] * 5 + [text("c")]), *[("user", [])] * 10], undone=10)
def test_all_three_agree_on_any_session(said, undone, tmp_path_factory):
    revert = {} if undone is None else {"revert": {"messageID": f"msg_{undone}"}}
    export = session(*said, **revert)
    folder = tmp_path_factory.mktemp("opencode")
    found = joined(read_pieces(RecordedFile(write(folder / "a.json", export)), READER))
    stored = tree(folder / "storage", export) / "session" / "0a1b2c" / "ses_1.json"
    for path in (stored, database(folder / "opencode.db", export)):
        other = joined(read_pieces(RecordedFile(path), READER))
        assert [one.messages for one in other] == [one.messages for one in found]
    records = [rebuild_record(message) for one in found for message in one.messages]
    assert records == export["messages"]
    main = [message for one in found if "~" not in one.conversation_id for message in one.messages]
    assert len(main) == (len(said) if undone is None or undone > len(said) else undone - 1)


def test_a_message_within_which_the_user_went_back_is_two_halves(tmp_path: Path) -> None:
    parts = [text("kept"), text("undone")]
    export = session(("user", [text("a")]), ("assistant", parts), ("user", [text("b")]))
    cases = {"prt_2_2": (["a", "kept"], ["undone", "b"]), "prt_2_1": (["a"], ["kept\nundone", "b"])}
    cases["prt_9"] = (["a", "kept\nundone"], ["b"])
    for part, (main, branch) in cases.items():
        export["info"]["revert"] = {"messageID": "msg_2", "partID": part}
        found = messages(write(tmp_path / "a.json", export))
        assert [[message.content for message in said] for said in found.values()] == [main, branch]
        assert [*found] == ["ses_1", "ses_1~msg_2"]


def test_a_sub_agents_session_is_a_conversation_of_its_own(tmp_path: Path) -> None:
    asked = session(("user", [text("a")]))
    child = json.loads(json.dumps(asked).replace("_1", "_2"))
    child["info"]["parentID"] = "ses_1"
    found = told(database(tmp_path / "opencode.db", asked, child))
    assert [one.conversation_id for one in found] == ["ses_1", "ses_2"]
    assert found[1].events[0].native["parent_id"] == "ses_1"
    assert [one.conversation_id for one in told(tree(tmp_path / "storage", asked, child))] == ["ses_1", "ses_2"]


def test_what_is_noted_beside_the_messages_is_an_event(tmp_path: Path) -> None:
    export, stored, rows = (
        told(path)[0]
        for path in (
            ROOT / "tests" / "recordings" / "opencode.json",
            tree(tmp_path / "storage", EXPORT),
            database(tmp_path / "opencode.db", EXPORT),
        )
    )
    assert [event.kind for event in export.events] == ["session", "todos"]
    assert [event.kind for event in stored.events] == [event.kind for event in rows.events] == ["session", "todo"]
    assert stored.events[0].native == EXPORT["info"]
    assert rows.events[1].native["content"] == EXPORT["todos"][0]["content"]
    assert {one.title for one in (export, stored, rows)} == {EXPORT["info"]["title"]}


def test_messages_of_a_version_to_come_are_events_and_told(tmp_path: Path) -> None:
    path = database(tmp_path / "a.db", session())
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE session_message (id TEXT, session_id TEXT, type TEXT, data TEXT)")
        connection.execute("INSERT INTO session_message VALUES ('msg_1', 'ses_1', 'user', '{}')")
    file = RecordedFile(path)
    (found,) = joined(read_pieces(file, READER))
    assert [event.kind for event in found.events] == ["session", "session_message"]
    assert file.doubts == [
        (
            f"{path}: session 'ses_1' has its messages in the table session_message alone, "
            "which is not read: read what `opencode export` writes of it"
        ),
        f"{path}: no message in it, and 2 records of other kinds",
    ]


def test_messages_that_stand_in_both_tables_give_no_doubt(tmp_path: Path) -> None:
    path = database(tmp_path / "a.db", session(("user", [text("a")])))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE session_message (id TEXT, session_id TEXT, type TEXT, data TEXT)")
        connection.execute("INSERT INTO session_message VALUES ('msg_1', 'ses_1', 'user', '{}')")
    file = RecordedFile(path)
    assert [len(one.messages) for one in joined(read_pieces(file, READER))] == [1]
    assert file.doubts == []


def test_damage_is_put_aside_by_file_and_the_rest_is_read(tmp_path: Path) -> None:
    stored = tree(tmp_path, session(("user", [text("a"), text("b")]), ("user", [text("c")]), ("user", [text("d")])))
    (stored / "part" / "msg_1" / "prt_1_2.json").write_text('{"type": "te')
    (stored / "message" / "ses_1" / "msg_2.json").write_bytes(b"\xff{}")
    write(stored / "message" / "ses_1" / "msg_3.json", {"id": "msg_3", "role": "robot"})
    file = RecordedFile(stored / "session" / "0a1b2c" / "ses_1.json")
    ((only,),) = [one.messages for one in joined(read_pieces(file, READER))]
    assert only.content == "a"
    assert [(str(aside.path.relative_to(stored)), aside.reason[:24]) for aside in file.quarantine] == [
        ("part/msg_1/prt_1_2.json", "cannot be read: not JSON"),
        ("message/ses_1/msg_2.json", "cannot be read: 'utf-8' "),
        ("part/msg_2/prt_2_1.json", "its message cannot be re"),
        ("message/ses_1/msg_3.json", "expected a message, an o"),
    ]


@pytest.mark.parametrize(
    ("statement", "reason", "left"),
    [
        ("UPDATE part SET data = '{' WHERE id = 'prt_1_1'", "part prt_1_1: not JSON", ["", "b"]),
        ("UPDATE part SET data = NULL WHERE id = 'prt_1_1'", "part prt_1_1: `data` must be JSON text", ["", "b"]),
        ("UPDATE part SET data = CAST(x'22ff22' AS TEXT) WHERE id = 'prt_1_1'", "part prt_1_1: `data`", ["", "b"]),
        ("UPDATE session SET title = CAST(x'ff' AS TEXT)", "session ses_1: title must be text", ["a", "b"]),
        ("UPDATE message SET data = '[]' WHERE id = 'msg_1'", "message msg_1: `data` must be a JSON object", ["b"]),
        ("UPDATE message SET data = '{}' WHERE id = 'msg_1'", "message msg_1: expected a message", ["b"]),
        ("UPDATE session SET revert = '{'", "session ses_1: not JSON", ["a", "b"]),
        ("UPDATE session SET title = x'00'", "session ses_1: title must be text or a number", ["a", "b"]),
        ("UPDATE part SET message_id = 'no' WHERE id = 'prt_1_1'", "part prt_1_1: its session is not", ["", "b"]),
    ],
)
def test_a_row_that_cannot_be_read_is_put_aside(tmp_path: Path, statement: str, reason: str, left: list[str]) -> None:
    path = database(tmp_path / "a.db", session(("user", [text("a")]), ("user", [text("b")])))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)
    (found,), aside = read(path, READER)
    assert [message.content for message in found.messages] == left
    assert [line.startswith(f"1: {reason}") for line in aside] == [True]


def test_what_was_undone_is_left_out_where_the_row_of_its_session_cannot_be_kept(tmp_path: Path) -> None:
    undone = session(("user", [text("a")]), ("user", [text("b")]), revert={"messageID": "msg_2"})
    path = database(tmp_path / "a.db", undone)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE session SET title = x'00'")
    transcripts, _ = read(path, READER)
    assert [[message.content for message in found.messages] for found in transcripts] == [["a"], ["b"]]


def test_messages_whose_session_is_gone_are_put_aside(tmp_path: Path) -> None:
    path = database(tmp_path / "a.db", session(("user", [text("a")])), EXPORT)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM session WHERE id = 'ses_1'")
    found, aside = read(path, READER)
    assert {one.conversation_id for one in found} == {SESSION, f"{SESSION}~msg_7q05"}
    missing = ["message msg_1", "part prt_1_1"]
    assert aside == [f"1: {what}: its session is not in the database" for what in missing]


def test_what_is_linked_from_elsewhere_is_not_read_along(tmp_path: Path) -> None:
    stored = tree(tmp_path / "storage", session(("user", [text("a")])))
    write(tmp_path / "secret.json", {"id": "msg_2", "role": "user"})
    (stored / "message" / "ses_1" / "msg_2.json").symlink_to(tmp_path / "secret.json")
    alone = stored / "session" / "0a1b2c" / "ses_1.json"
    assert [path.name for path in beside(alone)] == ["msg_1.json", "prt_1_1.json"]
    moved = write(tmp_path / "ses_1.json", json.loads(alone.read_text()))
    assert beside(moved) == []
