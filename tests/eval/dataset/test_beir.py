"""A collection's folder becomes workspaces, queries and judgements, and comes out of a dataset as it went in."""

import math
from pathlib import Path

import polars as pl
import pytest

from eval.arms import Oracle, RecordedRun
from eval.dataset.beir import ASKED_AT, Beir, write_beir
from eval.dataset.collection import collection_of, document_ids
from eval.dataset.dataset import QRELS_SCHEMA, Dataset, opaque_id
from eval.dataset.sample import Sample
from eval.measures.retrieval import Retrieval
from lcm.errors import DatasetError
from lcm.retrieval.ranking.pipeline import Ranking
from lcm.retrieval.ranking.stages.scores import RawScore
from lcm.retrieval.source.branches import Recent, Shuffled
from lcm.retrieval.source.indexes import Dense
from tests.support.experiments import outcome
from tests.support.small_collection import HOUSEHOLD, collection, write_small_beir
from tests.support.workspaces import system, transcript


def message_id(document_id: str) -> str:
    return opaque_id("beir", document_id)


def test_each_set_of_candidates_is_a_workspace_that_was_said_before_anything_is_asked(tmp_path: Path) -> None:
    dataset = Beir(write_small_beir(tmp_path)).load()
    words = {t.workspace_id: [m.content for m in t.messages] for t in dataset.transcripts}
    assert words == {
        "candidates-0": ["Kettle It is broken.", "Ada drinks tea.", "Bo painted the kettle."],
        "candidates-1": ["The goats are in the garden.", "Bo painted the kettle.", "Where are the goats?"],
    }
    asked = {query.query_id: (query.text, query.workspace_id) for query in dataset.queries}
    assert asked == {
        "q1": ("What is broken?", "candidates-0"),
        "q2": ("What does Ada drink?", "candidates-0"),
        "q3": ("Where are the goats?", "candidates-1"),
    }
    assert {query.asked_at for query in dataset.queries} == {ASKED_AT}
    assert dataset.qrels.rows() == [
        (query, message_id(document), relevance) for query, document, relevance in HOUSEHOLD.qrels.rows()
    ]
    assert dataset.notes == (
        "1 queries have no judgements in split test and are left out",
        "1 queries have the id of a document, which is not ranked for them (dataset.ignore_identical_ids)",
    )


def test_without_candidates_the_corpus_is_one_workspace(tmp_path: Path) -> None:
    write_small_beir(tmp_path)
    (tmp_path / "top_ranked.jsonl").unlink()
    dataset = Beir(str(tmp_path)).load()
    assert [(t.workspace_id, len(t.messages)) for t in dataset.transcripts] == [("corpus", 5)]
    assert len(dataset.queries) == 3
    with pytest.raises(DatasetError, match=r"dataset\.directory names no folder"):
        Beir().load()


def test_an_instruction_is_asked_where_it_is_wanted(tmp_path: Path) -> None:
    where = write_small_beir(tmp_path)
    texts = {query.query_id: query.text for query in Beir(where, instructions=True).load().queries}
    assert texts["q1"] == "Instruct: Find the fault\nQuery: What is broken?"
    assert texts["q2"] == "What does Ada drink?"


def test_what_judgements_name_in_vain_is_counted(tmp_path: Path) -> None:
    odd = collection(
        [("d1", "", "one"), ("d2", "", "two")],
        [("q1", "one?"), ("q2", "two?")],
        [("q1", "d1", 1), ("q1", "d2", 1), ("q1", "gone", 1), ("gone", "d1", 1), ("q2", "d2", -1)],
        [("q1", ["d1", "gone"])],
    )
    write_beir(tmp_path, odd)
    dataset = Beir(str(tmp_path)).load()
    assert dataset.qrels.rows() == [("q1", message_id("d1"), 1)]
    assert dataset.notes == (
        "2 judgements name a query or document that is not there",
        "1 queries have no candidates and are left out",
        "1 relevant documents are not among their query's candidates",
    )


CLAIMS = (
    "Ferries pay for themselves.",
    "A tunnel floods every spring.",
    "Markets belong in the square.",
    "Bells wake us.",
)
SIDES = {"yes": "So it is.", "no": "No."}
DEBATE = collection(
    [(f"{side}{i}", "", f"{claim} {said}") for i, claim in enumerate(CLAIMS) for side, said in SIDES.items()],
    [*((f"yes{i}", f"{claim} So it is.") for i, claim in enumerate(CLAIMS)), ("other", f"{CLAIMS[0]} So it is.")],
    [*((f"yes{i}", f"no{i}", 1) for i in range(len(CLAIMS))), ("other", "yes0", 1)],
)
"""Each claim asks for what is said against it: every query but the last is a document."""


THEIRS = {"yes0": 3, "no3": 2, "no0": 1}
"""What another system answers the first with, and its scores."""


def debate(folder: Path, *, ignore_identical_ids: bool = True) -> Dataset:
    write_beir(folder, DEBATE)
    return Beir(str(folder), ignore_identical_ids=ignore_identical_ids).load()


@pytest.mark.parametrize(("is_on", "expected"), [(True, 1.0), (False, 1 / math.log2(3))])
def test_the_document_with_the_id_of_a_query_is_not_ranked_for_it(tmp_path: Path, is_on: bool, expected: float) -> None:
    """BEIR's numbers: without the rule each query finds itself first."""
    data = debate(tmp_path, ignore_identical_ids=is_on)
    found = outcome(data, system(), {"retrieval": Retrieval(names=["nDCG@10"], levels=["message"])})
    values = dict(found.values.filter(measure="nDCG@10").select("query_id", "value").iter_rows())
    assert values == pytest.approx({f"yes{i}": expected for i in range(len(CLAIMS))} | {"other": 1.0})


def test_every_arm_answers_with_k_others(tmp_path: Path) -> None:
    data, k = debate(tmp_path), 3
    (tmp_path / "theirs").write_text("".join(f"yes0 Q0 {name} 1 {score} t\n" for name, score in THEIRS.items()))
    arms = {
        "dense": Ranking(Dense(k), {"score": RawScore("cosine")}),
        "last": Ranking(Recent(k), {}),
        "all": Ranking(Recent(None), {}),
        "random": Ranking(Shuffled(k), {}),
        "oracle": Oracle(),
        "theirs": RecordedRun(str(tmp_path / "theirs")),
    }
    found = outcome(data, system(ranking=arms["dense"]), arms=arms)
    names = {message_id(name): name for name in DEBATE.corpus["document_id"]}
    documents = dict(found.documents.select("document_id", pl.col("source_message_ids").list.first()).iter_rows())
    answers: dict[tuple[str, str], list[str]] = {}
    for arm, query, document in found.run.select("arm", "query_id", "document_id").iter_rows():
        answers.setdefault((arm, query), []).append(names[documents[document]])
    assert not [one for one in answers if one[1] in answers[one]]
    assert answers.pop(("theirs", "yes0")) == ["no3", "no0"]
    assert {one: len(answer) for one, answer in answers.items()} == {
        (arm, query.query_id): count
        for arm, count in {"system": k, "dense": k, "last": k, "random": k, "all": 7, "oracle": 1}.items()
        for query in data.queries
    } | {("all", "other"): 8}
    assert found.incidents == {}


def test_an_identical_id_that_is_judged_relevant_is_told(tmp_path: Path) -> None:
    write_beir(
        tmp_path, collection([("1", "", "one"), ("2", "", "two")], [("1", "one?")], [("1", "1", 1), ("1", "2", 1)])
    )
    assert Beir(str(tmp_path)).load().notes == (
        "1 queries have the id of a document, which is not ranked for them (dataset.ignore_identical_ids)",
        "1 relevant documents have the id of their query, and cannot be found",
    )
    kept = Beir(str(tmp_path), ignore_identical_ids=False).load()
    assert kept.notes == ()
    assert kept.queries[0].shown_message_ids == ()


def test_a_negative_judgement_is_one_of_relevance_0(tmp_path: Path) -> None:
    write_beir(
        tmp_path, collection([("d", "", "one"), ("e", "", "two")], [("q", "?")], [("q", "d", -1), ("q", "e", 2)])
    )
    assert Beir(str(tmp_path)).load().qrels.rows() == [("q", message_id("d"), 0), ("q", message_id("e"), 2)]


def test_a_dataset_comes_back_as_the_collection_that_it_was_read_from(tmp_path: Path) -> None:
    """But for queries without judgements, which stand in no dataset."""
    dataset = Beir(write_small_beir(tmp_path)).load()
    back, notes = collection_of(dataset)
    by_id = "document_id"
    assert back.corpus.sort(by_id).equals(HOUSEHOLD.corpus.sort(by_id))
    assert back.queries.equals(HOUSEHOLD.queries.head(3))
    assert back.qrels.equals(HOUSEHOLD.qrels)
    assert back.candidates is not None
    in_order = {query: sorted(documents) for query, documents in HOUSEHOLD.candidates.iter_rows()}
    assert dict(back.candidates.iter_rows()) == in_order
    assert notes == ("who said what in which session and when is not in a collection",)


def test_of_a_dataset_the_candidates_are_what_was_said_before_a_query_was_asked() -> None:
    dataset = Sample().load()
    whole, _ = collection_of(dataset)
    assert whole.candidates is not None
    offered = {query: set(ids) for query, ids in whole.candidates.iter_rows()}
    said = {(t.workspace_id, m.message_id): m.created_at for t in dataset.transcripts for m in t.messages}
    assert offered == {
        query.query_id: {
            one for (place, one), at in said.items() if place == query.workspace_id and at <= query.asked_at
        }
        for query in dataset.queries
    }


@pytest.mark.parametrize(
    ("talks", "expected"),
    [
        ([("one", "talk", "w1"), ("two", "talk", "w2")], ["w1/talk:0", "w2/talk:0"]),
        ([("one", name, "w") for name in ("my talk", "my%20talk", "talk")], ["my%20talk:0", "my%2520talk:0", "talk:0"]),
    ],
    ids=["of two workspaces", "with blanks"],
)
def test_ids_are_written_apart_and_without_blanks(talks: list[tuple[str, str, str]], expected: list[str]) -> None:
    said = tuple(transcript([words], name, place) for words, name, place in talks)
    dataset = Dataset("talks", "as is", "0" * 64, said, (), pl.DataFrame(schema=QRELS_SCHEMA))
    assert list(document_ids(dataset).values()) == expected
    assert list(document_ids(dataset)) == [(place, f"{name}:0") for _, name, place in talks]
