"""Summaries of a store that do harm, found and made again of what they stand for.

Source: lossless-claw 0.6.3, `doctor apply`, which makes those again that were cut, one conversation at a time. There
the totals of the summaries above, and one of the full-text tables, stay as they were.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from lcm.compaction.lossless.planning import LosslessSettings
from lcm.compaction.lossless.source_text import source_of_messages, source_of_summaries
from lcm.compaction.quality import SummaryHarm, rules_found, rules_of_summaries, summary_harm
from lcm.compaction.summarizer.chain import requested_tokens
from lcm.errors import StoreError
from lcm.javascript import trim
from lcm.records.summary import Summary, SummaryRequest
from lcm.store.doctor import mark_of, recompute_totals
from lcm.store.store import Store


class HarmfulSummary(NamedTuple):
    """A summary, what is wrong with it, and what it should have been made of."""

    summary: Summary
    harm: SummaryHarm
    source: str
    source_tokens: int
    """That its sources cost in the context."""
    rules: tuple[str, ...]
    previous: str | None
    """The summary of its depth before it."""


class Resummarised(NamedTuple):
    """What became of harmful summaries: ids, in the order in which they were looked at."""

    made: tuple[str, ...] = ()
    """Made again, and no longer harmful, or less so."""
    left: tuple[str, ...] = ()
    """The summarizer had nothing better: they stay as they were."""


def harmful_summaries(
    store: Store, depth: int | None = None, instead: Mapping[str, Summary] | None = None
) -> list[HarmfulSummary]:
    """Find the summaries that do harm, shallowest first, each conversation's in the order of making.

    Args:
        store: to read.
        depth: of those looked at; None = all.
        instead: summaries by id that count in the place of the stored ones.
    """
    known = [(instead or {}).get(summary.summary_id, summary) for summary in store.summaries()]
    by_id = {summary.summary_id: summary for summary in known}
    last: dict[tuple[str, int], str] = {}
    found: list[HarmfulSummary] = []
    for summary in known:
        previous = last.get((summary.conversation_id, summary.depth))
        last[summary.conversation_id, summary.depth] = summary.content
        if depth is None or summary.depth == depth:
            judged = _judged(store, summary, by_id, previous)
            found += [judged] if judged.harm else []
    return sorted(found, key=lambda one: one.summary.depth)


def _judged(store: Store, summary: Summary, by_id: dict[str, Summary], previous: str | None) -> HarmfulSummary:
    if summary.kind == "leaf":
        by_message = store.messages_by_id(summary.source_ids)
        messages = [by_message[message_id] for message_id in summary.source_ids]
        source, tokens = source_of_messages(messages, "corrected", "UTC"), summary.source_message_token_count
        rules = tuple(dict.fromkeys(rules_found(messages)))
    else:
        below = [by_id[source_id] for source_id in summary.source_ids if source_id in by_id]
        source, tokens = source_of_summaries(below, "corrected", "UTC"), sum(one.token_count for one in below)
        rules = tuple(rules_of_summaries([one.content for one in below]))
    harm = summary_harm(summary.content, source.text, rules, summary.token_count, tokens)
    is_known_cut = summary.method == "truncate" or mark_of(summary.content) is not None
    harm = harm._replace(is_cut=harm.is_cut or is_known_cut)
    return HarmfulSummary(summary, harm, source.text, tokens, rules, previous)


def resummarise(store: Store, settings: LosslessSettings, *, incidents: Counter[str]) -> Resummarised:
    """Ask the summarizer once for each harmful summary, leaves before what is condensed of them, and write all that do
    less harm in one transaction; full-text tables, documents and totals follow.

    No transaction is open while the summarizer works.

    Args:
        store: whose summaries.
        settings: the summarizer, and the lengths that it is asked for.
        incidents: counts what the summarizer survives.
    Raises:
        StoreError: if another writer has changed a summary meanwhile: nothing is written.
    """
    made: dict[str, Summary] = {}
    left: list[str] = []
    before: dict[str, Summary] = {}
    for depth in sorted({summary.depth for summary in store.summaries()}):
        harmful = harmful_summaries(store, depth, made)
        before |= {one.summary.summary_id: one.summary for one in harmful}
        requests = [_request(one, settings) for one in harmful]
        results = settings.summarizer.summarize(requests, incidents=incidents) if requests else []
        for one, result in zip(harmful, results, strict=True):
            text = "" if result.failure else trim(result.text)
            tokens = max(1, settings.token_estimator.count([text])[0])
            harm = summary_harm(text, one.source, one.rules, tokens, one.source_tokens)
            if text and _is_less(harm, one.harm):
                made[one.summary.summary_id] = replace(
                    one.summary, content=text, token_count=tokens, model=result.model, level="normal",
                    method=result.method, confidence=result.confidence,
                )  # fmt: skip
            else:
                left.append(one.summary.summary_id)
    if made:
        _write(store, list(made.values()), before)
    return Resummarised(tuple(made), tuple(left))


def _request(one: HarmfulSummary, settings: LosslessSettings) -> SummaryRequest:
    size, depth = settings.token_estimator.count([one.source])[0], one.summary.depth
    target = requested_tokens(size, depth, False, settings.leaf_target_tokens, settings.condensed_target_tokens)
    return SummaryRequest(one.source, min(target, max(1, (one.source_tokens or size) - 1)), depth, one.previous)


def _is_less(harm: SummaryHarm, before: SummaryHarm) -> bool:
    """Whether one does less harm: nothing new is wrong, and something is right now, or fewer rules are lost."""
    old = (before.is_no_smaller, before.is_cut, len(before.lost_rules))
    new = (harm.is_no_smaller, harm.is_cut, len(harm.lost_rules))
    return new != old and all(one <= other for one, other in zip(new, old, strict=True))


def _write(store: Store, made: Sequence[Summary], before: dict[str, Summary]) -> None:
    with store.writing() as connection:
        for summary in made:
            changed = connection.execute(
                """
                UPDATE summaries SET content = ?, token_count = ?, model = ?, level = ?, method = ?, confidence = ?
                WHERE summary_id = ? AND content = ?
                """,
                (
                    summary.content, summary.token_count, summary.model, summary.level, summary.method,
                    summary.confidence, summary.summary_id, before[summary.summary_id].content,
                ),
            ).rowcount  # fmt: skip
            if changed != 1:
                raise StoreError(f"summary {summary.summary_id!r} is no longer what was to be made again; try again")
            connection.execute(
                "UPDATE documents SET text = ?, tokens = ? WHERE document_id = ?",
                (summary.content, summary.token_count, summary.summary_id),
            )
        recompute_totals(connection)
