"""The predicates and assertions that `deviations.yaml` names."""

import copy
import math
from typing import Any

from lcm.lifecycle.coercion import clamp_int
from lcm.tokens import utf16_length
from tests.golden.adapters.lancedb_pro import decay, deduplication, lifecycle


def has_a_rating_that_is_no_number(case: dict[str, Any]) -> bool:
    return any(math.isnan(float(memory[key])) for memory in _memories(case) for key in ("importance", "confidence"))


def equals_the_score_of_default_ratings(case: dict[str, Any], found: dict[str, Any], expected: Any) -> None:
    assert found == decay.decay_score(_with_default_ratings(case))


def equals_the_boost_of_default_ratings(case: dict[str, Any], found: list[float], expected: Any) -> None:
    assert found == decay.decay_search_boost(_with_default_ratings(case))


def has_an_access_count_that_is_no_number(case: dict[str, Any]) -> bool:
    return math.isnan(float(case["access_count"]))


def is_the_base_half_life(case: dict[str, Any], found: float, expected: Any) -> None:
    assert found == case["base_half_life_days"]


def mixes_dimensions(case: dict[str, Any]) -> bool:
    return len({len(row["vector"]) for row in case["results"] if row["vector"]}) > 1


def keeps_every_result(case: dict[str, Any], found: list[str], expected: Any) -> None:
    assert sorted(found) == sorted(row["id"] for row in case["results"])


def names_a_row_twice_or_none(case: dict[str, Any]) -> bool:
    """An index between two rows, or the same one again, in a reply that is used."""
    rows = [item["index"] for item in case["reply"]["items"] if 0 <= item["index"] < len(case["results"])]
    is_used = case["reply"]["status"] == 200 and "raw" not in case["reply"]
    return is_used and (len(set(rows)) < len(rows) or any(index != int(index) for index in rows))


def ranks_every_result_once(case: dict[str, Any], found: list[dict[str, Any]], expected: Any) -> None:
    assert sorted(row["id"] for row in found) == sorted(row["id"] for row in case["results"])
    scores = [row["score"] for row in found]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)


def names_a_document_between_two(case: dict[str, Any]) -> bool:
    reply = case["llm_reply"]
    index = reply.get("match_index") if isinstance(reply, dict) else None
    return bool(case["similar"]) and isinstance(index, float) and not index.is_integer()


def is_created_anew(case: dict[str, Any], found: dict[str, Any], expected: Any) -> None:
    assert (found["decision"], found["match_id"]) == ("create", None)


def merges_without_a_reply(case: dict[str, Any]) -> bool:
    answered = {**case, "merge_reply": {"abstract": "both", "overview": "", "content": ""}}
    return case["merge_reply"] is None and deduplication.process_candidate(answered)["stats"]["merged"] == 1


def is_stored_for_itself(case: dict[str, Any], found: dict[str, Any], expected: Any) -> None:
    assert found["stats"] == {"created": 1, "merged": 0, "skipped": 0}
    (operation,) = found["operations"]
    assert (operation["op"], operation["text"]) == ("store", case["candidate"]["abstract"])


def creates_what_was_admitted(case: dict[str, Any]) -> bool:
    if not case["admission"]:
        return False
    operations = deduplication.process_candidate(case)["operations"]
    return any(row["op"] == "store" and "contexts" not in row["metadata"] for row in operations)


def keeps_the_admission_audit(case: dict[str, Any], found: dict[str, Any], expected: Any) -> None:
    """What the original stores, and beside it the decision that it drops."""
    decided = copy.deepcopy(found)
    dropped = [operation["metadata"].pop("admission_decision", None) for operation in decided["operations"]]
    assert decided == expected
    assert "pass_to_dedup" in dropped


def _memories(case: dict[str, Any]) -> list[dict[str, Any]]:
    return [case["memory"]] if "memory" in case else [row["memory"] for row in case["results"]]


def _with_default_ratings(case: dict[str, Any]) -> dict[str, Any]:
    """The case with 0.7 for every rating that is no number."""
    rated = copy.deepcopy(case)
    for memory in _memories(rated):
        memory |= {key: 0.7 for key in ("importance", "confidence") if math.isnan(float(memory[key]))}
    return rated


def describes_oneself_in_chinese(case: dict[str, Any]) -> bool:
    """A short fact whose text holds a Chinese cue."""
    row = case.get("entry", case)
    is_short_fact = row["category"] == "fact" and utf16_length(row["text"]) < 200
    return is_short_fact and any(cue in row["text"] for cue in ("叫我", "我的", "我是"))


def is_a_profile(case: dict[str, Any], found: dict[str, Any], expected: Any) -> None:
    assert found == {"reverse_mapped": "profile", "normalized": None}


def equals_the_metadata_of_an_english_self_description(
    case: dict[str, Any], found: dict[str, Any], expected: Any
) -> None:
    english = copy.deepcopy(case)
    english["entry"]["text"] = "my name"
    adapter = lifecycle.smart_metadata_build if "patch" in case else lifecycle.smart_metadata_parse
    text = case["entry"]["text"]
    assert found == {
        key: value.replace("my name", text) if isinstance(value, str) else value
        for key, value in adapter(english).items()
    }


def has_more_relations_than_are_kept(case: dict[str, Any]) -> bool:
    return len(lifecycle.metadata_caps(case)["appended"]) > 16


def keeps_the_newest_relations(case: dict[str, Any], found: dict[str, Any], expected: Any) -> None:
    assert case["add"] in found["appended"]
    assert found["stored"]["relations"] == found["appended"][-16:]
    assert found["stored"]["sources"] == list(range(case["sources_count"]))[-20:]
    assert found["stored"]["history"] == list(range(case["history_count"]))[-50:]


def hidden_rows_take_places(case: dict[str, Any]) -> bool:
    """A full-text search that keeps inactive rows is cut to its limit before other scopes are left out."""
    if case["exclude_inactive"] or not case["scope_filter"]:
        return False
    limit = clamp_int(float(case["limit"]), 1, 20)
    cut = [_is_readable(row, case) for row in case["rows"][:limit]]
    return not all(cut) and any(_is_readable(row, case) for row in case["rows"][limit:])


def readable_rows_fill_the_limit(case: dict[str, Any], found: list[dict[str, Any]], expected: Any) -> None:
    """The first rows that may be read, as many as were asked for; other scopes take none of their places."""
    limit = clamp_int(float(case["limit"]), 1, 20)
    assert [row["id"] for row in found] == [row["id"] for row in case["rows"] if _is_readable(row, case)][:limit]
    assert all(0.5 <= row["score"] < 1 for row in found)


def _is_readable(row: dict[str, Any], case: dict[str, Any]) -> bool:
    return (row["scope"] or "global") in case["scope_filter"]
