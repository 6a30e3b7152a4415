"""ChatGPT exports: trees of nodes, of which the page shows one branch."""

import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.store.store import Store
from lcm.token_estimator import Utf16Units
from lcm.transcript.exports import ChatGptReader
from lcm.transcript.reading import joined, read_pieces, reader_of
from lcm.transcript.recorded_file import RecordedFile
from tests.lcm.store.contents import json_values
from tests.lcm.transcript.recordings import columns, heard, natives, read, write

READER = ChatGptReader()
HIDDEN = {"is_visually_hidden_from_conversation": True}


def node(key: str, parent: str | None, role: str = "user", content: Any = None, **message: Any) -> dict[str, Any]:
    said = {"content_type": "text", "parts": [f"words of {key}"]} if content is None else content
    return {"id": key, "message": {"id": key, "author": {"role": role}, "content": said} | message, "parent": parent}


def conversation(*nodes: dict[str, Any], **beside: Any) -> dict[str, Any]:
    return {"title": "Masts", "mapping": {held["id"]: held for held in nodes}, "id": "c1"} | beside


def one(tmp_path: Path, **message: Any):
    ((transcript,), _) = read(write(tmp_path / "a.json", conversation(node("n", None, **message))), READER)
    (said,) = transcript.messages
    return said


def test_the_branch_that_the_page_shows_is_the_conversation_whatever_order_the_nodes_have(tmp_path: Path) -> None:
    root = {"id": "r", "message": None, "parent": None, "children": ["q"]}
    nodes = [root, node("q", "r"), node("a", "q"), node("b", "q"), node("b2", "b"), node("c", "b")]
    for order in (nodes, nodes[::-1]):
        transcripts, aside = read(write(tmp_path / "a.json", [conversation(*order, current_node="b2")]), READER)
        assert aside == []
        assert heard(transcripts) == {"c1": ["q", "b", "b2"], "c1~a": ["a"], "c1~c": ["c"]}
        assert {one.title for one in transcripts} == {"Masts"}
        assert [event.kind for event in transcripts[0].events] == ["session", "node"]


def test_one_conversation_alone_a_line_each_and_an_array_read_alike(tmp_path: Path) -> None:
    held = conversation(node("q", None), node("a", "q", "assistant"))
    files = [
        write(tmp_path / "alone.json", held),
        write(tmp_path / "broad.json", held, indent=1),
        write(tmp_path / "array.json", [held], indent=1),
        write(tmp_path / "lines.jsonl", held),
    ]
    assert [reader_of(RecordedFile(path)).name for path in files] == ["chatgpt"] * 4
    readings = [read(path, READER)[0] for path in files]
    assert all(reading == readings[0] for reading in readings)


def test_a_conversation_of_more_than_a_megabyte_is_recognised(tmp_path: Path) -> None:
    big = conversation(node("q", None, content={"content_type": "text", "parts": ["mast " * 300_000]}))
    for value in (big, [big, big]):
        assert reader_of(RecordedFile(write(tmp_path / "conversations.json", value))).name == "chatgpt"


@pytest.mark.parametrize(
    ("content", "words", "parts"),
    [
        ({"content_type": "text", "parts": ["one", "two"]}, "one\ntwo", ["text", "text"]),
        ({"content_type": "code", "language": "python", "text": "x = 1"}, "x = 1", ["text"]),
        ({"content_type": "execution_output", "text": "2.6"}, "2.6", ["text"]),
        (
            {
                "content_type": "multimodal_text",
                "parts": [
                    {"content_type": "image_asset_pointer", "asset_pointer": "file-service://f"},
                    {"content_type": "real_time_user_audio_video_asset_pointer", "audio_asset_pointer": {}},
                    {"content_type": "audio_transcription", "text": "heard"},
                    "seen",
                ],
            },
            "heard\nseen",
            ["file", "file", "text", "text"],
        ),
        (
            {"content_type": "thoughts", "thoughts": [{"summary": "Weighing", "content": "Light."}]},
            "",
            ["reasoning"],
        ),
        ({"content_type": "reasoning_recap", "content": "Thought for 5s"}, "", ["reasoning"]),
        ({"content_type": "tether_quote", "url": "u", "title": "Woods", "text": "Spruce."}, "Spruce.", ["text"]),
        ({"content_type": "tether_browsing_display", "result": "Found.", "summary": None}, "Found.", ["text"]),
        ({"content_type": "of tomorrow", "payload": {"text": "new"}}, "new", ["text"]),
        ({"content_type": "of tomorrow", "number": 7}, '[{"content_type":"of tomorrow","number":7}]', ["text"]),
    ],
)
def test_words_of_each_type_of_content(content: dict[str, Any], words: str, parts: list[str], tmp_path: Path) -> None:
    message = one(tmp_path, role="assistant", content=content, create_time=1767603600.25)
    assert (message.content, [part.part_type for part in message.parts]) == (words, parts)
    assert message.created_at == datetime(2026, 1, 5, 9, 0, 0, 250_000, UTC)


def test_instructions_of_the_user_are_said_and_what_the_page_hides_of_the_system_is_an_event(tmp_path: Path) -> None:
    told = {"content_type": "user_editable_context", "user_profile": "I sail.", "user_instructions": "Be brief."}
    nodes = [
        node("empty", None, "system", {"content_type": "text", "parts": [""]}),
        node("hidden", "empty", "system", metadata=HIDDEN),
        node("told", "hidden", content=told, metadata=HIDDEN),
        node("shown", "told", "system"),
        node("result", "shown", "tool", metadata=HIDDEN),
    ]
    ((transcript,), _) = read(write(tmp_path / "a.json", conversation(*nodes)), READER)
    assert [(message.role, message.content) for message in transcript.messages] == [
        ("system", "I sail.\nBe brief."),
        ("system", "words of shown"),
        ("tool", "words of result"),
    ]
    assert [event.native for event in transcript.events[1:]] == nodes[:2]


def test_a_call_names_its_tool_and_all_that_the_tool_answers_names_the_call(tmp_path: Path) -> None:
    nodes = [
        node("c", None, "assistant", {"content_type": "code", "text": "print(1)"}, recipient="python"),
        node(
            "o",
            "c",
            "tool",
            {"content_type": "execution_output", "text": "1"},
            author={"role": "tool", "name": "python"},
        ),
        node("p", "o", "tool", {"content_type": "multimodal_text", "parts": [{"asset_pointer": "f"}]}),
        node("d", "p", "assistant", {"content_type": "text", "parts": ['{"q": "mast"}']}, recipient="web.run"),
        node("t", None, "tool"),
    ]
    transcripts, _ = read(write(tmp_path / "a.json", conversation(*nodes, current_node="d")), READER)
    call, output, picture, search = transcripts[0].messages
    assert (call.content, *columns(call)) == ("", ("tool", None, "c", "python", '"print(1)"', None))
    assert (output.content, *columns(output)) == ("1", ("text", "1", "c", "python", None, None))
    assert columns(picture) == [("file", None, "c", None, None, None)]
    assert columns(search) == [("tool", None, "d", "web.run", '{"q": "mast"}', None)]
    assert columns(transcripts[1].messages[0]) == [("text", "words of t", None, None, None, None)]


def test_cycles_and_parents_that_are_not_there_are_told_and_the_rest_is_read(tmp_path: Path) -> None:
    nodes = [node("q", None), node("a", "q"), node("x", "gone"), node("y", "z"), node("z", "y"), node("own", "own")]
    file = RecordedFile(write(tmp_path / "a.json", conversation(*nodes, current_node="a")))
    transcripts = joined(read_pieces(file, READER))
    assert heard(transcripts) == {"c1": ["q", "a"], "c1~x": ["x"], "c1~y": ["y", "z"], "c1~own": ["own"]}
    assert (
        f"{file.path}: conversation c1: 3 of 6 messages follow one that is not there, or themselves" in file.doubts[0]
    )


CONTENT_KEYS = ["content_type", "parts", "text", "thoughts", "content", "user_profile", "asset_pointer"]
WORDS = st.sampled_from(["text", "thoughts", "user_editable_context", "multimodal_text", "python", "a", "b"])
CONTENT = st.dictionaries(
    st.sampled_from(CONTENT_KEYS), WORDS | json_values | st.lists(st.fixed_dictionaries({"text": WORDS}))
)
AUTHOR = st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant", "tool", "system", "critic"])})
MESSAGE = st.fixed_dictionaries(
    {"author": AUTHOR | json_values, "content": CONTENT | json_values},
    optional={"recipient": WORDS | json_values, "metadata": st.just(HIDDEN) | json_values, "create_time": json_values},
)
NODE = json_values | st.fixed_dictionaries({"message": MESSAGE | json_values, "parent": WORDS | json_values})


@given(mapping=st.dictionaries(st.sampled_from("abc") | st.text(), NODE, max_size=4), last=json_values)
def test_each_node_comes_back_or_is_put_aside(
    mapping: dict[str, Any], last: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    held = {"mapping": mapping, "current_node": last}
    path = write(tmp_path_factory.getbasetemp() / "any.json", held)
    transcripts, aside = read(path, READER)
    found = natives([*(e for t in transcripts for e in t.events), *(m for t in transcripts for m in t.messages)])
    nodes = {key: node for key, node in mapping.items() if isinstance(node, dict)}
    header = held | {"mapping": {key: node["children"] for key, node in nodes.items() if "children" in node}}
    bare = ({name: part for name, part in node.items() if name != "children"} for node in nodes.values())
    owed = Counter(map(json.dumps, [header, *bare, *(node for node in mapping.values() if not isinstance(node, dict))]))
    assert not Counter(map(json.dumps, found)) - owed
    assert len(found) + len(aside) == owed.total()


def test_an_export_of_the_next_month_adds_what_was_said_since(tmp_path: Path) -> None:
    first = [node("a", None), node("b", "a", "assistant")]
    later = [first[0] | {"children": ["b"]}, first[1] | {"children": ["c"]}, node("c", "b") | {"children": []}]
    months = [[*first], later]
    files = [
        write(tmp_path / f"{number}.json", conversation(*nodes, current_node=nodes[-1]["id"]))
        for number, nodes in enumerate(months)
    ]
    with Store() as store:
        for file in files:
            ((transcript,), _) = read(file, READER)
            store.ingest(transcript, Utf16Units())
        assert [message.content for message in store.messages("c1")] == ["words of a", "words of b", "words of c"]
