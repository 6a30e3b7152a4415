"""ShareGPT exports: JSON or JSONL of sessions with `conversations`, a list of turns `{from, value}`.

The replies of an export may be HTML, one `<div>` each. Their words are then what the page showed: tags are not words,
those of code blocks stay, the button of a code block goes. What others wrote is theirs as it is, tags and all.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from html.parser import HTMLParser
from typing import Any

from lcm.encoding import to_json, well_formed
from lcm.errors import TranscriptError
from lcm.records.conversation import Event, Message, Part, Role
from lcm.transcript.fields import text_in
from lcm.transcript.identity import native_id, said_at
from lcm.transcript.plain_text import plain_text
from lcm.transcript.reader import RecordedItem
from lcm.transcript.recorded_file import RecordedFile
from lcm.transcript.sessions import ConversationIds, Session, sessions, value_part

ROLES: dict[str, Role] = {
    "system": "system",
    "human": "user", "user": "user",
    "gpt": "assistant", "assistant": "assistant", "chatgpt": "assistant", "bing": "assistant", "bard": "assistant",
    "model": "assistant", "function_call": "assistant",
    "tool": "tool", "function": "tool", "function_response": "tool", "observation": "tool",
}  # fmt: skip
"""Of each `from`. Whoever is not listed is taken for an assistant and named as the author."""

_BLOCKS = frozenset(
    "blockquote br div h1 h2 h3 h4 h5 h6 hr li ol p pre table td th tr ul".split()  # noqa: SIM905  # a list of words
)
_BUTTON = "Copy code"
_WHITE_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class ShareGptReader:
    """Reads one conversation a session, named by its `id`, else by the file.

    What a session holds beside its turns is an event of type `session`, with null in place of its lists; an element of
    another list is an event named by the list.
    """

    name = "sharegpt"

    def detects(self, file: RecordedFile) -> bool:
        values = [file.first] if isinstance(file.first, dict) else file.first
        return any(map(is_sharegpt, values))

    def read(self, file: RecordedFile) -> Iterator[RecordedItem]:
        ids = ConversationIds()
        for session in sessions(file):
            yield from sharegpt_session(session, file, ids)


def sharegpt_session(session: Session, file: RecordedFile, ids: ConversationIds) -> Iterator[RecordedItem]:
    """A session and its turns."""
    conversation_id = ids.name(native_id(session.header.get("id")) or file.name)
    title = text_in(session.header, "title")
    yield RecordedItem(conversation_id, Event("session", session.header), title)
    for element in session.elements:
        with file.record(element.line, element.place):
            if element.key == "conversations":
                yield RecordedItem(conversation_id, _message(element.value, conversation_id), title)
            else:
                yield RecordedItem(conversation_id, Event(well_formed(element.key), element.value), title)


def is_sharegpt(value: object) -> bool:
    """Say whether this is a session of such turns."""
    turns = value.get("conversations") if isinstance(value, dict) else None
    return isinstance(turns, list) and all(map(_is_turn, turns[:1]))


def _is_turn(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("from"), str) and "value" in value


def _message(turn: Any, session_id: str) -> Message:
    if not _is_turn(turn):
        raise TranscriptError("expected a turn, an object with `from` and `value`")
    speaker, value = turn["from"], turn["value"]
    role = ROLES.get(speaker, "assistant")
    part = _call(value) if speaker == "function_call" else None
    if part is None:
        part = _said(value) if role == "assistant" else value_part("value", value)
    shown = value if part.text is None else part.text
    return Message(
        message_id=native_id(turn.get("id")),
        role=role,
        content="" if part.part_type == "tool" else plain_text({"content": shown}),
        session_id=session_id,
        created_at=said_at(turn),
        author=None if speaker in ROLES else well_formed(speaker),
        parts=(part,),
        envelope={"native": {**turn, "value": None}, "slots": {"value": "value"}},
    )


def _call(value: object) -> Part | None:
    """A tool call written as JSON text, if it is one: `{name, arguments}`."""
    try:
        call = json.loads(value) if isinstance(value, str) else None
    except (RecursionError, ValueError):
        return None
    if not isinstance(call, dict) or not isinstance(call.get("name"), str):
        return None
    arguments = call.get("arguments")
    return Part(
        "tool",
        tool_name=well_formed(call["name"]),
        tool_input=None if arguments is None else to_json(arguments),
        metadata={"slot": "value", "raw": value},
    )


def _said(value: object) -> Part:
    part = value_part("value", value)
    shown = _shown(part.text) if part.text is not None else None
    return part if shown is None else replace(part, text=shown, metadata={"slot": "value", "raw": value})


def _shown(text: str) -> str | None:
    """What a page shows of an exported reply; None if the text is none."""
    trimmed = text.strip()
    if not trimmed.startswith(("<div>", "<div ")) or not trimmed.endswith("</div>"):
        return None
    page = _Page()
    try:
        page.feed(trimmed)
        page.close()
    except AssertionError:  # how html.parser refuses a marked section that HTML does not have
        return None
    return page.text


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._shown: list[str] = []
        self._code_blocks = 0

    @property
    def text(self) -> str:
        return "".join(self._shown).strip()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self._code_blocks += tag == "pre"
        self._break_line(tag)

    def handle_endtag(self, tag: str) -> None:
        self._code_blocks -= tag == "pre" and self._code_blocks > 0
        self._break_line(tag)

    def handle_data(self, data: str) -> None:
        if self._code_blocks:
            shown = "" if data == _BUTTON else data
        else:
            shown = _WHITE_SPACE.sub(" ", data)
            shown = shown.lstrip() if self._at_line_start else shown
        if shown:
            self._shown.append(shown)

    @property
    def _at_line_start(self) -> bool:
        return not self._shown or self._shown[-1].endswith("\n")

    def _break_line(self, tag: str) -> None:
        if tag in _BLOCKS and not self._at_line_start:
            self._shown.append("\n")
