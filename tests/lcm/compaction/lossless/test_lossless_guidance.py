"""What guidance protects stays in the context of a lossless compaction, word for word."""

import pytest

from lcm.records.rules import Rules
from tests.lcm.compaction.contexts import Marked, compacted, conversation, head, lossless, shown

TOLD = [0, 5, 6, 13]
WORDS = [f"{'Never' if i in TOLD else 'Today'} we speak of matter {i} at some length" + " now" * 20 for i in range(16)]


@pytest.mark.parametrize("rules", ["corrected", "original"])
def test_rules_stay_where_they_stand_and_part_the_messages_around_them(rules: Rules) -> None:
    store, summarizer = conversation(WORDS), head(20)
    settings = {"fresh_tail_count": 2, "min_leaf_tokens": 0, "leaf_min_fanout": 9, "rules": rules}
    folding = lossless(summarizer, guidance=Marked("Never"), **settings)
    assert compacted(store, folding, is_forced=True).is_compacted
    assert shown(store) == ["c-m1", "summary", "c-m6", "c-m7", "summary", "c-m14", "c-m15", "c-m16"]
    assert not any("Never" in request.text for request in summarizer.requests)
    with store.reading() as connection:
        kept = connection.execute("SELECT text FROM guidance_shards ORDER BY message_id").fetchall()
    assert [text for (text,) in kept] == [WORDS[i] for i in TOLD]
    assert not compacted(store, folding, is_forced=True).is_compacted
