"""Messages on their way into the store: their large texts described, their tokens counted, put behind what is there.

Source: what a large file is about is told as lossless-claw 0.6.3 tells it.
"""

import json
import logging
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

from lcm.javascript import WHITE_SPACE, trim, utf16_length
from lcm.memory.session.rules import SessionRules
from lcm.protocols.compaction import Summarizer
from lcm.protocols.models import TokenEstimator
from lcm.records.conversation import Event, Message
from lcm.records.summary import SummaryRequest
from lcm.store.store import Store
from lcm.transcript.large_files import intercepted, mime_extension, name_extension
from lcm.transcript.message_tokens import Rendering, Usage, message_tokens, usage_of
from lcm.transcript.parts import decompose

CODE_EXTENSIONS = frozenset(
    "c cc cpp cs go h hpp java js jsx kt m php py rb rs scala sh sql swift ts tsx".split()  # noqa: SIM905
)
SUMMARY_TOKENS = 300
"""What a summarizer is to aim at."""

_SAMPLE_UNITS = 2400
"""Of the head, the middle and the end of a text that is too long for a summarizer."""
_EXCERPT_UNITS = 500
_MAX_HEADINGS, _MAX_IMPORTS, _MAX_DEFINITIONS, _MAX_KEYS, _MAX_TAGS = 18, 12, 24, 30, 30
_JSON_KEYS, _JSON_SAMPLES, _JSON_DEPTH = 10, 3, 2

_SPACES = re.compile(f"[{WHITE_SPACE}]+")
_HEADING = re.compile(rf"#{{1,6}}[{WHITE_SPACE}]|[A-Z0-9][A-Z0-9{WHITE_SPACE}:_-]{{6,}}$")
_IMPORT = re.compile(r"\s*(?:import\s|from\s+\S+\s+import\s|const\s+\w+\s*=\s*require\()", re.ASCII)
_DEFINITION = re.compile(
    r"(?:export\s+)?(?:async\s+)?(?:(?:function|class|interface|type)\b|const\s+\w+\s*=\s*\(|def\s+\w+\(|struct\s+\w)",
    re.ASCII,
)
_YAML_KEY = re.compile(r"([A-Za-z0-9_.-]+):[ \t]*(?:#.*)?$")
_XML_TAG = re.compile(r"<([A-Za-z0-9_:-]+)[\s/>]")
_LINE_END = re.compile(r"\r?\n")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Exploration:
    """Describes files; equal files get equal words, as far as the summarizer is deterministic."""

    summarizer: Summarizer | None = None
    """Reads what is neither data nor code; None: its size, headings, beginning and end are told."""

    def explore(
        self, text: str, name: str | None = None, mime_type: str | None = None, *, incidents: Counter[str]
    ) -> str:
        kinds = {name_extension(name), mime_extension(mime_type)}
        if "json" in kinds:
            return _json(text)
        if "csv" in kinds:
            return _table(text, ",", "CSV")
        if "tsv" in kinds:
            return _table(text, "\t", "TSV")
        if "xml" in kinds:
            return _xml(text)
        if kinds & {"yaml", "yml"}:
            return _yaml(text)
        if kinds & CODE_EXTENSIONS:
            return _code(text, name)
        return self._summarized(text, name, incidents) or _text(text, name)

    def _summarized(self, text: str, name: str | None, incidents: Counter[str]) -> str | None:
        if self.summarizer is None:
            return None
        request = SummaryRequest(text_sample(text), SUMMARY_TOKENS)
        (result,) = self.summarizer.summarize([request], incidents=incidents)
        if result.failure is not None or not trim(result.text):
            _log.warning("no summary of the large file %s: %s", name or "without a name", result.failure or "no words")
            incidents["large file not summarised: its beginning and end stand in"] += 1
            return None
        return trim(result.text)


def text_sample(text: str) -> str:
    """The text, or of a long one its head, middle and end: 2,400 UTF-16 units each."""
    units = utf16_length(text)
    if units <= 2 * _SAMPLE_UNITS:
        return text
    middle = units // 2 - _SAMPLE_UNITS // 2
    starts = {"beginning": 0, "middle": middle, "end": units - _SAMPLE_UNITS}
    return "\n\n".join(f"[{place}]\n{_cut(text, at, at + _SAMPLE_UNITS)}" for place, at in starts.items())


def _json(text: str) -> str:
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except (RecursionError, ValueError):
        return "Structured summary (JSON): failed to parse as valid JSON."
    return f"Structured summary (JSON):\nTop-level type: {_json_type(value)}.\nShape: {_shape(value, 0)}."


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _json_type(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "object" if isinstance(value, dict) else "array" if isinstance(value, list) else "null"


def _shape(value: Any, depth: int) -> str:
    if depth >= _JSON_DEPTH:
        return "..."
    if isinstance(value, list):
        samples = ", ".join(_shape(element, depth + 1) for element in value[:_JSON_SAMPLES])
        return f"array(len={len(value)}{f', sample=[{samples}]' if value else ''})"
    if isinstance(value, dict):
        keys = ", ".join(list(value)[:_JSON_KEYS])
        return f"object(keys={len(value)}{f': {keys}' if keys else ''})"
    return _json_type(value)


def _table(text: str, delimiter: str, kind: str) -> str:
    rows = [row for row in map(trim, _LINE_END.split(text)) if row]
    if not rows:
        return f"Structured summary ({kind}): no rows found."
    columns = [column for column in map(trim, rows[0].split(delimiter)) if column]
    sample = _one_line(rows[1], 180) if len(rows) > 1 else "(no data rows)"
    return (
        f"Structured summary ({kind}):\nRows: {len(rows) - 1:,}.\n"
        f"Columns ({len(columns)}): {', '.join(columns) or '(none detected)'}.\nFirst row sample: {sample}."
    )


def _xml(text: str) -> str:
    tags = list(dict.fromkeys(_XML_TAG.findall(text)))
    return (
        f"Structured summary (XML):\nRoot element: {tags[0] if tags else 'unknown'}.\n"
        f"Child elements seen: {', '.join(tags[1 : _MAX_TAGS + 1]) or '(none detected)'}."
    )


def _yaml(text: str) -> str:
    keys = list(dict.fromkeys(found[1] for line in _LINE_END.split(text) if (found := _YAML_KEY.match(line))))
    shown = ", ".join(keys[:_MAX_KEYS]) or "(none detected)"
    return f"Structured summary (YAML):\nTop-level keys ({len(keys)}): {shown}."


def _code(text: str, name: str | None) -> str:
    lines = _LINE_END.split(text)
    imports = _distinct((_one_line(line, 180) for line in lines if _IMPORT.match(line)), _MAX_IMPORTS)
    definitions = _distinct(
        (_one_line(line, 200) for line in map(trim, lines) if _DEFINITION.match(line)), _MAX_DEFINITIONS
    )
    return (
        f"Code exploration summary{_named(name)}:\nLines: {len(lines):,}.\n"
        f"Imports/dependencies ({len(imports)}): {' | '.join(imports) or 'none detected'}.\n"
        f"Top-level definitions ({len(definitions)}): {' | '.join(definitions) or 'none detected'}."
    )


def _text(text: str, name: str | None) -> str:
    lines = _LINE_END.split(text)
    headings = _distinct(
        (_one_line(line, 160) for line in map(trim, lines) if len(line) > 1 and _HEADING.match(line)), _MAX_HEADINGS
    )
    units = utf16_length(text)
    head = _one_line(_cut(text, 0, _EXCERPT_UNITS), _EXCERPT_UNITS)
    tail = _one_line(_cut(text, max(0, units - _EXCERPT_UNITS), units), _EXCERPT_UNITS)
    words = len([word for word in _SPACES.split(text) if word])
    return (
        f"Text exploration summary{_named(name)}:\nCharacters: {units:,}.\nWords: {words:,}.\nLines: {len(lines):,}.\n"
        f"Detected section headers: {' | '.join(headings) or 'none detected'}.\n"
        f"Opening excerpt: {head or '(empty)'}.\nClosing excerpt: {tail or '(empty)'}."
    )


def _named(name: str | None) -> str:
    return f" ({name})" if name else ""


def _one_line(text: str, most_units: int) -> str:
    line = trim(_SPACES.sub(" ", text))
    return line if utf16_length(line) <= most_units else f"{_cut(line, 0, most_units)}..."


def _distinct(lines: Iterable[str], most: int) -> list[str]:
    return list(dict.fromkeys(lines))[:most]


def _cut(text: str, start: int, stop: int) -> str:
    """The UTF-16 units from start to stop; half a character at either edge becomes U+FFFD."""
    if text.isascii():
        return text[start:stop]
    return text.encode("utf-16-le", "surrogatepass")[2 * start : 2 * stop].decode("utf-16-le", "replace")


@dataclass(frozen=True, slots=True)
class MessagePreparer:
    """Prepares what a session says for the store, and puts it there."""

    rules: SessionRules
    token_estimator: TokenEstimator
    rendered: Rendering
    """The text whose tokens a message is counted by."""
    incidents: Counter[str] = field(default_factory=Counter)
    """Counts what is survived."""

    def prepared(self, message: Message) -> Message:
        """The message with its large texts noted."""
        threshold = self.rules.large_file_threshold_tokens
        if threshold is None:
            return message
        explore = partial(Exploration(self.rules.large_file_summarizer).explore, incidents=self.incidents)
        return intercepted(
            message, threshold, self.token_estimator, explore, every_tool_result=self.rules.rules == "corrected"
        )

    def append(self, store: Store, conversation_id: str, messages: Sequence[Message]) -> list[Message]:
        """Put a turn behind a conversation, which is made if need be; gives the messages as stored.

        Raises:
            StoreError: if a message id is taken; nothing is written.
        """
        prepared = list(map(self.prepared, messages))
        store.append(conversation_id, prepared, self.token_estimator, self.rendered)
        return prepared

    def count(self, messages: Sequence[Message]) -> list[int]:
        return message_tokens(messages, self.rendered, self.token_estimator)

    def usage(self, messages: Sequence[Message], events: Iterable[Event], first: int) -> Usage:
        """Hold the estimator against what a session recorded; see `usage_of`."""
        return usage_of(messages, self.rendered, self.token_estimator, events, first)


def live_message(
    native: Mapping[str, Any], session_id: str, created_at: datetime | None = None, message_id: str = ""
) -> Message:
    """A message as a host hands it over; without an id it is named by its place."""
    said = decompose(native)
    return Message(
        message_id=message_id,
        role=said.role,
        content=said.content,
        session_id=session_id,
        created_at=created_at,
        parts=said.parts,
        envelope=said.envelope,
    )
