"""Chat: of OpenAI's style, whose messages have a `role`, and of ShareGPT's, whose turns say whom they are `from`."""

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from html.parser import HTMLParser
from typing import Any, NamedTuple

from lcm.encoding import to_json, well_formed
from lcm.errors import TranscriptError
from lcm.records.conversation import Message, Part, Role
from lcm.transcript.fields import id_in, list_in, said_at, text_in
from lcm.transcript.parts import DecomposedMessage, chat_message, is_ui_message, plain_text, value_part
from lcm.transcript.reader import ConversationIds, Element, RecordedItem, Session, sessions
from lcm.transcript.recorded_file import RecordedFile

_SIDES: dict[str, Role] = {"prompt": "user", "completion": "assistant"}
"""Where a session has what was asked and answered, and who says one that is a text."""
_SHAPES: tuple[tuple[str, ...], ...] = (("messages",), ("conversations",), ("conversation",), tuple(_SIDES))
"""The keys under which a session has its messages; the first that are there hold them."""


@dataclass(frozen=True, slots=True)
class ChatReader:
    """Reads JSON or JSONL of messages or of whole sessions: one conversation a file, or a session, or as many as its
    sessions name.

    A session is an object with `messages` (data sets also say `conversations` or `conversation`, or give a `prompt` and
    the `completion` to it, messages or texts), and perhaps `conversation_id`, `session_id`, an instant and `title`.
    Sessions that name the same conversation are one, in the order of the file; each that names neither it nor a session
    is one of its own, named by its `id`, else by the file. A message is one of OpenAI's or of Vercel's AI SDK
    (`parts`), and may carry `id`, `name` (its author), `session_id`, an instant (`created_at`, `timestamp`, or what
    else files have: `said_at`), and where no session holds it a `conversation_id`.

    What a session holds beside its messages is an event of type `session`, with null in place of its lists; the
    elements of other lists than those of messages are events too.
    """

    name = "chat"

    def detects(self, file: RecordedFile) -> bool:
        is_marked = any(_is_message(value) and value["role"].startswith("_") for value in file.heads)
        return not is_marked and any(_is_session(value) or _is_telling(value) for value in file.heads)

    def read(self, file: RecordedFile) -> Iterator[RecordedItem]:
        known = next((value for value in file.heads if _is_session(value) or _is_message(value)), None)
        if _is_session(known):
            unnamed = ConversationIds()
            for session in sessions(file):
                yield from chat_session(session, file, unnamed)
            return
        for line, native in file.values():
            with file.record(line):
                name = id_in(native, "conversation_id") or file.name
                yield RecordedItem(name, chat_message(native, name))


def chat_session(session: Session, file: RecordedFile, unnamed: ConversationIds) -> Iterator[RecordedItem]:
    """A session and its messages; its own instant is that of its first message, unless that has one."""
    header = session.header
    conversation_id, session_id = id_in(header, "conversation_id"), id_in(header, "session_id")
    if not conversation_id:
        # A session id alone says that the session is part of a conversation: the file's.
        conversation_id = file.name if session_id else unnamed.name(id_in(header, "id") or file.name)
    session_id = session_id or conversation_id
    texts = {key for key in _SIDES if isinstance(header.get(key), str)}
    shape = next((shape for shape in _SHAPES if (session.lists | texts).issuperset(shape)), ())
    said_in = texts.intersection(shape)

    has_begun = False

    def said(value: Any, _: str) -> Message:
        nonlocal has_begun
        is_first, has_begun = not has_begun, True
        started_at = said_at(header) if is_first else None
        return (_side if isinstance(value, _Side) else chat_message)(value, session_id, started_at)

    elements = _in_turn(session, said_in) if shape == tuple(_SIDES) else session.elements
    bare = session._replace(header=header | dict.fromkeys(said_in), elements=elements)
    yield from bare.items(file, conversation_id, dict.fromkeys(shape, said), text_in(header, "title"))


class _Side(NamedTuple):
    """A side of a session that is a text."""

    key: str
    text: str


def _in_turn(session: Session, texts: Collection[str]) -> list[Element]:
    """What stands in a session of two sides, the prompt before the completion."""
    places = {key: place for place, key in enumerate(_SIDES)}
    sides = [Element(session.line, key, 1, _Side(key, session.header[key])) for key in texts]
    return sorted([*session.elements, *sides], key=lambda element: places.get(element.key, len(places)))


def _side(side: _Side, session_id: str, started_at: datetime | None) -> Message:
    envelope = {"native": {side.key: None}, "slots": {side.key: "value"}}
    words, parts = plain_text({"content": side.text}), (value_part(side.key, side.text),)
    return DecomposedMessage(_SIDES[side.key], words, parts, envelope).message("", session_id, started_at)


def _is_session(value: object) -> bool:
    """Say whether this holds messages; without any yet, only under their usual key."""
    if not isinstance(value, dict):
        return False
    return value.get("messages") == [] or any(all(_is_said(value, key) for key in shape) for shape in _SHAPES)


def _is_said(session: Mapping[str, Any], key: str) -> bool:
    """Say whether a session has messages under a key, or a text that is one."""
    is_text = key in _SIDES and isinstance(session.get(key), str)
    return is_text or any(map(_is_message, list_in(session, key)[:1]))


def _is_message(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("role"), str)


def _is_telling(value: Any) -> bool:
    return _is_message(value) and ("content" in value or "tool_calls" in value or is_ui_message(value))


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
_WHITE_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class ShareGptReader:
    """Reads JSON or JSONL of sessions with `conversations`, a list of turns `{from, value}`: one conversation a
    session, named by its `id`, else by the file.

    What a session holds beside its turns is an event of type `session`, with null in place of its lists; an element of
    another list is an event named by the list. The replies of an export may be HTML, one `<div>` each. Their words are
    then what the page showed: tags are not words, those of code blocks stay, the button of a code block goes. What
    others wrote is theirs as it is, tags and all.
    """

    name = "sharegpt"

    def detects(self, file: RecordedFile) -> bool:
        return any(map(is_sharegpt, file.heads))

    def read(self, file: RecordedFile) -> Iterator[RecordedItem]:
        ids = ConversationIds()
        for session in sessions(file):
            yield from sharegpt_session(session, file, ids)


def sharegpt_session(session: Session, file: RecordedFile, ids: ConversationIds) -> Iterator[RecordedItem]:
    """A session and its turns."""
    name = ids.name(id_in(session.header, "id") or file.name)
    yield from session.items(file, name, {"conversations": _turn}, text_in(session.header, "title"))


def is_sharegpt(value: object) -> bool:
    """Say whether this is a session of such turns."""
    turns = value.get("conversations") if isinstance(value, dict) else None
    return isinstance(turns, list) and all(map(_is_turn, turns[:1]))


def _is_turn(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("from"), str) and "value" in value


def _turn(turn: Any, session_id: str) -> Message:
    if not _is_turn(turn):
        raise TranscriptError("expected a turn, an object with `from` and `value`")
    speaker, value = turn["from"], turn["value"]
    role = ROLES.get(speaker, "assistant")
    part = _call(value) if speaker == "function_call" else None
    if part is None:
        part = _reply(value) if role == "assistant" else value_part("value", value)
    words = "" if part.part_type == "tool" else plain_text({"content": value if part.text is None else part.text})
    said = DecomposedMessage(role, words, (part,), {"native": {**turn, "value": None}, "slots": {"value": "value"}})
    author = None if speaker in ROLES else well_formed(speaker)
    return said.message(id_in(turn, "id"), session_id, said_at(turn), author)


def _call(value: object) -> Part | None:
    """A tool call written as JSON text, if it is one: `{name, arguments}`."""
    try:
        call = json.loads(value) if isinstance(value, str) else None
    except (RecursionError, ValueError):
        return None
    name = text_in(call, "name")
    if not isinstance(call, dict) or name is None:
        return None
    given = call.get("arguments")
    return Part(
        "tool",
        tool_name=name,
        tool_input=None if given is None else to_json(given),
        metadata={"slot": "value", "raw": value},
    )


def _reply(value: object) -> Part:
    part = value_part("value", value)
    shown = _shown(part.text or "")
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
    return "".join(page.shown).strip()


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.shown: list[str] = []
        self._code_blocks = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self._code_blocks += tag == "pre"
        self._break_line(tag)

    def handle_endtag(self, tag: str) -> None:
        self._code_blocks -= tag == "pre" and self._code_blocks > 0
        self._break_line(tag)

    def handle_data(self, data: str) -> None:
        if self._code_blocks:
            shown = "" if data == "Copy code" else data
        else:
            shown = _WHITE_SPACE.sub(" ", data)
            shown = shown.lstrip() if self._at_line_start else shown
        if shown:
            self.shown.append(shown)

    @property
    def _at_line_start(self) -> bool:
        return not self.shown or self.shown[-1].endswith("\n")

    def _break_line(self, tag: str) -> None:
        if tag in _BLOCKS and not self._at_line_start:
            self.shown.append("\n")
