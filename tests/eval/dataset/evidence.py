"""What a dataset judges, in words."""

from typing import Literal

from eval.dataset.dataset import Dataset


def evidence(dataset: Dataset, by: Literal["text", "query_id"] = "text") -> dict[str, list[str]]:
    """Question -> the words of its evidence, in the order of the judgements."""
    words = {(t.workspace_id, m.message_id): m.content for t in dataset.transcripts for m in t.messages}
    found: dict[str, list[str]] = {query.query_id: [] for query in dataset.queries}
    place = {query.query_id: query.workspace_id for query in dataset.queries}
    for query_id, message_id, _ in dataset.qrels.iter_rows():
        found[query_id].append(words[place[query_id], message_id])
    return {getattr(query, by): found[query.query_id] for query in dataset.queries}
