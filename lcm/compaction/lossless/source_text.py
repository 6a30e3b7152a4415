"""What a summarizer is given to read: messages, media as words, and what an agent did with its tools, a line a step.

Media that a summarizer cannot see are named, and what only encodes them is left out.

Source: lossless-claw 0.6.3; `meaningful` and `without_reasoning` 0.15.3.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from lcm.clock import EPOCH
from lcm.compaction.summarizer.passages import ERROR, NO_ERROR, TOOL, UNDATED, language_of, named_block
from lcm.javascript import first_units, trim
from lcm.records.conversation import Message, Part
from lcm.records.rules import LosslessRules
from lcm.records.summary import Summary
from lcm.transcript.large_files import file_ids_in
from lcm.transcript.rendering import stored_content

_OUTCOME_UNITS = 240
_ARGUMENT_UNITS = 200
_LINE_UNITS = 160
_MOST_TOLD = 3
"""Lines of an output that are told."""

_WROTE = frozenset(["write", "write_file", "create", "create_file"])
_EDITED = frozenset(["edit", "edit_file", "multiedit", "multi_edit", "str_replace", "update", "notebookedit"])
_READ = frozenset(["read", "read_file", "open", "view", "cat"])
_RAN = frozenset(["bash", "shell", "run", "exec", "execute", "exec_command", "run_command", "local_shell", "terminal"])
_PATHS = ("path", "file_path", "filePath", "filename", "file_name", "file", "notebook_path")
_COMMANDS = ("command", "cmd", "script", "input")
_BULK = frozenset(
    ["content", "oldText", "newText", "old_string", "new_string", "edits", "description", "search", "replace"]
)
_EXIT = re.compile(
    r"(?:exited with(?: code)?|exit(?:ed)? (?:code|status):?|returncode[\"':= ]+)\s*(?P<code>-?\d+)", re.IGNORECASE
)
_RESULT = re.compile(
    r"\b\d+ (?:passed|failed|skipped|tests?|errors?|warnings?|files? changed|insertions?|deletions?|vulnerabilities)\b|"
    r"^\[[^\]\s]+ [0-9a-f]{6,}\]|\bnothing to commit\b|\bSwitched to\b|\bFound \d+ match|"
    r"\b(?:Build|Compiled|Tests?) \w+",
    re.IGNORECASE,
)
_IS_NOISE = re.compile(r"\s*(?:>.*|[-=─━_*#\s]*|\(no output\)|.*\b\d+(?:\.\d+)? ?ms\b.*|bash-?\$?)\s*")
_DONE = re.compile(
    r"successfully\b|has been (?:updated|created|written)|^file (?:created|updated|written)", re.IGNORECASE
)
_SIZE = re.compile(r"\b\d[\d,]* (?:bytes|lines|characters)\b")


def step(call: Part | None, result: Message | None) -> str:
    """One line of a call and its result, either of which may be missing.

    `wrote plan.md: 48506 bytes`, "ran `npm test`: exit code 1; 3 failed", `read a.py: Python, 120 lines: defines A`.

    Args:
        call: the part that called the tool.
        result: the message that holds what it returned.
    """
    parts = [call] if call else result.parts if result else ()
    name = next((part.tool_name for part in parts if part.tool_name), "a tool")
    given = _arguments(call)
    kind = name.rsplit(".", 1)[-1].casefold()
    path = next((given[key] for key in _PATHS if isinstance(given.get(key), str)), "")
    action = _action(name, kind, path, given)
    if result is None:
        return f"{action}: no result"
    outcome = _outcome(kind, path, result, has_input=bool(given))
    return f"{action}: {outcome}" if outcome else action


def _action(name: str, kind: str, path: str, given: Mapping[str, Any]) -> str:
    command = next((given[key] for key in _COMMANDS if given.get(key)), "")
    if kind in _RAN and command:
        words = " ".join(map(str, command)) if isinstance(command, list) else str(command)
        return f"ran `{_line(words, _ARGUMENT_UNITS)}`"
    for verb, kinds in (("wrote", _WROTE), ("edited", _EDITED), ("read", _READ)):
        if kind in kinds and path:
            return f"{verb} {path}"
    told = (f"{key}={_flat(value)}" for key, value in given.items() if key not in _BULK)
    return trim(f"{name} {_line(', '.join(told), _ARGUMENT_UNITS)}")


def _outcome(kind: str, path: str, result: Message, *, has_input: bool) -> str:
    text, is_error = trim(result.content), _is_error(result)
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    code = _EXIT.search(text[-400:])
    if is_error or (code and code["code"] != "0"):
        status = f"exit code {code['code']}" if code else "failed"
        return _joined([status, *_told_step(lines, has_failed=True)])
    is_write = kind in _WROTE | _EDITED and has_input
    size = _SIZE.search(text) if is_write and kind in _WROTE else None
    if kind in _READ and lines:
        said = named_block(lines, language_of(path))
    elif is_write and (size or _DONE.search(text)):
        said = size[0] if size else ""
    elif not is_write and (value := _json_in(text)) is not None:
        said = _line(_flat(value), _OUTCOME_UNITS)
    else:
        said = _joined(_told_step(lines, has_failed=False))
    return said or ("ok" if is_error is False and kind in _RAN else "")


def _told_step(lines: Sequence[str], *, has_failed: bool) -> list[str]:
    """The lines of an output that say what came of it: errors, counts, or all if they are few."""
    said = [line.strip() for line in lines if not _IS_NOISE.fullmatch(line) and not _EXIT.search(line)]
    errors = [line for line in said if ERROR.search(line) and not NO_ERROR.search(line)]
    results = [line for line in said if _RESULT.search(line)]
    if has_failed:
        return _shortened((errors or said)[:_MOST_TOLD])
    if len(said) <= _MOST_TOLD:
        return _shortened(said)
    if results:
        return _shortened(results[-_MOST_TOLD:])
    return [*_shortened(errors[:1]), named_block(said)] if errors else [named_block(said)]


def _shortened(lines: Iterable[str]) -> list[str]:
    return [_line(line, _LINE_UNITS) for line in dict.fromkeys(lines)]


def _joined(pieces: Iterable[str]) -> str:
    return _line("; ".join(piece for piece in pieces if piece), _OUTCOME_UNITS)


def _is_error(result: Message) -> bool | None:
    """Whether the record says that the call failed; None where it does not say."""
    native = result.envelope.get("native")
    blocks = [part.metadata.get("raw") for part in result.parts]
    told = [one for one in (native, *blocks) if isinstance(one, dict)]
    said = [one[key] for one in told for key in ("isError", "is_error") if isinstance(one.get(key), bool)]
    return any(said) if said else None


def _arguments(call: Part | None) -> Mapping[str, Any]:
    if call is None or call.tool_input is None:
        return {}
    try:
        given = json.loads(call.tool_input)
    except (RecursionError, ValueError):
        given = call.tool_input
    return given if isinstance(given, dict) else {"input": given}


def _json_in(text: str) -> Any:
    """The value of a text that is a JSON object or list; None where it is none."""
    try:
        return json.loads(text) if text.lstrip()[:1] in ("{", "[") else None
    except (RecursionError, ValueError):
        return None


def _flat(value: Any) -> str:
    """JSON as `key value, key value`, without its marks."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {_flat(one)}" for key, one in value.items())
    if isinstance(value, list):
        return ", ".join(map(_flat, value))
    return str(value) if isinstance(value, str) else json.dumps(value)


def _line(text: str, units: int) -> str:
    """The text on one line, cut to so many UTF-16 units."""
    bare = " ".join(text.split())
    cut = first_units(bare, units, "kept")
    return bare if cut == bare else f"{cut.rsplit(maxsplit=1)[0] if ' ' in cut.strip() else cut} …"


OMITTED = "[embedded media omitted]"
ALONE = "[Media attachment]"
BESIDE = " [with media attachment]"

_MEDIA_PARTS = ("file", "snapshot")
_MEDIA_TYPES = ("file", "image", "snapshot")
_DATA_URL = re.compile(r"data:[\w.+-]+/[\w.+-]+(?:;[\w.+-]+=[\w.+-]*)*;base64,[A-Za-z0-9+/=_-]+", re.ASCII)
_DATA_URL_START = re.compile(r"data:[\w.+-]+/[\w.+-]+[;,]", re.ASCII)
_MEDIA_PATH = re.compile(r"MEDIA:/\S+")
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")
_LONG_BASE64 = 256
_WORD_KEYS = ("text", "caption", "alt", "title", "summary")
_NESTING_KEYS = ("content", "parts", "items", "message", "messages")
_MAX_DEPTH = 4
_TOLD_KEYS = (
    *_WORD_KEYS,
    *("value", *_NESTING_KEYS, "input", "arguments", "output", "result", "results", "data", "query", "command"),
)
_REASONING_TYPES = ("reasoning", "thinking", "redacted_thinking")
_TOLD_DEPTH = 8
_REASONING = (
    r"(?:<(?P<tag>think|thinking|reasoning)>.*?</(?P=tag)>|<\|think\|>.*?<\|/think\|>|\[thinking\].*?\[/thinking\])"
)
_OPENING = r"(?:<(?:think|thinking|reasoning)>|<\|think\|>|\[thinking\])"
_LEADING_REASONING = re.compile(rf"\A\s*(?:{_REASONING}\s*)+", re.IGNORECASE | re.DOTALL)
_STANDING_REASONING = re.compile(
    rf"^[ \t]*(?:{_REASONING}[ \t]*$|{_OPENING}[ \t]*$.*\Z)", re.IGNORECASE | re.DOTALL | re.MULTILINE
)


def has_media(message: Message) -> bool:
    return any(_is_media(part) for part in message.parts)


def annotated(words: str) -> str:
    """The words of a message with media, and a note that there were some."""
    words = trim(_sanitised(words))
    if not words:
        return ALONE
    return words if words.endswith(BESIDE) else words + BESIDE


def words_beside_media(message: Message, content: str) -> str:
    """What the parts without media say; where they say nothing, what the content does."""
    said = "\n".join(part.text for part in message.parts if part.text and not _is_media(part))
    return said if trim(_sanitised(said)) else _words_in(content)


def _is_media(part: Part) -> bool:
    raw = part.metadata.get("raw")
    types = (part.metadata.get("rawType"), raw.get("type") if isinstance(raw, dict) else None)
    return part.part_type in _MEDIA_PARTS or any(kind in _MEDIA_TYPES for kind in types)


def _sanitised(text: str) -> str:
    lines = _DATA_URL.sub(OMITTED, text).split("\n")
    return "\n".join(line for line in lines if not _encodes(bare := trim(line), re.sub(r"\s", "", bare)))


def _encodes(line: str, packed: str) -> bool:
    """Say whether a line says nothing: it is blank, the path of media, or, `packed`, all base64."""
    is_long = len(packed) >= _LONG_BASE64 and len(packed) % 4 == 0
    return not line or bool(_MEDIA_PATH.fullmatch(line) or (is_long and _BASE64.fullmatch(packed)))


def _words_in(content: str) -> str:
    """The content itself; of content that is JSON, what it says under the keys for words."""
    value = _json_in(content)
    return content if value is None else "\n".join(_walk(value, 0))


def _walk(value: Any, depth: int) -> Iterator[str]:
    if depth > _MAX_DEPTH:
        return
    if isinstance(value, list):
        for item in value:
            yield from _walk(item, depth + 1)
    elif isinstance(value, dict):
        yield from (value[key] for key in _WORD_KEYS if isinstance(value.get(key), str))
        for key in _NESTING_KEYS:
            nested = value.get(key)
            yield from _walk(nested, depth + 1) if isinstance(nested, dict | list) else ()


def meaningful(text: str) -> str:
    """What a text says: without lines that are blank or only encode something; of JSON, the texts that it holds."""
    value = _json_in(trim(text))
    if value is not None:
        return told(value)
    lines = [line.rstrip() for line in _DATA_URL.sub(OMITTED, text).split("\n")]
    said = (line for line in lines if not (_encodes(bare := trim(line), bare) or _DATA_URL_START.match(bare)))
    return trim("\n".join(said))


def told(value: Any) -> str:
    """The texts that decoded JSON holds, a line each."""
    return trim("\n".join(_texts(value, 0)))


def without_reasoning(text: str) -> str:
    """The text without what a model thought to itself: at its beginning, on lines of its own, or never closed."""
    return _STANDING_REASONING.sub("", _LEADING_REASONING.sub("", text))


def _texts(value: Any, depth: int) -> Iterator[str]:
    if depth > _TOLD_DEPTH:
        return
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item, depth + 1)
    elif isinstance(value, dict) and value.get("type") not in _REASONING_TYPES:
        keys = _WORD_KEYS if value.get("type") in _MEDIA_TYPES else _TOLD_KEYS
        for key in keys:
            yield from _texts(value.get(key), depth + 1)


_NAMED_HOURS = {
    "AST": -4, "ADT": -3, "EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6,
    "PST": -8, "PDT": -7, "AKST": -9, "AKDT": -8, "HST": -10, "HDT": -9,
}  # fmt: skip
"""The zones that American English has short names for, and their hours from UTC: China's CST is another."""

_UNNAMED = frozenset(
    {
        "America/Dawson", "America/Whitehorse", "Canada/Yukon",
        "America/Hermosillo", "America/Mazatlan", "Mexico/BajaSur",
    }
)  # fmt: skip
"""They keep Mountain Time without its name."""

_ALEUTIAN = frozenset({"America/Adak", "America/Atka", "US/Aleutian"})

_UTC_NAMES = frozenset(
    {
        "UTC", "UCT", "Zulu", "Universal", "GMT", "GMT0", "GMT+0", "GMT-0",
        "Etc/UTC", "Etc/UCT", "Etc/Zulu", "Etc/Universal", "Etc/GMT",
    }
)  # fmt: skip
_MINUTE = timedelta(minutes=1)


def prompt_time(instant: datetime, timezone: str = "UTC") -> str:
    """`2026-01-05 09:07 EST`: minutes of a 24-hour clock, and the zone as American English shortens it.

    Zones without a short name there read `GMT+5:30`. A zone that there is not is UTC.

    Source: lossless-claw 0.6.3, which prints what JavaScript's Intl does.
    """
    zone = zone_named(timezone)
    if zone is None or zone.key in _UTC_NAMES:
        return f"{instant.astimezone(UTC).isoformat(' ')[:16]} UTC"
    local = instant.astimezone(zone)
    return f"{local:%Y-%m-%d %H:%M} {_zone_name(local, zone.key)}"


@cache
def zone_named(timezone: str) -> ZoneInfo | None:
    """The IANA zone of that name, in whichever case it is written; None where there is none."""
    try:
        return ZoneInfo(timezone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        same = (name for name in available_timezones() if name.lower() == timezone.lower())
        return next((ZoneInfo(name) for name in same), None)


def _zone_name(local: datetime, key: str) -> str:
    offset, name = local.utcoffset(), local.tzname()
    assert offset is not None and name is not None
    minutes = offset // _MINUTE
    if key in _ALEUTIAN:
        return f"HA{name[1:]}"
    if name in _NAMED_HOURS and _NAMED_HOURS[name] * 60 == minutes and key not in _UNNAMED:
        return name
    if not minutes:
        return "GMT+0" if name == "WET" or key == "Atlantic/Azores" else "GMT"
    hours, rest = divmod(abs(minutes), 60)
    return f"GMT{'-' if minutes < 0 else '+'}{hours}{f':{rest:02}' if rest else ''}"


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
        f"[{_when(message.created_at or EPOCH, rules, timezone)}{behind_time}\n{words}"
        for message, behind_time, words in said
        if rules == "original" or trim(words)
    )
    named = (message.content if rules == "corrected" else words for message, _, words in said)
    return ChunkText(text, tuple(dict.fromkeys(file_id for words in named for file_id in file_ids_in(words))))


def has_words(messages: Sequence[Message], rules: LosslessRules) -> bool:
    """Say whether the messages would give a summarizer anything to read."""
    return any(trim(words) for _, _, words in _told(messages, rules, ()))


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


_Told = tuple[Message, str, str]
"""A message, what stands behind its time (who a summarizer hears it from), and what the summarizer reads of it."""


def _told(messages: Sequence[Message], rules: LosslessRules, injected_tags: Sequence[str]) -> Iterator[_Told]:
    if rules == "original":
        return ((message, "]", _content(message)) for message in messages)
    if rules == "0.15":
        return ((one, f" | {one.role}]", _meaningful_words(one, injected_tags)) for one in messages)
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
            yield (message, _TOOL, step(calls.get(call_id) if call_id else None, message))
            continue
        words = annotated(message.content) if has_media(message) else message.content
        yield (message, f"] {message.author} ({message.role}):" if message.author else f"] {message.role}:", words)
        unanswered = [step(call, None) for call in _calls(message) if call.tool_call_id not in answered - {None}]
        if unanswered:
            yield (message, _TOOL, "\n".join(unanswered))


def _calls(message: Message) -> list[Part]:
    return [part for part in message.parts if part.part_type == "tool" and part.tool_input is not None]


def _is_result(message: Message) -> bool:
    """Some formats give what a tool returned as a message of the user."""
    return message.role == "tool" or (
        message.role == "user"
        and bool(message.parts)
        and all(part.part_type == "tool" and part.tool_input is None for part in message.parts)
    )
