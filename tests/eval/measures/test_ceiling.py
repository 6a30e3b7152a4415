"""The ceiling: no order of the same documents passes it by any measure; where none overlap, the best reaches it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from random import Random

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval.dataset.dataset import QUOTATIONS_SCHEMA, SESSION_QRELS_SCHEMA, Dataset
from eval.measures.coverage import evidence_text, most_covered, with_ranked
from eval.measures.measure import REPORT_TOKENS, RunReading
from eval.measures.retrieval import Retrieval
from lcm.records.conversation import Message, Transcript
from lcm.records.query import Query
from tests.eval.tiny import tiny
from tests.support.workspaces import minute

NAMES = (
    *("recall", "recall@1", "recall@2", "recall@3", "recall_any@1", "recall_any@2", "recall_all@1", "recall_all@2"),
    *("recall_capped@1", "recall_capped@2", "nDCG@1", "nDCG@2", "nDCG@4", "nDCG_longmemeval@3", "MRR", "MAP"),
    *("recall@4t", "recall@9t", "recall@15t", "recall@25t", "recall@60t"),
)
TEXTS = {
    "m0": "one goat by the river",
    "m1": "tea",
    "m2": "the kettle in the blue kitchen is broken since Thursday and nobody has called anybody about it yet",
    "m3": "a wall is yellow, the other is green, and the third one waits for paint",
    "m4": "Ada",
    "m5": "the meeting moved to noon",
}
SESSION = {name: f"s{i // 3}" for i, name in enumerate(TEXTS)}


SCHEMA = {
    **dict.fromkeys(("workspace_id", "query_id", "document_id"), pl.String),
    "rank": pl.Int64,
    "stands_for": pl.List(pl.String),
}

Values = dict[str, float]
"""Measure -> value."""


@dataclass(frozen=True)
class Case:
    """Which messages each document covers, what is judged, by message and by session, what is quoted, and which
    document stands for which others, wherever it is ranked."""

    documents: Sequence[Sequence[str]]
    grades: dict[str, int]
    sessions: Sequence[str] = ()
    quoted: Sequence[str] = ()
    stands_for: Mapping[int, Sequence[int]] = field(default_factory=dict)

    def data(self, asked: Sequence[str]) -> Dataset:
        messages = tuple(Message(name, "user", text, SESSION[name], minute(1)) for name, text in TEXTS.items())
        quotations = [
            (query, i, name, " ".join(TEXTS[name].split()[-2:]))
            for query in asked
            for i, name in enumerate(self.quoted)
        ]
        sessions = [(query, session, 1) for query in asked for session in self.sessions]
        return tiny(
            [Transcript("c", messages)],
            [Query(query, query, minute(99)) for query in asked],
            [(query, name, grade) for query in asked for name, grade in self.grades.items()],
            session_qrels=pl.DataFrame(sessions, schema=SESSION_QRELS_SCHEMA, orient="row"),
            quotations=pl.DataFrame(quotations, schema=QUOTATIONS_SCHEMA, orient="row"),
        )

    def measured(self, orders: Sequence[Sequence[int]]) -> tuple[Values, list[Values]]:
        """The ceiling, and what each order scores; how far judgements go is no matter of order."""
        ids = [f"d{i}" for i in range(len(self.documents))]
        texts = ["\n".join(TEXTS[name] for name in covers) for covers in self.documents]
        documents = pl.DataFrame(
            {
                "document_id": ids,
                "source_message_ids": [list(covers) for covers in self.documents],
                "text": texts,
                "tokens": REPORT_TOKENS.count(texts),
            }
        ).with_columns(workspace_id=pl.lit("default"), kind=pl.lit("message"))
        rows = [
            (
                "default",
                f"q{i}",
                ids[place],
                rank,
                [ids[twin] for twin in self.stands_for.get(place, ()) if twin < len(ids)],
            )
            for i, order in enumerate(orders)
            for rank, place in enumerate(order, 1)
        ]
        run = pl.DataFrame(rows, SCHEMA, orient="row")
        data = self.data([f"q{i}" for i in range(len(orders))])
        worded = evidence_text(documents, data.queries, data).with_columns(workspace_id=pl.lit("default"))
        named = {"query_id": pl.String, "document_id": pl.String}
        of_memory = pl.DataFrame([("q0", one) for one in ids[1:]], named, orient="row")  # the first is ranked alone
        reachable = with_ranked(of_memory, [run.with_columns(query_id=pl.lit("q0"))])

        def values(reachable: pl.DataFrame | None = None) -> list[Values]:
            found = Retrieval(names=NAMES).rows(RunReading("an arm", run, documents, data, worded, reachable))
            told = found.filter(~pl.col("measure").str.starts_with("judged"))
            of_query = told.partition_by("query_id", as_dict=True)
            return [
                dict(of_query[f"q{i}",].select("measure", "value").iter_rows()) if (f"q{i}",) in of_query else {}
                for i in range(len(orders))
            ]

        return values(reachable)[0], values()


COVERS = st.lists(st.sampled_from(sorted(TEXTS)), min_size=1, max_size=3, unique=True)
TWINS = st.dictionaries(st.integers(0, 5), st.lists(st.integers(0, 5), max_size=2, unique=True), max_size=3)
CASES = st.builds(
    Case,
    st.lists(COVERS, min_size=1, max_size=6),
    st.dictionaries(st.sampled_from(sorted(TEXTS)), st.integers(0, 2), min_size=1),
    st.lists(st.sampled_from(["s0", "s1"]), unique=True),
    st.lists(st.sampled_from(sorted(TEXTS)), max_size=3, unique=True),
    TWINS,
)


@settings(max_examples=10)
@given(CASES, st.randoms(use_true_random=False))
def test_no_order_passes_the_ceiling_by_any_measure(case: Case, random: Random) -> None:
    places = range(len(case.documents))
    ceiling, orders = case.measured([random.sample(places, random.randint(1, len(places))) for _ in range(12)])
    for found in orders:
        assert ceiling.keys() == found.keys()
        assert all((found[f"recall_any@{k}"] > 0) == (found[f"nDCG@{k}"] > 0) for k in (1, 2) if "MRR" in found)
        assert not {name: (value, ceiling[name]) for name, value in found.items() if value > ceiling[name] + 1e-12}
    assert all(value <= 1 for value in ceiling.values())


@pytest.mark.parametrize(
    "case",
    [
        Case([["m2"], ["m0"], ["m4"]], {"m0": 1, "m2": 2, "m4": 1, "m5": 1}, ["s1"]),
        Case([["m3"], ["m2"], ["m4"]], {"m2": 1, "m3": 1, "m4": 2}, quoted=["m2"]),
    ],
)
def test_where_a_document_is_a_message_an_order_reaches_it(case: Case) -> None:
    ceiling, found = case.measured(list(permutations(range(len(case.documents)))))
    assert ceiling == pytest.approx({name: max(values[name] for values in found) for name in ceiling})


def test_each_measure_has_its_own_best_order() -> None:
    """The long message is judged higher: first by nDCG, last within a budget."""
    ceiling, found = Case([["m2"], ["m0"], ["m1"]], {"m0": 1, "m1": 1, "m2": 2}).measured([(0, 1, 2), (2, 1, 0)])
    assert (ceiling["nDCG@4"], ceiling["recall@9t"]) == (1, 2 / 3)
    assert found[0]["nDCG@4"] == 1 > found[1]["nDCG@4"]
    assert found[0]["recall@9t"] < 2 / 3 == found[1]["recall@9t"]


def test_the_best_cover_of_a_few_documents_need_not_begin_with_the_largest() -> None:
    """Two of three documents cover all six: a greedy cover takes the one across and needs all three."""
    assert most_covered(["abc", "def", "bcde"]) == [4, 6, 6]
    assert most_covered(["ab", "c", "c"]) == [2, 3]
    assert most_covered([]) == []
    assert most_covered(["abcd", "abce", "abde"]) == [4, 5, 5]
