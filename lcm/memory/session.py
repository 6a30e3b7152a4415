"""A live session: what it keeps of what it is told, how its messages come into the store, and what happens beside them.

Large texts are described, heartbeats hidden. A new session keeps the conversation and the deeper summaries of its
context; a reset begins an empty one. Whatever leaves a context stays in the store, and recall finds it.

Source: lossless-claw 0.6.3, which deletes the heartbeats that are hidden here.
"""

import json
import logging
import math
import re
import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache, partial
from typing import Any, ClassVar

from lcm.checks import check_choice, check_range
from lcm.javascript import WHITE_SPACE, trim, utf16_length
from lcm.protocols.compaction import Summarizer
from lcm.protocols.contract import Contract
from lcm.protocols.models import TokenEstimator
from lcm.records.conversation import Event, Message
from lcm.records.rules import Rules
from lcm.records.summary import SummaryRequest
from lcm.store.conversations import SessionRow, archive, find_session, is_fresh, open_session
from lcm.store.store import Store
from lcm.store.summaries import hide, read_context, remove_from_context
from lcm.transcript.large_files import intercepted, mime_extension, name_extension
from lcm.transcript.message_tokens import Rendering, Usage, message_tokens, usage_of
from lcm.transcript.openclaw import Branches
from lcm.transcript.parts import decompose

_STARS = re.compile(r"(\*\*|\*)")
_LINE_ENDS = "\\n\\r\\u2028\\u2029"
_LEAST_FIRST_IMPORT, _FIRST_IMPORT_SHARE = 6000, 0.3


_LIVE_ALONE = (
    "new_session_retain_depth",
    "bootstrap_max_tokens",
    "leaf_chunk_tokens",
    "prune_heartbeats",
    "import_cap_share",
    "import_cap_messages",
    "journal_max_entries",
)
"""Settings that live sessions alone read, and nothing that is replayed."""


@dataclass(frozen=True, slots=True)
class SessionRules:
    """The rules of one live session.

    Patterns are globs over the whole session key: `*` stands for any run without a colon, `**` for any run within a
    line, everything else for itself.

    Source: lossless-claw 0.6.3 (`rules` original):

    | | corrected | original |
    |---|---|---|
    | a message of the file is known by | its entry's id, even after a fork or a rewrite | its words and their number |
    | of a file's branches counts | the live one | all, in the order of the file |
    | large results of tools are | all | blocks of a tool's own message |

    Where a format has no ids words count by either.
    """

    ignore_patterns: Sequence[str] = ()
    """Sessions that are neither stored nor assembled; one without a key is known by its id."""
    stateless_patterns: Sequence[str] = ()
    """Sessions that are never written, and assembled from what is stored."""
    skip_stateless: bool = True
    """False: `stateless_patterns` have no effect."""
    new_session_retain_depth: int = 2
    """Of a context at a new session, summaries of at least that depth stay; -1: everything does."""
    bootstrap_max_tokens: int | None = None
    """The first import takes as much from the end of the file, and its last message anyway; 0: max(6000, 0.3 x
    `leaf_chunk_tokens`); None: all of it."""
    leaf_chunk_tokens: int = 20000
    """The tokens that compaction makes a leaf of, which the bound of the first import may follow."""
    large_file_threshold_tokens: int | None = None
    """A text of as many tokens is taken out of the context; None: none is."""
    large_file_summarizer: Summarizer | None = field(default=None)
    """Describes large texts that are neither data nor code; None: a rule does."""
    prune_heartbeats: bool = False
    """Hide acknowledged heartbeats at the bootstrap."""
    prune_heartbeat_turns: bool = False
    """Hide those that a turn acknowledges, in a live session and where one is replayed turn by turn."""
    rules: Rules = "corrected"
    import_cap_share: float | None = None
    """A reconciliation that would import more than this share of the stored messages imports nothing; None: no cap."""
    import_cap_messages: int = 50
    """As many may always be imported."""
    journal_max_entries: int = 500
    """Of what the host says of its sessions, the newest; 0: all. Source: libravdb memory 1.4.4."""
    unused_where: ClassVar[Mapping[str, Mapping[str, object]]] = {
        **{key: {} for key in _LIVE_ALONE},
        "skip_stateless": {"stateless_patterns": []},
        "large_file_summarizer": {"large_file_threshold_tokens": None},
    }
    """Setting -> the values of others that leave it without effect; without any, live sessions alone ask it."""

    def __post_init__(self) -> None:
        check_range(self, "bootstrap_max_tokens", ge=0, or_null=True)
        check_range(self, "large_file_threshold_tokens", ge=1, or_null=True)
        check_range(self, "leaf_chunk_tokens", ge=1)
        check_range(self, "new_session_retain_depth", ge=-1)
        check_range(self, "import_cap_share", ge=0, or_null=True)
        check_range(self, "journal_max_entries", "import_cap_messages", ge=0)
        check_choice(self, rules=Rules)

    @property
    def contract(self) -> Contract:
        leaves_out = self.ignore_patterns or (self.skip_stateless and self.stateless_patterns)
        if leaves_out or self.large_file_threshold_tokens is not None or self.prune_heartbeat_turns:
            return Contract()
        why = "nothing in an evaluation asks it: it plays no live session, and here are no patterns nor large files"
        return Contract(idle_because=why)

    @property
    def first_import_tokens(self) -> int | None:
        """The bound of the first import; None: it has none."""
        if self.bootstrap_max_tokens == 0:
            return tokens_by_leaf_chunk(self.leaf_chunk_tokens)
        return self.bootstrap_max_tokens

    @property
    def branches(self) -> Branches:
        """How a file with abandoned branches is read."""
        return "apart" if self.rules == "corrected" else "in_file_order"

    def ignores(self, session_id: str, session_key: str = "") -> bool:
        candidate = trim(session_key) or session_id
        return any(matches(pattern, candidate) for pattern in self.ignore_patterns)

    def is_stateless(self, session_key: str) -> bool:
        candidate = trim(session_key)
        return (
            self.skip_stateless
            and bool(candidate)
            and any(matches(pattern, candidate) for pattern in self.stateless_patterns)
        )

    def writes(self, session_id: str, session_key: str = "") -> bool:
        """Say whether anything of the session is stored."""
        return not self.ignores(session_id, session_key) and not self.is_stateless(session_key)

    def may_import(self, missing: int, stored: int) -> bool:
        """Say whether a reconciliation may import as many messages."""
        return self.import_cap_share is None or missing <= max(self.import_cap_share * stored, self.import_cap_messages)


def tokens_by_leaf_chunk(leaf_chunk_tokens: float) -> int:
    """The bound of a first import that follows the size of a leaf: 0.3 of it, rounded down, at least 6000."""
    return max(_LEAST_FIRST_IMPORT, math.floor(_FIRST_IMPORT_SHARE * leaf_chunk_tokens))


def matches(pattern: str, session_key: str) -> bool:
    """Say whether a session key is one that the glob describes."""
    return _compiled(pattern).fullmatch(session_key) is not None


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    runs = {"**": f"[^{_LINE_ENDS}]*", "*": "[^:]*"}
    return re.compile("".join(runs.get(piece) or re.escape(piece) for piece in _STARS.split(pattern)))


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


_CARRIES_ON = frozenset({"", "new", "unknown"})
"""Reasons of an end after which the conversation continues."""


def hide_heartbeats(store: Store, conversation_id: str, turn: Sequence[Message]) -> None:
    """Take the acknowledged heartbeats of a turn, which is stored, out of the context of its conversation."""
    if found := heartbeat_ids(turn):
        with store.writing() as connection:
            session = find_session(connection, conversation_id, conversation_id)
            assert session is not None  # it has just spoken
            hide(connection, session.conversation, found, store.last_said(conversation_id))


def heartbeat_ids(messages: Sequence[Message]) -> list[str]:
    """The ids of the acknowledged heartbeats among messages: from what the user said last to the acknowledgement.

    A host asks now and then whether anything is to be done, and an agent acknowledges that nothing is.
    """
    found: dict[str, None] = {}
    since_user: int | None = None
    for place, message in enumerate(messages):
        if message.role == "user":
            since_user = place
        elif since_user is not None and message.role == "assistant" and trim(message.content).lower() == "heartbeat_ok":
            span = messages[since_user : place + 1]
            if any("heartbeat.md" in said.content.lower() for said in span):
                found |= dict.fromkeys(said.message_id for said in span)
    return list(found)


def follow_host(
    store: Store, rules: SessionRules, now: datetime, hook: str, session_id: str, said: Mapping[str, Any]
) -> None:
    """Do what the session rules say of what a host said of a session.

    Args:
        store: holds its conversation.
        rules: those of the session.
        now: when the host said so.
        hook: `before_reset`: at the reason `new` the context is pruned to the summaries that outlive a session, at
            `reset` an empty conversation begins. `session_end`: the conversation is archived, and the next one begins
            unless the reason is `deleted`, or one after which it carries on. Of any other nothing follows.
        session_id: of the host.
        said: reason, session_key, and of an end next_session_id and next_session_key, as far as the host says so.
    """
    reason, key = said.get("reason", ""), trim(said.get("session_key", ""))
    follows = reason in ("new", "reset") if hook == "before_reset" else reason not in _CARRIES_ON
    if not follows or hook not in ("before_reset", "session_end") or not rules.writes(session_id, key):
        return
    with store.serialised(key or session_id), store.writing() as connection:
        session = find_session(connection, session_id, key)
        match hook, reason:
            case "before_reset", "reset":
                _replace(connection, session, now, session_id, key)
            case _ if session is None:
                return
            case "before_reset", _:
                _prune(connection, session.conversation, rules.new_session_retain_depth)
            case _, "deleted":
                archive(connection, session, now)
            case _:
                next_key = trim(said.get("next_session_key", "")) or key
                _replace(connection, session, now, said.get("next_session_id") or session_id, next_key)


def _replace(
    connection: sqlite3.Connection, session: SessionRow | None, now: datetime, next_id: str, next_key: str
) -> None:
    """Archive the conversation and make an empty one; one in which nothing has happened yet serves as that."""
    if session is not None and is_fresh(connection, session):
        return
    if session is not None:
        archive(connection, session, now)
    open_session(connection, next_id, next_key, now)


def _prune(connection: sqlite3.Connection, conversation: int, retain_depth: int) -> None:
    if retain_depth < 0:
        return
    entries = read_context(connection, conversation)
    gone = [entry.ordinal for entry in entries if entry.depth is None or entry.depth < retain_depth]
    remove_from_context(connection, conversation, gone)
