"""Which documents hold the words of the evidence, and how much of each must be read to have them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from eval.dataset.dataset import Dataset
from eval.measures.measure import EVIDENCE_TEXT_SCHEMA
from eval.measures.shown_text import ShownText
from eval.questions.quotation import end_of, folded
from lcm.records.conversation import Message
from lcm.records.query import Query
from lcm.transcript.passages import passages

_RUN = 48
"""Letters of a message that are looked for together, where a document does not hold all of it."""


def evidence_text(documents: pl.DataFrame, queries: Sequence[Query], dataset: Dataset) -> pl.DataFrame:
    """Rows of `EVIDENCE_TEXT_SCHEMA` for what is judged relevant to queries of one workspace.

    Args:
        documents: document_id, text, source_message_ids, kind: of every document of the workspace.
    """
    asked = pl.col("query_id").is_in([query.query_id for query in queries])
    judgements = [frame for frame in (dataset.qrels, dataset.repaired_qrels) if frame is not None]
    judged = pl.concat([frame.filter(asked, pl.col("relevance") > 0).select("message_id") for frame in judgements])
    quotations = dataset.quotations.filter(asked)["quotation"].unique().sort()
    workspaces = {query.workspace_id for query in queries}
    messages = {
        message.message_id: message
        for transcript in dataset.transcripts
        if transcript.workspace_id in workspaces
        for message in transcript.messages
    }
    by_message = (
        documents.select("document_id", message_id="source_message_ids")
        .explode("message_id")
        .filter(pl.col("message_id").is_in(list(messages)))
        .join(judged.unique(), on="message_id", how="semi", maintain_order="left")
        .group_by("message_id", maintain_order=True)
        .agg("document_id")
    )
    if quotations.is_empty():  # else any document may stand for a near duplicate that is left out in its favour
        documents = documents.join(by_message.explode("document_id"), on="document_id", how="semi")
    found = documents.select("document_id", "text", "source_message_ids", "kind")
    shown = {
        document_id: _Shown(
            document_id,
            ShownText(text),
            [messages[one] for one in sources if one in messages],
            kind == "summary",
        )
        for document_id, text, sources, kind in found.iter_rows()
    }
    rows = [
        (message_id, "", *row)
        for message_id, ids in by_message.iter_rows()
        for row in _of_message(messages[message_id], [shown[one] for one in ids])
    ]
    rows += [
        ("", quotation, 0, 1, one.document_id, tokens)
        for quotation in quotations
        for one in shown.values()
        if (tokens := one.text.tokens_to(quotation)) is not None
    ]
    return pl.DataFrame(rows, schema=EVIDENCE_TEXT_SCHEMA, orient="row")


@dataclass(frozen=True, slots=True)
class _Shown:
    """A document, and what it shows."""

    document_id: str
    text: ShownText
    sources: Sequence[Message]
    is_summary: bool

    def ends(self, message: Message) -> dict[tuple[int, int], int]:
        """(Passage, run of letters) of a message that stand there -> where they end, in folded letters; of a passage
        that stands there whole, where that ends. Empty of a summary, whatever it repeats."""
        found: dict[tuple[int, int], int] = {}
        for number, passage in enumerate([] if self.is_summary else passages(message)):
            words = folded(passage.text)
            end = end_of(words, self.text.folded) if words else None
            last = max(len(words) // _RUN, 1) - 1
            for place in range(last + 1):
                run = words[_RUN * place : None if place == last else _RUN * (place + 1)].strip()
                if end is not None:
                    found[number, place] = end
                elif last and (at := self.text.folded.find(run)) >= 0:
                    found[number, place] = at + len(run)
        return found

    def retells(self) -> bool:
        """Whether it holds no words of any of its messages, but tells of them in others."""
        return not any(self.ends(message) for message in self.sources)


def _of_message(message: Message, shown: Sequence[_Shown]) -> Iterator[tuple[int, int, str, int]]:
    """Rows part, parts, document_id, tokens.

    What documents hold of a message is all of it: what an extraction drops is not asked for. Runs of letters that the
    same documents hold are one part. A document that tells of its messages in other words says all parts once it is
    read whole; so does each that stands for a message of which none holds a word.
    """
    ends = [one.ends(message) for one in shown]
    held: dict[tuple[int, ...], list[tuple[int, int]]] = {}
    """Places of documents -> the runs that just these hold."""
    for run in sorted({run for found in ends for run in found}):
        held.setdefault(tuple(place for place, found in enumerate(ends) if run in found), []).append(run)
    parts = max(len(held), 1)
    for part, (places, runs) in enumerate(held.items()):
        for place in places:
            one = shown[place]
            yield part, parts, one.document_id, one.text.tokens(max(ends[place][run] for run in runs))
    for one, found in zip(shown, ends, strict=True):
        if not found and (not held or one.retells()):
            yield from ((part, parts, one.document_id, one.text.tokens()) for part in range(parts))
