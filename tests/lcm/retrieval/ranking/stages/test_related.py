"""Documents that say an answer's words stand beside it, and change neither its place nor its score."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import polars as pl
import pytest

from lcm.errors import StoreError
from lcm.protocols.retrieval import Batch, Stage
from lcm.retrieval.ranking.stages.scores import RawScore
from lcm.retrieval.ranking.stages.selection import NoiseFilter, Related
from lcm.retrieval.text_index import Fts5
from lcm.store.documents import DOCUMENT_SCHEMA
from tests.golden.components import documents_batch
from tests.lcm.refusals import assert_refused
from tests.lcm.retrieval.decay.frames import rows

TEXTS = {
    "kettle": "the copper kettle leaks",
    "kettle again": "the copper kettle leaks, the copper kettle leaks",
    "copper": "copper is dear this year",
    "goats": "seven goats ate the hedge",
    "cow": "a cow sleeps",
    "noise": "do you remember the copper kettle",
    "theirs": "their copper kettle leaks",
}
STAGES = {"score": RawScore("bm25"), "noise": NoiseFilter()}


def batch_of(texts: dict[str, str] = TEXTS, queries: Sequence[str] = ("q",)) -> Batch:
    index = Fts5().build()
    index.add(list(texts), list(texts.values()))
    documents = pl.DataFrame(
        {
            "document_id": list(texts),
            "text": list(texts.values()),
            "scope": ["user:other" if name == "theirs" else "global" for name in texts],
        }
    ).match_to_schema(DOCUMENT_SCHEMA, missing_columns="insert")
    batch = documents_batch([])
    asked = pl.concat([batch.queries.with_columns(query_id=pl.lit(query)) for query in queries])
    return replace(batch, queries=asked, documents=documents, text_index=index)


def beside(frame: pl.DataFrame, batch: Batch, **settings: Any) -> dict[str, list[str]]:
    """Document -> those that are related to it."""
    after = Related(**{"stages": STAGES, "per_result": 2} | settings)(frame, batch)
    assert after.drop("related").equals(frame)
    return {
        document_id: [one["document_id"] for one in related]
        for document_id, related in after.select("document_id", "related").iter_rows()
    }


def test_what_says_the_words_of_an_answer_stands_beside_it_and_nothing_else_changes() -> None:
    frame = rows(document_id=["goats", "kettle"], score=[0.9, 0.2])
    assert beside(frame, batch_of()) == {"goats": [], "kettle": ["kettle again", "copper"]}
    assert beside(frame, batch_of(), per_result=1) == {"goats": [], "kettle": ["kettle again"]}


def test_an_answer_stands_beside_none() -> None:
    frame = rows(document_id=["kettle", "kettle again"], score=[0.9, 0.2])
    assert beside(frame, batch_of()) == {"kettle": ["copper"], "kettle again": ["copper"]}


def test_each_query_has_its_own_answers() -> None:
    frame = rows(query_id=["q", "r"], document_id=["kettle", "kettle again"])
    after = Related(STAGES, per_result=1)(frame, batch_of(queries=("q", "r")))
    assert [[one["document_id"] for one in related] for related in after["related"]] == [["kettle again"], ["kettle"]]


def test_what_another_scope_holds_is_related_to_its_own_alone() -> None:
    assert beside(rows(document_id=["theirs"]), batch_of()) == {"theirs": []}
    assert "theirs" not in beside(rows(document_id=["copper"]), batch_of(), per_result=5)["copper"]


def test_what_the_stages_drop_is_not_shown_and_what_is_left_out_drops_nothing() -> None:
    frame, stages = rows(document_id=["kettle"]), STAGES | {"noise": None}
    assert "noise" not in beside(frame, batch_of(), per_result=5)["kettle"]
    assert "noise" in beside(frame, batch_of(), stages=stages, per_result=5)["kettle"]


def test_the_score_is_that_of_the_stages_best_first() -> None:
    (related,) = Related(STAGES, per_result=5)(rows(document_id=["kettle"]), batch_of())["related"]
    scores = [one["score"] for one in related]
    assert scores == sorted(scores, reverse=True)
    assert len(set(scores)) > 1


def test_where_no_word_is_found_the_whole_text_is_looked_for_inside_others() -> None:
    texts = {"short": "!?!", "long": "what !?!"}
    scored = {"score": lambda frame, batch: frame.with_columns(score="contained")}
    frame = rows(document_id=["short"])
    assert beside(frame, batch_of(texts), stages=scored) == {"short": ["long"]}
    assert beside(frame, batch_of(texts), stages=scored, containment=False) == {"short": []}


@dataclass
class Broken:
    """Fails for one text, and counts how many documents are asked for."""

    index: Any
    asked: Counter[int]

    def search(self, queries: Sequence[str], k: int, allowed: Sequence[str] | None = None) -> Any:
        self.asked[k] += 1
        if queries == [TEXTS["goats"]]:
            raise StoreError("the index is gone")
        return self.index.search(queries, k, allowed)


def test_a_lookup_that_fails_leaves_its_answer_and_is_counted() -> None:
    batch, frame = batch_of(), rows(document_id=["goats", "kettle"], score=[0.9, 0.2])
    broken = replace(batch, text_index=Broken(batch.text_index, Counter()), incidents=Counter())  # type: ignore[arg-type]
    assert beside(frame, broken, containment=False) == {"goats": [], "kettle": ["kettle again", "copper"]}
    assert broken.incidents == {"related branch failed": 1}


@pytest.mark.parametrize(("per_result", "pool_size", "asked"), [(1, 50, 2 + 1 + 10), (3, 50, 2 + 3 + 12), (5, 20, 20)])
def test_a_lookup_finds_so_many_that_enough_are_left(per_result: int, pool_size: int, asked: int) -> None:
    batch, frame = batch_of(), rows(document_id=["cow", "kettle"], score=[0.9, 0.2])
    counting = Broken(batch.text_index, Counter())
    around = replace(batch, text_index=counting)  # type: ignore[arg-type]
    beside(frame, around, per_result=per_result, pool_size=pool_size)
    assert counting.asked == {asked: 2}


def test_it_is_idle_until_a_number_is_named_and_a_bad_one_is_refused() -> None:
    assert [Related(STAGES, per_result=n).is_idle([], []) for n in (0, 1)] == [True, False]
    assert_refused(partial(Related, STAGES), "be a whole number in [0, 5]", per_result=[-1, 6, 1.5])
    assert_refused(partial(Related, STAGES), "be >= 1", pool_size=0)


def test_no_row_is_no_lookup() -> None:
    stage: Stage = Related(STAGES, per_result=2)
    assert stage(rows(document_id=[]), batch_of()).is_empty()
