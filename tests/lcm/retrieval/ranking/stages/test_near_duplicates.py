"""What has nearly the same words as something better steps back, and that stands for it."""

from itertools import pairwise

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval.measures.coverage import with_near_duplicates
from lcm.memory.memory import Memory
from lcm.records.conversation import Message, Transcript
from lcm.records.query import Query
from lcm.retrieval.ranking.pipeline import Ranking
from lcm.retrieval.ranking.stages.selection import Limit, NearDuplicates
from lcm.retrieval.source.indexes import Hybrid
from pipelines.config import building
from tests.lcm.refusals import assert_refused
from tests.support import chat
from tests.support.composing import composed
from tests.support.workspaces import minute, system

FLIGHTS = (
    "The flight to Rome leaves the northern gate in the morning for 120 euros, as said.",
    "The flight to Rome leaves the northern gate in the morning for 120 euros,",
    "The flight to Rome leaves the northern gate in the morning for 140 euros, as said.",
    "Kettles whistle.",
)


def answered(texts: tuple[str, ...], scores: list[float], least_shared: float = 0.7, n: int = 20) -> pl.DataFrame:
    """The ranking of one question over one message a text, text i with score i."""

    def scored(frame: pl.DataFrame, batch: object) -> pl.DataFrame:
        return frame.with_columns(
            score=pl.col("seq").replace_strict(dict(enumerate(scores, 1)), return_dtype=pl.Float64)
        )

    stages = {"scores": scored, "near_duplicates": NearDuplicates(least_shared, n), "limit": Limit(n)}
    messages = tuple(Message(f"m{i}", "user", text, "s", minute(i)) for i, text in enumerate(texts))
    with Memory.open(system(ranking=Ranking(Hybrid(1000, 1000), stages))) as memory:
        memory.ingest(Transcript("talk", messages))
        found = memory.rank([Query("q", "flight kettle euros", minute(99))])
        ids = memory.documents.select("document_id", message=pl.col("source_message_ids").list.first())
    names = dict(ids.iter_rows())
    return found.with_columns(
        message=pl.col("document_id").replace_strict(names),
        like=pl.col("stands_for").list.eval(pl.element().replace_strict(names, default=None)),
    )


def test_what_says_more_is_no_duplicate_of_what_says_less() -> None:
    found = answered(FLIGHTS[:3], [1.0, 2.0, 3.0], least_shared=0.5)
    assert found["message"].to_list() == ["m2", "m1", "m0"]
    assert found["like"].to_list() == [[], [], []]


@pytest.mark.parametrize(
    "said",
    [
        ("I will fly to Paris in May", "I will not fly to Paris in May"),
        ("Ann: I quit my job today", "Bob: I quit my job today"),
        ("the balance is -50 now", "the balance is 50 now"),
        ("from 5.0 to 7 at noon", "from 7 to 5.0 at noon"),
        ("red over green today", "green over red today"),
        ("DEBUG = true in a.py", "DEBUG = false in a.py"),
        ("我明天会去巴黎", "我明天不会去巴黎"),
    ],
)
def test_a_denial_another_speaker_sign_number_or_order_is_something_new(said: tuple[str, str]) -> None:
    for texts in (said, said[::-1]):
        assert answered(texts, [2.0, 1.0], least_shared=0.3)["like"].to_list() == [[], []]


def test_what_says_the_same_again_goes_last_and_is_stood_for_even_where_a_limit_cuts_it_off() -> None:
    found = answered(FLIGHTS, [4.0, 3.0, 2.0, 1.0])
    assert found["message"].to_list() == ["m0", "m2", "m3", "m1"]
    assert found["like"].to_list() == [["m1"], [], [], []]
    found = answered(FLIGHTS, [4.0, 3.0, 2.0, 1.0], n=2)
    assert found["message"].to_list() == ["m0", "m2"]
    shown = with_near_duplicates(found.select("query_id", "rank", "document_id", "stands_for"))
    assert shown["rank"].to_list() == [1, 1, 2]


WORDS = st.lists(st.sampled_from(["red", "blue", "7", "8", "green"]), min_size=1, max_size=4)
TEXTS = st.lists(WORDS, min_size=1, max_size=7)


@settings(deadline=None, max_examples=40)
@given(TEXTS, st.floats(0.1, 1.0))
def test_nothing_is_lost_and_every_near_duplicate_is_behind_the_one_that_stands_for_it(
    words: list[list[str]], least_shared: float
) -> None:
    texts = tuple(" ".join(["flight", *some]) for some in words)
    found = answered(texts, [float(-i) for i in range(len(texts))], least_shared)
    assert sorted(found["message"].to_list()) == [f"m{i}" for i in range(len(texts))]
    stood_for = [message for like in found["like"].to_list() for message in like]
    assert len(stood_for) == len(set(stood_for))
    first = len(found) - len(stood_for)
    assert set(found["message"][first:]) == set(stood_for)
    assert not any(found["like"].to_list()[first:])
    pairs = [set(pairwise(text.split())) for text in texts]
    for message, like in found.select("message", "like").iter_rows():
        mine = pairs[int(message[1:])]
        for other in like:
            theirs = pairs[int(other[1:])]
            assert theirs <= mine
            assert len(theirs) + 1 >= least_shared * (len(mine) + 1)


def test_settings_out_of_range_are_refused() -> None:
    assert_refused(NearDuplicates, "be in (0, 1]", least_shared=[0.0, 1.1])
    assert_refused(NearDuplicates, "be >= 1", n=0)


def test_the_preset_leaves_out_what_a_chat_repeats() -> None:
    config = composed(["system=unified", "embedder=hashing"])
    ranking = building.build(config, "memory").ranking
    with chat.workspace() as memory:
        found = memory.rank(chat.questions(), ranking).join(memory.documents, on="document_id")
        left_out = found.filter(pl.col("document_id").is_in(found["stands_for"].explode().implode()))
    assert "Its lid." in left_out["text"]
