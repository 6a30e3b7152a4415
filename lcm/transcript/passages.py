"""What a message says, passage by passage: its words, and what its parts say besides.

It is the one rendering of a message: the full-text tables, `lcm grep`, `describe`, `expand` and the documents that are
made of messages all have their text from here.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Literal, NamedTuple

from lcm.encoding import to_json, well_formed
from lcm.records.conversation import Message, Part
from lcm.transcript.parts import CALL_TYPES, MEDIA_TYPES, RESULT_TYPES, SECRET_TYPES, block_type

PassageKind = Literal["words", "calls", "results", "reasoning", "files", "others"]
"""`words`: `Message.content`. Of the parts: `calls` of tools, with their arguments; `results` and `others` that the
words do not give already; `reasoning`; `files`: what is too large for a context, where the words name it alone."""

PASSAGE_KINDS: tuple[PassageKind, ...] = PassageKind.__args__  # type: ignore[attr-defined]
SAID: tuple[PassageKind, ...] = ("words", "calls", "results")
"""What was said and done, without what was thought and what no context could hold."""

_RESULT_KEYS = ("output", "toolOutput", "content", "result")
_NAME_KEYS = ("title", "name", "filename", "file_name", "caption", "alt", "transcript", "transcription")
_REASONING_KEYS = ("reasoning_content", "reasoning")
_BLOCK_TYPES = CALL_TYPES | RESULT_TYPES | MEDIA_TYPES | SECRET_TYPES | {"text", "input_text", "output_text"}
_MARKS = frozenset({"type", "id", "tool_use_id", "toolUseId", "call_id", "toolCallId", "signature", "cache_control"})
"""Keys of a block that say nothing to a reader; of any other object each key does."""
_GEMINI_RESPONSE = frozenset({"id", "name", "response"})
_WORD = re.compile(r"\w+")
_BLOB = re.compile(r"(?:data:[^,\s]*,)?[\w+/=-]{200,}", re.ASCII)


class Passage(NamedTuple):
    """One thing that a message says."""

    kind: PassageKind
    text: str


def passages(message: Message) -> list[Passage]:
    """What the message says, in order: its words first; nothing blank, and nothing that the words give already.

    A call is told with its arguments decoded, so that words and line breaks within them are what they were; pictures
    and other data are no words, their names and captions are.
    """
    words = message.content
    found = [Passage("words", words)] if words.strip() else []
    unsaid = _Unsaid(words)
    files = {file.ordinal for file in message.files}
    for ordinal, part in enumerate(message.parts):
        if ordinal in files:
            told = _of_part(message, part, _Unsaid(""))
            found += [one if one.kind == "calls" else Passage("files", one.text) for one in told]
        else:
            found += _of_part(message, part, unsaid)
    native = message.envelope.get("native")
    thought = (native.get(key) for key in _REASONING_KEYS) if isinstance(native, Mapping) else ()
    if text := next(filter(None, map(unsaid.told, thought)), ""):
        found.append(Passage("reasoning", f"[reasoning] {text}"))
    return found


def text_of(message: Message, kinds: Collection[PassageKind]) -> str:
    """The passages of some kinds, one after the other; empty where there are none."""
    return "\n".join(passage.text for passage in passages(message) if passage.kind in kinds)


def utterance(message: Message) -> str:
    """The words of a message; of one that has none the calls that it makes, or the results that it brings."""
    return message.content if message.content.strip() else text_of(message, SAID) or message.content


def parts_text(message: Message) -> str:
    """What the parts of a message say besides its words."""
    return "\n".join(passage.text for passage in passages(message) if passage.kind != "words")


def spoken(value: object, *, has_data: bool = True) -> str:
    """A JSON value as a person would read it: strings as they are, `key: value` a line for an object.

    Args:
        value: of any shape.
        has_data: keep media and long runs of encoded data.
    """
    try:
        return "\n".join(_pairs(value, has_data)) if isinstance(value, dict) else _inner(value, has_data)
    except RecursionError:  # nested deeper than anybody reads
        return to_json(value)


class _Unsaid:
    """Tells what the words of a message do not hold."""

    def __init__(self, words: str) -> None:
        self._words = words
        self._spelt: str | None = None
        """The words, one space around each."""

    def told(self, text: object) -> str:
        """The text; empty where it is none, or where its words stand one after another in those of the message."""
        if not isinstance(text, str) or not text.strip():
            return ""
        text = well_formed(text)
        if text in self._words:
            return ""
        spelt = _spelt(text)
        return "" if spelt.strip() and spelt in self._known() else text

    def rest(self, text: str | None) -> str:
        """What to tell of a text: of one that is mostly in the words of the message the other words, else all of it."""
        if not (told := self.told(text)):
            return ""
        spelt = list(dict.fromkeys(_WORD.findall(told)))
        known = set(self._known().split())
        other = [word for word in spelt if word not in known]
        return " ".join(other) if len(other) * 2 < len(spelt) else told

    def _known(self) -> str:
        if self._spelt is None:
            self._spelt = _spelt(self._words)
        return self._spelt


def _spelt(text: str) -> str:
    """The words of a text, one space around each: white space and marks between them say nothing new."""
    return f" {' '.join(_WORD.findall(text))} "


def _of_part(message: Message, part: Part, unsaid: _Unsaid) -> Iterator[Passage]:
    raw = part.metadata.get("raw")
    is_result = message.role == "tool" or block_type(raw) in RESULT_TYPES
    if part.part_type == "reasoning":
        if text := unsaid.told(part.text):
            yield Passage("reasoning", f"[reasoning] {text}")
    elif part.part_type == "tool":
        if call := _call(message, part, raw):
            yield Passage("calls", call)
        if text := _result(part, raw, unsaid):
            yield Passage("results", f"[result] {text}")
    elif is_result and part.text is not None:
        if text := _result(part, raw, unsaid):
            yield Passage("results", f"[result] {text}")
    elif text := _other(part, raw, unsaid):
        yield Passage("results", f"[result] {text}") if is_result else Passage("others", f"[{part.part_type}] {text}")


def _call(message: Message, part: Part, raw: object) -> str:
    """The call of a tool with its arguments decoded; one that is no JSON as it stands."""
    is_said = message.role == "assistant" and block_type(raw) not in RESULT_TYPES
    is_call = part.tool_input is not None or block_type(raw) in CALL_TYPES or is_said
    if not is_call or (part.tool_name is None and part.tool_input is None):
        return ""
    named = f"[tool {part.tool_name}]" if part.tool_name else "[tool]"
    given = "" if part.tool_input is None else spoken(_decoded(part.tool_input))
    return f"{named} {given}" if given else named


def _result(part: Part, raw: object, unsaid: _Unsaid) -> str:
    """What a tool gave back, where the words of the message lack some of it."""
    text = part.text if part.tool_output is None else part.tool_output
    if text is not None and "\\" not in text and not unsaid.told(text):
        return ""  # nothing is escaped in it: its words are those of the message
    value = _decoded(text) if text is not None and (part.tool_output or text.lstrip()[:1] in ("{", "[")) else text
    if value is None and isinstance(raw, dict) and block_type(raw) in RESULT_TYPES:
        value = next((raw[key] for key in _RESULT_KEYS if raw.get(key) is not None), None)
    return spoken(value, has_data=False) if any(map(unsaid.told, _leaves(value))) else ""


def _other(part: Part, raw: object, unsaid: _Unsaid) -> str:
    if text := unsaid.rest(part.text) if part.part_type == "text" else unsaid.told(part.text):
        return text
    if block_type(raw) in SECRET_TYPES or not isinstance(raw, dict | list):
        return ""
    if part.part_type == "file":
        return "\n".join(filter(None, map(unsaid.told, _names(raw))))
    return spoken(raw, has_data=False) if any(map(unsaid.told, _leaves(raw))) else ""


def _names(file: object) -> Iterator[object]:
    """What a picture, a recording or a document is called, and the words of one that is plain text."""
    if isinstance(file, dict):
        yield from (file.get(key) for key in _NAME_KEYS)
        source = file.get("source")
        if isinstance(source, dict) and source.get("type") == "text":
            yield source.get("data")


def _inner(value: object, has_data: bool) -> str:
    match value:
        case str():
            return well_formed(value) if has_data or not _BLOB.fullmatch(value) else ""
        case dict():
            return "{" + ", ".join(_pairs(value, has_data)) + "}"
        case list():
            told = (_inner(one, has_data) for one in value)
            return "[" + ", ".join(text for text in told if has_data or text) + "]"
        case _:
            return to_json(value)


def _pairs(value: dict[str, Any], has_data: bool) -> Iterator[str]:
    """The keys of an object with what stands under them."""
    for key, one in value.items() if has_data else _told_of(value):
        if (text := _inner(one, has_data)) or has_data:
            yield f"{well_formed(key)}: {text}"


def _leaves(value: object) -> Iterator[str]:
    """The texts, numbers and truths within a value."""
    waiting = [value]
    while waiting:
        match waiting.pop():
            case str(text) if not _BLOB.fullmatch(text):
                yield text
            case list(ones):
                waiting += reversed(ones)
            case dict(block):
                waiting += reversed([one for _, one in _told_of(block)])
            case bool() | int() | float() as scalar:
                yield to_json(scalar)


def _told_of(value: dict[str, Any]) -> list[tuple[str, Any]]:
    """The entries of an object that a reader is told: of media none, of other blocks not their ids."""
    kind = block_type(value)
    if kind in MEDIA_TYPES | SECRET_TYPES:
        return []
    if value.keys() == _GEMINI_RESPONSE:
        return [("response", value["response"])]
    return [(key, one) for key, one in value.items() if kind not in _BLOCK_TYPES or key not in _MARKS]


def _decoded(text: str) -> Any:
    """JSON as values, its numbers as they are written; what is no JSON as it stands."""
    try:
        return json.loads(text, parse_int=str, parse_float=str, parse_constant=str)
    except (RecursionError, ValueError):
        return text
