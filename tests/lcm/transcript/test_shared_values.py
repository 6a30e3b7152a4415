"""Messages that share their values: equal to what was read, in less memory."""

from dataclasses import replace
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from lcm.records.conversation import Message, Part
from lcm.transcript.reading import SharedValues

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.0, 1.0, -0.0]) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=4,
)
OBJECTS = st.dictionaries(st.text(max_size=2), JSON, max_size=3)
PARTS = st.builds(Part, st.sampled_from(("text", "tool")), st.none() | st.sampled_from("ab"), metadata=OBJECTS)
MESSAGES = st.builds(
    Message,
    message_id=st.text(max_size=3),
    role=st.sampled_from(("user", "assistant")),
    content=st.sampled_from("ab"),
    session_id=st.sampled_from("st"),
    created_at=st.none() | st.just(datetime(2026, 1, 1, tzinfo=UTC)),
    author=st.none() | st.text(max_size=2),
    parts=st.lists(PARTS, max_size=2).map(tuple),
    envelope=OBJECTS,
)


@given(st.lists(MESSAGES, max_size=6))
def test_messages_stay_what_they_are_to_the_kind_of_every_number(messages: list[Message]) -> None:
    shared = SharedValues()
    assert repr([shared.message(message) for message in messages]) == repr(messages)


def test_what_is_repeated_is_held_once() -> None:
    shared, words = SharedValues(), "one and " * 3
    first, second = (
        shared.message(
            Message(
                message_id=str(number),
                role="user",
                content=words,
                session_id="".join(["se", "ssion"]),
                parts=(Part("text", text="".join([words, ""]), metadata={"slot": "content"}),),
                envelope={"native": {"role": "user"}},
            )
        )
        for number in range(2)
    )
    assert first == replace(second, message_id="0")
    assert first.envelope is second.envelope
    assert first.parts[0].metadata is second.parts[0].metadata
    assert first.session_id is second.session_id
    assert first.parts[0].text is first.content
