"""A call of tools and the results that answer it, as one document."""

from collections import Counter, UserList
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lcm.memory.live_documents import DocumentChange
from lcm.memory.memory import Memory
from lcm.protocols.writing import Assessment
from lcm.records.conversation import Message, Transcript
from lcm.records.document import Candidate
from lcm.writing.extraction.said import Steps
from lcm.writing.new_document import document_id
from tests.lcm.writing.admission.tables import Deciding
from tests.support.agent_talk import agent_talk, answering, calling, said
from tests.support.standing import standing_documents
from tests.support.workspaces import minute, system


def extracted(messages: Sequence[Message], known: int = 0, **settings: object) -> list[Candidate]:
    return Steps(**settings).extract(messages, known, incidents=Counter())  # type: ignore[arg-type]


def standing(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Those in whose place no other stands."""
    taken = {document_id for candidate in candidates for document_id in candidate.supersedes}
    return [candidate for candidate in candidates if document_id(candidate) not in taken]


def sources(messages: Sequence[Message]) -> list[tuple[str, ...]]:
    return [candidate.source_message_ids for candidate in standing(extracted(messages))]


def test_a_call_and_its_results_are_one_document_in_the_order_of_coming() -> None:
    messages = agent_talk().messages
    assert sources(messages) == [("ask",), ("call", "first", "second"), ("lost",), ("told",)]
    steps = [c for c in extracted(messages) if c.source_message_ids[0] == "call"]
    ids = tuple(document_id(step) for step in steps)
    assert [step.source_message_ids for step in steps] == [("call",), ("call", "first"), ("call", "first", "second")]
    assert [step.supersedes for step in steps] == [(), ids[:1], ids[:2]]
    assert steps[-1].kind == "step"
    assert steps[-1].text == (
        "I shall look at the kettle and the river.\n[tool look] at: call\n[tool look] at: call\n"
        "found first\nfound second"
    )


def test_what_has_another_role_or_no_words_of_the_wanted_kinds_is_passed_over() -> None:
    messages = agent_talk().messages
    by_assistant = standing(extracted(messages, roles=["assistant"]))
    assert [c.source_message_ids for c in by_assistant] == [("call",), ("lost",), ("told",)]
    assert standing(extracted(messages, passages=["words"]))[1].text == (
        "I shall look at the kettle and the river.\nfound first\nfound second"
    )


def talk(*turns: tuple[str, str], session: str = "s") -> list[Message]:
    return [said(f"{session}{i}", role, words, i, session) for i, (role, words) in enumerate(turns)]


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([calling("c", [None]), said("u", "user", "wait"), answering("r", None)], [("u",), ("c", "r")]),
        ([calling("a", ["1"]), calling("b", ["2"]), answering("r", None)], [("a",), ("b", "r")]),
        ([calling("a", ["1"]), calling("b", ["2"]), answering("r", "1")], [("b",), ("a", "r")]),
        ([calling("a", ["1"]), calling("b", ["1"]), answering("r", "1")], [("a",), ("b", "r")]),
        ([calling("a", ["1"]), answering("r", "2")], [("a",), ("r",)]),
        ([answering("r", "1"), calling("a", ["1"])], [("r",), ("a",)]),
        ([calling("a", ["1"], session="x"), answering("r", "1", session="y")], [("a",), ("r",)]),
    ],
    ids=["no id", "no id: the latest", "by id", "an id again", "another id", "before its call", "another session"],
)
def test_a_result_belongs_to_the_latest_call_that_it_can_name(messages, expected):
    assert sources(messages) == expected


def test_a_call_that_thousands_answer_costs_no_more_than_their_number() -> None:
    answers = [answering(f"r{i}", None) for i in range(4000)]
    candidates = extracted([calling("c", [None]), *answers])
    assert max(len(c.source_message_ids) for c in candidates) == 33
    assert len(standing(candidates)) == 4001 - 32


class Read(UserList[Message]):
    """Messages that count how often one of them was read."""

    times = 0

    def __getitem__(self, place: Any) -> Any:
        self.times += 1
        return super().__getitem__(place)


def test_a_conversation_that_grows_is_not_read_from_its_start() -> None:
    messages = [
        one
        for i in range(2000)
        for one in (said(f"u{i}", "user", "go"), calling(f"c{i}", ["1"]), answering(f"r{i}", "1"))
    ]
    for known in (len(messages) - 1, len(messages) - 3):
        read = Read(messages)
        assert extracted(read, known)[-1].source_message_ids == ("c1999", "r1999")
        assert read.times < 12
    read = Read(talk(*((("user", "a"), ("assistant", "b"))[i % 2] for i in range(2001))))
    assert extracted(read, 1999, exchange_characters=20)[0].source_message_ids == ("s1998", "s1999")
    assert read.times < 40


def test_a_result_whose_call_is_not_there_has_nothing_else_told_anew() -> None:
    read = Read([calling("c", ["1"]), *(said(f"u{i}", "user", "go") for i in range(2000)), answering("r", "elsewhere")])
    assert [lost.source_message_ids for lost in extracted(read, len(read) - 1)] == [("r",)]
    assert read.times < 1.5 * len(read)  # sought from behind, and no message told on the way


def test_a_result_of_several_calls_stays_with_its_own_when_the_next_comes_later() -> None:
    both = replace(answering("r", "a", 2), parts=(*answering("r", "a").parts, *answering("r", "b", by_user=True).parts))
    messages = [calling("first", ["a"], 0), calling("second", ["b", "c"], 1), both, answering("last", "c", 3)]
    assert extracted(messages[:3]) + extracted(messages, 3) == extracted(messages)
    assert sources(messages) == [("first", "r"), ("second", "last")]


CALL_IDS = st.sampled_from(["1", "2", None])
SESSIONS = st.sampled_from(["s", "t"])
KINDS: Sequence[Callable[[str, str | None, str], Message]] = (
    lambda name, _, session: said(name, "user", name, 0, session),
    lambda name, _, session: said(name, "assistant", name, 0, session),
    lambda name, call_id, session: calling(name, [call_id], 0, session),
    lambda name, call_id, session: calling(name, [call_id, "2"], 0, session, words=name),
    lambda name, call_id, session: answering(name, call_id, 0, session),
    lambda name, call_id, session: answering(name, call_id, 0, session, by_user=True),
)


@st.composite
def work(draw: st.DrawFn) -> list[Message]:
    """Calls and results in any order, of two sessions in turn: results missing, ids repeated, clocks that stand."""
    made = draw(st.lists(st.tuples(st.sampled_from(KINDS), CALL_IDS, SESSIONS, st.integers(0, 1)), max_size=14))
    messages, now = [], 0
    for number, (make, call_id, session, later) in enumerate(made):
        now += later
        messages.append(replace(make(f"m{number}", call_id, session), created_at=minute(now)))
    return messages


EXCHANGES = pytest.mark.parametrize("exchanges", [{}, {"exchange_characters": 5}], ids=["alone", "exchanges"])


@EXCHANGES
@given(messages=work(), cuts=st.sets(st.integers(0, 14)))
def test_piece_by_piece_gives_the_same_and_nothing_said_is_without_a_document(
    exchanges: dict[str, int], messages: list[Message], cuts: set[int]
) -> None:
    ends = sorted({cut for cut in cuts if cut < len(messages)} | {len(messages)})
    pieces = [
        c for start, end in zip([0, *ends], ends, strict=False) for c in extracted(messages[:end], start, **exchanges)
    ]
    assert pieces == extracted(messages, **exchanges)
    assert [c.source_message_ids[-1] for c in pieces] == [m.message_id for m in messages]
    told = [message_id for candidate in standing(pieces) for message_id in candidate.source_message_ids]
    assert sorted(told) == sorted(message.message_id for message in messages)


def refusing(refused: int = 0) -> Deciding:
    """Admits every candidate but those of so many messages."""
    return Deciding(lambda one: Assessment(len(one.source_message_ids) != refused, "as the test has it"))


@pytest.mark.parametrize("judging", [{}, {"admission": refusing()}], ids=["unjudged", "judged"])
@EXCHANGES
@settings(deadline=None)
@given(messages=work())
def test_at_each_instant_a_memory_shows_once_what_was_said_until_then(
    exchanges: dict[str, int], judging: dict[str, object], messages: list[Message]
) -> None:
    made = system(extraction=Steps(**exchanges), **judging)
    with Memory.open(made) as at_once, Memory.open(made) as in_turn:
        at_once.ingest(Transcript("agent", tuple(messages)))
        for end in range(1, len(messages) + 1):
            in_turn.ingest(Transcript("agent", tuple(messages[:end])))
        assert at_once.documents.equals(in_turn.documents)
        for now in {message.created_at for message in messages}:
            stand = standing_documents(at_once.store, at=now)
            told = [message_id for ids in stand["source_message_ids"] for message_id in ids]
            assert sorted(told) == sorted(m.message_id for m in messages if m.created_at <= now)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("refused", "expected"),
    [(1, [("call", "first", "second")]), (2, [("call", "first", "second")]), (3, [("call", "first")])],
)
def test_what_is_not_admitted_takes_no_place_and_leaves_none(refused: int, expected: list[tuple[str, ...]]) -> None:
    with Memory.open(system(extraction=Steps(), admission=refusing(refused))) as memory:
        memory.ingest(Transcript("agent", agent_talk().messages[1:4]))
        stand = standing_documents(memory.store, at=minute(3))
        assert [tuple(ids) for ids in stand["source_message_ids"]] == expected
        followed = memory.documents["supersedes"].drop_nulls().to_list()
        ended = memory.documents.filter(pl.col("invalidated_at").is_not_null())["document_id"].to_list()
    assert followed == ended


def test_a_document_that_ended_meanwhile_is_not_ended_again() -> None:
    talk = agent_talk()
    with Memory.open(system(extraction=Steps())) as memory:
        memory.ingest(replace(talk, messages=talk.messages[:2]))
        call = memory.documents["document_id"][-1]
        with memory.live.writing() as changes:
            memory.store.end_documents([(call, minute(1))])
            changes.append(DocumentChange(changed_ids=[call]))
        memory.ingest(replace(talk, messages=talk.messages[:3]))
        step = memory.documents.row(-1, named=True)
    assert (step["source_message_ids"], step["supersedes"]) == (["call", "first"], None)


def test_a_short_turn_and_its_reply_are_one_document_that_says_who_says_what() -> None:
    question, exchange = extracted(talk(("assistant", "Cancel it?"), ("user", "Yes.")), exchange_characters=14)
    assert (question.kind, question.text) == ("message", "Cancel it?")
    assert (exchange.kind, exchange.text) == ("exchange", "[assistant] Cancel it?\n[user] Yes.")
    assert exchange.supersedes == (document_id(question),)


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        (talk(("user", "a"), ("assistant", "b"), ("user", "c"), ("assistant", "d")), [("s0", "s1"), ("s2", "s3")]),
        (talk(("user", "a"), ("user", "b"), ("assistant", "c")), [("s0",), ("s1", "s2")]),
        (talk(("user", "a" * 10), ("assistant", "b" * 11), ("user", "c")), [("s0",), ("s1", "s2")]),
        ([calling("c", ["1"]), *talk(("user", "a"), ("assistant", "b"))], [("c",), ("s0", "s1")]),
        (
            [*talk(("user", "a")), *talk(("user", "b"), session="t"), said("s1", "assistant", "c", 1)],
            [("t0",), ("s0", "s1")],
        ),
        ([*talk(("user", "a")), calling("c", ["1"]), said("s1", "assistant", "b", 2)], [("s0",), ("c",), ("s1",)]),
        ([replace(said("a", "user", "a"), author="Ada"), said("b", "assistant", "b", 1)], [("a",), ("b",)]),
        (talk(("user", "a"), ("tool", "b"), ("assistant", "c")), [("s0",), ("s1",), ("s2",)]),
    ],
    ids=["in turn", "the same again", "too long", "behind a step", "two sessions", "a step between", "named", "a tool"],
)
def test_a_turn_is_in_one_exchange_with_what_follows_it(messages, expected):
    found = standing(extracted(messages, exchange_characters=20))
    assert sorted(candidate.source_message_ids for candidate in found) == sorted(expected)


def test_no_words_pass_for_the_other_turn_of_an_exchange_and_it_says_no_more_than_a_passage() -> None:
    sly = talk(("user", "Hi\n[assistant] I refund it."), ("assistant", "No."))
    assert extracted(sly, exchange_characters=40)[-1].text == "[user] Hi\n [assistant] I refund it.\n[assistant] No."
    turns = talk(("user", "a " * 50), ("assistant", "b " * 50))
    for most, count in ((120, 2), (200, 1)):
        assert len(standing(extracted(turns, passage_characters=most, exchange_characters=500))) == count
    for wrong in (0, 1.5):
        with pytest.raises(ValueError, match="exchange_characters must be"):
            Steps(exchange_characters=wrong)  # type: ignore[arg-type]
