"""The predicates and assertions that `deviations.yaml` names, of libravdb memory."""

import copy
import math
import re
from typing import Any

from tests.golden.adapters.libravdb import session_compaction


def quotes_a_hop_target_between_brackets(case: dict[str, Any]) -> bool:
    """The original takes quotes off the ends of the whole list, not off each target."""
    lists = (line.partition(":")[2] for line in case["markdown"].splitlines() if line.startswith("hop_targets: ["))
    return any(quote in values for values in lists for quote in "\"'")


def names_each_hop_target_without_its_quotes(case: dict[str, Any], found: dict[str, Any], expected: Any) -> None:
    wanted = copy.deepcopy(expected)
    for holder in (wanted, *wanted["nodes"]):
        holder["hop_targets"] = list(dict.fromkeys(target.strip("\"' ") for target in holder["hop_targets"]))
    assert found == wanted


def meets_a_model_that_fails(case: dict[str, Any]) -> bool:
    """The abstractive summarizer is asked for what it gives no words for."""
    return session_compaction.failures_met(case) > 0


def lets_words_of_the_turns_stand_in(case: dict[str, Any], found: dict[str, Any], expected: dict[str, Any]) -> None:
    """What the original wrote before the failure stands; no cluster is left, and nothing of guidance is lost."""
    made = {summary["id"]: summary for summary in found["summaries"]}
    for summary in expected["summaries"]:
        own = made[summary["id"]]
        assert (own["text"], own["source_ids"]) == (summary["text"], summary["source_ids"])
        assert math.isclose(own["confidence"], summary["confidence"], abs_tol=1e-6)
    assert all(shard in found["shards"] for shard in expected["shards"])
    assert found["result"]["clusters_declined"] == 0
    assert found["raw_turns_after"] == len(case["turns"])
    if "error" not in expected:
        assert found["result"] == expected["result"] or len(made) == len(expected["summaries"])


_HEADER_TAG = re.compile(
    r"<(?=\s*/?\s*(?:authored_context|recent_session_tail|elevated_guidance|recalled_memories|entry)\b)", re.IGNORECASE
)


def closes_a_section_of_the_memory_header(case: dict[str, Any]) -> bool:
    """Authored text or guidance, which the header shows as it is, holds a tag of the header."""
    return any(
        _HEADER_TAG.search(item["text"])
        for item in case["items"]
        if item["metadata"].get("elevated_guidance")
        or (item["metadata"].get("authored") and item["metadata"].get("tier") in (1, 2))
    )


def keeps_the_tags_of_the_memory_header_its_own(case: dict[str, Any], found: dict[str, Any], expected: Any) -> None:
    wanted = copy.deepcopy(expected)
    for held in wanted["header_sections"]:
        if held["section"] in ("authored_context", "elevated_guidance"):
            for entry in held["entries"]:
                entry["body"] = _HEADER_TAG.sub("&lt;", entry["body"])
    assert found == wanted
