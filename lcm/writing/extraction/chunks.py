"""A conversation cut into stretches that a language model is shown one at a time."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lcm.javascript import utf16_length
from lcm.records.conversation import Message


@dataclass(frozen=True, slots=True)
class Turn:
    """One message as it is shown."""

    position: int
    """In the conversation, from 0."""
    message: Message
    words: str


@dataclass(frozen=True, slots=True)
class Chunk:
    """Turns that are shown together."""

    turns: tuple[Turn, ...]
    ready_with: Turn | None
    """The turn with whose arrival it may be shown; None = it waits for more."""


def chunks(turns: Sequence[Turn], max_chars: int, min_turns: int) -> Iterator[Chunk]:
    """Cut a conversation from its start, so that what is said later moves no earlier cut.

    A chunk ends where the session does, and where the next turn would take it beyond `max_chars` UTF-16 units of
    words. One of fewer than `min_turns` turns waits: it goes on into the next session, and it is shown as it is once
    a turn comes that it has no room for. No turn may be longer than `max_chars`.
    """
    current: list[Turn] = []
    chars = 0
    for turn in turns:
        length = utf16_length(turn.words)
        is_complete = len(current) >= min_turns
        is_over = is_complete and turn.message.session_id != current[-1].message.session_id
        if current and (is_over or chars + length > max_chars):
            yield Chunk(tuple(current), current[min_turns - 1] if is_complete else turn)
            current, chars = [], 0
        current.append(turn)
        chars += length
    if current:
        yield Chunk(tuple(current), current[min_turns - 1] if len(current) >= min_turns else None)


def last_units(text: str, units: int) -> str:
    """The last so many UTF-16 code units of a well-formed text, without half a character at their start."""
    return text.encode("utf-16-le")[-2 * units :].decode("utf-16-le", "ignore")
