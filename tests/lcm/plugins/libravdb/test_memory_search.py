"""The host's search tool over a memory, and what its variables say."""

from dataclasses import replace

import pytest

from lcm.context.assembly.continuity import Continuity
from lcm.errors import LcmError
from lcm.memory.memory import Memory
from lcm.plugins.libravdb.memory_search import Bridge, read_file
from lcm.token_estimator.utf16_units import Utf16Units
from tests.support.workspaces import LINES, minute, system, transcript

LATER = minute(60)


def test_results_cite_documents_that_can_be_read_back(memory: Memory) -> None:
    found = Bridge().search(memory, {"query": "goats", "k": 2, "user_id": "u/1"}, LATER)
    assert len(found) == 2
    assert {result["snippet"].partition(": ")[2] for result in found} == {LINES[2], LINES[7]}
    first = found[0]
    assert (first["source"], first["startLine"], first["endLine"]) == ("memory", 1, 1)
    assert first["path"].startswith("user%3Au%2F1::doc_")
    assert first["citation"] == "user:u/1:" + first["path"].partition("::")[2]
    assert read_file(memory, first["path"]) == first["snippet"]
    assert read_file(memory, first["path"], 2) == ""


def test_the_askers_session_is_named_and_nothing_later_is_seen(memory: Memory) -> None:
    found = Bridge().search(memory, {"q": "goats", "session_id": "talk"}, minute(4))
    assert {result["source"] for result in found} == {"sessions"}
    assert all(LINES[7] not in result["snippet"] for result in found)
    assert Bridge(searches_summaries=True).search(memory, {"q": "goats", "session_id": "talk"}, LATER) == []


def test_only_scopes_that_may_be_read_are_searched_and_read_back() -> None:
    with Memory.open(system()) as memory:
        memory.ingest(transcript(name="agent:ada:main"))
        own = memory.documents["scope"].unique().to_list()
        assert own == ["agent:ada"]
        host = memory.identity(scopes=own)
        (first, *_) = Bridge().search(memory, {"q": "goats"}, LATER, host)
        for others in (["global", "agent:bo"], []):
            assert Bridge().search(memory, {"q": "goats"}, LATER, memory.identity(scopes=others)) == []
        assert read_file(memory, first["path"], host=host) == first["snippet"] == read_file(memory, first["path"])
        with pytest.raises(LcmError, match="that may be read"):
            read_file(memory, first["path"], host=memory.identity("bo"))


def test_what_asks_or_cites_nothing_has_no_results_or_is_refused(memory: Memory) -> None:
    for params in ({}, {"query": ""}, {"k": 3}, {"query": None, "text": ""}):
        assert Bridge().search(memory, params, LATER) == []
    for path in ("", "user:u1", "::doc_1"):
        with pytest.raises(LcmError, match="path must be COLLECTION::ID"):
            read_file(memory, path)
    with pytest.raises(LcmError, match="doc_unknown"):
        read_file(memory, "user%3Au1::doc_unknown")


def test_a_long_document_is_read_in_windows() -> None:
    lines = [f"line {i}" for i in range(1, 301)]
    with Memory.open(system()) as memory:
        memory.ingest(transcript(["\n".join(lines)]))
        (result,) = Bridge().search(memory, {"query": "line"}, LATER)
        assert result["endLine"] == 300
        assert read_file(memory, result["path"]).count("\n") == 199
        assert read_file(memory, result["path"], 300) == "line 300"


def test_an_agent_reads_its_own_scopes_and_its_users_dreams_alone() -> None:
    with Memory.open(system()) as memory:
        memory.ingest(transcript(["the kiln password is swordfish"], "agent:alice:main"))
        memory.dream(DIARY, "diary.md", "alice", minute(5), "global")
        params = {"query": "kiln password", "user_id": "bob", "session_id": "agent:bob:main"}
        assert Bridge().search(memory, params, LATER) == []
        assert Bridge().search(memory, params | {"session_id": "x", "agent_id": "bob"}, LATER) == []
        assert Bridge().search(memory, {"query": "kiln password"}, LATER, memory.identity("bob")) == []
        (mine,) = Bridge().search(memory, {"query": "kiln password", "session_id": "agent:alice:main"}, LATER)
        assert "swordfish" in mine["snippet"]
        with pytest.raises(LcmError):
            read_file(memory, mine["path"], host=memory.identity("bob"))
        assert "swordfish" in read_file(memory, mine["path"], host=memory.identity("alice"))
        dreams = {"query": "what did I dream of"}
        assert Bridge().search(memory, dreams | {"user_id": "bob"}, LATER) == []
        (dreamt,) = Bridge().search(memory, dreams | {"user_id": "alice"}, LATER)
        assert "kiln that sings" in dreamt["snippet"]
        with pytest.raises(LcmError, match="that may be read"):
            read_file(memory, dreamt["path"], host=memory.identity("alice", user_id="bob"))


DIARY = """## Deep sleep

- A kiln that sings at night {score=0.9 recall=3 unique=3}
"""


def test_the_recall_of_a_session_leaves_its_newest_turns_out() -> None:
    continuity = Continuity(Utf16Units())
    with Memory.open(replace(system(), assembly=continuity)) as memory:
        memory.ingest(transcript())
        params = {"query": "goats", "session_id": "talk"}
        results = Bridge(searches_recall=True).search(memory, params, LATER)
        found = {result["snippet"].partition(": ")[2] for result in results}
        assert found and not found & set(LINES[-4:])


def test_what_is_no_text_names_nobody(memory: Memory) -> None:
    assert Bridge().search(memory, {"query": "goats", "session_id": 5, "user_id": 7, "agent_id": []}, LATER)
