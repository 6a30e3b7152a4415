"""Long texts cut where a reader would pause, and the passages of steps."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.memory.memory import Memory
from lcm.records.conversation import Message, Transcript
from lcm.records.document import Candidate
from lcm.writing.extraction.said import Steps, cut
from lcm.writing.new_document import document_id
from tests.support.agent_talk import answering, calling, said
from tests.support.standing import standing_documents
from tests.support.workspaces import minute, system

SIZE = 120
LINES = st.lists(st.text("ab {.\t语", max_size=90), max_size=30).map("\n".join)


def extracted(messages: list[Message], known: int = 0) -> list[Candidate]:
    return Steps(passage_characters=SIZE).extract(messages, known, incidents=Counter())


@given(LINES, st.integers(10, 200), st.integers(0, 200))
def test_nothing_but_blanks_is_lost_and_no_passage_is_too_long(text: str, size: int, first_size: int) -> None:
    passages = cut(text, size, min(first_size, size))
    assert "".join("".join(passages).split()) == "".join(text.split())
    assert len(passages[0]) <= min(first_size, size)
    assert all(len(passage) <= size for passage in passages)


def test_a_cut_is_made_before_what_begins_anew_behind_a_sentence_or_between_words() -> None:
    text = "import os\n\ndef one():\n    return 1\n\ndef two():\n    a = 1\n    return a"
    assert cut(text, 60) == ["import os\n\ndef one():\n    return 1", "def two():\n    a = 1\n    return a"]
    assert cut("one two three four", 9) == ["one two", "three", "four"]
    assert cut("一二三四五六七八", 5) == ["一二三四五", "六七八"]
    text = "猫在睡觉。" * 3 + "狗" * 7 + "！鸟呢？" + "鱼" * 9
    assert cut(text, 12) == ["猫在睡觉。猫在睡觉。", "猫在睡觉。" + "狗" * 7, "！鸟呢？" + "鱼" * 8, "鱼"]


def test_a_passage_of_a_step_tells_where_its_words_come_from() -> None:
    lines = "\n".join(f"line {i} of the file" for i in range(20))
    messages = [calling("c", ["1"]), Message("r", "tool", lines, "s", minute(1), parts=answering("r", "1").parts)]
    first, *others = extracted(messages)[1:]
    assert first.text.startswith("[tool look] at: c\nline 0 of the file")
    assert first.supersedes == (document_id(extracted(messages)[0]),)
    assert all(one.text.startswith("[tool look] at: c\nline ") for one in others)
    assert {one.source_message_ids for one in (first, *others)} == {("c", "r")}
    assert all(one.supersedes == () for one in others)


def test_a_long_call_is_named_by_its_beginning() -> None:
    words = " ".join(["word"] * 60)
    message = Message("c", "assistant", "", "s", minute(0), parts=calling("x" * 200, ["1"]).parts)
    answer = Message("r", "tool", words, "s", minute(1), parts=answering("r", "1").parts)
    head = extracted([message, answer])[-1].text.partition("\n")[0]
    assert len(head) == 120
    assert head.endswith("x…")
    with pytest.raises(ValueError, match="passage_characters must be a whole number >= 120 or null, got 100"):
        Steps(passage_characters=100)


@st.composite
def work(draw: st.DrawFn) -> list[Message]:
    """Turns, calls and results of some length, results of calls that come late or are not there."""
    messages = []
    for number in range(draw(st.integers(1, 8))):
        name, text = f"m{number}", draw(LINES) or "x"
        kind = draw(st.sampled_from(["said", "call", "result"]))
        made = {
            "said": said(name, "user", text, number),
            "call": calling(name, ["1"], number, words=text),
            "result": answering(name, "1", number),
        }[kind]
        messages.append(Message(name, made.role, text, "s", minute(number), parts=made.parts))
    return messages


@given(messages=work(), known=st.integers(0, 8))
def test_piece_by_piece_gives_the_same_passages_and_every_word_stands_in_one(
    messages: list[Message], known: int
) -> None:
    known = min(known, len(messages))
    found = extracted(messages)
    assert extracted(messages[:known]) + extracted(messages, known) == found
    taken = {one for candidate in found for one in candidate.supersedes}
    standing = [candidate for candidate in found if document_id(candidate) not in taken]
    said_in = {name: set[str]() for name in (message.message_id for message in messages)}
    for candidate in standing:
        for name in candidate.source_message_ids:
            said_in[name] |= set("".join(candidate.text.split()))
    assert all(set("".join(m.content.split())) <= said_in[m.message_id] for m in messages)


@pytest.mark.parametrize("at_once", [True, False])
def test_a_memory_shows_at_each_instant_the_passages_of_what_was_said_until_then(at_once: bool) -> None:
    results = ["\n".join(f"{name} {i} stands in a line of words" for i in range(9)) for name in ("first", "second")]
    messages = [
        calling("c", ["1", "2"]),
        *(
            Message(f"r{n}", "tool", text, "s", minute(n), parts=answering(f"r{n}", str(n)).parts)
            for n, text in enumerate(results, start=1)
        ),
    ]
    with Memory.open(system(extraction=Steps(passage_characters=SIZE))) as memory:
        for end in [3] if at_once else [1, 2, 3]:
            memory.ingest(Transcript("agent", tuple(messages[:end])))
        for now in (0, 1, 2):
            told = "\n".join(standing_documents(memory.store, at=minute(now))["text"])
            for n, text in enumerate(results, start=1):
                assert [told.count(line) for line in text.splitlines()] == [int(now >= n)] * 9
