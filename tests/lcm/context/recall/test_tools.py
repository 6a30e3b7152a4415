"""The tools as a host calls them: their schemas are the door."""

import json
from importlib import resources
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from lcm.context.recall.recall import TOOLS, Recall
from lcm.context.recall.tools import Tools
from lcm.store.store import Store
from tests.lcm.context.recall.dags import START, TOKENS, fold, holding, recall, talk

VALID: list[tuple[str, dict[str, Any]]] = [
    ("lcm_grep", {"pattern": "x"}),
    ("lcm_grep", {"pattern": "x", "mode": "full_text", "scope": "summaries", "conversationId": 1, "limit": 200}),
    ("lcm_describe", {"id": "sum_1", "tokenCap": 1, "content": True}),
    ("lcm_expand", {"summaryIds": ["sum_1"], "maxDepth": 1, "includeMessages": True}),
    ("lcm_expand", {"query": "x", "allConversations": True}),
    ("lcm_expand_query", {"prompt": "x?", "query": "x", "maxTokens": 2000}),
]
INVALID = [
    ("lcm_grep", {}, r"\$: 'pattern' is a required property"),
    ("lcm_grep", {"pattern": " "}, r"\$\.pattern"),
    ("lcm_grep", {"pattern": "x", "mode": "fuzzy"}, r"\$\.mode: 'fuzzy' is not one of \['regex', 'full_text'\]"),
    ("lcm_grep", {"pattern": "x", "limit": 201}, r"\$\.limit: 201 is greater than the maximum of 200"),
    ("lcm_grep", {"pattern": "x", "conversationId": "1"}, r"\$\.conversationId: '1' is not of type 'number'"),
    ("lcm_grep", {"pattern": "x", "conversation_id": 1}, "'conversation_id' was unexpected"),
    ("lcm_describe", {"id": 3}, r"\$\.id: 3 is not of type 'string'"),
    ("lcm_expand", {"maxDepth": 2}, r"\$: .* is not valid under any of the given schemas"),
    ("lcm_expand", {"summaryIds": ["sum_1", 2]}, r"\$\.summaryIds\[1\]: 2 is not of type 'string'"),
    ("lcm_expand", {"query": "x", "maxDepth": 0}, r"\$\.maxDepth: 0 is less than the minimum of 1"),
    ("lcm_expand_query", {"query": "x"}, r"\$: 'prompt' is a required property"),
]


@pytest.fixture
def store() -> Store:
    with Store() as made:
        talk(made, "talk", ["the kettle is blue", "the goats escaped"])
        fold(made, "talk", 0, 2, "kettle and goats")
        yield made


def tools(store: Store, session: str | None = "talk", **settings: object) -> Tools:
    configured = recall(**settings)
    return Tools(configured, configured.on(store), lambda: START, session)


def test_a_file_is_had_whole_by_either_word(store: Store) -> None:
    holder = holding("m", "rows.txt", "row 1\nrow 2\n" * 500, 100, "1000 rows")
    store.append("talk", [holder], TOKENS)
    asked = {"id": holder.files[0].file_id}
    brief, *whole = (
        tools(store).call("lcm_describe", asked | more).text for more in ({}, {"content": True}, {"expandFile": True})
    )
    assert whole[0] == whole[1] != brief


def test_the_schemas_are_package_data_and_sound_with_the_defaults_of_the_code() -> None:
    schemas, configured = Recall.schemas(), recall()
    assert tuple(schemas) == TOOLS
    for name, tool in schemas.items():
        assert (tool["name"], bool(tool["description"])) == (name, True)
        Draft202012Validator.check_schema(tool["parameters"])
        packaged = resources.files("lcm.context.recall").joinpath("schemas", f"{name}.json").read_text("utf-8")
        assert json.loads(packaged) == tool
    properties = {name: tool["parameters"]["properties"] for name, tool in schemas.items()}
    assert properties["lcm_grep"]["limit"]["default"] == configured.limit
    assert properties["lcm_expand"]["maxDepth"]["default"] == configured.default_depth
    assert properties["lcm_expand_query"]["maxTokens"]["default"] == configured.max_answer_tokens


def test_a_valid_call_passes(store: Store) -> None:
    assert all(tools(store).call(name, parameters).text for name, parameters in VALID)


def test_an_invalid_call_names_the_path(store: Store) -> None:
    for name, parameters, path in INVALID:
        with pytest.raises(ValueError, match=path):
            tools(store).call(name, parameters)
    with pytest.raises(ValueError, match="choose one of: lcm_describe, lcm_expand, lcm_expand_query, lcm_grep"):
        tools(store).call("lcm_delete", {})


def test_expansion_is_for_delegated_readers_and_delegation_for_the_others(store: Store) -> None:
    own = tools(store)
    refused = own.call("lcm_expand", {"query": "kettle"})
    assert "lcm_expand_query" in refused.details["error"]
    _, reader = own.recall.grant_access(own.reader, [1], own.clock)
    lent = Tools(own.recall, reader, own.clock, "talk")
    (made,) = store.summaries()
    expanded = lent.call("lcm_expand", {"summaryIds": [made.summary_id], "includeMessages": True})
    assert "the kettle is blue" in expanded.text
    assert expanded.details["citedIds"] == [made.summary_id]
    assert lent.call("lcm_expand", {"query": "kettle"}).details["expansionCount"] == 1
    refused = lent.call("lcm_expand_query", {"prompt": "What?", "query": "kettle"})
    assert refused.details["code"] == "EXPANSION_RECURSION_BLOCKED"


def test_without_a_session_a_scope_must_be_named(store: Store) -> None:
    nameless = tools(store, None)
    assert "conversationId" in nameless.call("lcm_grep", {"pattern": "kettle"}).details["error"]
    for scope in ({"conversationId": 1}, {"allConversations": True}):
        assert nameless.call("lcm_grep", {"pattern": "kettle", **scope}).details["totalMatches"] == 2


def test_a_refused_pattern_is_told_unless_the_original_is_wanted(store: Store) -> None:
    assert "**Note:** the pattern is no regular expression" in tools(store).call("lcm_grep", {"pattern": "("}).text
    assert "Note" not in tools(store, rules="original").call("lcm_grep", {"pattern": "("}).text


def test_a_question_is_answered_as_json(store: Store) -> None:
    reply = tools(store).call("lcm_expand_query", {"prompt": "What colour is the kettle?", "query": "kettle"})
    told = json.loads(reply.text)
    assert "the kettle is blue [msg#1]" in told["answer"]
    assert set(told) >= {"answer", "citedIds", "expandedSummaryCount", "totalSourceTokens", "truncated"}
    assert reply.details["policy"]["candidates"] == 1


def test_a_long_result_is_cut_and_says_so(store: Store) -> None:
    whole = tools(store).call("lcm_grep", {"pattern": "the"}).text
    cut = tools(store, max_result_chars=len(whole) - 10).call("lcm_grep", {"pattern": "the"}).text
    assert "msg#2" in cut
    assert "msg#1" not in cut
    assert cut.endswith(f"(cut at {len(whole) - 10} characters: narrow the search to see the rest)")


def test_a_search_by_the_rules_of_0_15_tells_its_order_and_where_each_hit_was_said(store: Store) -> None:
    newer = tools(store, rules="0.15", order="time")
    asked = {"pattern": "kettle", "mode": "full_text"}
    told = newer.call("lcm_grep", {**asked, "sort": "hybrid"}).text
    assert "**Mode:** full_text | **Scope:** both | **Sort:** hybrid\n" in told
    assert "- [conv=1 msg#1] (user, " in told
    assert "- [conv=1 sum_" in told
    assert "**Sort:** recency\n" in newer.call("lcm_grep", asked).text
    assert "**Sort:** recency\n" in newer.call("lcm_grep", {"pattern": "k", "sort": "hybrid"}).text
    assert "Sort" not in tools(store).call("lcm_grep", asked).text
    assert newer.call("lcm_grep", {**asked, "pattern": "a|b"}).is_error
