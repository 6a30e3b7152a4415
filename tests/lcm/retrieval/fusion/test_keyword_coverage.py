"""Which share of a query's words a document has."""

from dataclasses import replace

import polars as pl
import pytest

from lcm.clock import EPOCH
from lcm.protocols.retrieval import Batch
from lcm.retrieval.fusion.two_pass import keyword_coverage
from lcm.retrieval.terms import TermWords
from tests.golden.components import documents_batch


def batch(questions: list[str], texts: list[str]) -> Batch:
    known = documents_batch([f"d{i}" for i in range(len(texts))])
    asked = pl.DataFrame({"query_id": [f"q{i}" for i in range(len(questions))], "text": questions})
    return replace(
        known,
        queries=asked.with_columns(asked_at=pl.lit(EPOCH)),
        documents=known.documents.with_columns(text=pl.Series(texts)),
    )


def covered(question: str, text: str, words: TermWords = "unicode") -> float:
    rows = pl.DataFrame({"query_id": ["q0"], "document_id": ["d0"]})
    return keyword_coverage(rows, batch([question], [text]), words).item()


def test_it_is_the_share_of_the_distinct_words_of_the_query() -> None:
    assert covered("where is the KETTLE, the blue kettle", "a kettle is where it is") == 2 / 4  # where the kettle blue


def test_words_of_less_than_three_characters_ask_for_nothing() -> None:
    assert covered("is it on", "is it on") == 0.0
    assert covered("is it red", "red") == 1.0


@pytest.mark.parametrize("words", ["ascii", "unicode"])
@pytest.mark.parametrize("question", ["", "?!", "a b"])
def test_a_query_without_words_is_covered_by_nothing(words: TermWords, question: str) -> None:
    assert covered(question, "anything at all", words) == 0.0


def test_the_original_reads_no_other_script() -> None:
    assert covered("Überraschung", "eine überraschung", "unicode") == 1.0
    assert covered("пирог", "пирог", "unicode") == 1.0
    assert covered("пирог", "пирог", "ascii") == 0.0


def test_the_original_joins_words_by_underscores() -> None:
    assert covered("snake_case", "snake case", "ascii") == 0.0
    assert covered("snake_case", "snake case", "unicode") == 1.0


def test_without_spaces_neighbours_count_in_pairs() -> None:
    assert covered("東京都", "東京へ", "unicode") == 1 / 2  # 東京, 京都


def test_rows_keep_their_order_and_queries_their_own_words() -> None:
    rows = pl.DataFrame({"query_id": ["q1", "q0", "q0"], "document_id": ["d0", "d1", "d0"]})
    found = keyword_coverage(rows, batch(["red kettle", "goats"], ["goats and a kettle", "red"]), "unicode")
    assert found.tolist() == [1.0, 1 / 2, 1 / 2]
