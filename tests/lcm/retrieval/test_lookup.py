"""Documents by id: what a join with all documents would give."""

from types import SimpleNamespace
from typing import Any

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from lcm.retrieval.frames import documents_of, places_of, rows_of, texts_of

IDS = st.lists(st.sampled_from("abcdefgh"), unique=True)
COLUMNS = ["document_id", "text"]


def documents(ids: list[str], said: str) -> pl.DataFrame:
    texts = [f"{said} {one}" for one in ids]
    return pl.DataFrame({"document_id": ids, "text": texts}, schema={"document_id": pl.String, "text": pl.String})


@given(seen=IDS, turns=st.none() | IDS, asked=st.lists(st.sampled_from("abcdefgh")))
def test_what_is_looked_up_is_what_a_join_gives(seen: list[str], turns: list[str] | None, asked: list[str]) -> None:
    beside = None if turns is None else documents([one for one in turns if one not in seen], "turn")
    batch: Any = SimpleNamespace(documents=documents(seen, "seen"), turns=beside)
    known = batch.documents if beside is None else pl.concat([batch.documents, beside])
    ids = pl.Series("document_id", asked, dtype=pl.String)
    joined = ids.to_frame().join(known, on="document_id", how="left", maintain_order="left")["text"]
    assert documents_of(batch, ids, COLUMNS)["text"].to_list() == joined.to_list()
    assert texts_of(batch, ids).to_list() == [f"seen {one}" if one in seen else None for one in asked]


def test_a_frame_that_follows_another_has_a_table_of_its_own() -> None:
    for number in range(100):  # a frame that is gone may leave its address to the next one
        frame = documents([f"{number}", "x"], "said")
        assert places_of(frame) == {f"{number}": 0, "x": 1}
        assert rows_of(frame, pl.Series([f"{number}"]), COLUMNS).rows() == [(f"{number}", f"said {number}")]


@given(seen=st.lists(st.integers(0, 9), unique=True), sizes=st.lists(st.integers(0, 9), min_size=1, max_size=8))
def test_frames_of_a_memory_that_grows_know_no_later_document(seen: list[int], sizes: list[int]) -> None:
    ids = [str(one) for one in seen]
    frames = [documents(ids[:size], "said") for size in sizes]
    asked = pl.Series("document_id", [str(one) for one in range(10)])
    for _ in range(2):  # once as each comes, and once when all have come
        for frame in frames:
            known = set(frame["document_id"])
            assert rows_of(frame, asked, COLUMNS)["text"].to_list() == [
                f"said {one}" if one in known else None for one in asked
            ]
