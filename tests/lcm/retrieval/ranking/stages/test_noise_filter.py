"""The noise filter drops rows, and only rows."""

from dataclasses import replace

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from lcm.retrieval.ranking.stages.selection import NoiseFilter
from tests.golden.components import documents_batch
from tests.lcm.retrieval.decay.frames import rows

TEXTS = {
    "fact": "Ada moved to the river",
    "denial": "I don't recall that",
    "question": "do you remember the river",
    "greeting": "hello my friend",
    "complaint": "you never remember the river",
    "short": "yes",
}
BATCH = replace(documents_batch([]), documents=pl.DataFrame({"document_id": list(TEXTS), "text": TEXTS.values()}))
ONE = rows(document_id=list(TEXTS), score=[0.1, 0.2, 0.3, 0.4, 0.5, 0.6])


def kept(stage: NoiseFilter) -> list[str]:
    return stage(ONE, BATCH)["document_id"].to_list()


def test_noise_is_dropped_and_the_order_stays() -> None:
    assert kept(NoiseFilter()) == ["fact", "complaint"]
    assert kept(NoiseFilter(complaints=True)) == ["fact"]
    assert kept(NoiseFilter(complaints=True, denials=False)) == ["fact", "denial"]
    assert kept(NoiseFilter(complaints=True, meta_questions=False)) == ["fact", "question", "complaint"]
    assert kept(NoiseFilter(complaints=True, boilerplate=False)) == ["fact", "greeting"]


@given(st.permutations(list(TEXTS)))
def test_queries_without_a_document_in_common_lose_their_own_noise(order: list[str]) -> None:
    frame = pl.concat(
        [ONE.filter(document_id=name).with_columns(query_id=pl.lit(f"q{place}")) for place, name in enumerate(order)]
    )
    assert NoiseFilter(complaints=True)(frame, BATCH)["document_id"].to_list() == ["fact"]
