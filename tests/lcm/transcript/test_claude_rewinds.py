"""Prompts of Claude Code that go back behind others."""

from pathlib import Path
from typing import Any

import pytest

from lcm.transcript.claude_code import ClaudeCodeReader
from tests.lcm.transcript.recordings import read, write

READER = ClaudeCodeReader()


def record(uuid: str, parent: str | None, content: Any = None, **fields: Any) -> dict[str, Any]:
    """One that is the user's where its name begins with u."""
    role = "user" if uuid.startswith(("u", "r")) else "assistant"
    message = {"role": role, "content": content or f"I am {uuid}"}
    return {"type": role, "sessionId": "s", "uuid": uuid, "parentUuid": parent, "message": message} | fields


def result(uuid: str, parent: str) -> dict[str, Any]:
    return record(uuid, parent, [{"type": "tool_result", "tool_use_id": parent, "content": "done"}])


def typed_meanwhile(uuid: str, parent: str) -> dict[str, Any]:
    queued = {"type": "queued_command", "commandMode": "prompt", "prompt": f"I am {uuid}"}
    return {"type": "attachment", "sessionId": "s", "uuid": uuid, "parentUuid": parent, "attachment": queued}


def system(uuid: str, parent: str) -> dict[str, Any]:
    return {"type": "system", "sessionId": "s", "uuid": uuid, "parentUuid": parent}


MODEL = "<command-name>/model</command-name>\n<command-message>model</command-message>"
CLEAR = "<command-name>/clear</command-name>"
IMAGE = [{"type": "image", "source": {"type": "base64", "data": "AAAA"}}]


@pytest.mark.parametrize(
    ("records", "talks"),
    [
        # The same parent, or an earlier record of the same turn.
        (
            [("u1", None), ("a1", "u1"), ("u2", "a1"), ("a2", "u2"), ("u3", "a1"), ("a3", "u3")],
            ["u1 a1 u3 a3", "u2 a2"],
        ),
        (
            [("u1", None), ("a1", "u1"), system("x", "a1"), ("u2", "x"), ("a2", "u2"), ("u3", "a1")],
            ["u1 a1 u3", "u2 a2"],
        ),
        # Twice, the second time further back.
        (
            [("u1", None), ("a1", "u1"), ("u2", "a1"), ("u3", "u2"), ("u4", "u2"), ("u5", "a1"), ("a5", "u5")],
            ["u1 a1 u5 a5", "u2 u4", "u3"],
        ),
        # To the very first prompt; a record before that one is its parent otherwise.
        ([("u1", None), ("a1", "u1"), ("u2", "a1"), ("u3", None), ("a3", "u3")], ["u3 a3", "u1 a1 u2"]),
        ([system("x", ""), ("u1", "x"), ("a1", "u1"), ("u2", "x"), ("a2", "u2")], ["u2 a2", "u1 a1"]),
        # Behind a command, to one, behind a prompt without words, and behind what was typed while the agent worked.
        (
            [
                ("u1", None),
                ("a1", "u1"),
                ("u2", "a1", MODEL),
                ("u3", "u2", "<local-command-stdout>set</local-command-stdout>"),
                ("u4", "u3"),
                ("a4", "u4"),
                ("u5", "a1"),
            ],
            ["u1 a1 u5", "u2 u3 u4 a4"],
        ),
        ([("u1", None), ("a1", "u1"), ("u2", "a1"), ("a2", "u2"), ("u3", "a1", MODEL)], ["u1 a1 u3", "u2 a2"]),
        ([("u1", None), ("a1", "u1"), ("u2", "a1", IMAGE), ("a2", "u2"), ("u3", "a1")], ["u1 a1 u3", "u2 a2"]),
        (
            [("u1", None), ("a1", "u1"), result("r1", "a1"), typed_meanwhile("q2", "r1"), ("a2", "q2"), ("u3", "r1")],
            ["u1 a1 r1 u3", "q2 a2"],
        ),
        # What was typed meanwhile goes back behind nothing, and may stand beside the talk.
        ([("u1", None), ("a1", "u1"), ("u2", "a1"), ("a2", "u2"), typed_meanwhile("q3", "a1"), ("a3", "q3")], []),
        ([("u1", None), ("a1", "u1"), typed_meanwhile("q2", "a1"), ("a2", "a1"), ("u3", "a1")], []),
        # No parent is named where the talk begins anew, where none ever is, and in another session.
        ([("u1", None), ("a1", "u1"), ("u2", None, CLEAR), ("u3", "u2")], []),
        ([("u1", None), ("a1", "u1"), ("u2", "a1", CLEAR), ("u3", None)], []),
        ([("u1", None), ("a1", "u1"), system("b", "") | {"parentUuid": None}, ("u2", "b"), ("u3", None)], []),
        ([("u1", None), ("a1", None), ("u2", None), ("a2", None)], []),
        ([("u1", None), ("u2", None)], []),
        ([("u1", None), ("a1", "u1"), record("u2", None, sessionId="t"), ("a2", "u2")], []),
        # Two calls at once fork, and so does a record that nobody typed.
        ([("u1", None), ("a1", "u1"), ("a2", "a1"), result("r1", "a1"), result("r2", "a2"), ("u2", "r1")], []),
        ([("u1", None), ("a1", "u1"), ("u2", "a1", "<task-notification>x</task-notification>"), ("u3", "a1")], []),
        ([("u1", None), ("a1", "u1"), ("u2", "a1", "[Request interrupted by user]"), ("u3", "a1")], []),
        ([("u1", None), ("a1", "u1"), record("u2", "a1", isMeta=True), ("u3", "a1")], []),
        ([("u1", None), ("a1", "u1"), record("u2", "a1"), record("u3", "a1", isMeta=True)], []),
        ([("u1", None), ("a1", "u1"), ("u2", "a1", '<teammate-message id="x">x</teammate-message>'), ("u3", "a1")], []),
        # Two windows write, or one goes back to what it went back behind: all is said.
        (
            [("u1", None), ("a1", "u1"), ("u2", "a1"), ("a2", "u2"), ("u3", "a1"), ("a3", "u3"), ("u4", "a2")],
            [],
        ),
        # A summary begins the tree anew, and a parent may be in another file.
        ([("u1", None), ("a1", "u1"), system("b", ""), ("u2", "b"), ("u3", "elsewhere"), ("u4", None)], []),
        # Records that were written twice.
        ([("u1", None), ("a1", "u1"), ("u2", "a1"), ("u1", None), ("a1", None), ("u2", None), ("u3", "u2")], []),
        ([("u1", None), ("a1", "u1"), ("u2", "a1"), ("u2", "a1"), ("u3", "u2")], []),
        # The beginning was written again, and goes on otherwise.
        (
            [("u1", None), ("a1", "u1"), ("u2", "a1"), ("a2", "u2"), ("u1", None), ("a1", "u1"), ("u3", "a1")],
            ["u1 a1 u1 a1 u3", "u2 a2"],
        ),
        ([("u1", None), ("a1", "u1"), ("u2", "a1"), ("a1", "u1"), ("u2", "a1"), ("a2", "u2"), ("u3", "a2")], []),
    ],
)
def test_what_a_prompt_goes_back_behind_is_a_branch(tmp_path: Path, records: list[Any], talks: list[str]) -> None:
    lines = [one if isinstance(one, dict) else record(*one) for one in records]
    transcripts, aside = read(write(tmp_path / "s.jsonl", *lines), READER)
    assert aside == []
    said = {one.conversation_id: " ".join(m.envelope["record"]["uuid"] for m in one.messages) for one in transcripts}
    main, *left = talks or [" ".join(one["uuid"] for one in lines if one["type"] != "system")]
    assert said == {"s": main} | {f"s~{words.split()[0]}": words for words in left}


def test_a_sub_agents_records_between_are_its_own(tmp_path: Path) -> None:
    aside = record("u9", "a1", isSidechain=True, agentId="k")
    path = write(
        tmp_path / "s.jsonl", record("u1", None), record("a1", "u1"), record("u2", "a1"), aside, record("u3", "a1")
    )
    assert [one.conversation_id for one in read(path, READER)[0]] == ["s", "s~u2", "s/agent-k"]
