"""lossless-claw's vectors of storage and assembly onto our components."""

from dataclasses import replace
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from lcm.context.assembly.lossless import Lossless, RelevanceIndex, terms, tier
from lcm.context.assembly.shown_items import NO_RESULT, PairedMessage, ShownItems, paired
from lcm.protocols.context import ContextRequest
from lcm.records.context import Context
from lcm.records.conversation import Message
from lcm.records.summary import Summary
from lcm.transcript.parts import decompose
from lcm.transcript.rendering import rendered, runtime_messages, stored_content, stored_parts
from tests.golden.components import component, fields_of

ORIGINAL_NOTICE = (
    "[lossless-claw] missing tool result in session history; "
    "inserted synthetic error result for transcript repair."
)  # fmt: skip

UNSET_TAIL = 8
"""What the assembler takes where its engine, which always names a count, does not stand above it."""


def message_storage(case: dict[str, Any]) -> dict[str, Any]:
    message = recorded(case["message"], 0)
    counted = original().token_estimator
    shown = ShownItems([message], counted, ZoneInfo("UTC"))
    context = assembler(64).assemble([message], [ContextRequest(128_000)])[0]
    return {
        "ingested": True,
        "row": {
            "seq": 1,
            "role": message.role,
            "content": stored_content(message),
            "token_count": counted.count([rendered(message)])[0],
        },
        "parts": [
            {
                **fields_of(part, "part_type text_content=text tool_call_id tool_name tool_input tool_output"),
                "ordinal": ordinal,
                "metadata": dict(part.metadata),
            }
            for ordinal, part in enumerate(stored_parts(case["message"]))
        ],
        "resolved_message": runtime_messages(message)[0],
        "resolved_tokens": shown[0].tokens,
        "assembled_count": len(context.messages),
    }


def assembly(case: dict[str, Any]) -> dict[str, Any]:
    items = [item_of(spec, place) for place, spec in enumerate(case["layout"])]
    params = case["params"]
    used = assembler(params.get("fresh_tail_count", UNSET_TAIL))
    context = used.assemble(items, [ContextRequest(params["token_budget"], params.get("prompt") or "")])[0]
    shown = ShownItems(items, used.token_estimator, ZoneInfo("UTC"))
    summaries = [item for item in items if isinstance(item, Summary)]
    assert bool(context.system_note) == bool(summaries)
    return {
        "item_tokens": [shown[place].tokens for place in range(len(items))],
        "estimated_tokens": context.tokens,
        "output_ordinals": _ordinals(context, shown),
        "messages": [_with_the_notice(message) for message in context.messages],
        "stats": {
            "raw_message_count": len(items) - len(summaries),
            "summary_count": len(summaries),
            "total_context_items": len(items),
        },
        "system_prompt_tier": tier(summaries),
    }


def tool_pairing_repair(case: dict[str, Any]) -> dict[str, Any]:
    placed = [PairedMessage(message) for message in case["messages"]]
    repaired = paired(placed, original().rules)
    return {"messages": [_with_the_notice(found.message) for found in repaired]}


def relevance_scoring(case: dict[str, Any]) -> dict[str, Any]:
    rules = original().rules
    scores = RelevanceIndex([case["item_text"]], rules).scores(case["prompt"])
    return {
        "item_terms": terms(case["item_text"], rules),
        "prompt_terms": terms(case["prompt"], rules),
        "score": 0.0 if scores is None else float(scores[0]),
    }


def original() -> Lossless:
    made: Lossless = component("system=lossless_claw", "assembly")
    return made


def assembler(fresh_tail_count: int) -> Lossless:
    """The assembler beneath the engine, which makes a budget of 0 the default one."""
    return replace(original(), fresh_tail_count=fresh_tail_count, default_budget_tokens=None)


def recorded(native: dict[str, Any], place: int) -> Message:
    said = decompose(native)
    return Message(f"m{place}", said.role, said.content, "s", parts=said.parts, envelope=said.envelope)


def item_of(spec: dict[str, Any], place: int) -> Message | Summary:
    if spec["type"] == "message":
        return recorded(spec["message"], place)
    return Summary(
        summary_id=spec["id"],
        conversation_id="c",
        kind="condensed" if spec["depth"] else "leaf",
        depth=spec["depth"],
        content=spec["content"],
        token_count=0,
        created_at=datetime.fromisoformat("2026-02-01T00:00:00Z"),
        earliest_at=_instant(spec["earliest_at"]),
        latest_at=_instant(spec["latest_at"]),
        descendant_count=spec["descendant_count"],
        source_ids=tuple(spec["sources"]),
    )


def _ordinals(context: Context, shown: ShownItems) -> list[int | None]:
    """Where each message was: the first item shown, not yet taken, that says the same or has all its blocks."""
    ids = [item.message_id if isinstance(item, Message) else item.summary_id for item in shown.items]
    waiting = [ids.index(item.item_id) for item in context.items]
    ordinals: list[int | None] = []
    for message in context.messages:
        found = next((at for at in waiting if _is_of(message, shown[at].messages[0].message)), None)
        ordinals.append(found)
        waiting = [at for at in waiting if at != found]
    return ordinals


def _is_of(message: dict[str, Any], whole: dict[str, Any]) -> bool:
    said, blocks = message["content"], whole["content"]
    if isinstance(said, str) or isinstance(blocks, str):
        return message == whole
    return message["role"] == whole["role"] and all(block in blocks for block in said)


def _instant(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _with_the_notice(message: dict[str, Any]) -> dict[str, Any]:
    if message["role"] != "toolResult" or message["content"] != [{"type": "text", "text": NO_RESULT}]:
        return message
    return {**message, "content": [{"type": "text", "text": ORIGINAL_NOTICE}]}
