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


def system(uuid: str, parent: str) -> dict[str, Any]:
    return {"type": "system", "sessionId": "s", "uuid": uuid, "parentUuid": parent}


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
    ],
)
def test_what_a_prompt_goes_back_behind_is_a_branch(tmp_path: Path, records: list[Any], talks: list[str]) -> None:
    lines = [one if isinstance(one, dict) else record(*one) for one in records]
    transcripts, aside = read(write(tmp_path / "s.jsonl", *lines), READER)
    assert aside == []
    said = [" ".join(m.envelope["record"]["uuid"] for m in one.messages) for one in transcripts]
    assert said == (talks or [" ".join(one["uuid"] for one in lines if "message" in one)])
    assert [one.conversation_id for one in transcripts[1:]] == [f"s~{words.split()[0]}" for words in talks[1:]]


def test_a_sub_agents_records_between_are_its_own(tmp_path: Path) -> None:
    aside = record("u9", "a1", isSidechain=True, agentId="k")
    path = write(
        tmp_path / "s.jsonl", record("u1", None), record("a1", "u1"), record("u2", "a1"), aside, record("u3", "a1")
    )
    assert [one.conversation_id for one in read(path, READER)[0]] == ["s", "s~u2", "s/agent-k"]
