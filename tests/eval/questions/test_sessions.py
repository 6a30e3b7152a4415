"""Sessions that questions are about, and their workspaces."""

from pathlib import Path
from typing import Any

import pytest

from eval.questions.sessions import WorkspaceRule, read_sessions
from tests.lcm.transcript.recordings import write


def rollout(name: str, *said: str, **more: Any) -> list[dict[str, Any]]:
    said_by_user = ({"type": "message", "role": "user", "content": words} for words in said)
    return [
        {"type": "session_meta", "payload": {"id": name, **more}},
        *({"type": "response_item", "payload": payload} for payload in said_by_user),
    ]


@pytest.mark.parametrize(("rule", "said"), [("all", ["Oil the keel"]), ("file", ["Oil the mast", "Oil the keel"])])
def test_a_fork_has_copies_of_what_its_workspace_holds(tmp_path: Path, rule: WorkspaceRule, said: list[str]) -> None:
    write(tmp_path / "p.jsonl", *rollout("p", "Oil the mast"))
    write(tmp_path / "f.jsonl", *rollout("f", "Oil the mast", "Oil the keel", forked_from_id="p"))
    sessions = read_sessions([str(tmp_path)], "auto", False, rule, "boats")
    (fork,) = (one for one in sessions.transcripts if one.conversation_id == "f")
    assert [message.content for message in fork.messages] == said
