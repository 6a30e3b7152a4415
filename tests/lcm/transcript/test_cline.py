"""Tasks of Cline and Roo Code: words without tags, instants of what was shown, one task whichever path is named."""

import json
from pathlib import Path
from typing import Any

import pytest

from lcm.records.conversation import Transcript
from lcm.transcript.editors import ClineReader, beside_cline
from lcm.transcript.folders import recorded_files
from lcm.transcript.reading import joined, read_pieces, reader_of
from tests.conftest import ROOT
from tests.lcm.transcript.recordings import columns, read, read_one, rebuilt, write

READER = ClineReader()
HISTORY = "api_conversation_history.json"
AT = 1767690000000


def said(role: str, text: str, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": [{"type": "text", "text": text}], **more}


def shown(seconds: int, say: str, text: str = "", **more: Any) -> dict[str, Any]:
    return {"ts": AT + 1000 * seconds, "type": "say", "say": say, "text": text, **more}


def seconds(talk: Transcript) -> list[float | None]:
    """Return when each message was said, in seconds since `AT`."""
    return [m.created_at and m.created_at.timestamp() - AT / 1000 for m in talk.messages]


def task(folder: Path, history: list[Any], interface: list[Any]) -> Path:
    write(folder / "ui_messages.json", interface)
    return write(folder / HISTORY, history)


def test_words_are_what_the_user_said_and_the_record_is_whole() -> None:
    path = ROOT / "tests" / "recordings" / "cline.json"
    talk = read_one(path, READER)
    assert [message.content for message in talk.messages] == [
        "Paint the name of the boat green",
        "I will look at the hull.",
        '<text fill="blue">Marja</text>\nA dark green, please.',
        "The name Marja is dark green now.",
    ]
    assert seconds(talk) == [0, 4, 9, 12]
    assert columns(talk.messages[1])[2] == ("tool", None, "toolu_1", "read_file", '{"path":"hull.svg"}', None)
    assert rebuilt(talk) == [json.dumps(record) for record in json.loads(path.read_text()) if "role" in record]
    assert [(event.kind, event.after) for event in talk.events] == [("reasoning", 3)]


def test_what_the_host_puts_in_the_place_of_messages_is_an_event(tmp_path: Path) -> None:
    history = [
        said("user", "<task>a</task>", ts=AT, condenseParent="k"),
        said("user", "What was said before", isSummary=True, condenseId="k", ts=AT + 1),
        said("assistant", "What was said before", isSummary=True, ts=AT + 2),
        said("user", "[4 messages hidden]", isTruncationMarker=True, truncationId="t", ts=AT + 3),
        said("assistant", "b", isSummary=False, ts=AT + 4),
    ]
    talk = read_one(write(tmp_path / "t" / HISTORY, history), READER)
    assert [message.content for message in talk.messages] == ["a", "b"]
    assert [event.kind for event in talk.events] == ["summary", "summary", "truncation"]
    assert [event.native for event in talk.events] == history[1:4]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("<task>\na\n</task>", "a"),
        ("<task>a</task>\n\n<environment_details>b</environment_details>", "a"),
        ("<user_message>\na\n</user_message>", "a"),
        ("<task>a</task> and more", "<task>a</task> and more"),
        ("The user said: <feedback>a</feedback>", "The user said: <feedback>a</feedback>"),
        ("a <environment_details> b", "a <environment_details> b"),
    ],
)
def test_a_tag_around_the_whole_is_no_word(text: str, words: str, tmp_path: Path) -> None:
    talk = read_one(write(tmp_path / HISTORY, [said("user", text)]), READER)
    assert [message.content for message in talk.messages] == [words]


def test_a_task_is_one_conversation_whichever_path_is_named(tmp_path: Path) -> None:
    path = task(tmp_path / "tasks" / "17", [said("user", "<task>a</task>", ts=AT)], [shown(0, "text", "a")])
    write(path.with_name("history_item.json"), {"id": "17", "task": "Mend\nit"})
    write(path.with_name("task_metadata.json"), {"files_in_context": []})
    for named in (tmp_path, path.parent.parent, path.parent, path):
        (file,) = recorded_files([named])
        ((talk,),) = [joined(read_pieces(file, reader_of(file)))]
        assert (talk.conversation_id, talk.title, talk.messages[0].content) == ("17", "Mend", "a")
        assert [event.kind for event in talk.events] == ["history_item", "task_metadata", "ui_messages"]
        assert file.read_along == [path.with_name(f"{event.kind}.json") for event in talk.events]
    assert beside_cline(path.with_name("ui_messages.json")) == []


def test_a_message_without_an_instant_has_that_of_the_last_shown_before_it(tmp_path: Path) -> None:
    history = [said("user", "a"), said("assistant", "b"), said("user", "c"), said("assistant", "d", ts=AT + 60_000)]
    places = [(1, -1), (2, -1), (3, 0), (5, 0), (8, 1), (9, 2)]
    interface = [shown(at, "text", "x", conversationHistoryIndex=place) for at, place in places]
    assert seconds(read_one(task(tmp_path, history, interface), READER)) == [2, 5, 8, 60]
    assert seconds(read_one(task(tmp_path, history, interface[:4]), READER)) == [2, 5, None, 60]


def test_where_no_place_is_told_the_words_are_looked_for_in_order(tmp_path: Path) -> None:
    history = [
        said("user", "<task>a</task>"),
        said("assistant", "b\n<read_file><path>x</path></read_file>"),
        said("user", "[read_file] Result:"),
        said("assistant", "a"),
        said("user", "<feedback>no</feedback>"),
        said("assistant", "b"),
    ]
    interface = [
        *(shown(1, "text", "a"), shown(2, "api_req_started", "{}"), shown(3, "text", "b"), {"ts": "?", "text": "a"}),
        *(
            7,
            shown(4, "text", "a"),
            shown(5, "text", "no"),
            shown(5, "user_feedback", "n"),
            shown(6, "user_feedback", "no"),
            shown(7, "reasoning"),
        ),
    ]
    assert seconds(read_one(task(tmp_path, history, interface), READER)) == [1, 3, None, 4, 6, None]


def test_damage_beside_the_history_is_put_aside_by_its_file(tmp_path: Path) -> None:
    history = [said("user", "<task>x</task>"), 7, {"role": "robot", "content": ""}]
    path = task(tmp_path, history, [shown(1, "text", "x")])
    path.with_name("ui_messages.json").write_text('[{"ts": 1}, {')
    (file,) = recorded_files([path])
    ((talk,),) = [joined(read_pieces(file, READER))]
    assert [message.content for message in talk.messages] == ["x"]
    assert [(aside.path.name, aside.reason[:30]) for aside in file.quarantine] == [
        (HISTORY, "a record must be a JSON object"),
        (HISTORY, "expected a message of the `rol"),
        ("ui_messages.json", "after the last value that coul"),
    ]
    assert len(read(write(tmp_path / "alone" / HISTORY, history), READER)[1]) == 2


def test_notes_that_are_linked_from_elsewhere_are_not_read_along(tmp_path: Path) -> None:
    secret = write(tmp_path / "secret.json", {"task": "secret"})
    path = task(tmp_path / "17", [said("user", "<task>a</task>")], [])
    path.with_name("history_item.json").symlink_to(secret)
    assert [one.name for one in beside_cline(path)] == ["ui_messages.json"]
