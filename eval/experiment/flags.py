"""What a reader of an evaluation's numbers must know, a line each."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

import polars as pl

from eval.dataset.dataset import Dataset
from eval.external.ranking import External
from lcm.compaction.lossless.lossless import HOT_TOKENS, SWEEPS, TAIL_GROWTH
from lcm.memory.conversation_compaction import WAITS
from lcm.memory.system import System
from lcm.protocols.contract import NOTHING_SAID, contract_of
from lcm.protocols.models import TakesRecorded
from lcm.records.summary import ContextReading
from lcm.retrieval.source.indexes import OF_USE
from lcm.transcript.message_tokens import replies


def flags_of_run(
    answers: pl.DataFrame, documents: pl.DataFrame, system: System, queries: int, widths: Collection[int]
) -> tuple[str, ...]:
    """What the system's answers and documents warn of.

    Args:
        answers: the system's rows of `RUN_SCHEMA`.
        documents: of every workspace.
        queries: how many were asked.
        widths: of the vector index, where it has several.
    """
    return (*_unanswered(answers, queries), *_of_documents(documents, system), *_of_index_tiers(answers, widths))


def flags_of_haystacks(dataset: Dataset) -> tuple[str, ...]:
    """Return what a reader must know of the haystacks.

    That is what the replay added to what the loader gave, how much of it a query sees, and that no message has a time.
    """
    told = () if dataset.layout is None else tuple(dataset.layout.told)
    said = [message.created_at for transcript in dataset.transcripts for message in transcript.messages]
    if dataset.queries and said and not any(said):
        told += ("no message says when it was said: decay and recency have nothing to work on",)
    return told


def flags_of_pools(pooled: int, system: System) -> tuple[str, ...]:
    """How many queries were answered from pools, since they saw much.

    Args:
        pooled: queries.
    """
    if not pooled:
        return ()
    most = getattr(getattr(system.ranking, "source", None), "whole_documents", 0)
    seen = f"saw more than {most:,} documents (ranking.source.whole_documents)"
    return (f"{pooled:,} queries {seen}: evidence is of a pool of these, and of what stands around it",)


def flags_of_contexts(contexts: Sequence[ContextReading]) -> tuple[str, ...]:
    """How many contexts were compacted, and how near the largest came to what triggers it; empty where compaction is
    off.

    Args:
        contexts: of every workspace; what one context was read by comes in the order of looking.
    """
    if not contexts:
        return ()
    compacted = contexts_compacted(contexts)
    told = []
    for what in dict.fromkeys(one.what for one in contexts):
        most = max((one for one in contexts if one.what == what), key=lambda one: one.tokens)
        of = "" if most.threshold is None else f" of the {most.threshold:,}"
        told.append(f"{most.tokens:,}{of} {what}")
    left = {one.conversation_id for one in contexts if _is_reached(one) and not one.is_compacted}
    why = f"; {len(left)} reached that, and all that may be folded there gave nothing shorter" if left else ""
    return (
        f"{sum(compacted.values())} of {len(compacted)} contexts compacted; the largest had {', and '.join(told)}{why}",
        *_inverted_thresholds(contexts),
    )


def flags_of_usage(system: System, dataset: Dataset) -> Iterator[str]:
    """Yield a line where `token_estimator=recorded` is chosen and no session records its usage."""
    if not isinstance(system.token_estimator, TakesRecorded):
        return
    if not any(replies(one.messages, one.events) for one in dataset.transcripts):
        yield "token_estimator=recorded: no session records what its answers took, so that all tokens are estimated"


def _inverted_thresholds(contexts: Sequence[ContextReading]) -> Iterator[str]:
    """That turns wait before there is anything to wait for."""
    hard = max((one.threshold or 0 for one in contexts if one.what == WAITS), default=0)
    soft = max((one.threshold or 0 for one in contexts if one.what == SWEEPS), default=0)
    if 0 < hard < soft:
        yield (
            f"a turn waits from {hard:,} tokens on (scheduling.hard_threshold), before compaction is due at {soft:,}: "
            "nothing is left to the background"
        )


def flags_of_parts(
    system: System,
    acted: Collection[str],
    answers: pl.DataFrame | None,
    documents: pl.DataFrame,
    decisions: pl.DataFrame,
    contexts: Sequence[ContextReading] = (),
    is_per_turn: bool = False,
) -> tuple[str, ...]:
    """Which parts had a place and found nothing to do in it, in one line.

    Args:
        system: what was evaluated.
        acted: the slots of its ranking that changed an answer; `session`, where its rules changed what was taken in.
        answers: rows of `RANKED_SCHEMA`; None where nothing was asked.
        documents: of every workspace.
        decisions: what became of every candidate that was judged.
        contexts: as of `flags_of_contexts`.
        is_per_turn: whether compaction looked after every turn.
    """
    slots: Sequence[str] = getattr(system.ranking, "filled_slots", list)()
    if (
        contract_of(system.compaction).is_off or contract_of(system.summary_documents).is_off
    ):  # the configuration tells that it has no work
        slots = [slot for slot in slots if slot != "summary_expansion"]
    idle: list[str] = []
    if answers is not None and answers["is_recovered"].all() and not isinstance(system.ranking, External):
        unseen = ", ".join(_through(system, slots, answers, documents))
        idle.append(f"ranking, and with it {unseen} (no answer holds what it found)")
        slots = [slot for slot in slots if slot == "recovery"]
    elif system.reinforcement.recalled:
        readers = getattr(system.ranking, "readers", lambda _: [None])(OF_USE)
        if readers and not any(reader in acted or reader not in slots for reader in readers):
            idle.append("reinforcement (what reads how often a document was used changed no answer)")
    idle += [f"{slot} ({_CHANGED_NO_ANSWER.get(slot, 'no answer changed')})" for slot in slots if slot not in acted]
    if contexts and not any(contexts_compacted(contexts).values()):
        through = ["summarizer", *([] if contract_of(system.summary_documents).is_off else ["summary_documents"])]
        through += ["replay.per_turn"] if is_per_turn else []
        idle.append(f"compaction, and with it {', '.join(through)} (no context was folded)")
    guidance = getattr(system.compaction, "guidance", None)
    if guidance is not None and not contract_of(guidance).is_off and documents.filter(kind="guidance").is_empty():
        idle.append("guidance (no message that was folded states a rule)")
    idle += _idle_in_contexts(contexts)
    actions = set(decisions["action"].unique())
    if not contract_of(system.admission).is_off and "reject" not in actions and documents["is_durable"].all():
        idle.append("admission (nothing was turned away)")
    if not contract_of(system.deduplication).is_off and actions <= {"create", "reject"}:
        idle.append("deduplication (no two said the same)")
    if _has_idle_vectors(system, slots, idle):
        idle.append("embedder (nothing of the system that compares its vectors had work)")
    if contract_of(system.session).idle_because is None and "session" not in acted:
        idle.append("session (no text is large, nothing left out or hidden; the rest is asked in live sessions alone)")
    return (f"parts that found nothing to do: {', '.join(idle)}",) if idle else ()


_KEPT_NOTHING = {
    TAIL_GROWTH: "fresh tail by novelty (it was never longer than its count: compaction.fresh_tail_novelty)",
    HOT_TOKENS: "hot spots (nothing that later messages come back to fits: compaction.hot_spot_share, hot_spot_heat)",
}


def _idle_in_contexts(contexts: Sequence[ContextReading]) -> Iterator[str]:
    """What may keep messages from being folded and kept none, in all contexts that were compacted."""
    compacted = [one for one in contexts if one.is_compacted]
    for what, told in _KEPT_NOTHING.items():
        readings = [one.tokens for one in compacted if one.what == what]
        if readings and not any(readings):
            yield told


def _has_idle_vectors(system: System, slots: Collection[str], idle: Sequence[str]) -> bool:
    """Whether all that would compare vectors of the system found nothing to do, and there is some.

    Where nothing would, the configuration tells.
    """
    ranking = contract_of(system.ranking)
    if ranking is NOTHING_SAID or ranking.compares_vectors:
        return False
    is_off = {
        "admission": contract_of(system.admission).is_off,
        "deduplication": contract_of(system.deduplication).is_off,
        "compaction": contract_of(system.compaction).is_off,
        "recovery": "recovery" not in slots,
    }
    comparing = {name for name, is_idle in is_off.items() if not is_idle}
    return bool(comparing) and comparing <= {re.split(r"\W", told, maxsplit=1)[0] for told in idle}


def _through(system: System, slots: Sequence[str], answers: pl.DataFrame, documents: pl.DataFrame) -> Iterator[str]:
    """What works through the ranking alone: of what a recovery asks besides only where it found nothing either."""
    stages: Mapping[str, object] = getattr(system.ranking, "stages", {})
    weighed = (getattr(stage, "recency", None) for stage in stages.values())
    decays = [decay for decay in weighed if decay is not None and not contract_of(decay).is_off]
    yield from ("source", "fusion", "text_index")
    yield from dict.fromkeys([slot for slot in slots if slot != "recovery"] + ["decay" for _ in decays])
    if system.reinforcement.recalled:
        yield "reinforcement"
    if answers.is_empty():
        yield from ("vector_index", "embedder")
    summaries = documents.filter(kind="summary")
    if (
        not contract_of(system.summary_documents).is_off
        and answers.join(summaries, on="document_id", how="semi").is_empty()
    ):
        yield "summary_documents"


_CHANGED_NO_ANSWER = {
    "recovery": "no answer looked failed",
    "summary_expansion": "no answer held a summary that is sure of itself and covers more than the answer holds",
}


def contexts_compacted(contexts: Sequence[ContextReading]) -> dict[str, bool]:
    """Conversation -> whether its context was compacted, of all that compaction looked at."""
    return {one.conversation_id: one.is_compacted for one in contexts}


def _is_reached(reading: ContextReading) -> bool:
    return reading.threshold is not None and reading.tokens > reading.threshold


def _unanswered(answers: pl.DataFrame, queries: int) -> tuple[str, ...]:
    """Minima and filters may leave nothing: recall tells of that only with what else went wrong."""
    empty = queries - answers["query_id"].n_unique()
    return (f"{empty} of {queries} queries were answered with no document",) if empty else ()


def _of_documents(documents: pl.DataFrame, system: System) -> tuple[str, ...]:
    """What a reader must know of which documents stand for what, and who finds them."""
    flags = []
    if summaries := documents.filter(kind="summary").height:
        flags.append(
            f"{summaries:,} of {len(documents):,} documents are summaries: finding one counts for every message that "
            "it stands for, so recall grows with their size; nDCG and tokens@k tell what that costs"
        )
    if hidden := documents.filter(~pl.col("is_durable")).height:
        flags.append(
            f"{hidden:,} of {len(documents):,} documents are found from their own session alone, by every arm: "
            "admission did not promote them (admission.threshold, admission.promotion, admission.roles)"
        )
    folds, finds = (not contract_of(part).is_off for part in (system.compaction, system.summary_documents))
    if system.assembly.shows_documents and folds and not finds:
        flags.append("this assembly shows summaries where ranking finds them: summary_documents=searchable makes it so")
    if finds and not folds:
        flags.append("summary_documents has nothing to find: compaction=none makes no summary")
    return tuple(flags)


def _of_index_tiers(answers: pl.DataFrame, widths: Collection[int]) -> tuple[str, ...]:
    """Small haystacks are answered by the full width at once, and so is what no lower width is sure of at last."""
    answered = answers["index_tier"].drop_nulls()
    if len(widths) < 2 or answered.is_empty() or answered.min() != max(widths):
        return ()
    told = f"no query was answered by an index tier narrower than {max(widths)}"
    return (f"{told} (vector_index.tiers_from, candidates_share, exit_thresholds)",)
