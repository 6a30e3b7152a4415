"""Summaries of whole conversations beside their reference summaries: ROUGE, and what they cost.

The system's summarizer is given a conversation as one text. Beside it stand LEAD-2 and LEAD-3: the first two or three
messages. References that answer a query are of another task and left out.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from eval.dataset.dataset import Dataset
from eval.measures.measure import REPORT_TOKENS, Measure, SystemReading
from eval.measures.names import SYSTEM_ARM
from eval.measures.rouge import ROUGE, rouge
from lcm.checks import check_range
from lcm.memory.system import System
from lcm.protocols.contract import contract_of
from lcm.records.conversation import Message
from lcm.records.summary import SummaryRequest

QUALITY_SCHEMA: dict[str, pl.DataType] = {
    "arm": pl.String(),
    "conversation_id": pl.String(),
    "measure": pl.String(),
    "value": pl.Float64(),
}
_LEADS = (2, 3)


@dataclass(frozen=True, slots=True)
class SummaryQuality(Measure):
    """Measures summaries of whole conversations by ROUGE against their references."""

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
        judged = [t for t in dataset.transcripts if t.conversation_id in references]
        requests = [SummaryRequest(_text(t.messages), self.target_tokens) for t in judged]
        results = system.compaction.summarizer.summarize(requests, incidents=incidents)
        failures = Counter(f"no summary: {result.failure}" for result in results if result.failure is not None)
        if results and failures.total() == len(results):
            assert results[0].failure is not None
            raise results[0].failure
        incidents.update(failures)
        arms = {SYSTEM_ARM: [result.text for result in results]}
        arms |= {f"lead_{n}": [_text(t.messages[:n]) for t in judged] for n in _LEADS}
        frames = [pl.DataFrame(schema=QUALITY_SCHEMA)]
        for arm, texts in arms.items():
            scores = rouge(texts, [references[t.conversation_id] for t in judged]).select(ROUGE)
            frames.append(
                scores.with_columns(
                    pl.Series("tokens", REPORT_TOKENS.count(texts), dtype=pl.Float64),
                    arm=pl.lit(arm),
                    conversation_id=pl.Series([t.conversation_id for t in judged], dtype=pl.String),
                )
                .unpivot([*ROUGE, "tokens"], index=["arm", "conversation_id"], variable_name="measure")
                .select(list(QUALITY_SCHEMA))
            )
        return pl.concat(frames)


def _text(messages: Sequence[Message]) -> str:
    """The words of a conversation, a message a line, each after its speaker where there is more than a role."""
    return "\n".join(f"{m.author}: {m.content}" if m.author else m.content for m in messages)
