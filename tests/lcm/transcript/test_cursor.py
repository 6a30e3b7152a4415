"""Cursor's agent transcripts: what the user asked, when, and what sub-agents said."""

from pathlib import Path
from typing import Any

import pytest

from lcm.transcript.editors import CursorReader, beside_cursor
from lcm.transcript.folders import recorded_files
from lcm.transcript.reading import joined, read_pieces
from lcm.transcript.recorded_file import RecordedFile
from tests.conftest import ROOT
from tests.lcm.transcript.recordings import columns, read_message, read_one, write

READER = CursorReader()


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "message": {"content": [{"type": "text", "text": text}]}}


def test_words_are_the_query_and_calls_are_kept() -> None:
    talk = read_one(ROOT / "tests" / "recordings" / "cursor.jsonl", READER)
    assert [(message.role, message.content) for message in talk.messages] == [
        ("user", "Which file sets the harbour lights?"),
        ("assistant", "I will search for them."),
        ("assistant", "config/lights.toml sets them."),
        ("user", "Dim them after midnight."),
        ("assistant", ""),
    ]
    assert str(talk.messages[0].created_at) == "2026-07-20 13:04:00+00:00"
    given = '{"pattern":"harbour_light","path":"src"}'
    assert columns(talk.messages[1])[1] == ("tool", None, "tool_1", "Grep", given, None)
    assert [(event.kind, event.after) for event in talk.events] == [("turn_ended", 3), ("notice", 3), ("turn_ended", 5)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("<user_query>\na\n</user_query>", "a"),
        ("<attached_files>b</attached_files>\n<user_query>a</user_query>\n<system_reminder>c</system_reminder>", "a"),
        ("<user_query>a</user_query> and <user_query>b</user_query>", "a\nb"),
        ("a <b>bold</b> word", "a <b>bold</b> word"),
        ("<user_query>a", "<user_query>a"),
        ("<timestamp>now</timestamp>\na", "a"),
        ("<timestamp>a", "<timestamp>a"),
    ],
)
def test_of_what_stands_around_the_query_nothing_is_a_word(text: str, words: str, tmp_path: Path) -> None:
    for number, record in enumerate([user(text), {"role": "user", "message": {"content": text}}]):
        message = read_message(write(tmp_path / f"{number}.jsonl", record), READER, record)
        assert (message.content, [part.text for part in message.parts]) == (words, [words])


@pytest.mark.parametrize(
    ("told", "instant"),
    [
        ("Friday, Jul 17, 2026, 12:26 AM (UTC+9)", "2026-07-16 15:26:00+00:00"),
        ("Monday, October 5, 2026, 9:05\u202fPM (UTC-5:30)", "2026-10-06 02:35:00+00:00"),
        ("Monday, Oct 5, 2026, 9:05 PM (UTC)", "2026-10-05 21:05:00+00:00"),
        ("Monday, Oct 5, 2026, 9:05 PM", "None"),
        ("Monday, Oct 35, 2026, 9:05 PM (UTC)", "None"),
        ("now", "None"),
    ],
)
def test_an_instant_is_read_where_its_zone_is_told(told: str, instant: str, tmp_path: Path) -> None:
    record = user(f"<timestamp>{told}</timestamp>\n<user_query>a</user_query>")
    assert str(read_message(write(tmp_path / "a.jsonl", record), READER, record).created_at) == instant


def test_a_picture_beside_the_query_is_kept(tmp_path: Path) -> None:
    record = user("<user_query>a</user_query>")
    record["message"]["content"].append({"type": "image", "data": "aGk="})
    message = read_message(write(tmp_path / "a.jsonl", record), READER, record)
    assert [part.part_type for part in message.parts] == ["text", "file"]


def test_sub_agents_are_read_with_their_session_whichever_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "transcripts" / "s1"
    write(folder / "s1.jsonl", user("<user_query>a</user_query>"))
    write(folder / "subagents" / "b.jsonl", user("b"))
    write(tmp_path / "secret.jsonl", user("c"))
    (folder / "subagents" / "c.jsonl").symlink_to(tmp_path / "secret.jsonl")
    for path, name in ((folder, "s1"), (folder / "s1.jsonl", "s1"), (tmp_path / "transcripts", "s1/s1")):
        (file,) = recorded_files([path])
        said = {one.conversation_id: [m.content for m in one.messages] for one in joined(read_pieces(file, READER))}
        assert said == {name: ["a"], f"{name}/agent-b": ["b"]}
        assert [one.name for one in file.read_along] == ["b.jsonl"]
    assert beside_cursor(write(folder / "s2.jsonl", user("a"))) == []
    file = RecordedFile(folder / "s1.jsonl")
    write(folder / "subagents" / "b.jsonl", "{", user("b"))
    assert len(joined(read_pieces(file, READER))) == 2
    assert [str(aside.path) for aside in file.quarantine] == [str(folder / "subagents" / "b.jsonl")]
