"""How concentrated answers are: places counted by document, each workspace's its own."""

from collections import Counter

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.experiment.outcome import SERVED_SCHEMA, served
from eval.experiment.workspace import RUN_SCHEMA
from eval.report.run_tables import served_lines, served_table

Answers = dict[tuple[str, str], list[str]]
"""(workspace, query) -> documents, best first."""


def run(arms: dict[str, Answers]) -> pl.DataFrame:
    rows = [
        {"arm": arm, "workspace_id": place, "query_id": query, "document_id": document, "rank": rank}
        for arm, answers in arms.items()
        for (place, query), documents in answers.items()
        for rank, document in enumerate(documents, start=1)
    ]
    return pl.DataFrame(rows, schema=RUN_SCHEMA)


def test_the_ten_most_served_are_told_beside_all() -> None:
    same = {("w", f"q{i}"): ["always", f"once {i}"] for i in range(20)}
    found = served(run({"system": same, "other": {("w", "q0"): ["a"], ("v", "q1"): ["a"]}, "silent": {}}))
    assert found.rows() == [("system", 2, 40, 21, (20 + 9) / 40), ("other", 1, 2, 2, 1.0)]


@given(
    st.dictionaries(
        st.tuples(st.sampled_from("vw"), st.integers(0, 5).map(str)),
        st.lists(st.integers(0, 30).map(str), max_size=25, unique=True),
    )
)
def test_it_is_what_counting_gives(answers: Answers) -> None:
    places = Counter((place, document) for (place, _), documents in answers.items() for document in documents)
    found = served(run({"system": answers}))
    assert found.schema == SERVED_SCHEMA
    if not places:
        assert found.is_empty()
        return
    top = sum(times for _, times in places.most_common(10))
    assert found.rows() == [
        ("system", max(map(len, answers.values())), places.total(), len(places), pytest.approx(top / places.total()))
    ]


def test_a_run_that_does_not_tell_has_neither_line_nor_row() -> None:
    assert served_lines({}) == []
    assert served_table({"served": {}}) is None
    told = {"served": {"random": {"k": 20, "places": 1200, "documents": 1, "top_10_share": 1.0}}}
    assert served_lines(told) == []
    table = served_table(told)
    assert table is not None and table.texts() == [["random", "20", "1,200", "1", "100.0%"]]
    told["served"]["system"] = {"k": 1, "places": 3, "documents": 2, "top_10_share": 2 / 3}
    line = "served: 2 documents in 3 places of answers (k = 1); the ten most served take 66.7%"
    assert served_lines(told) == [line]
