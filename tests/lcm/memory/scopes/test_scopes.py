"""Laws of scopes; the vectors of the original are in tests/golden."""

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.memory.scopes import BYPASS_IDS, Scopes

IDS = st.sampled_from(["main", "alice", "bob", " main ", "agent:1", "日本"])
NAMES = st.sampled_from(
    ["global", "team", "custom:a", "agent:main", "agent:alice", "reflection:agent:bob", "project:x"]
)
SETTINGS = st.builds(
    Scopes,
    definitions=st.dictionaries(NAMES, st.none(), max_size=4),
    agent_access=st.dictionaries(IDS, st.lists(NAMES, max_size=4), max_size=3),
    shared=st.lists(NAMES, max_size=2),
)


@given(SETTINGS, IDS, NAMES)
def test_an_agent_reads_what_its_entry_names_what_is_shared_and_its_own_reflections(
    settings: Scopes, agent_id: str, scope: str
) -> None:
    known = agent_id.strip()
    entries = {name.strip(): entry for name, entry in settings.agent_access.items()}
    named = entries.get(known, ["global", f"agent:{known}"])
    found = settings.accessible(agent_id)
    assert set(found) == {*named, *settings.shared, f"reflection:agent:{known}"}
    assert settings.readable(agent_id) == found
    assert settings.is_accessible(scope, agent_id) == (scope in found)
    repeated = entries.get(known, [])  # no scope is read twice but where an entry repeats it
    assert len(found) - len(set(found)) == len(repeated) - len(set(repeated))


def test_nobody_in_particular_writes_into_the_default_and_a_reserved_id_must_name_what_it_writes_to() -> None:
    written = [Scopes(default="team", definitions={"team": None}).default_write(nobody) for nobody in (None, "", "  ")]
    assert written == ["team"] * 3
    for agent_id in BYPASS_IDS:
        with pytest.raises(ValueError, match="must name the scope"):
            Scopes().default_write(agent_id)
    assert Scopes().readable("system ") == ("global", "agent:system", "reflection:agent:system"), "taken as written"


def test_settings_of_nothing_that_is_defined_are_refused() -> None:
    for settings, message in (
        ({"default": "nope", "definitions": {"team": None}}, r"default must be one of .*\(global, team\), got 'nope'"),
        ({"agent_access": {" undefined ": ["global"]}}, "must not name a reserved id"),
        ({"agent_access": {"main": "global"}}, "must be a list of scopes, got 'global'"),
    ):
        with pytest.raises(ValueError, match=message):
            Scopes(**settings)


def test_an_entry_of_unknown_scopes_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        Scopes(agent_access={"main": ["nowhere", "custom:a"]})
    assert [record.getMessage() for record in caplog.records] == [
        "agent_access of 'main' names scopes that are not defined: nowhere"
    ]
