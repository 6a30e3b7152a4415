"""Which answers a dataset gives to its queries, and which of these nothing answers."""

import json
from pathlib import Path

import polars as pl
import pytest

from eval.dataset.beam import Beam
from eval.dataset.dataset import ANSWERS_SCHEMA, Dataset
from eval.dataset.locomo import Locomo
from eval.dataset.longmemeval import LongMemEval
from eval.dataset.own import Own
from eval.dataset.sample import Sample, SampleLong, bundled_directory
from tests.support.small_beam import QUESTIONS, write_lines
from tests.support.small_locomo import RECORD, REFINED, write_small_locomo
from tests.support.small_longmemeval import published


def asked(dataset: Dataset) -> tuple[dict[str, list[str]], set[str]]:
    """The answers by the words of the question, and the questions that nothing answers."""
    words = {query.query_id: query.text for query in dataset.queries}
    answers = {words[query_id]: texts for query_id, texts in dataset.reference_answers().items()}
    return answers, {words[query_id] for query_id in dataset.unanswerable}


def test_locomo_answers_all_but_the_adversarial_questions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    both = {"question": "Is it a cat?", "category": 5, "evidence": [], "answer": "No", "adversarial_answer": "Yes"}
    number = {"question": "How many shoes?", "category": 4, "evidence": [], "answer": 2}
    record = RECORD | {"qa": [*RECORD["qa"], both, number]}  # type: ignore[misc]
    answers, unanswerable = asked(Locomo(write_small_locomo(tmp_path, monkeypatch, record)).load())
    assert answers == {
        "What did the dog eat?": ["a shoe"],
        "Both?": ["yes"],
        "Wrongly cited": ["x"],
        "Is it a cat?": ["No"],
        "How many shoes?": ["2"],
    }
    assert unanswerable == {"Which cat?"}


def test_each_answer_of_a_list_is_right_by_itself(tmp_path: Path) -> None:
    """As LoCoMo_refined has them."""
    (tmp_path / "locomo_refined.json").write_text(json.dumps([REFINED]))
    answers, unanswerable = asked(Locomo(str(tmp_path), file="locomo_refined.json").load())
    assert answers == {"What did the dog eat?": ["a shoe", "one of Ada's shoes"], "When was it said?": ["2023"]}
    assert not unanswerable


def test_beam_answers_in_two_fields_and_leaves_rubrics(tmp_path: Path) -> None:
    questions = dict(QUESTIONS) | {
        "temporal_reasoning": [{"question": "When?", "answer": "In March", "source_chat_ids": []}],
        "contradiction_resolution": [{"question": "Four or five?", "ideal_answer": "Both were said"}],
    }
    write_lines(tmp_path, probing_questions=questions)
    answers, unanswerable = asked(Beam(str(tmp_path)).load())
    assert answers == {"When?": ["In March"], "Four or five?": ["Both were said"]}
    assert unanswerable == {"Which queen?"}


def test_longmemeval_answers_in_words_or_numbers_and_nothing_answers_abstention(tmp_path: Path) -> None:
    records = [published("q1"), published("q2", answer="Otto"), published("q3_abs", answer="You never said")]
    (tmp_path / "longmemeval_s").write_text(json.dumps(records))
    dataset = LongMemEval(str(tmp_path), protocol="all").load()
    assert dataset.reference_answers() == {"q1": ["2"], "q2": ["Otto"]}
    assert dataset.unanswerable == {"q3_abs"}
    assert LongMemEval(str(tmp_path)).load().unanswerable == frozenset()


def test_the_samples_and_any_part_of_them_answer_all_but_what_was_never_said() -> None:
    sample = Sample().load()
    for dataset in (sample, SampleLong().load(), sample.part({"ryokou"})):
        queries = {query.query_id for query in dataset.queries}
        assert dataset.reference_answers().keys() == queries - dataset.unanswerable
    assert {query.category for query in sample.queries if query.query_id in sample.unanswerable} == {"unanswerable"}
    assert len(sample.unanswerable) == 11
    assert sample.reference_answers()["q001"] == ["cashew cream"]
    paths = [str(bundled_directory() / "transcripts")]
    own = Own(paths, questions=str(bundled_directory() / "queries.jsonl"), workspace="file").load()
    assert own.answers.equals(sample.answers)
    assert own.unanswerable == sample.unanswerable


def test_what_answers_no_query_is_refused() -> None:
    with pytest.raises(ValueError, match="answers: there is no query 'q'"):
        answers = pl.DataFrame([("q", "x")], schema=ANSWERS_SCHEMA, orient="row")
        Dataset("d", "p", "0", (), (), Sample().load().qrels.clear(), answers=answers)
    with pytest.raises(ValueError, match="unanswerable: there is no query 'q'"):
        Dataset("d", "p", "0", (), (), Sample().load().qrels.clear(), unanswerable=frozenset({"q"}))
