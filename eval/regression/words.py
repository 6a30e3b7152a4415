"""The words of the documents that a gate reports, as the dataset has them."""

from collections.abc import Mapping
from dataclasses import replace

from eval.comparison.changed_query import ChangedQuery, RankedDocument
from eval.dataset.dataset import Dataset
from eval.regression.gate import GatedComparison
from lcm.encoding import well_formed
from lcm.redaction import redacted
from lcm.transcript.passages import utterance

_BETWEEN = " / "


def with_words(comparison: GatedComparison, dataset: Dataset) -> GatedComparison:
    """The same, each document of the queries that changed with what its messages say.

    Args:
        dataset: that of both sides.
    """
    said = {
        (transcript.workspace_id, message.message_id): well_formed(redacted(utterance(message)))
        for transcript in dataset.transcripts
        for message in transcript.messages
    }
    worse, better = (tuple(_spoken(query, said) for query in told) for told in (comparison.worse, comparison.better))
    return replace(comparison, worse=worse, better=better)


def _spoken(query: ChangedQuery, said: Mapping[tuple[str, str], str]) -> ChangedQuery:
    baseline, candidate = (
        None if ranking is None else tuple(_worded(document, said) for document in ranking)
        for ranking in (query.baseline, query.candidate)
    )
    return replace(query, baseline=baseline, candidate=candidate)


def _worded(document: RankedDocument, said: Mapping[tuple[str, str], str]) -> RankedDocument:
    told = (said.get((document.workspace_id, message)) for message in document.message_ids)
    return replace(document, text=_BETWEEN.join(filter(None, told)) or None)
