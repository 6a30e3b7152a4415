"""libravdb's vectors of its bridge to the host onto our components."""

from typing import Any

from lcm.plugins.settings import environment as daemon
from lcm.records.conversation import JournalEntry
from lcm.store.conversations import add_entry, read_entries
from lcm.store.store import Store
from tests.golden.components import instant
from tests.golden.originals.memory_search import Bridge
from tests.golden.originals.memory_search import durable_namespace as namespace_of


def durable_namespace(case: dict[str, Any]) -> dict[str, str]:
    found = namespace_of(case["user_id"], case["session_key"], case["agent_id"], case["fallback"])
    return {"namespace": found}


def config_env(case: dict[str, Any]) -> dict[str, dict[str, str]]:
    return {"env": daemon.daemon_environment(case["config"])}


def memory_search_routing(case: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    config = case["config"]
    bridge = Bridge(
        config.get("topK"),
        config.get("useSessionSummarySearchExperiment", False),
        config.get("useSessionRecallProjection", False),
    )
    route = bridge.route(case["params"], case["agent_id"])
    if route is None:
        return {"calls": []}
    method = "search_text" if len(route.collections) == 1 else "search_text_collections"
    call = {"method": method, "collections": list(route.collections), "k": route.k, "text": route.text}
    return {"calls": [call]}


def lifecycle_journal(case: dict[str, Any]) -> dict[str, list[str]]:
    with Store() as store:
        for entry in case["entries"]:
            happened_at = instant(entry["ts"])
            with store.writing() as connection:
                add_entry(connection, JournalEntry(entry["id"], happened_at, "hook", "session"), case["max_entries"])
        with store.reading() as connection:
            return {"ids": sorted(entry.entry_id for entry in read_entries(connection))}
