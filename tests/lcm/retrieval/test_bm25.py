"""BM25 of places: what documents hold serves every way to put them together."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.retrieval.ranking.evidence.text_evidence import HeldTerms

TERMS = ("tea", "rome", "trip", "kettle")
DOCUMENTS = st.lists(st.lists(st.sampled_from(TERMS), max_size=6), min_size=1, max_size=8)


def postings(documents: Sequence[Sequence[str]], takers: np.ndarray | None = None) -> HeldTerms:
    def held(term: str) -> tuple[np.ndarray, np.ndarray]:
        holders = [number for number, terms in enumerate(documents) if term in terms]
        return np.array(holders, np.int64), np.array([documents[one].count(term) for one in holders], np.float64)

    return HeldTerms(held, np.array([len(terms) for terms in documents], np.float64), takers)


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
    together, alone = postings(documents, takers), postings(joined(documents, takers))
    assert together.scores(TERMS).tolist() == alone.scores(TERMS).tolist()
    assert together.coverage(TERMS).tolist() == alone.coverage(TERMS).tolist()


@pytest.mark.parametrize("documents", [[], [[]], [[], []]])
def test_nothing_said_scores_nothing(documents: list[list[str]]) -> None:
    of_places = postings(documents)
    assert of_places.scores(TERMS).tolist() == of_places.coverage(TERMS).tolist() == [0.0] * len(documents)


def test_a_bm25_of_one_term_is_idf_times_weight() -> None:
    of_places = postings([["rome", "rome", "trip"], ["tea"], ["trip", "tea"]])
    idf = math.log(1 + (3 - 1 + 0.5) / (1 + 0.5))
    weight = 2 / (2 + 1.2 * (1 - 0.75 + 0.75 * 3 / 2))
    assert of_places.scores(["rome", "rome"]).tolist() == pytest.approx([idf * weight, 0, 0])
    both = idf + math.log(1 + (3 - 2 + 0.5) / (2 + 0.5))
    assert of_places.coverage(["rome", "trip", "nowhere"]).tolist() == pytest.approx([1, 0, (both - idf) / both])
