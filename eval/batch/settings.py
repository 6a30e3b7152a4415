"""The settings that a batch's summaries depend on: what may not change while a folder is gone on with."""

import json
from collections.abc import Mapping
from typing import Any

from eval.run import by_class, leaves

_GROUPS = ("compaction", "token_estimator", "assembly", "session")
_OF_LIVE_SESSIONS = {
    "new_session_retain_depth", "bootstrap_max_tokens", "leaf_chunk_tokens", "prune_heartbeats",
    "prune_heartbeat_turns", "import_cap_share", "import_cap_messages",
}  # fmt: skip
"""Keys of `session` that have no say in a batch."""
_OF_CONNECTIONS = {
    "base_url", "profiles", "profile", "api_key_env", "api_key_file", "timeout_seconds", "retries", "mode", "workers",
    "threads", "batch_size",
}  # fmt: skip
"""Keys of a component that say how it is reached or how fast it works, not what it gives."""
_NAMED, _SHOWN_LENGTH = 3, 60


def deciding_settings(config: Mapping[str, Any], triggers: str) -> dict[str, Any]:
    """Take out of a configuration what decides the summaries, each part under the key that a user sets it by.

    Args:
        config: resolved. A part that is equal to the group of its name stands as `${group}`, and the group beside it.
        triggers: when is compacted.
    """
    waiting = [group for group in _GROUPS if group in config]
    settings: dict[str, Any] = {}
    while waiting:
        group = waiting.pop(0)
        if group not in settings:
            settings[group] = _by_name(config[group], config, waiting)
    settings = _without(settings, _OF_CONNECTIONS)
    settings["session"] = {key: value for key, value in settings["session"].items() if key not in _OF_LIVE_SESSIONS}
    return {**settings, "triggers": triggers}


def differences(there: Mapping[str, Any], here: Mapping[str, Any]) -> list[str]:
    """Name the first settings that differ, those of whole components before those of their parts."""
    old, new = (dict(leaves(by_class(side))) for side in (there, json.loads(json.dumps(here, default=str))))
    differing = [key for key in {**new, **old} if key not in old or key not in new or old[key] != new[key]]
    differing.sort(key=lambda key: key.count("."))
    told = [f"{key}: {_shown(old, key)} there, {_shown(new, key)} here" for key in differing[:_NAMED]]
    return told if len(differing) <= _NAMED else [*told, f"and {len(differing) - _NAMED} more"]


def _without(node: Any, keys: set[str]) -> Any:
    if not isinstance(node, dict):
        return node
    return {key: _without(value, keys) for key, value in node.items() if key not in keys}


def _by_name(node: Any, config: Mapping[str, Any], groups: list[str]) -> Any:
    """The node with the names of groups in the places of what they are; those are added to `groups`."""
    if not isinstance(node, dict):
        return node
    named = {key for key, value in node.items() if isinstance(value, dict) and value and value == config.get(key)}
    groups += sorted(named)
    return {key: f"${{{key}}}" if key in named else _by_name(value, config, groups) for key, value in node.items()}


def _shown(settings: Mapping[str, Any], key: str) -> str:
    if key not in settings:
        return "not set"
    text = json.dumps(settings[key], ensure_ascii=False)
    return text if len(text) <= _SHOWN_LENGTH else f"{text[:_SHOWN_LENGTH]}..."
