"""What a summarizer is given to read."""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import cache
from typing import NamedTuple

from lcm.clock import EPOCH
from lcm.compaction.lossless.media import annotated, has_media, meaningful, told, without_reasoning, words_beside_media
from lcm.compaction.lossless.prompt_time import prompt_time
from lcm.compaction.lossless.steps import step
from lcm.compaction.summarizer.kinds import TOOL
from lcm.compaction.summarizer.passages import UNDATED
from lcm.javascript import trim
from lcm.records.conversation import Message, Part
from lcm.records.rules import LosslessRules
from lcm.records.summary import Summary
from lcm.transcript.file_references import file_ids_in
from lcm.transcript.rendering.shown_form import stored_content

_TOOL = f"] {TOOL}:"


class ChunkText(NamedTuple):
    """The text of a chunk as a summarizer reads it, and the files that it names."""

    text: str
    file_ids: tuple[str, ...]
    """The files that it names, each once, in order."""


def source_of_messages(
    messages: Sequence[Message], rules: LosslessRules, timezone: str, injected_tags: Sequence[str] = ()
) -> ChunkText:
    """Messages as text: `[time]`, a line break and the words of each, with blank lines between them.

    `corrected`: in place of an unknown time stands `[undated]`; who speaks stands behind it; what a tool did is a line
    of `steps`, where its result stands; messages without words are left out; reasoning is invisible. `original`: of a
    message only the words that lossless-claw 0.6.3 stores, without who said them; tools and reasoning are invisible.
    `0.15`: the role stands behind the time, `[time | role]`; messages without words say what their tools were given and
    brought, and are left out where that is nothing; lines that are blank or only encode something are left out.

    Args:
        messages: in order.
        rules: by which the text is made.
        timezone: IANA zone of the times.
        injected_tags: what stands between such tags was put there by a host, and is left out.
    """
    said = list(_told(messages, rules, injected_tags))
    text = "\n\n".join(
        f"[{_when(one.message.created_at or EPOCH, rules, timezone)}{one.behind_time}\n{one.words}"
        for one in said
        if rules == "original" or trim(one.words)
    )
    named = (one.message.content if rules == "corrected" else one.words for one in said)
    file_ids = tuple(dict.fromkeys(file_id for words in named for file_id in file_ids_in(words)))
    return ChunkText(text, file_ids)


def has_words(messages: Sequence[Message], rules: LosslessRules) -> bool:
    """Say whether the messages would give a summarizer anything to read."""
    return any(trim(one.words) for one in _told(messages, rules, ()))


def source_of_summaries(summaries: Sequence[Summary], rules: LosslessRules, timezone: str) -> ChunkText:
    """Summaries as text: `[from - to]`, a line break and the words of each, with blank lines between them.

    `corrected`: of an unknown time `[undated - undated]`. `0.15`: summaries without words are left out.
    """
    words = {summary.summary_id: summary_words(summary, rules) for summary in summaries}
    text = "\n\n".join(
        f"[{_when(summary.earliest_at or summary.created_at, rules, timezone)} - "
        f"{_when(summary.latest_at or summary.created_at, rules, timezone)}]\n{words[summary.summary_id]}"
        for summary in summaries
        if rules != "0.15" or words[summary.summary_id]
    )
    # A file that only a source's own sources name is known by its file_ids alone.
    known = tuple(file_id for summary in summaries for file_id in (*summary.file_ids, *file_ids_in(summary.content)))
    return ChunkText(text, tuple(dict.fromkeys(known)))


def summary_words(summary: Summary, rules: LosslessRules) -> str:
    """What a summary says: by `0.15` without reasoning and what only encodes something."""
    return summary.content if rules != "0.15" else meaningful(without_reasoning(summary.content))


def _when(instant: datetime, rules: LosslessRules, timezone: str) -> str:
    """An instant as a summarizer reads it; the store dates at the epoch what has no time."""
    return UNDATED if rules == "corrected" and instant == EPOCH else prompt_time(instant, timezone)


class _Told(NamedTuple):
    """What a summarizer reads of a message, and what stands behind its time: who it hears it from."""

    message: Message
    behind_time: str
    words: str


def _told(messages: Sequence[Message], rules: LosslessRules, injected_tags: Sequence[str]) -> Iterator[_Told]:
    if rules == "original":
        return (_Told(message, "]", _content(message)) for message in messages)
    if rules == "0.15":
        return (_Told(one, f" | {one.role}]", _meaningful_words(one, injected_tags)) for one in messages)
    return _labelled(messages)


def _meaningful_words(message: Message, injected_tags: Sequence[str]) -> str:
    words = meaningful(_content(message)) or told([part.metadata.get("raw") for part in message.parts])
    if injected_tags:
        words = meaningful(_between(tuple(injected_tags)).sub("", words))
    return words or "\n".join(filter(None, map(_of_tool, message.parts)))


def _of_tool(part: Part) -> str:
    said = (("input", part.tool_input), ("output", part.tool_output))
    return "\n".join(f"[tool {what}] {text}" for what, text in said if text)


@cache
def _between(tags: tuple[str, ...]) -> re.Pattern[str]:
    names = "|".join(map(re.escape, tags))
    return re.compile(rf"<(?P<tag>{names})\b[^>]*>.*?</(?P=tag)>", re.IGNORECASE | re.DOTALL)


def _content(message: Message) -> str:
    content = stored_content(message)
    return annotated(words_beside_media(message, content)) if has_media(message) else content


def _labelled(messages: Sequence[Message]) -> Iterator[_Told]:
    """Messages with their words, and the steps of tools where their results stand, or, without one, the call does."""
    answered = {part.tool_call_id for message in messages if _is_result(message) for part in message.parts}
    calls: dict[str | None, Part] = {}  # an id may be used again
    for message in messages:
        calls |= {call.tool_call_id: call for call in _calls(message)}
        if _is_result(message):
            call_id = next((part.tool_call_id for part in message.parts if part.tool_call_id), None)
            yield _Told(message, _TOOL, step(calls.get(call_id) if call_id else None, message))
            continue
        words = annotated(message.content) if has_media(message) else message.content
        yield _Told(message, f"] {message.author} ({message.role}):" if message.author else f"] {message.role}:", words)
        unanswered = [step(call, None) for call in _calls(message) if call.tool_call_id not in answered - {None}]
        if unanswered:
            yield _Told(message, _TOOL, "\n".join(unanswered))


def _calls(message: Message) -> list[Part]:
    return [part for part in message.parts if part.part_type == "tool" and part.tool_input is not None]


def _is_result(message: Message) -> bool:
    """Some formats give what a tool returned as a message of the user."""
    return message.role == "tool" or (
        message.role == "user"
        and bool(message.parts)
        and all(part.part_type == "tool" and part.tool_input is None for part in message.parts)
    )
