"""What stays at hand of a talk is what is worked out anew."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from lcm.retrieval.ranking.evidence import rows_at_hand
from lcm.retrieval.ranking.evidence.growing_talk import talk_of
from lcm.retrieval.ranking.evidence.haystack import Places
from lcm.retrieval.ranking.evidence.rows_at_hand import RowsAtHand
from lcm.retrieval.ranking.evidence.vector_evidence import VectorEvidence
from lcm.retrieval.ranking.evidence.word_likeness import WordLikeness
from lcm.retrieval.ranking.vector_rows import Rows
from lcm.retrieval.source.candidates import POOLED
from tests.lcm.retrieval.ranking.test_talk import EMBEDDER, SAID, heard

PLACES = st.sets(st.integers(0, 11), min_size=1)


@given(said=SAID, pools=st.lists(PLACES, min_size=2, max_size=4))
@settings(max_examples=20, deadline=None)
def test_evidence_is_the_same_whatever_was_asked_before(said: list[tuple[str, str]], pools: list[set[int]]) -> None:
    with heard(said) as batch:
        ids = batch.documents["document_id"]
        talk = talk_of(batch)
        for stage in (VectorEvidence(EMBEDDER), WordLikeness(EMBEDDER)):
            told: list[list[pl.DataFrame]] = [[], []]
            for is_anew, frames in enumerate(told):
                for pool in pools:
                    if is_anew:
                        talk.cache.clear()
                    chosen = ids.gather(sorted({place % len(ids) for place in pool}))
                    asked = pl.DataFrame({"query_id": "q", "document_id": chosen, POOLED: True})
                    frames.append(stage(asked, batch))
            for kept, anew in zip(*told, strict=True):
                assert_frame_equal(kept, anew, check_exact=True)


@given(asked=st.lists(PLACES, max_size=6))
@settings(max_examples=30, deadline=None)
def test_a_row_is_made_once_until_there_are_too_many(asked: list[set[int]]) -> None:
    made: list[int] = []

    def make(numbers: Places) -> Rows:
        made.extend(numbers.tolist())
        return np.stack([numbers, numbers * numbers], axis=1).astype(np.float32)

    for most in (12, 4):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(rows_at_hand, "_MOST", most)
            rows = RowsAtHand(12, 2)
            made.clear()
            for one in asked:
                numbers = np.array(sorted(one))
                assert rows.of(numbers, make).tolist() == [[number, number * number] for number in numbers]
        assert most < 12 or len(made) == len(set(made))
