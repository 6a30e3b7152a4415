"""The preset of lossless-claw 0.15 against what the plugin itself makes of a published conversation."""

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest

from lcm.compaction.window import StoredWindow
from lcm.compaction.work import run
from lcm.store.store import Store
from lcm.transcript.rendering import rendered
from pipelines.config.building import build
from pipelines.config.composition import composed
from tests.lcm.compaction.contexts import NOW

SMALL = (
    "compaction.leaf_chunk_tokens=2000", "compaction.fresh_tail_count=16", "compaction.leaf_target_tokens=400",
    "compaction.condensed_target_tokens=400",
)  # fmt: skip


if os.environ.get("LCM_DATASETS_DIR"):

    @pytest.mark.slow
    @pytest.mark.parametrize(("settings", "after", "depths"), [(SMALL, 1982, [0] * 7 + [1] * 2), ((), 2838, [0])])
    def test_a_conversation_of_locomo_has_as_many_tokens_as_with_the_plugin(
        settings: Sequence[str], after: int, depths: list[int]
    ) -> None:
        chosen = ["system=lossless_claw_0_15", "summarizer=truncate_0_15", "compaction.budget_tokens=8000", *settings]
        configuration = composed([*chosen, "dataset=locomo", "dataset.only=[conv-30]"])
        (transcript,) = build(configuration, "dataset").load().transcripts
        compaction = build(configuration, "compaction")
        store = Store(opened_at=NOW)
        # A plugin is handed the words alone: what they say of a picture, without the picture.
        said = [replace(message, parts=(), envelope={}) for message in transcript.messages]
        store.append("c", said, compaction.token_estimator, rendered)
        work = compaction.compact(StoredWindow(store, "c"), NOW, incidents=Counter())
        report = run(work, compaction.summarizer, incidents=Counter())
        assert (report.tokens_before, report.tokens_after) == (13515, after)
        assert [summary.depth for summary in store.summaries()] == depths
