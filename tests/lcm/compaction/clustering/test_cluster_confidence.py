"""How sure a cluster is of its summary, and what becomes of one that is far from its turns."""

import json
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

from lcm.compaction.summarizer.centroid import Centroid
from lcm.compaction.summarizer.routed import Routed
from lcm.compaction.summary_quality import summary_quality
from lcm.records.summary import SummaryRequest, SummaryResult
from tests.lcm.compaction.clustering.test_clustering import EMBEDDER, TALK, clustering, compacted
from tests.lcm.compaction.contexts import conversation


def test_both_confidences_are_noted_and_the_chosen_one_is_the_summarys() -> None:
    for rules, key in (("corrected", "backend_confidence"), ("1.4.4", "embedding_confidence")):
        store = conversation(TALK[:24])
        compacted(clustering(rules=rules), store)
        [summary] = store.summaries()
        [detail] = [json.loads(row[1]) for row in store.compactions().select("event", "detail").rows() if row[1]]
        assert summary.confidence == detail["confidence"] == detail[key]
        assert detail["embedding_confidence"] == pytest.approx((detail["align"] + detail["cover"]) / 2)


def test_an_abstractive_summary_far_from_its_turns_is_made_again_from_their_words() -> None:
    far = SummaryResult("zebra quartz", 0.9, "onnx-t5", tokens=2)

    class Far:
        def summarize(self, requests: Sequence[SummaryRequest], *, incidents: Counter[str]) -> list[SummaryResult]:
            return [far] * len(requests)

    routed = Routed(Centroid(EMBEDDER), Far(), threshold=0.0)
    methods = {}
    for rules in ("original", "1.4.4"):
        store = conversation(TALK[:24])
        compacted(clustering(routed, rules=rules), store)
        [summary] = store.summaries()
        methods[rules] = summary.method
        [detail] = [json.loads(row[1]) for row in store.compactions().select("event", "detail").rows() if row[1]]
        assert detail["backend_confidence"] == 0.9, "of the abstractive one, though it was rejected"
        assert detail["rejected_method"] == {"original": None, "1.4.4": "onnx-t5"}[rules]
    assert methods == {"original": "onnx-t5", "1.4.4": "extractive"}


def test_quality_is_the_mean_of_align_and_cover() -> None:
    turns, summary = np.array([[1, 0], [0, 1], [-1, 0]], np.float32), np.array([1, 0], np.float32)
    quality = summary_quality(turns, summary)
    assert quality == pytest.approx((0.0, (1 + 0 + 0) / 3))
    assert quality.confidence == pytest.approx((0 + 1 / 3) / 2)
    assert summary_quality(turns, np.zeros(2, np.float32)).confidence == 0


def test_the_turns_nearest_to_the_middle_are_taken_in_order() -> None:
    rows = np.array([[0, 1], [1, 0], [1, 0.1], [1, 0.2]], np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    assert list(Centroid(EMBEDDER, density=0.5).chosen(rows)) == [2, 3]  # ceil(4 * 0.5), mean at about (0.75, 0.32)
    assert list(Centroid(EMBEDDER).chosen(rows, 1.5)) == [2, 3]  # no share: as set, ceil(4 * 0.4)
