"""lossless-claw's vectors of search, expansion and grants onto our components."""

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

from lcm.clock import EPOCH, parse_instant
from lcm.context.recall.expansion import distilled_text, expand, shortened
from lcm.context.recall.grants import Grant
from lcm.context.recall.grep import grep_text
from lcm.context.recall.reader import DescribedSummary
from lcm.context.recall.recall import Recall, route
from lcm.errors import GrantError
from lcm.records.conversation import Message, Transcript
from lcm.records.summary import Summary
from lcm.store.search import contains_cjk, excerpt, like_pattern, like_terms, match_expression
from lcm.store.store import Store
from lcm.store.summaries import insert_summary
from lcm.token_estimator import Utf16Units
from tests.golden.components import component, fields_of

_SAID_FROM = parse_instant("2026-01-05T09:00:00Z")
_SUMMARISED_FROM = parse_instant("2026-02-01T00:00:00Z")
_TOKENS = Utf16Units()


def recall() -> Recall:
    return component("recall=lossless_claw", "recall", pipeline="recall")


def fts_query_sanitizing(case: dict[str, Any]) -> dict[str, Any]:
    terms = like_terms(case["query"])
    return {
        "match": match_expression(case["query"], keeps_phrases=recall().rules == "corrected"),
        "contains_cjk": contains_cjk(case["query"]),
        "like_terms": terms,
        "like_args": [like_pattern(term) for term in terms],
        "snippet": excerpt(case["content"], terms),
    }


def full_text_search(case: dict[str, Any]) -> dict[str, Any]:
    messages = [{"role": "user", "content": text} for text in case["documents"]]
    leaves = [{"id": f"sum_{i}", "content": text, "message_seqs": []} for i, text in enumerate(case["documents"])]
    with Store() as store:
        fill(store, {"messages": messages, "leaves": leaves, "condensed": []})
        found = recall().on(store).grep(case["query"], mode="full_text")
    return {
        "summary_hits": sorted(int(hit.summary_id.removeprefix("sum_")) for hit in found.summaries),
        "message_hits": sorted(hit.number - 1 for hit in found.messages),
    }


def grep_tool(case: dict[str, Any]) -> dict[str, Any]:
    asked, between = case["params"], {}
    for name in {"since", "before"} & asked.keys():
        try:
            between[name] = parse_instant(asked[name])
        except ValueError:
            return _refused(f"{name} must be a valid ISO timestamp.")
    with Store() as store:
        fill(store, case["dag"])
        try:
            found = (
                recall()
                .on(store)
                .grep(
                    asked["pattern"].strip(),
                    mode=asked.get("mode", "regex"),
                    scope=asked.get("scope", "both"),
                    conversation=None if asked.get("allConversations") else asked.get("conversationId", 1),
                    limit=asked.get("limit"),
                    **between,
                )
            )
        except ValueError:
            return _refused("`since` must be earlier than `before`.")
    text = grep_text(replace(found, notes=()), recall().max_result_chars)  # the original tells of no refusal
    counts = {"message_count": len(found.messages), "summary_count": len(found.summaries)}
    return {"text": text, "details": {**counts, "total_matches": found.total}}


def _refused(error: str) -> dict[str, Any]:
    return {"text": json.dumps({"error": error}, indent=2), "details": {"error": error}}


def retrieval_expand(case: dict[str, Any]) -> dict[str, Any]:
    with Store() as store:
        fill(store, case["dag"])
        reader = recall().on(store)
        if case["op"] == "describe":
            return _described(reader.describe(case["id"]))
        with store.reading() as connection:
            found = expand(
                connection,
                case["summary_ids"],
                case.get("max_depth", recall().default_depth),
                case.get("token_cap", float("inf")),
                _TOKENS,
                has_messages=case.get("include_messages", False),
            )
    return {
        "expansions": [
            {
                "summary_id": root.summary_id,
                "children": [
                    {**fields_of(one, "summary_id kind token_count=tokens"), "snippet": shortened(one.content)}
                    for one in root.children
                ],
                "messages": [
                    {**fields_of(one, "message_id=number role token_count=tokens"), "snippet": shortened(one.text)}
                    for one in root.messages
                ],
            }
            for root in found.roots
        ],
        "cited_ids": list(found.cited_ids),
        "total_tokens": found.tokens,
        "truncated": found.is_truncated,
        "distilled": distilled_text(found, recall().rules),
    }


def expansion_auth(case: dict[str, Any]) -> dict[str, Any]:
    now, asked = EPOCH, case["create"]
    ttl_ms = asked["ttl_ms"]
    given = {
        "summary_ids": tuple(asked["summary_ids"] or ()),
        "max_depth": asked["max_depth"],
        "token_cap": asked["token_cap"],
        "ttl_seconds": ttl_ms and ttl_ms / 1000,
    }
    set_ones = {name: value for name, value in given.items() if value}
    grant = Grant(tuple(asked["conversations"]), lambda: now, **set_ones)
    steps: list[Any] = []
    for step in case["steps"]:
        if step["op"] == "advance_ms":
            now += timedelta(milliseconds=step["ms"])
            steps.append(None)
        elif step["op"] == "revoke":
            grant.revoke()
            steps.append({"revoked": True})
        elif step["op"] == "remaining":
            steps.append({"remaining": None if grant.ended_because else grant.left})
        else:
            asks, within = ([step["conversation"]], step["summary_ids"]), (step["max_depth"], step["token_cap"])
            try:
                allowed = grant.allowed(*asks, depth=within[0], token_cap=within[1])
                grant.take(step["result_tokens"])
            except GrantError as error:
                steps.append({"ok": False, "error": str(error)})
                continue
            found = fields_of(allowed, "effective_depth=depth effective_token_cap=token_cap")
            steps.append({"ok": True, **found, "remaining_after": grant.left})
    lasts_ms = round((grant.expires_at - EPOCH) / timedelta(milliseconds=1))
    defaults = {"max_depth": grant.max_depth, "token_cap": grant.token_cap, "ttl_ms": lasts_ms}
    return {"defaults": defaults, "steps": steps}


def expansion_policy(case: dict[str, Any]) -> dict[str, Any]:
    found = route(
        case["intent"],
        case["candidate_summary_count"],
        float(case["token_cap"]),
        query=case.get("query", ""),
        depth=case.get("requested_max_depth"),
        has_messages=case["include_messages"],
    )
    names = """
        action normalized_max_depth=depth candidate_summary_count=candidates estimated_tokens token_cap
        token_risk_ratio=risk_ratio token_risk_level=risk
    """
    return {
        **fields_of(found, names),
        "indicators": fields_of(found, "broad_time_range=is_over_long_time multi_hop_retrieval=is_in_several_hops"),
        "triggers": {
            "direct_by_no_candidates": found.candidates == 0,
            "direct_by_low_complexity_probe": found.is_simple_probe,
            "delegate_by_depth": False,
            "delegate_by_candidate_count": False,
            "delegate_by_token_risk": found.risk == "high",
            "delegate_by_broad_time_range_and_multi_hop": found.is_over_long_time and found.is_in_several_hops,
        },
    }


def _described(described: Any) -> dict[str, Any]:
    assert isinstance(described, DescribedSummary)
    return {
        "kind": described.summary.kind,
        "depth": described.summary.depth,
        "parent_ids": list(described.source_summary_ids),
        "child_ids": list(described.derived_ids),
        "message_ids": list(described.messages),
        "subtree": [
            {
                **fields_of(node.place, "summary_id depth_from_root=steps path"),
                "child_count": len(node.place.next_ids),
            }
            for node in described.subtree
        ],
    }


def fill(store: Store, dag: dict[str, Any]) -> None:
    said = [
        Message(f"m{i}", one["role"], one["content"], "session", _SAID_FROM + timedelta(minutes=7 * i))
        for i, one in enumerate(dag["messages"], start=1)
    ]
    store.ingest(Transcript("talk", tuple(said)), _TOKENS)
    made = [(one, "leaf", 0, [f"m{seq}" for seq in one["message_seqs"]]) for one in dag["leaves"]]
    made += [(one, "condensed", one["depth"], one["sources"]) for one in dag["condensed"]]
    with store.writing() as connection:
        for i, (one, kind, depth, sources) in enumerate(made, start=1):
            summary = Summary(
                one["id"],
                "talk",
                kind,
                depth,
                one["content"],
                *_TOKENS.count([one["content"]]),
                _SUMMARISED_FROM + timedelta(minutes=i),
                descendant_token_count=20 if kind == "condensed" else 0,
                source_message_token_count=10 if kind == "leaf" else 0,
                source_ids=tuple(sources),
            )
            insert_summary(connection, 1, summary)
