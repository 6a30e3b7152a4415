"""What an agent did with its tools, a line a step: the action, what it was done to, and what came of it."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lcm.compaction.summarizer.blocks import language_of, named_block
from lcm.compaction.summarizer.kinds import ERROR, NO_ERROR
from lcm.javascript import first_units, trim
from lcm.records.conversation import Message, Part

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
    name = (call.tool_name if call else _named(result)) or "a tool"
    given = _arguments(call)
    action = _action(name, given)
    if result is None:
        return f"{action}: no result"
    outcome = _outcome(name, given, result)
    return f"{action}: {outcome}" if outcome else action


def _action(name: str, given: Mapping[str, Any]) -> str:
    kind = name.rsplit(".", 1)[-1].casefold()
    path = next((given[key] for key in _PATHS if isinstance(given.get(key), str)), "")
    command = next((given[key] for key in _COMMANDS if given.get(key)), "")
    if kind in _RAN and command:
        words = " ".join(map(str, command)) if isinstance(command, list) else str(command)
        return f"ran `{_line(words, _ARGUMENT_UNITS)}`"
    for verb, kinds in (("wrote", _WROTE), ("edited", _EDITED), ("read", _READ)):
        if kind in kinds and path:
            return f"{verb} {path}"
    told = (f"{key}={_flat(value)}" for key, value in given.items() if key not in _BULK)
    return trim(f"{name} {_line(', '.join(told), _ARGUMENT_UNITS)}")


def _outcome(name: str, given: Mapping[str, Any], result: Message) -> str:
    text = trim(result.content)
    kind = name.rsplit(".", 1)[-1].casefold()
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    code = _EXIT.search(text[-400:])
    has_failed = _is_error(result) is True or (code is not None and code["code"] != "0")
    status = f"exit code {code['code']}" if code else "failed" if has_failed else ""
    if has_failed:
        return _joined([status, *_told(lines, has_failed=True)])
    return _success(kind, given, text, lines) or ("ok" if _is_error(result) is False and kind in _RAN else "")


def _success(kind: str, given: Mapping[str, Any], text: str, lines: Sequence[str]) -> str:
    if kind in _READ and lines:
        path = next((given[key] for key in _PATHS if isinstance(given.get(key), str)), "")
        return named_block(lines, language_of(path))
    if kind in _WROTE | _EDITED and given:
        size = _SIZE.search(text) if kind in _WROTE else None
        return size[0] if size else "" if _DONE.search(text) else _joined(_told(lines, has_failed=False))
    if (flat := _flat_json(text)) is not None:
        return _line(flat, _OUTCOME_UNITS)
    return _joined(_told(lines, has_failed=False))


def _told(lines: Sequence[str], *, has_failed: bool) -> list[str]:
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


def _flat_json(text: str) -> str | None:
    if text[:1] not in ("{", "["):
        return None
    try:
        return _flat(json.loads(text))
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


def _named(result: Message | None) -> str | None:
    return next((part.tool_name for part in result.parts if part.tool_name), None) if result else None
