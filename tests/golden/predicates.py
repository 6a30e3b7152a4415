"""The predicates and assertions that `deviations.yaml` names."""

import copy
import json
import math
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

import pytest

from lcm.javascript import clamp_int, utf16_length
from lcm.memory.scopes import is_bypass_id
from lcm.memory.session import live_message
from lcm.records.conversation import Message
from lcm.retrieval.ranking.stages.scores import TimeDecay
from lcm.transcript.parts import MEDIA_TYPES, block_type
from lcm.transcript.rendering import stored_content
from lcm.writing.lifecycle import fact_key
from tests.golden.adapters.lancedb_pro import decay, deduplication, lifecycle, scopes
from tests.golden.adapters.lancedb_pro_beta11 import lifecycle as later
from tests.golden.adapters.lancedb_pro_beta11 import retrieval
from tests.golden.adapters.lossless_claw import session
from tests.golden.lancedb_pro_beta11_predicates import *  # noqa: F403 - deviations.yaml names them
from tests.golden.libravdb_predicates import *  # noqa: F403 - likewise
from tests.golden.lossless_claw_0_15_predicates import *  # noqa: F403 - likewise
from tests.golden.originals.row_fields import MAPPED
from tests.golden.originals.row_metadata import object_of

_LIFE = ("importance", "confidence", "access_count", "created_at_ms", "last_accessed_at_ms")


def lives_by_what_is_no_number(case: dict[str, Any]) -> bool:
    """A rating, a count or an instant of a memory is not finite."""
    return any(not math.isfinite(float(memory[key])) for memory in _memories(case) for key in _LIFE)


def equals_the_score_of_a_whole_life(case: dict[str, Any], found: dict[str, Any], expected: Any) -> None:
    assert found == decay.decay_score(_with_whole_lives(case))


def equals_the_boost_of_whole_lives(case: dict[str, Any], found: list[float], expected: Any) -> None:
    assert found == decay.decay_search_boost(_with_whole_lives(case))


def equals_the_lifted_boost_of_whole_lives(case: dict[str, Any], found: list[float], expected: Any) -> None:
    assert found == retrieval.decay_search_boost(_with_whole_lives(case))


def was_accessed_at_what_is_no_number(case: dict[str, Any]) -> bool:
    """How often, or when last, is not finite."""
    return not all(math.isfinite(float(case[key])) for key in ("access_count", "last_accessed_at_ms"))


def is_set_to_what_is_no_number(case: dict[str, Any]) -> bool:
    return any(math.isnan(float(case[key])) for key in ("reinforcement_factor", "max_half_life_multiplier"))


def is_refused_as_a_setting(case: dict[str, Any], found: float, expected: Any) -> None:
    settings = {key: float(case[key]) for key in ("reinforcement_factor", "max_half_life_multiplier")}
    with pytest.raises(ValueError, match="got nan"):
        TimeDecay(**settings)


def is_the_half_life_of_accesses_long_forgotten(case: dict[str, Any], found: float, expected: Any) -> None:
    """Without a count the half-life itself; without an instant no more than its highest multiple."""
    count, base = float(case["access_count"]), case["base_half_life_days"]
    is_lengthened = math.isfinite(count) and count > 0 and case["reinforcement_factor"]
    assert found == (min(base, base * case["max_half_life_multiplier"]) if is_lengthened else base)


def has_a_half_life_below_zero(case: dict[str, Any]) -> bool:
    return case["config"].get("recency_half_life_days", 0) < 0


def refuses_the_half_life(case: dict[str, Any], found: Any, expected: Any) -> None:
    assert found == f"half_life_days must be >= 0, got {float(case['config']['recency_half_life_days'])}"


def asks_by_a_reserved_id_of_what_is_no_scope(case: dict[str, Any]) -> bool:
    return is_bypass_id(case["agent_id"] or "") and not scopes.scope_manager(case).get("validate_scope", True)


def shows_what_its_searches_read(case: dict[str, Any], found: dict[str, Any], expected: dict[str, Any]) -> None:
    """The row of that scope too."""
    listed = {key: list(value) if isinstance(value, tuple) else value for key, value in found.items()}
    assert listed == {**expected, "filtered": [*expected["filtered"], case["scope"]]}


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


def _with_whole_lives(case: dict[str, Any]) -> dict[str, Any]:
    """The case with what a row's lifecycle gives for a number that is none.

    0.7 for a rating, 0 accesses, created now (or when it was accessed after that), accessed when it was created.
    """
    whole = copy.deepcopy(case)
    for memory in _memories(whole):
        known = [float(memory[key]) for key in ("created_at_ms", "last_accessed_at_ms")]
        created = known[0] if math.isfinite(known[0]) else max(filter(math.isfinite, (case["now_ms"], known[1])))
        defaults = dict(zip(_LIFE, (0.7, 0.7, 0, created, created), strict=True))
        memory |= {key: default for key, default in defaults.items() if not math.isfinite(float(memory[key]))}
    return whole


def describes_oneself_in_chinese(case: dict[str, Any]) -> bool:
    """A short fact whose text holds a Chinese cue."""
    return case.get("entry", case)["category"] == "fact" and _has_a_short_chinese_cue(case)


def describes_oneself_in_chinese_since(case: dict[str, Any]) -> bool:
    """A short fact, or a decision that was made of a reflection, whose text holds a Chinese cue."""
    kind = object_of(case.get("metadata")).get("type", case.get("row_type"))
    is_mapped = case.get("entry", case)["category"] == "decision" and kind == MAPPED
    return describes_oneself_in_chinese(case) or (is_mapped and _has_a_short_chinese_cue(case))


def _has_a_short_chinese_cue(case: dict[str, Any]) -> bool:
    text = case.get("entry", case)["text"]
    return utf16_length(text) < 200 and any(cue in text for cue in ("叫我", "我的", "我是"))


def is_a_profile(case: dict[str, Any], found: dict[str, Any], expected: Any) -> None:
    assert found == {"reverse_mapped": "profile", "normalized": None}


def equals_the_metadata_of_an_english_self_description(
    case: dict[str, Any], found: dict[str, Any], expected: Any
) -> None:
    adapter = lifecycle.smart_metadata_build if "patch" in case else lifecycle.smart_metadata_parse
    _is_as_in_english(case, found, adapter)


def equals_the_later_metadata_of_an_english_self_description(
    case: dict[str, Any], found: dict[str, Any], expected: Any
) -> None:
    _is_as_in_english(case, found, later.smart_metadata_parse)


def _is_as_in_english(case: dict[str, Any], found: dict[str, Any], adapter: Callable[[Any], dict[str, Any]]) -> None:
    english = copy.deepcopy(case)
    english["entry"]["text"] = "my name"
    text, told = case["entry"]["text"], adapter(english)
    wanted = {key: value.replace("my name", text) if isinstance(value, str) else value for key, value in told.items()}
    category, _, topic = told.get("fact_key", "").partition(":")
    if topic == "my name":
        wanted["fact_key"] = fact_key(category, text)
    assert found == wanted


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


def names_another_agent_than_its_host(case: dict[str, Any]) -> bool:
    params = case["params"]
    is_asked = any(params.get(key) for key in ("query", "text", "input", "q"))
    is_by_agent = not params.get("user_id") and not params.get("session_key")
    return bool(is_asked and is_by_agent and case["agent_id"] and params.get("agent_id"))


def is_routed_to_the_hosts_agent(case: dict[str, Any], found: dict[str, Any], expected: dict[str, Any]) -> None:
    (call,), theirs, own = expected["calls"], f"agent-id:{case['params']['agent_id']}", f"agent-id:{case['agent_id']}"
    collections = [name.replace(theirs, own) for name in call["collections"]]
    assert collections != call["collections"]
    assert found == {"calls": [call | {"collections": collections}]}


def holds_media(case: dict[str, Any]) -> bool:
    """A message with a block that holds an image or another medium."""
    content = case["message"].get("content")
    return isinstance(content, list) and any(block_type(block) in MEDIA_TYPES for block in content)


def keeps_media_out_of_the_words(case: dict[str, Any], found: dict[str, Any], expected: dict[str, Any]) -> None:
    blocks = case["message"]["content"]
    data = [block["data"] for block in blocks if block_type(block) in MEDIA_TYPES and "data" in block]
    assert all(text not in found["row"]["content"] for text in data)
    words = [block["text"] for block in blocks if block_type(block) == "text" and block["text"].strip()]
    assert found["row"]["content"] == "\n".join(words)
    rest = {"row": {**found["row"], "content": expected["row"]["content"]}}
    assert found | rest == expected


def is_a_text_that_is_json(case: dict[str, Any]) -> bool:
    """A message whose words are one text, itself a JSON object or array."""
    content = case["message"].get("content")
    if not isinstance(content, str) or content.strip()[:1] not in ("{", "["):
        return False
    try:
        json.loads(content)
    except ValueError:
        return False
    return True


def keeps_the_text_itself(case: dict[str, Any], found: dict[str, Any], expected: dict[str, Any]) -> None:
    assert found["row"]["content"] == case["message"]["content"]
    rest = {"row": {**found["row"], "content": expected["row"]["content"]}}
    assert found | rest == expected


def summarises_markup(case: dict[str, Any]) -> bool:
    """A summary with a character that XML reserves."""
    told = (item["content"] for item in case["layout"] if item["type"] == "summary")
    return any(character in text for text in told for character in "&<>")


def escapes_its_summaries(case: dict[str, Any], found: dict[str, Any], expected: Any) -> None:
    """What is shown of each summary is well-formed, and reads as the summary."""
    contents = [item["content"] for item in case["layout"] if item["type"] == "summary"]
    shown = [said["content"] for said in found["messages"] if str(said["content"]).startswith("<summary ")]
    for text in shown:
        assert ElementTree.fromstring(text).findtext("content", "").strip() in {told.strip() for told in contents}
    assert len(found["item_tokens"]) == len(case["layout"])
    assert sum(found["item_tokens"]) >= found["estimated_tokens"]


def has_a_question_mark(case: dict[str, Any]) -> bool:
    return "?" in case["pattern"]


def is_matched_as_a_letter_would_be(case: dict[str, Any], found: dict[str, bool], expected: Any) -> None:
    assert found == session.session_patterns({key: text.replace("?", "\ue000") for key, text in case.items()})


def begins_with_a_message_beyond_the_bound(case: dict[str, Any]) -> bool:
    first = _first_import(case)
    if first is None:
        return False
    listening = session.preparer(case["config"])
    newest = _natives(case["steps"][first - 1])[-1:]
    return any(tokens > listening.rules.first_import_tokens for tokens in listening.count(_said(newest)))


def takes_in_the_newest_message(case: dict[str, Any], found: dict[str, Any], expected: dict[str, Any]) -> None:
    first = _first_import(case)
    assert first is not None
    imported = {"bootstrapped": True, "imported_messages": 1, "reason": None, "message_count": 1}
    assert found["steps"][: first + 1] == [*expected["steps"][:first], {**expected["steps"][first], **imported}]
    if first + 1 < len(case["steps"]):
        return  # the original goes on from an empty conversation
    newest = _natives(case["steps"][first - 1])[-1]
    assert found["messages"] == [{**_row(newest), "seq": 1}]
    assert found["context_item_count"] == 1


def begins_with_an_import(case: dict[str, Any]) -> bool:
    return _first_import(case) is not None


def keeps_the_parts_of_what_is_imported(case: dict[str, Any], found: dict[str, Any], expected: dict[str, Any]) -> None:
    """What the original reports and stores, exactly, and where it stored no parts, those of the file's message."""
    rows = [_row(native) for step in case["steps"] for native in _natives(step)]
    parts = {(row["role"], row["content"]): row["part_count"] for row in rows}
    messages = [
        {**row, "part_count": row["part_count"] or parts[row["role"], row["content"]]} for row in expected["messages"]
    ]
    assert found == {**expected, "messages": messages}


def _natives(step: dict[str, Any]) -> list[dict[str, Any]]:
    """The messages that a step says, or writes."""
    if "message" in step:
        return [step["message"]]
    found = []
    lines = step.get("lines", ())
    if lines and lines[0].lstrip().startswith("["):  # the whole file is one list
        return [native for native in json.loads("\n".join(lines)) if "role" in native]
    for line in lines:
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        native = entry.get("message", entry) if isinstance(entry, dict) else None
        if isinstance(native, dict) and "role" in native:
            found.append(native)
    return found


def _said(natives: list[dict[str, Any]]) -> list[Message]:
    return [live_message(native, "session") for native in natives]


def _row(native: dict[str, Any]) -> dict[str, Any]:
    (said,) = _said([native])
    return {"role": said.role, "content": stored_content(said), "part_count": len(said.parts)}


def _first_import(case: dict[str, Any]) -> int | None:
    """The step that bootstraps an empty conversation, if the session is one that is stored."""
    steps = case["steps"]
    place = next((place for place, step in enumerate(steps) if step["op"] in ("ingest", "bootstrap")), None)
    if place is None or steps[place]["op"] == "ingest":
        return None
    is_stored = session.rules(case["config"]).writes("session", steps[place].get("session_key", ""))
    return place if is_stored else None


def says_again_all_that_stood_before(case: dict[str, Any]) -> bool:
    """A turn begins with the same messages that it names as said before."""
    turns = ((turn["messages"], turn["pre_prompt_message_count"]) for turn in case["turns"])
    return any(count and messages[count : 2 * count] == messages[:count] for messages, count in turns)


def keeps_what_is_said_twice(case: dict[str, Any], found: dict[str, Any], expected: dict[str, Any]) -> None:
    counts = zip(found["message_count_after_each_turn"], expected["message_count_after_each_turn"], strict=True)
    assert all(kept >= original for kept, original in counts)
    remaining = iter([(said["role"], said["content"]) for said in found["messages"]])
    assert all((said["role"], said["content"]) in remaining for said in expected["messages"])
