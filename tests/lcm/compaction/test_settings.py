"""Settings as the original reads them."""

from lcm.compaction.settings import resolved


def test_fractions_are_rounded_down_and_what_is_not_above_zero_is_the_default() -> None:
    assert resolved({"leaf_chunk_tokens": 12.9, "leaf_min_fanout": 0, "condensed_min_fanout": -1}) == {
        "leaf_chunk_tokens": 12,
        "leaf_min_fanout": 8,
        "condensed_min_fanout": 4,
    }
    assert resolved({"leaf_min_fanout": 1, "condensed_min_fanout": 1.9}) == {
        "leaf_min_fanout": 1,
        "condensed_min_fanout": 1,
    }
    assert resolved({"leaf_chunk_tokens": float("nan"), "condensed_min_fanout_hard": 0}) == {
        "leaf_chunk_tokens": 20000,
        "condensed_min_fanout_hard": 2,
    }


def test_no_tail_and_no_depth_are_zero_and_a_negative_depth_has_no_limit() -> None:
    assert resolved({"fresh_tail_count": -1, "incremental_max_depth": -7}) == {
        "fresh_tail_count": 0,
        "incremental_max_depth": -1,
    }
    assert resolved({"fresh_tail_count": 3.9, "incremental_max_depth": 2.5}) == {
        "fresh_tail_count": 3,
        "incremental_max_depth": 2,
    }
