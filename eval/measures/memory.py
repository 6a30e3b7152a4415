"""What a memory holds that has ingested everything: folded conversations, their summaries, and documents that faded.

ROUGE is by the library `rouge_score`, the whole text as one sentence, without stemming and with all stop words.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Protocol, runtime_checkable

import polars as pl

from eval.dataset.dataset import Dataset
from eval.measures.means import Means
from eval.measures.measure import REPORT_TOKENS, Measure, MemoryReading, SystemReading
from eval.measures.names import SYSTEM_ARM
from lcm.checks import check_range
from lcm.memory.system import System
from lcm.protocols.contract import contract_of
from lcm.protocols.models import TokenEstimator
from lcm.protocols.retrieval import Columns, Decay, Numbers, Truths
from lcm.records.conversation import Message
from lcm.records.summary import LEVELS, Summary, SummaryRequest
from lcm.store.store import Store
from lcm.store.summaries import SUMMARY_SCHEMA, messages_beneath

CONVERSATION_SCHEMA: dict[str, pl.DataType] = {
    "conversation_id": pl.String(),
    "messages": pl.Int64(),
    "context_items": pl.Int64(),
    "raw_tokens": pl.Int64(),
    "context_tokens": pl.Int64(),
    "ratio": pl.Float64(),
    "tokens_saved": pl.Int64(),
    "summaries": pl.Int64(),
    "summaries_by_depth": pl.List(pl.Int64()),
    "depth": pl.Int64(),
    "fanout": pl.Float64(),
    **{level: pl.Int64() for level in LEVELS},
    "confidence": pl.Float64(),
    "retired": pl.Int64(),
    "recoverability": pl.Float64(),
}
QUALITY_SCHEMA = {**dict.fromkeys(("arm", "conversation_id", "measure"), pl.String()), "value": pl.Float64()}
_LEADS = (2, 3)
STALENESS_SCHEMA = {"document_id": pl.String(), "strength": pl.Float64(), "is_stale": pl.Boolean()}
ROUGE = ("rouge1", "rouge2", "rougeL")
ROUGE_MEASURES = (*ROUGE, *(f"{name}_recall" for name in ROUGE))
_CJK = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
_WORD = re.compile(rf"[{_CJK}]|(?:(?![{_CJK}])[^\W_])+")


@dataclass(frozen=True, slots=True)
class Compression(Measure):
    """What compaction did to conversations: how much smaller their contexts are, and whether anything was lost.

    Tokens are those of the messages' and summaries' words and of the messages' images, by the estimator that all
    reports share.

    - `raw_tokens`: of all messages of the conversation. `context_tokens`: of what stands in its context.
    - `ratio` = raw_tokens / context_tokens: 1 where nothing was compacted. `tokens_saved` is their difference.
    - `summaries_by_depth`: how many there are of each depth, leaves first; one number each in the totals, `depth_0` and
      on.
    - `depth`: of the deepest summary, leaves 0; null without one. `fanout`: mean number of sources of a summary.
    - `recoverability`: the share of messages that expanding the context reaches; messages that a rule took out of the
      context (a new session, a heartbeat) are counted apart, as `retired`: search finds those.
    - `normal`, `aggressive`, `fallback`, `capped`: how many summaries came to be at each level of escalation.
    - `confidence`: mean over summaries, each its maker's own; makers' confidences cannot be compared with one another.
    """

    subject = "memory"

    def depends_on(self, system: System) -> list[object]:
        return []

    def rows(self, reading: MemoryReading) -> pl.DataFrame:
        return compressed(reading.memory.store, REPORT_TOKENS)

    def section(self, rows: pl.DataFrame, means: Means) -> dict[str, float]:
        """One number each for all conversations: sums, the ratio of sums, and means over summaries or messages."""
        if rows.is_empty():
            return {}
        total = rows.drop("summaries_by_depth").sum().row(0, named=True)
        lost = (1 - rows["recoverability"]) * (rows["messages"] - rows["retired"])
        found: dict[str, float] = {
            "ratio": total["raw_tokens"] / max(1, total["context_tokens"]),
            "tokens_saved": total["tokens_saved"],
            "summaries": total["summaries"],
            "recoverability": 1 - sum(lost) / max(1, total["messages"] - total["retired"]),
        }
        if total["summaries"]:
            folded = rows.filter(pl.col("summaries") > 0)
            deepest = max(folded["depth"])
            found["depth"] = deepest
            for name in ("fanout", "confidence"):
                found[name] = (folded[name] * folded["summaries"]).sum() / total["summaries"]
            found |= {level: total[level] for level in LEVELS}
            of_depth = rows["summaries_by_depth"].list
            found |= {
                f"depth_{depth}": int(of_depth.get(depth, null_on_oob=True).sum()) for depth in range(deepest + 1)
            }
        return found


def compressed(store: Store, tokens: TokenEstimator) -> pl.DataFrame:
    """Measure every conversation of a store: rows of `CONVERSATION_SCHEMA`."""
    summaries = store.summary_frame().partition_by("conversation_id", as_dict=True)
    none = pl.DataFrame(schema=SUMMARY_SCHEMA)
    rows = [
        _conversation(store, key, summaries.get((key,), none), tokens)
        for key in store.conversations()["conversation_id"]
    ]
    return pl.DataFrame(rows, schema=CONVERSATION_SCHEMA, orient="row")


def _conversation(
    store: Store, conversation_id: str, summaries: pl.DataFrame, tokens: TokenEstimator
) -> dict[str, object]:
    messages = store.message_frame(conversation_id)
    context = store.context_records(conversation_id)
    items = [item.summary_id if isinstance(item, Summary) else item.message_id for item in context]
    images, price = store.image_counts(conversation_id), tokens.image_tokens or 0
    shown = sum(tokens.count([item.content for item in context])) + price * sum(images.get(item, 0) for item in items)
    raw = sum(tokens.count(store.contents(conversation_id))) + price * sum(images.values())
    said = set(messages["message_id"])
    gone = store.retired(conversation_id)
    with store.reading() as connection:
        found = {*items, *messages_beneath(connection, items)}
        retired = ({*gone, *messages_beneath(connection, gone)} & said) - found
    lost = said - found - retired
    levels, by_depth = (Counter(summaries[name].to_list()) for name in ("level", "depth"))
    return {
        "conversation_id": conversation_id,
        "messages": len(messages),
        "context_items": len(items),
        "raw_tokens": raw,
        "context_tokens": shown,
        "ratio": raw / max(1, shown),
        "tokens_saved": raw - shown,
        "summaries": len(summaries),
        "summaries_by_depth": [by_depth[depth] for depth in range(max(by_depth, default=-1) + 1)],
        "depth": summaries["depth"].max(),
        "fanout": summaries["sources"].mean(),
        **{level: levels[level] for level in LEVELS},
        "confidence": summaries["confidence"].mean(),
        "retired": len(retired),
        "recoverability": 1 - len(lost) / max(1, len(messages) - len(retired)),
    }


def rouge_words(text: str) -> list[str]:
    """The words of a text: those of `rouge_score` where it is ASCII, whose own tokenizer drops all that is not; else
    words of any script, and each CJK character as a word."""
    return _WORD.findall(text.lower())


def rouge(texts: Sequence[str], references: Sequence[Sequence[str]]) -> pl.DataFrame:
    """Score each text against its references: `rouge1`, `rouge2`: F1 over words and over pairs of neighbouring words.
    `rougeL`: F1 over the longest common subsequence of words. `rouge1_recall` and so on: the share of the reference
    alone, whatever the length of the text. Of several references each takes the one of best F1, and the recall against
    that one: the maximum, not the jackknife of ROUGE-1.5.5.

    Args:
        references: row i holds those of texts[i], at least one.
    Returns:
        One row a text, in order; columns `ROUGE_MEASURES`, each in [0, 1]. 0 where text or reference has no words.
    Raises:
        ValueError: if a text has no reference, or there are more of the ones than of the others.
    """
    if len(texts) != len(references):
        raise ValueError(f"every text needs its references, got {len(texts)} texts and {len(references)} rows of them")
    if empty := [i for i, those in enumerate(references) if isinstance(those, str) or not those]:
        raise ValueError(f"references must be lists of at least one text, got none for the texts {empty[:5]}")
    from rouge_score.rouge_scorer import RougeScorer  # here, because importing it takes over a second

    scorer = RougeScorer(list(ROUGE), tokenizer=SimpleNamespace(tokenize=rouge_words))
    rows = []
    for text, those in zip(texts, references, strict=True):
        scores = scorer.score_multi(list(those), text)
        rows.append([*(scores[name].fmeasure for name in ROUGE), *(scores[name].recall for name in ROUGE)])
    return pl.DataFrame(rows, schema=dict.fromkeys(ROUGE_MEASURES, pl.Float64), orient="row")


@dataclass(frozen=True, slots=True)
class SummaryQuality(Measure):
    """Summaries of whole conversations beside their reference summaries: ROUGE, and what they cost.

    The system's summarizer is given a conversation as one text. Beside it stand LEAD-2 and LEAD-3: the first two or
    three messages. References that answer a query are of another task and left out.
    """

    subject = "system"

    target_tokens: int = 60
    """Asked of the summarizer, for each conversation; 0: nothing is summarised."""

    def __post_init__(self) -> None:
        check_range(self, "target_tokens", ge=0)

    def is_measured(self, system: System, dataset: Dataset) -> bool:
        """Whether the dataset has references of whole conversations, and the system makes summaries."""
        is_wanted = self.target_tokens > 0 and not contract_of(system.compaction).is_off
        return is_wanted and dataset.references["query_id"].null_count() > 0

    def rows(self, reading: SystemReading) -> pl.DataFrame:
        """Score every conversation that has a reference: rows of `QUALITY_SCHEMA`.

        A conversation of which no summary could be made scores 0, as an empty text does.

        Raises:
            LcmError: if no summary could be made at all.
        """
        system, dataset, incidents = reading.system, reading.dataset, reading.incidents
        if not self.is_measured(system, dataset):
            return pl.DataFrame(schema=QUALITY_SCHEMA)
        references: dict[str, list[str]] = {}
        of_whole = dataset.references.filter(pl.col("query_id").is_null())
        for key, text in of_whole.select("conversation_id", "text").iter_rows():
            references.setdefault(key, []).append(text)
        judged = [one for one in dataset.transcripts if one.conversation_id in references]
        requests = [SummaryRequest(_text(t.messages), self.target_tokens) for t in judged]
        results = system.compaction.summarizer.summarize(requests, incidents=incidents)
        failures = Counter(f"no summary: {result.failure}" for result in results if result.failure is not None)
        if results and failures.total() == len(results):
            assert results[0].failure is not None
            raise results[0].failure
        incidents.update(failures)
        arms = {SYSTEM_ARM: [result.text for result in results]}
        arms |= {f"lead_{n}": [_text(t.messages[:n]) for t in judged] for n in _LEADS}
        rows = []
        for arm, texts in arms.items():
            scores = rouge(texts, [references[t.conversation_id] for t in judged]).to_dict(as_series=False)
            columns = {**{name: scores[name] for name in ROUGE}, "tokens": map(float, REPORT_TOKENS.count(texts))}
            for name, values in columns.items():
                rows += [(arm, t.conversation_id, name, value) for t, value in zip(judged, values, strict=True)]
        return pl.DataFrame(rows, schema=QUALITY_SCHEMA, orient="row")


def _text(messages: Sequence[Message]) -> str:
    """The words of a conversation, a message a line, each after its speaker where there is more than a role."""
    return "\n".join(f"{m.author}: {m.content}" if m.author else m.content for m in messages)


@runtime_checkable
class KnowsStale(Protocol):
    """A decay that tells which documents have faded."""

    def strength(self, columns: Columns) -> Numbers: ...

    def is_stale(self, columns: Columns) -> Truths: ...


@dataclass(frozen=True, slots=True)
class Staleness(Measure):
    """Which documents have faded when a workspace is asked last: those whose strength, by the decay, is below its
    `stale_threshold`, weakest first.

    Used documents keep their strength: with `reinforcement=recall` those count that answers have shown by then.
    Source: memory-lancedb-pro, decay-engine, which lists its stale memories, weakest first.
    """

    subject = "memory"

    decay: Decay
    """One that knows nothing stale lists nothing, and a note says so."""

    def depends_on(self, system: System) -> list[object]:
        return []

    def rows(self, reading: MemoryReading) -> pl.DataFrame:
        if not reading.queries or not isinstance(self.decay, KnowsStale):
            return pl.DataFrame(schema=STALENESS_SCHEMA)
        asked_at = max(query.asked_at for query in reading.queries)
        standing = reading.memory.live.timeline.visible(asked_at, None)
        columns = Columns(standing.with_columns(asked_at=pl.lit(asked_at, dtype=pl.Datetime("ms", "UTC"))))
        strength, is_stale = pl.Series(self.decay.strength(columns)), pl.Series(self.decay.is_stale(columns))
        judged = standing.select("document_id", strength=strength, is_stale=is_stale)
        return judged.sort("strength", maintain_order=True).cast(pl.Schema(STALENESS_SCHEMA))

    def section(self, rows: pl.DataFrame, means: Means) -> dict[str, float]:
        stale = int(rows["is_stale"].sum())
        return {"documents": len(rows), "stale": stale, "share": stale / max(1, len(rows))}

    def notes(self, rows: pl.DataFrame, reading: SystemReading) -> Sequence[str]:
        if not isinstance(self.decay, KnowsStale):
            return ["the decay calls no document stale: choose decay=weibull, or leave measures.staleness out"]
        found = self.section(rows, Means())
        return [f"{found['stale']:,} of {found['documents']:,} documents are stale: weaker than decay.stale_threshold"]
