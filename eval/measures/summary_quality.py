"""Summaries of whole conversations beside their reference summaries: ROUGE, and what they cost.

The system's summarizer is given a conversation as one text. Beside it stand LEAD-2 and LEAD-3: the first two or three
messages. References that answer a query are of another task and left out.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from eval.dataset.dataset import Dataset
from eval.measures.rouge import ROUGE, rouge
from eval.significance import bootstrap_means
from lcm.protocols import Summarizer, TokenEstimator
from lcm.records import Message, SummaryRequest

QUALITY_SCHEMA: dict[str, pl.DataType] = {
    "arm": pl.String(),
    "conversation_id": pl.String(),
    "measure": pl.String(),
    "value": pl.Float64(),
}
QUALITY_MEANS_SCHEMA: dict[str, pl.DataType] = {
    "arm": pl.String(),
    "measure": pl.String(),
    "value": pl.Float64(),
    "n": pl.Int64(),
    "low": pl.Float64(),
    "high": pl.Float64(),
}
_LEADS = (2, 3)


@dataclass(frozen=True, slots=True)
class SummaryQuality:
    """How long the summaries are to be."""

    target_tokens: int = 60
    """Asked of the summarizer, for each conversation; 0: nothing is summarised."""

    def __post_init__(self) -> None:
        if self.target_tokens < 0:
            raise ValueError(f"target_tokens must be >= 0, got {self.target_tokens}")

    def is_measured(self, dataset: Dataset) -> bool:
        """Whether the dataset has references of whole conversations, and they are asked for."""
        return self.target_tokens > 0 and dataset.references["query_id"].null_count() > 0

    def values(
        self, dataset: Dataset, summarizer: Summarizer, tokens: TokenEstimator, *, incidents: Counter[str]
    ) -> pl.DataFrame:
        """Score every conversation that has a reference: rows of `QUALITY_SCHEMA`.

        A conversation of which no summary could be made scores 0, as an empty text does.

        Raises:
            LcmError: if no summary could be made at all.
        """
        references: dict[str, list[str]] = {}
        of_whole = dataset.references.filter(pl.col("query_id").is_null())
        for key, text in of_whole.select("conversation_id", "text").iter_rows():
            references.setdefault(key, []).append(text)
        told = [t for t in dataset.transcripts if t.conversation_id in references]
        requests = [SummaryRequest(_text(t.messages), self.target_tokens) for t in told]
        results = summarizer.summarize(requests, incidents=incidents)
        failures = Counter(f"no summary: {result.failure}" for result in results if result.failure is not None)
        if results and failures.total() == len(results):
            assert results[0].failure is not None
            raise results[0].failure
        incidents.update(failures)
        arms = {"system": [result.text for result in results]}
        arms |= {f"lead_{n}": [_text(t.messages[:n]) for t in told] for n in _LEADS}
        frames = [pl.DataFrame(schema=QUALITY_SCHEMA)]
        for arm, texts in arms.items():
            scored = rouge(texts, [references[t.conversation_id] for t in told]).select(ROUGE)
            frames.append(
                scored.with_columns(
                    pl.Series("tokens", tokens.count(texts), dtype=pl.Float64),
                    arm=pl.lit(arm),
                    conversation_id=pl.Series([t.conversation_id for t in told], dtype=pl.String),
                )
                .unpivot([*ROUGE, "tokens"], index=["arm", "conversation_id"], variable_name="measure")
                .select(list(QUALITY_SCHEMA))
            )
        return pl.concat(frames)

    def means(self, values: pl.DataFrame, resamples: int, confidence: float, seed: int) -> pl.DataFrame:
        """Means over conversations, with percentile bootstrap intervals: rows of `QUALITY_MEANS_SCHEMA`."""
        rows = []
        for (arm, measure), group in values.group_by(["arm", "measure"], maintain_order=True):
            column = group["value"].to_numpy().reshape(-1, 1)
            low, high = bootstrap_means(column, resamples, confidence, seed)
            rows.append((arm, measure, float(np.mean(column)), len(column), float(low[0]), float(high[0])))
        return pl.DataFrame(rows, schema=QUALITY_MEANS_SCHEMA, orient="row")


def _text(messages: Sequence[Message]) -> str:
    """The words of a conversation, a message a line, each after its speaker where there is more than a role."""
    return "\n".join(f"{m.author}: {m.content}" if m.author else m.content for m in messages)
