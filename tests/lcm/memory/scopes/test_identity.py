"""Who asks: what a host says decides what is read."""

import pytest

from lcm.memory.scopes import Scopes, identified

RULES = Scopes(definitions={"project:x": None}, agent_access={"ada": ["global", "agent:ada", "project:x"]})
ADA = ("global", "agent:ada", "project:x", "reflection:agent:ada")


def test_a_host_reads_by_agent_by_session_by_scopes_or_all() -> None:
    assert identified(RULES, "ada").scopes == identified(RULES, "agent:ada:main").scopes == ADA
    assert identified(RULES, session_id="agent:ada:main").scopes == ADA
    assert identified(RULES, session_id="talk").scopes == identified(RULES, session_id="agent:system:x").scopes
    assert identified(RULES, session_id="talk").scopes == ("global",)
    assert identified(RULES, "ada", scopes=["project:x"]).scopes == ("project:x",)
    assert identified(RULES).scopes is identified(RULES, "system").scopes is None
    for wrong in ({"agent_id": " "}, {"user_id": ""}, {"session_id": "\u200b"}):
        with pytest.raises(ValueError, match="must be an id"):
            identified(RULES, **wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="scopes must be a list"):
        identified(RULES, scopes="agent:ada")
