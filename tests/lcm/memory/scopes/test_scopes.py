"""Laws of scopes; the vectors of the original are in tests/golden."""

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.memory.scopes.scopes import (
    BYPASS_IDS,
    Scopes,
    agent_scope,
    parse_agent_id,
    parse_scope,
    parse_shared,
    reflection_scope,
    with_access,
    with_definition,
    without_access,
    without_definition,
)

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


@given(SETTINGS, IDS)
def test_an_agent_reads_what_its_entry_names_what_is_shared_and_its_own_reflections(
    settings: Scopes, agent_id: str
) -> None:
    known = agent_id.strip()
    entries = {name.strip(): entry for name, entry in settings.agent_access.items()}
    named = entries.get(known, ["global", f"agent:{known}"])
    assert set(settings.accessible(agent_id)) == {*named, *settings.shared, f"reflection:agent:{known}"}
    assert settings.readable(agent_id) == settings.accessible(agent_id)


@given(SETTINGS, IDS, NAMES)
def test_a_scope_is_accessible_where_it_is_named(settings: Scopes, agent_id: str, scope: str) -> None:
    assert settings.is_accessible(scope, agent_id) == (scope in settings.accessible(agent_id))


@given(SETTINGS, st.sampled_from([None, "", "  ", *BYPASS_IDS]))
def test_nobody_in_particular_and_reserved_ids_read_everything(settings: Scopes, agent_id: str | None) -> None:
    assert settings.readable(agent_id) is None
    assert settings.accessible(agent_id) == settings.names
    assert all(settings.is_accessible(scope, agent_id) for scope in settings.names)
    assert not settings.is_accessible("nowhere", agent_id)


@given(SETTINGS, IDS)
def test_an_agent_writes_into_its_own_scope_where_it_can_reach_it_else_into_the_default(
    settings: Scopes, agent_id: str
) -> None:
    own = agent_scope(agent_id)
    expected = own if own in settings.accessible(agent_id) else settings.default
    assert settings.default_write(agent_id) == expected


@given(SETTINGS, IDS.filter(lambda agent_id: agent_id == agent_id.strip()))
def test_an_agent_without_an_entry_reads_what_it_writes(settings: Scopes, agent_id: str) -> None:
    settings = without_access(settings, agent_id)
    assert settings.default_write(agent_id) in settings.accessible(agent_id)


@given(IDS)
def test_an_unknown_agent_reads_its_own_three_scopes_alone(agent_id: str) -> None:
    known = agent_id.strip()
    others = {"someone": ["custom:secret", "global"]}
    assert Scopes(agent_access=others).readable(agent_id) == (
        "global",
        f"agent:{known}",
        f"reflection:agent:{known}",
    )


def test_an_empty_entry_leaves_the_own_reflections() -> None:
    settings = Scopes(agent_access={"main": []})
    assert settings.readable("main") == (reflection_scope("main"),)
    assert not settings.is_accessible("global", "main")


@given(SETTINGS, IDS)
def test_no_scope_is_read_twice_but_where_an_entry_repeats_it(settings: Scopes, agent_id: str) -> None:
    entry = {name.strip(): scopes for name, scopes in settings.agent_access.items()}.get(agent_id.strip(), [])
    found = settings.accessible(agent_id)
    assert len(found) - len(set(found)) == len(entry) - len(set(entry))


def test_shared_scopes_are_defined_and_read_by_everybody() -> None:
    settings = Scopes(agent_access={"main": []}, shared=["team"])
    assert settings.names == ("global", "team")
    assert settings.readable("main") == ("reflection:agent:main", "team")
    assert settings.readable("bob") == ("global", "agent:bob", "reflection:agent:bob", "team")
    assert settings.default_write("bob") == "agent:bob"


@pytest.mark.parametrize("agent_id", BYPASS_IDS)
def test_a_reserved_id_must_name_what_it_writes_to(agent_id: str) -> None:
    with pytest.raises(ValueError, match="must name the scope"):
        Scopes().default_write(agent_id)


@pytest.mark.parametrize("agent_id", [None, "", "  "])
def test_nobody_in_particular_writes_into_the_default(agent_id: str | None) -> None:
    assert Scopes(default="team", definitions={"team": None}).default_write(agent_id) == "team"


def test_a_reserved_id_is_taken_as_written() -> None:
    assert Scopes().readable("system ") == ("global", "agent:system", "reflection:agent:system")


@pytest.mark.parametrize(
    ("scope", "is_valid"),
    [
        ("global", True),
        (" team ", True),
        ("agent:", True),
        ("reflection:agent:x", True),
        ("user:1", True),
        ("Global", False),
        ("agent", False),
        ("  ", False),
        ("nowhere", False),
    ],
)
def test_a_valid_scope_is_defined_or_of_a_built_in_type(scope: str, is_valid: bool) -> None:
    assert Scopes(definitions={"team": None}).is_valid(scope) is is_valid


def test_a_default_that_is_not_defined_is_refused() -> None:
    with pytest.raises(ValueError, match=r"default must be one of the definitions \(global, team\), got 'nope'"):
        Scopes(default="nope", definitions={"team": None})


@pytest.mark.parametrize("agent_id", ["system", " undefined "])
def test_access_of_a_reserved_id_is_refused(agent_id: str) -> None:
    with pytest.raises(ValueError, match="must not name a reserved id"):
        Scopes(agent_access={agent_id: ["global"]})


def test_an_entry_that_is_no_list_is_refused() -> None:
    with pytest.raises(ValueError, match="must be a list of scopes, got 'global'"):
        Scopes(agent_access={"main": "global"})


def test_an_entry_of_unknown_scopes_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        Scopes(agent_access={"main": ["nowhere", "custom:a"]})
    assert [record.getMessage() for record in caplog.records] == [
        "agent_access of 'main' names scopes that are not defined: nowhere"
    ]


@pytest.mark.parametrize(
    ("key", "agent_id"),
    [
        (" agent:main:chat:1", "main"),
        ("agent: main ", "main"),
        ("agent:", None),
        ("agent:system:1", None),
        ("Agent:main", None),
        ("main", None),
    ],
)
def test_a_session_key_names_its_agent(key: str, agent_id: str | None) -> None:
    assert parse_agent_id(key) == agent_id


@given(IDS)
def test_the_scope_of_an_agent_is_read_back(agent_id: str) -> None:
    assert parse_scope(agent_scope(agent_id)) == ("agent", agent_id)
    assert parse_scope(reflection_scope(agent_id)) == ("reflection", f"agent:{agent_id}")


def test_a_scope_without_a_type_is_global_or_none() -> None:
    assert parse_scope("global") == ("global", "")
    assert parse_scope("team") is None


def test_shared_scopes_are_separated_by_commas() -> None:
    assert parse_shared(" a ,, b:c,") == ("a", "b:c")


@given(SETTINGS, st.text("aA9._:-", min_size=1, max_size=100))
def test_what_is_defined_is_valid_until_it_is_taken_back(settings: Scopes, scope: str) -> None:
    defined = with_definition(settings, scope)
    assert defined.is_valid(scope)
    if scope not in settings.names:
        assert without_definition(defined, scope) == settings


@pytest.mark.parametrize("scope", ["", "a b", "ä", "x" * 101, "x\n"])
def test_a_name_of_other_characters_or_too_long_is_refused(scope: str) -> None:
    with pytest.raises(ValueError, match="at most 100 letters"):
        with_definition(Scopes(), scope)


def test_a_scope_is_taken_back_from_every_agent() -> None:
    settings = Scopes(definitions={"team": "ours"}, agent_access={"main": ["team", "global"], "bob": ["team"]})
    assert without_definition(settings, "team") == Scopes(agent_access={"main": ["global"], "bob": []})
    assert without_definition(settings, "other") is settings


def test_the_global_scope_and_the_default_cannot_be_taken_back() -> None:
    with pytest.raises(ValueError, match="the global scope cannot be removed"):
        without_definition(Scopes(), "global")
    with pytest.raises(ValueError, match="default must be one of"):
        without_definition(Scopes(default="team", definitions={"team": None}), "team")


@given(SETTINGS, IDS)
def test_access_is_given_and_taken_back(settings: Scopes, agent_id: str) -> None:
    bare = without_access(settings, agent_id)
    given_access = with_access(bare, agent_id, ["global"])
    assert given_access.accessible(agent_id)[:2] == ("global", reflection_scope(agent_id.strip()))
    assert without_access(given_access, agent_id) == bare
    assert without_access(bare, agent_id) is bare


@pytest.mark.parametrize(
    ("agent_id", "entry", "message"),
    [
        ("  ", ["global"], "agent_id must not be blank"),
        ("system", ["global"], "must not name a reserved id"),
        ("main", ["nowhere"], "must name defined scopes, got 'nowhere'"),
    ],
)
def test_access_of_nobody_or_to_nothing_is_refused(agent_id: str, entry: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        with_access(Scopes(), agent_id, entry)
