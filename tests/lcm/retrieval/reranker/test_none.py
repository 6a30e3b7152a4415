from lcm.retrieval.reranker.none import NoReranker
from tests.lcm.retrieval.reranker.conftest import TWO_QUERIES, batch


def test_every_row_stays_as_it_is() -> None:
    assert NoReranker()(TWO_QUERIES, batch()).equals(TWO_QUERIES)
