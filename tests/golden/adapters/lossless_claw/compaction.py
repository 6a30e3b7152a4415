"""lossless-claw's compaction onto ours."""

from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

from lcm.clock import EPOCH, format_instant, parse_instant
from lcm.compaction.context_totals import summary_id as id_of
from lcm.compaction.lossless.folding import Folding, press
from lcm.compaction.lossless.lossless import Lossless
from lcm.compaction.lossless.planning import (
    condensation,
    counted_tokens,
    leaf_chunk,
    raw_tokens,
    tail_start,
)
from lcm.compaction.lossless.source_text import prompt_time
from lcm.compaction.window import StoredWindow
from lcm.compaction.work import run
from lcm.errors import AuthError, LcmError, ModelError
from lcm.javascript import trim
from lcm.javascript import utf16_length as units
from lcm.plugins.settings.environment import counted_with
from lcm.records.conversation import Message
from lcm.records.summary import Summary, SummaryRequest, SummaryResult
from lcm.store.store import Store
from lcm.transcript.parts import decompose
from lcm.transcript.rendering import rendered
from tests.golden.adapters.lossless_claw.tokens import cut, digest, text_of
from tests.golden.components import component, fields_of
from tests.lcm.compaction.contexts import BEGIN, CONVERSATION, NOW, lay_out

DEFAULT_BUDGET = 128000
FIRST_MINUTE = {"lossless_claw": 0, "lossless_claw_0_15": 1}
"""The number of the summary that was made at the first minute."""
NAMES = {
    "max_assembly_token_budget": "max_budget_tokens",
    "max_sweep_iterations": "max_sweep_passes",
    "sweep_max_depth": "incremental_max_depth",
}
"""The vectors' name of a setting -> ours, where they differ."""
CHOICES = Path(__file__).parents[4] / "conf" / "compaction"


@dataclass
class Stub:
    """The summarizer of the vectors."""

    spec: dict[str, Any]
    calls: list[SummaryRequest] = field(default_factory=list)

    def summarize(self, requests: Sequence[SummaryRequest], *, incidents: Counter[str]) -> list[SummaryResult]:
        self.calls += requests
        return [self._answer(request) for request in requests]

    def _answer(self, request: SummaryRequest) -> SummaryResult:
        mode = "aggressive" if request.is_aggressive else "normal"
        spec = self.spec[mode] if self.spec["type"] == "by_mode" else self.spec
        if spec["type"] == "by_call":
            spec = spec["calls"][min(len(self.calls), len(spec["calls"])) - 1]
        if spec["type"] in ("auth_error", "error"):
            failure = (AuthError if spec["type"] == "auth_error" else ModelError)("stub failure")
            return SummaryResult("", 0.0, "stub", failure=failure)
        kind = f"d{request.depth}" if request.depth else "leaf"
        n, p = units(request.text), units(request.previous or "")
        header = f"SUMMARY({n} chars) {kind} {mode} prev={p}: "
        said = {
            "head": lambda: header + cut(request.text, spec["head_chars"]),
            "ratio": lambda: header + cut(request.text, int(n * spec["ratio"])),
            "fixed": lambda: "x" * spec["chars"],
            "echo": lambda: request.text,
            "empty": lambda: "",
            "blank": lambda: " \n\t ",
        }
        return SummaryResult(said[spec["type"]](), 1.0, "stub", "stub")


def leaf_chunk_selection(case: dict[str, Any]) -> dict[str, Any]:
    limits, totals, tail = weighed(case)
    chunk = leaf_chunk(totals, limits, tail)
    return {
        "ordinals": [] if chunk is None else list(range(chunk.start, chunk.stop)),
        "raw_tokens_outside_tail": raw_tokens(totals, tail),
        "threshold": limits.leaf_chunk_tokens,
    }


def condensation_selection(case: dict[str, Any]) -> dict[str, Any] | None:
    limits, totals, tail = weighed(case)
    chunk = condensation(totals, limits, tail, is_hard=bool(case["hard_trigger"]))
    if chunk is None:
        return None
    ordinals = list(range(chunk.start, chunk.stop))
    return {"target_depth": chunk.depth - 1, "ordinals": ordinals, "summary_tokens": chunk.tokens}


def trigger_evaluation(case: dict[str, Any]) -> dict[str, Any]:
    limits, totals, tail = weighed(case)
    counted = counted_tokens(totals, case.get("observed_token_count"))
    return {
        "evaluate": evaluated(counted, limits),
        "leaf_trigger": leaf_due(raw_tokens(totals, tail), limits),
    }


def evaluated(tokens: int, limits: Any) -> dict[str, Any]:
    is_over = tokens > limits.threshold_tokens
    return {
        "should_compact": is_over,
        "reason": "threshold" if is_over else "none",
        "current_tokens": tokens,
        "threshold": limits.threshold_tokens,
    }


def leaf_due(tokens: int, limits: Any) -> dict[str, Any]:
    most = limits.leaf_chunk_tokens
    return {"should_compact": tokens >= most, "raw_tokens_outside_tail": tokens, "threshold": most}


def weighed(case: dict[str, Any]) -> tuple[Lossless, Any, int]:
    """The settings of a case, the tokens of its context, and where the fresh tail begins."""
    folding = begun(case)
    return folding.settings, folding.totals, tail_start(folding.totals, folding.settings.fresh_tail_count)


def begun(case: dict[str, Any], preset: str = "lossless_claw", **settings: Any) -> Folding:
    """A run on the context of a case; with settings of its call."""
    compaction, window = laid_out(case, preset)
    called = replace(compaction, **settings)
    return Folding(window, NOW, Counter(), settings=called, configured=compaction)


def leaf_pass(case: dict[str, Any]) -> dict[str, Any]:
    folding, params = begun(case), case["params"]
    before, previous = folding.totals.tokens, params.get("previous_summary_content")
    drive(folding.one_leaf(is_forced=bool(params.get("force")), previous=previous), folding.settings)
    return {"result": result_of(folding, before), **outcome(folding.settings, folding.window, case)}


def full_sweep(case: dict[str, Any]) -> dict[str, Any]:
    folding, params = begun(case), case["params"]
    before, is_forced, is_hard = folding.totals.tokens, bool(params.get("force")), bool(params.get("hard_trigger"))
    drive(folding.sweep(is_forced=is_forced, is_hard=is_hard), folding.settings)
    return {"result": result_of(folding, before), **outcome(folding.settings, folding.window, case)}


def compact_until_under(case: dict[str, Any]) -> dict[str, Any]:
    return until_under(begun(case), case)


def until_under(folding: Folding, case: dict[str, Any]) -> dict[str, Any]:
    params = case["params"]
    live = params.get("current_tokens")
    before = folding.tokens(live)
    is_under = drive(folding.until_under(params.get("target_tokens"), live), folding.settings)
    after = folding.totals.tokens if folding.rounds else before
    result = {"success": is_under, "rounds": folding.rounds, "final_tokens": after}
    if folding.has_failed_auth:
        result["auth_failure"] = True
    return {"result": result, **outcome(folding.settings, folding.window, case)}


def incremental_compaction(case: dict[str, Any]) -> dict[str, Any]:
    compaction = configured(case, case.get("token_budget") or DEFAULT_BUDGET)
    tokens = component("system=lossless_claw", "token_estimator")
    store, window, counts, turns = Store(opened_at=NOW), None, [], []
    for turn in case["turns"]:
        said = [native_message(native, len(counts) + i) for i, native in enumerate(turn, 1)]
        counted = tokens.count([rendered(message) for message in said])
        store.append(CONVERSATION, said, tokens, rendered)
        counts += counted
        window = window or StoredWindow(store, CONVERSATION)
        window.follow()
        live = sum(tokens.count([message.content for message in said]))
        report = run(
            compaction.after_turn(window, NOW, live, incidents=Counter()), compaction.summarizer, incidents=Counter()
        )
        turns.append((report.tokens_after, len(window.entries), report.summary_ids))
    assert window is not None
    labels = {summary.summary_id: f"S{i}" for i, summary in enumerate(store.summaries(), 1)}
    return {
        "message_token_counts": counts,
        "after_each_turn": [
            {"context_tokens": size, "context_item_count": count, "new_summaries": [labels[one] for one in made]}
            for size, count, made in turns
        ],
        **outcome(compaction, window, {**case, "layout": []}),
    }


def escalation(case: dict[str, Any]) -> dict[str, Any]:
    target = case["target_tokens"]
    config = {
        **dict.fromkeys(("leaf_target_tokens", "condensed_target_tokens"), target),
        "summary_max_overage_factor": case["summary_max_overage_factor"],
    }
    compaction = configured({"config": config, "stub": case["stub"]}, 100000)
    source = text_of(case["source"])
    source = f"  \n{source}\n " if case["pad_source"] else source
    stub: Stub = compaction.summarizer  # type: ignore[assignment]
    try:
        pressed = drive(press(compaction, source, 0), compaction)
        text = pressed.text
        found = {"level": pressed.level, **content_of(text), "content_tail": cut_tail(text, 60)}
        found.setdefault("content", None)
    except AuthError:
        found = {"auth_failure": True}
    except LcmError as error:
        found = {"error": str(error)}
    calls = [{"aggressive": call.is_aggressive, "text_chars": units(call.text)} for call in stub.calls]
    return {**found, "calls": calls}


def summary_id(case: dict[str, Any]) -> dict[str, str]:
    return {"summary_id": id_of(case["content"], EPOCH + timedelta(milliseconds=case["now_ms"]))}


def timestamp_format(case: dict[str, Any]) -> dict[str, str]:
    if case["op"] == "parse":
        return {"instant": format_instant(parse_instant(trim(case["value"]).upper()))}
    return {"text": prompt_time(parse_instant(case["instant"]), case["timezone"])}


def configured(case: dict[str, Any], budget_tokens: float, preset: str = "lossless_claw") -> Lossless:
    """The preset, with the settings of a case in place of its own."""
    values = yaml.safe_load((CHOICES / f"{preset}.yaml").read_text())
    del values["_target_"]
    values |= {
        "summarizer": Stub(case.get("stub", {"type": "empty"})),
        "token_estimator": component(f"system={preset}", "token_estimator"),
        "guidance": component("guidance=none", "guidance"),
        "budget_tokens": budget_tokens,
    }
    known = {one.name for one in fields(Lossless)}
    given = {NAMES.get(name, name): value for name, value in case["config"].items()}
    given = {name: value for name, value in given.items() if name in known}
    if not given.get("max_budget_tokens", 0) > 0:  # there is none
        given.pop("max_budget_tokens", None)
    if not budget_tokens > 0:  # everything is above its threshold, 0
        given |= {"budget_tokens": 1, "context_threshold": 0}
    return Lossless(**{**values, **given, **counted_with(given)})


def laid_out(case: dict[str, Any], preset: str = "lossless_claw") -> tuple[Lossless, StoredWindow]:
    budget = case.get("token_budget", case.get("params", {}).get("token_budget", 100000))
    tokens = component(f"system={preset}", "token_estimator")
    items: list[Message | Summary] = []
    for item in case["layout"]:
        items.append(item_of(item, items, tokens, preset))
    counts = [one.get("token_count", tokens.count([text_of(one["content"])])[0]) for one in case["layout"]]
    store = Store(opened_at=NOW)
    lay_out(store, items, counts)
    return configured(case, budget, preset), StoredWindow(store, CONVERSATION)


def item_of(
    item: dict[str, Any], before: list[Message | Summary], tokens: Any, preset: str = "lossless_claw"
) -> Message | Summary:
    content = text_of(item["content"])
    if item["type"] == "message":
        seq = 1 + sum(isinstance(one, Message) for one in before)
        return Message(f"m{seq}", item["role"], content, "s", BEGIN + timedelta(minutes=7 * seq))
    number = 1 + sum(isinstance(one, Summary) for one in before)
    dates = {name: parse_instant(item[name]) for name in ("earliest_at", "latest_at") if item.get(name)}
    counted = ("descendant_count", "descendant_token_count", "source_message_token_count")
    return Summary(
        summary_id=f"S{number}",
        conversation_id=CONVERSATION,
        kind="condensed" if item["depth"] else "leaf",
        depth=item["depth"],
        content=content,
        token_count=item.get("token_count", tokens.count([content])[0]),
        created_at=datetime(2026, 2, 1, tzinfo=UTC) + timedelta(minutes=number - FIRST_MINUTE[preset]),
        **dates,
        **{name: item.get(name, 0) for name in counted},
        file_ids=tuple(item.get("file_ids", ())),
    )


def native_message(native: dict[str, Any], seq: int) -> Message:
    native = {**native, "content": text_of(native["content"])}
    said = decompose(native)
    created_at = BEGIN + timedelta(minutes=7 * seq)
    return Message(f"m{seq}", said.role, said.content, "s", created_at, None, said.parts, said.envelope)


def drive(work: Generator[Any, Any, Any], compaction: Any) -> Any:
    return run(work, compaction.summarizer, incidents=Counter())


def result_of(progress: Folding, before: int) -> dict[str, Any]:
    result: dict[str, Any] = {
        "action_taken": bool(progress.summaries),
        "tokens_before": before,
        "tokens_after": progress.totals.tokens,
        "condensed": any(summary.depth for summary in progress.summaries),
    }
    if progress.summaries:
        known = len(progress.window._store.summaries()) - len(progress.summaries)  # type: ignore[attr-defined]
        result |= {"created_summary_id": f"S{known + len(progress.summaries)}", "level": progress.summaries[-1].level}
    if progress.has_failed_auth:
        result["auth_failure"] = True
    return result


def outcome(compaction: Any, window: Any, case: dict[str, Any]) -> dict[str, Any]:
    store = window._store
    stub: Stub = compaction.summarizer  # type: ignore[assignment]
    summaries = store.summaries()
    labels = {summary.summary_id: f"S{i}" for i, summary in enumerate(summaries, 1)}
    return {
        "summaries": [shown(summary, labels) for summary in summaries],
        "context_items": [
            {"ordinal": place, "seq": int(entry.item_id[1:])}
            if entry.is_message
            else {"ordinal": place, "summary": labels[entry.item_id]}
            for place, entry in enumerate(store.context(CONVERSATION))
        ],
        "context_tokens": window.tokens,
        "summarizer_calls": [
            {
                "aggressive": call.is_aggressive,
                "is_condensed": call.depth > 0,
                "depth": call.depth or None,
                "previous_summary_chars": units(call.previous or ""),
                "text_chars": units(call.text),
                "text_sha256": digest(call.text),
            }
            for call in stub.calls
        ],
    }


def shown(summary: Summary, labels: dict[str, str]) -> dict[str, Any]:
    sources = (
        {"source_message_seqs": [int(one[1:]) for one in summary.source_ids]}
        if summary.kind == "leaf"
        else {"source_summaries": [labels[one] for one in summary.source_ids]}
    )
    names = "kind depth token_count descendant_count descendant_token_count source_message_token_count"
    return {
        "label": labels[summary.summary_id],
        **fields_of(summary, names),
        **content_of(summary.content),
        "earliest_at": summary.earliest_at and format_instant(summary.earliest_at),
        "latest_at": summary.latest_at and format_instant(summary.latest_at),
        "file_ids": list(summary.file_ids),
        **sources,
    }


def content_of(text: str) -> dict[str, Any]:
    size = units(text)
    return {"content_chars": size, "content_sha256": digest(text), **({"content": text} if size <= 320 else {})}


def cut_tail(text: str, count: int) -> str:
    return text.encode("utf-16-le", "surrogatepass")[-2 * count :].decode("utf-16-le", "surrogatepass")
