"""BM25 of places: one index of the documents serves every way to put them together."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.retrieval.ranking.evidence.postings import Postings, TermIndex

TERMS = ("tea", "rome", "trip", "kettle")
DOCUMENTS = st.lists(st.lists(st.sampled_from(TERMS), max_size=6), min_size=1, max_size=8)


def joined(documents: Sequence[Sequence[str]], takers: np.ndarray) -> list[list[str]]:
    """The terms of each place, written out."""
    found: list[list[str]] = [[] for _ in range(int(takers.max(initial=-1)) + 1)]
    for document, places in zip(documents, takers, strict=True):
        for place in places[places >= 0]:
            found[place] += document
    return found


@given(documents=DOCUMENTS, width=st.integers(1, 3), data=st.data())
def test_a_place_scores_as_if_its_documents_were_one_text(
    documents: list[list[str]], width: int, data: st.DataObject
) -> None:
    places = st.lists(st.integers(-1, 4), min_size=width, max_size=width, unique_by=lambda x: x if x >= 0 else object())
    takers = np.array([data.draw(places) for _ in documents], dtype=np.int64)
    together, alone = Postings(TermIndex.of(documents), takers), Postings(TermIndex.of(joined(documents, takers)))
    assert together.scores(TERMS).tolist() == alone.scores(TERMS).tolist()
    assert together.coverage(TERMS).tolist() == alone.coverage(TERMS).tolist()


@given(documents=DOCUMENTS)
def test_an_index_holds_every_term_as_often_as_its_documents_do(documents: list[list[str]]) -> None:
    index = TermIndex.of(documents)
    for term in TERMS:
        holders, counts = index.held(term)
        held = [(number, terms.count(term)) for number, terms in enumerate(documents) if term in terms]
        assert list(zip(holders.tolist(), counts.tolist(), strict=True)) == held
    assert index.lengths.tolist() == [len(terms) for terms in documents]


@pytest.mark.parametrize("documents", [[], [[]], [[], []]])
def test_nothing_said_scores_nothing(documents: list[list[str]]) -> None:
    postings = Postings(TermIndex.of(documents))
    assert postings.scores(TERMS).tolist() == postings.coverage(TERMS).tolist() == [0.0] * len(documents)
