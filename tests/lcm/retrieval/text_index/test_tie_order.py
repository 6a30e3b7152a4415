"""Equal documents come in the order in which they were added."""

import pytest

from lcm.retrieval.text_index.fts5 import Fts5

N = 50
IDS = [f"d{(17 * i) % N:02}" for i in range(N)]  # in no order by name


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("a goat by the river", "goat river"),
        ("私は東京で会議をします", "東京で会議"),
        ("私は東京で会議をします", "会議"),
        ("a goat 東京で会議", "goat 東京で会議 会"),
    ],
    ids=["words", "cjk trigrams", "short cjk run", "both"],
)
def test_fifty_equal_documents_keep_the_order_of_adding(text: str, query: str) -> None:
    index = Fts5().build()
    index.add(["other", *IDS[:30]], ["moss and fern", *[text] * 30])
    index.add(IDS[30:], [text] * 20)
    (ids, scores), (few, _) = index.search([query], N + 1)[0], index.search([query], 7)[0]
    assert ids == IDS
    assert len(set(scores)) == 1
    assert few == IDS[:7]
    assert index.search([query], 7, allowed=sorted(IDS[5:]))[0][0] == IDS[5:12]


def test_a_document_added_again_stands_last() -> None:
    index = Fts5().build()
    index.add(IDS, ["goat 東京で会議"] * N)
    index.remove(IDS[:1])
    index.add(IDS[:1], ["goat 東京で会議"])
    assert [ids for ids, _ in index.search(["goat", "東京で会議"], N)] == [[*IDS[1:], IDS[0]]] * 2


def test_ties_among_different_runs_keep_the_order_of_adding_not_of_the_query() -> None:
    index = Fts5().build()
    index.add(["first", "second", *"vwxyz"], ["中文", "学文", *["山河"] * 5])
    for query in ("学 中", "中 学"):
        ids, scores = index.search([query], 9)[0]
        assert ids == ["first", "second"]
        assert scores[0] == scores[1]
