"""How sure a cluster is of its summary, and what becomes of one that is far from its turns."""

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from lcm.compaction.summarizer.extractive import Centroid
from lcm.compaction.summarizer.t5 import Routed
from lcm.protocols.compaction import Summarizer
from lcm.records.summary import Summary, SummaryRequest, SummaryResult
from tests.lcm.compaction.clustering.test_clustering import EMBEDDER, TALK, clustering, compacted
from tests.lcm.compaction.contexts import conversation


def folded(rules: str, summarizer: Summarizer | None = None) -> tuple[Summary, dict[str, Any]]:
    """The one summary of a conversation, and what is noted of its quality."""
    store = conversation(TALK[:24])
    compacted(clustering(summarizer, rules=rules), store)
    [summary] = store.summaries()
    [detail] = [json.loads(row[1]) for row in store.compactions().select("event", "detail").rows() if row[1]]
    return summary, detail


def test_both_confidences_are_noted_and_the_chosen_one_is_the_summarys() -> None:
    for rules, key in (("corrected", "backend_confidence"), ("1.4.4", "embedding_confidence")):
        summary, detail = folded(rules)
        assert summary.confidence == detail["confidence"] == detail[key]
        assert detail["embedding_confidence"] == pytest.approx((detail["align"] + detail["cover"]) / 2)


class Far:
    def summarize(self, requests: Sequence[SummaryRequest], *, incidents: Counter[str]) -> list[SummaryResult]:
        return [SummaryResult("zebra quartz", 0.9, "onnx-t5", tokens=2)] * len(requests)


@pytest.mark.parametrize(
    ("rules", "method", "rejected"), [("original", "onnx-t5", None), ("1.4.4", "extractive", "onnx-t5")]
)
def test_an_abstractive_summary_far_from_its_turns_is_made_again_from_their_words(rules, method, rejected):
    summary, detail = folded(rules, Routed(Centroid(EMBEDDER), Far(), threshold=0.0))
    assert (summary.method, detail["rejected_method"]) == (method, rejected)
    assert detail["backend_confidence"] == 0.9, "of the abstractive one, though it was rejected"
