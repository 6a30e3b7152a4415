"""Who asks: what a host says counts, and a request leaves out of that and adds nothing."""

from typing import Any

import pytest
from hypothesis import given

from lcm.errors import LcmError
from lcm.memory.scopes.scopes import Identity, Scopes, identified
from tests.support.scope_graphs import hosts, requests

RULES = Scopes(definitions={"project:x": None}, agent_access={"ada": ["global", "agent:ada", "project:x"]})
ADA = ("global", "agent:ada", "project:x", "reflection:agent:ada")


@given(host=hosts, request=requests)
def test_a_request_only_narrows(host: dict[str, Any], request: dict[str, Any]) -> None:
    said = identified(RULES, **host)
    try:
        asked = said.narrowed(request)
    except LcmError as refusal:
        assert "of a request must" in str(refusal)
        return
    assert set(asked.scopes or ()) <= set(said.scopes or ())
    assert asked.agent_id == said.agent_id or said.agent_id is None
    assert asked.user_id == said.user_id or said.user_id is None
    assert asked.session_id is None or asked.reads_conversation(asked.session_id)


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


def test_where_a_request_and_its_host_name_others_the_host_counts() -> None:
    host = identified(RULES, "ada", user_id="u1", session_id="agent:ada:main")
    asked = host.narrowed({"agent_id": "bo", "user_id": "u2", "session_id": "agent:bo:main"})
    assert asked == Identity(RULES, ("global",), "ada", "u1", None)  # and its session lies in none of these scopes
    assert host.narrowed({"session_id": "talk"}).session_id == "agent:ada:main"
    assert identified(RULES, "bo").narrowed({"session_id": "agent:ada:main"}).session_id is None
    assert identified(RULES).narrowed({"agent_id": "bo"}).scopes == ("global", "agent:bo", "reflection:agent:bo")
    assert identified(RULES, "ada").narrowed({"agent_id": None, "user_id": 7, "session_key": []}).scopes == ADA


@pytest.mark.parametrize("name", ["agent_id", "session_id", "session_key"])
def test_blank_and_reserved_names_of_a_request_are_refused(name: str) -> None:
    reserved = ("system", "undefined", "SYSTEM", "\uff53ystem", "sys\u200btem", "agent:system:x")
    for host in (identified(RULES), identified(RULES, "ada"), identified(RULES, "system")):
        for value in ("", " ", "\u200b", *reserved):
            with pytest.raises(LcmError, match=f"{name} of a request must"):
                host.narrowed({name: value})
