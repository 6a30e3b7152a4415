"""memory-lancedb-pro's vectors of scopes onto `lcm.memory.scopes.scopes`."""

from dataclasses import replace
from typing import Any

from lcm.memory.scopes import scopes
from lcm.memory.scopes.scopes import Scopes
from tests.golden.components import component

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
    parsed = scopes.parse_scope(value)
    return {
        "agent_id": scopes.parse_agent_id(value),
        "scope": None if parsed is None else {"type": parsed[0], "id": parsed[1]},
        "bypass": scopes.is_bypass_id(value),
        "shared_scopes": scopes.parse_shared(value),
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
            return scopes.with_definition(settings, operation["scope"])
        case "remove":
            return scopes.without_definition(settings, operation["scope"])
        case "set_access":
            return scopes.with_access(settings, operation["agent_id"], operation["scopes"])
        case "remove_access":
            return scopes.without_access(settings, operation["agent_id"])
    raise AssertionError(operation)
