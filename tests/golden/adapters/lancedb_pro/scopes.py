"""memory-lancedb-pro's vectors of scopes onto `lcm.memory.scopes`."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from lcm.javascript import trim
from lcm.memory.scopes import Scopes, is_bypass_id, parse_agent_id
from lcm.records.document import GLOBAL_SCOPE
from tests.golden.components import component

_MOST_CHARACTERS = 100
_DEFINABLE = re.compile(rf"[A-Za-z0-9._:-]{{1,{_MOST_CHARACTERS}}}")
ROW_SCOPES = ("global", "agent:main", "custom:team")
"""Of the rows that the vectors filter, with one more of the scope that is asked about."""


def scope_manager(case: dict[str, Any]) -> dict[str, Any]:
    agent_id, scope = case["agent_id"], case["scope"] or ""
    try:
        settings = _configured(case["config"], case["shared_scopes"])
    except ValueError:
        return {"construct_error": True}
    readable = settings.readable(agent_id)
    return {
        "accessible_scopes": settings.accessible(agent_id),
        "scope_filter": readable,
        "default_scope": _default_write(settings, agent_id),
        "is_accessible": settings.is_accessible(scope, agent_id),
        "validate_scope": settings.is_valid(scope),
        "all_scopes": settings.names,
        "resolved_filter": readable,
        "filtered": [row for row in (*ROW_SCOPES, scope) if readable is None or row in readable],
    }


def scope_parse(case: dict[str, Any]) -> dict[str, Any]:
    value = case["value"] or ""
    parsed = parse_scope(value)
    return {
        "agent_id": parse_agent_id(value),
        "scope": None if parsed is None else {"type": parsed[0], "id": parsed[1]},
        "bypass": is_bypass_id(value),
        "shared_scopes": parse_shared(value),
    }


def scope_mutation(case: dict[str, Any]) -> dict[str, Any]:
    settings, results = _configured({}, []), []
    for operation in case["operations"]:
        try:
            changed = _apply(settings, operation)
        except ValueError:
            results.append("raises")
            continue
        says_whether = operation["op"] in ("remove", "remove_access")
        results.append(changed is not settings if says_whether else None)
        settings = changed
    return {"results": results, "all_scopes": settings.names, "agent_access": dict(settings.agent_access)}


def _configured(config: dict[str, Any], shared: list[str]) -> Scopes:
    settings = component("scopes=default", "scopes")
    return replace(
        settings,
        default=config.get("default", settings.default),
        definitions={
            name: (given or {}).get("description") for name, given in (config.get("definitions") or {}).items()
        },
        agent_access=config.get("agentAccess") or {},
        shared=shared,
    )


def _default_write(settings: Scopes, agent_id: str | None) -> str:
    try:
        return settings.default_write(agent_id)
    except ValueError:
        return "raises"


def _apply(settings: Scopes, operation: dict[str, Any]) -> Scopes:
    match operation["op"]:
        case "add":
            return with_definition(settings, operation["scope"])
        case "remove":
            return without_definition(settings, operation["scope"])
        case "set_access":
            return with_access(settings, operation["agent_id"], operation["scopes"])
        case "remove_access":
            return without_access(settings, operation["agent_id"])
    raise AssertionError(operation)


def parse_scope(text: str) -> tuple[str, str] | None:
    """(type, id) of a scope, split at its first colon; ("global", "") of the global one; None where there is none."""
    if text == GLOBAL_SCOPE:
        return GLOBAL_SCOPE, ""
    scope_type, colon, scope_id = text.partition(":")
    return (scope_type, scope_id) if colon else None


def parse_shared(text: str) -> tuple[str, ...]:
    """Scopes separated by commas; blank ones are left out."""
    return tuple(scope for part in text.split(",") if (scope := trim(part)))


def with_definition(scopes: Scopes, scope: str, description: str | None = None) -> Scopes:
    """Define a scope.

    Raises:
        ValueError: unless it is 1 to 100 of letters, digits, ".", "_", ":" and "-".
    """
    if not _DEFINABLE.fullmatch(scope):
        raise ValueError(
            f"a scope must be at most {_MOST_CHARACTERS} letters, digits, '.', '_', ':' or '-', got {scope!r}"
        )
    return replace(scopes, definitions={**scopes.definitions, scope: description})


def without_definition(scopes: Scopes, scope: str) -> Scopes:
    """Take a scope back from the definitions and from every agent; one that is not defined changes nothing.

    Raises:
        ValueError: if it is the global scope, or the default.
    """
    if scope == GLOBAL_SCOPE:
        raise ValueError("the global scope cannot be removed")
    if scope not in scopes.definitions:
        return scopes
    return replace(
        scopes,
        definitions={name: text for name, text in scopes.definitions.items() if name != scope},
        agent_access={
            agent_id: [name for name in entry if name != scope] for agent_id, entry in scopes.agent_access.items()
        },
    )


def with_access(scopes: Scopes, agent_id: str, entry: Sequence[str]) -> Scopes:
    """Say what an agent reads.

    Raises:
        ValueError: for a blank or reserved id, or a scope that is not valid.
    """
    known = trim(agent_id)
    if not known:
        raise ValueError(f"agent_id must not be blank, got {agent_id!r}")
    if unknown := [scope for scope in entry if not scopes.is_valid(scope)]:
        raise ValueError(f"agent_access must name defined scopes, got {', '.join(map(repr, unknown))}")
    return replace(scopes, agent_access={**without_access(scopes, known).agent_access, known: list(entry)})


def without_access(scopes: Scopes, agent_id: str) -> Scopes:
    """Take an agent's entry back; an agent without one changes nothing."""
    known = trim(agent_id)
    if all(trim(name) != known for name in scopes.agent_access):
        return scopes
    return replace(
        scopes, agent_access={name: entry for name, entry in scopes.agent_access.items() if trim(name) != known}
    )
