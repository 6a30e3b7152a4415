"""What a summarizer is given to read."""

from collections.abc import Sequence
from typing import NamedTuple

from lcm.clock import EPOCH
from lcm.compaction.lossless.media import annotated, has_media, words_beside_media
from lcm.compaction.lossless.prompt_time import prompt_time
from lcm.javascript import first_units, trim
from lcm.records.conversation import Message
from lcm.records.rules import Rules
from lcm.records.summary import Summary
from lcm.transcript.file_references import file_ids_in
from lcm.transcript.rendering.storage_shape import stored_content

_ARGUMENT_UNITS = 200
_RESULT_UNITS = 400


class ChunkText(NamedTuple):
    """The text of a chunk as a summarizer reads it, and the files that it names."""

    text: str
    file_ids: tuple[str, ...]
    """The files that it names, each once, in order."""


def source_of_messages(messages: Sequence[Message], rules: Rules, timezone: str) -> ChunkText:
    """Messages as text: `[time]`, a line break and the words of each, with blank lines between them.

    `corrected`: who speaks stands behind the time, tool calls follow as lines with their arguments cut short, results
    are cut short, messages without words are left out; reasoning is invisible. `original`: of a message only the words
    that lossless-claw 0.6.3 stores, without who said them; tools and reasoning are invisible.
    """
    said = [(message, _words(message, rules)) for message in messages]
    shown = said if rules == "original" else [(message, words) for message, words in said if trim(words)]
    text = "\n\n".join(
        f"[{prompt_time(message.created_at or EPOCH, timezone)}]{'' if rules == 'original' else _speaker(message)}"
        f"\n{words}"
        for message, words in shown
    )
    named = (words if rules == "original" else message.content for message, words in said)
    file_ids = tuple(dict.fromkeys(file_id for words in named for file_id in file_ids_in(words)))
    return ChunkText(text, file_ids)


def has_words(messages: Sequence[Message], rules: Rules) -> bool:
    """Say whether the messages would give a summarizer anything to read."""
    return any(trim(_words(message, rules)) for message in messages)


def source_of_summaries(summaries: Sequence[Summary], timezone: str) -> ChunkText:
    """Summaries as text: `[from - to]`, a line break and the words of each, with blank lines between them."""
    text = "\n\n".join(
        f"[{prompt_time(summary.earliest_at or summary.created_at, timezone)} - "
        f"{prompt_time(summary.latest_at or summary.created_at, timezone)}]\n{summary.content}"
        for summary in summaries
    )
    # A file that only a source's own sources name is known by its file_ids alone.
    known = tuple(file_id for summary in summaries for file_id in (*summary.file_ids, *file_ids_in(summary.content)))
    return ChunkText(text, tuple(dict.fromkeys(known)))


def _words(message: Message, rules: Rules) -> str:
    return _content(message) if rules == "original" else _labelled(message)


def _content(message: Message) -> str:
    content = stored_content(message)
    return annotated(words_beside_media(message, content)) if has_media(message) else content


def _labelled(message: Message) -> str:
    words = annotated(message.content) if has_media(message) else message.content
    if _is_result(message):
        words = _cut(words, _RESULT_UNITS)
    calls = (
        f"[calls {part.tool_name or 'a tool'}: {_cut(part.tool_input, _ARGUMENT_UNITS)}]"
        for part in message.parts
        if part.part_type == "tool" and part.tool_input is not None
    )
    return "\n".join((*((words,) if trim(words) else ()), *calls))


def _speaker(message: Message) -> str:
    if _is_result(message):
        name = next((part.tool_name for part in message.parts if part.tool_name), None)
        return f" result of {name}:" if name else " tool result:"
    return f" {message.author} ({message.role}):" if message.author else f" {message.role}:"


def _is_result(message: Message) -> bool:
    """Some formats give what a tool returned as a message of the user."""
    return message.role == "tool" or (
        message.role == "user"
        and bool(message.parts)
        and all(part.part_type == "tool" and part.tool_input is None for part in message.parts)
    )


def _cut(text: str, units: int) -> str:
    cut = first_units(text, units, "kept")
    return text if cut == text else f"{cut} ..."
