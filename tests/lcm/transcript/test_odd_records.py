"""Whatever stands in a record of a format, it comes back exactly or is put aside."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.lcm.store.contents import json_objects, json_values
from tests.lcm.transcript.recordings import natives, read, write
from tests.lcm.transcript.test_formats import BY_NAME, GEMINI, GOOD, GOOSE, OPENCODE_SAID, SAID

KEYS = {
    "chat": "role content id name created_at tool_calls",
    "claude_code": "type message uuid parentUuid sessionId isSidechain agentId timestamp summary role content",
    "codex": (
        "type payload role content message arguments input output result summary call_id name function author id"
        " timestamp created_at instructions record_type thread_name"
    ),
    "cursor": "role message type content text name input status",
    "gemini": (
        "type role id content parts thoughts toolCalls timestamp sessionId $set name args result text functionCall"
    ),
    "goose": "role content created id metadata working_dir description message_id",
    "openclaw": "type id parentId message role content timestamp name",
    "opencode": "info parts role id time type text state input output synthetic callID tool",
    "sharegpt": "from value id timestamp",
    "swe_agent": "role content response action observation thought tool_calls tool_call_ids",
    "tau_bench": "role content tool_calls id name",
    "chatgpt": "message parent id author content metadata role recipient content_type parts text thoughts create_time",
    "langchain": "type content data kwargs id role tool_calls name args additional_kwargs timestamp",
    "openhands": "source action args observation content kind llm_message tool_call_id thought timestamp id cause",
    "claude_ai": "sender text content uuid parent_message_uuid created_at attachments files extracted_content type",
}
VALUES = {
    "claude_code": "user assistant summary custom-title system",
    "codex": (
        "message agent_message reasoning function_call function_call_output tool_result session_meta response_item"
        " event_msg"
    ),
    "cursor": "user assistant text tool_use <user_query>a</user_query> <timestamp>now</timestamp> <system_reminder>",
    "gemini": "user gemini model info",
    "openclaw": "message session label model_change e1",
    "chatgpt": "user tool system text code thoughts multimodal_text user_editable_context all python n",
    "langchain": "human ai tool HumanMessage constructor",
    "openhands": "user agent run message think finish MessageEvent ActionEvent ObservationEvent null",
    "claude_ai": "human assistant text thinking tool_use tool_result m1",
    "opencode": "user assistant text tool reasoning file step-start",
    "sharegpt": 'human gpt function_call <div>&#x110000;<![CDATA[a</div> {"name":"f"}',
}
FORMS = [
    *(
        (name, None)
        for name in ("chat", "claude_code", "codex", "gemini", "goose", "openclaw", "langchain", "openhands")
    ),
    ("goose", "conversation"),
    *(
        ("chat", "messages"),
        ("gemini", "messages"),
        ("opencode", "messages"),
        ("sharegpt", "conversations"),
        ("tau_bench", "traj"),
    ),
    *(("swe_agent", "history"), ("swe_agent", "trajectory"), ("claude_ai", "chat_messages")),
]
"""Formats, and the key of a session under which the records stand that are drawn; None where each is a line."""


def drawn_records(name: str) -> st.SearchStrategy[Any]:
    """Values of any kind, and objects of the keys and the words that the reader knows."""
    keys = st.sampled_from(KEYS[name].split())
    words = st.sampled_from(VALUES.get(name, "user assistant tool").split())
    inner = st.dictionaries(keys, json_values | words, max_size=4)
    known = st.dictionaries(keys, json_values | words | inner | st.lists(inner | json_values, max_size=2), max_size=5)
    first = st.fixed_dictionaries({}, optional=dict.fromkeys(KEYS[name].split()[:2], words | inner))
    return json_values | st.builds(lambda *parts: parts[0] | parts[1] | parts[2], json_objects, known, first)


def given_back(path: Path, name: str) -> tuple[list[str], list[str]]:
    """Return the records that come back, as JSON, and what is put aside."""
    transcripts, aside = read(path, BY_NAME[name])
    items = [*(event for t in transcripts for event in t.events), *(m for t in transcripts for m in t.messages)]
    return list(map(json.dumps, natives(items))), aside


def unfolded(session: dict[str, Any]) -> list[Any]:
    """A session with null for its lists, and their elements."""
    lists = {key: held for key, held in session.items() if isinstance(held, list) and held}
    return [session | dict.fromkeys(lists), *(element for held in lists.values() for element in held)]


@pytest.mark.parametrize(("name", "key"), FORMS)
@given(data=st.data())
def test_whatever_stands_there_comes_back_or_is_put_aside(
    name: str, key: str | None, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    records = data.draw(st.lists(drawn_records(name), max_size=4))
    if key is None:
        lines = owed = [GOOD[name], *records]
    else:
        good = {"gemini": GOOD["gemini"], "goose": GOOSE, "opencode": OPENCODE_SAID}.get(name, SAID)
        header = {"tau_bench": {"task_id": 1}, "gemini": GEMINI, "goose": {"working_dir": "/w"}}.get(name, {})
        other = data.draw(json_objects)
        lines = [header | {key: [good]}, 7, other | header | {key: records}]
        owed = [lines[1], *unfolded(lines[0]), *unfolded(lines[2])]
    found, aside = given_back(write(tmp_path_factory.getbasetemp() / "any.jsonl", *map(json.dumps, lines)), name)
    if key is None:
        found += [json.dumps(lines[int(reason.partition(":")[0]) - 1]) for reason in aside]
        assert sorted(found) == sorted(map(json.dumps, owed))
    else:
        assert len(found) + len(aside) == len(owed)
        assert set(found) <= set(map(json.dumps, owed))
        session = lines[2] | {key: [good, *records]}
        found, aside = given_back(write(tmp_path_factory.getbasetemp() / "any.json", session, indent=1), name)
        assert len(found) + len(aside) == len(unfolded(session))
        assert set(found) <= set(map(json.dumps, unfolded(session)))
