"""What was done, and how it ended: commands, changes of files, errors."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from lcm.compaction.facts.named import is_file, path_key
from lcm.compaction.facts.statement import Call, ReadText, Statement
from lcm.compaction.facts.wording import folded
from lcm.compaction.summarizer.file_operations import file_operations

BEFORE = " (before: "
"""What follows in a summary where something was otherwise before, up to the bracket."""

SUCCEEDED, FAILED = "succeeded", "failed"
_ARGUMENTS = ("command", "cmd", "script", "CommandLine")
_SHELLS = re.compile(r"bash|shell|exec|terminal|run|command|powershell|process", re.IGNORECASE)
_PROGRAMS = (
    r"(?:sudo\s+)?(?:git|npm|npx|pnpm|yarn|pip3?|uv|python3?|pytest|ruff|mypy|make|cmake|docker|docker-compose|kubectl|"
    r"helm|cargo|go|node|deno|bun|tsc|curl|wget|ssh|scp|rsync|psql|sqlite3|mysql|redis-cli|terraform|ansible|aws|gcloud|"
    r"gh|apt|apt-get|brew|systemctl|journalctl|ls|cat|grep|rg|sed|awk|find|mkdir|rm|mv|cp|chmod|tar|lcm)"
)
_PROMPTED = re.compile(r"^[ \t]*[$❯][ \t]+(?P<command>\S[^\n]{0,400})", re.MULTILINE)
_QUOTED = re.compile(rf"`(?P<command>{_PROGRAMS}[ ][^`\n]{{1,400}})`")
_RAN = re.compile(r"\bran `(?P<command>[^`\n]{2,400})`")
_FENCED = re.compile(r"^```(?:bash|sh|shell|console|zsh)[ \t]*\n(?P<lines>.*?)^```", re.DOTALL | re.MULTILINE)
_TOLD = re.compile(r"^[ \t]*\[tool [\w.-]*\] (?:command|cmd): (?P<command>[^\n]{1,400})", re.MULTILINE)
_EXIT = re.compile(
    r"\b(?:exit(?:ed)?|return(?:ed)?(?=[ _](?:with )?(?:code|status))|rc(?=\W))(?:[ _]?(?:with|code|status))*"
    r"\W{0,4}(?P<code>-?\d{1,3})\b",
    re.IGNORECASE,
)
_FAILED = re.compile(r"\b(?:fail(?:s|ed|ing)?|error(?:s|ed)?|crash(?:es|ed)?)\b", re.IGNORECASE)
_SUCCEEDED = re.compile(r"\b(?:succeed(?:s|ed)?|pass(?:es|ed)|worked|ok|clean|green)\b", re.IGNORECASE)
_RUNS = re.compile(rf"\s*{_PROGRAMS}\b")
_STEP = "tool: ran `"
"""Before a command in a summary: `lcm.compaction.lossless.source_text`."""
_LONGEST_COMMAND = 200


def commands(read: ReadText) -> Iterator[Statement]:
    """Calls of a shell, lines behind a prompt, blocks of shell, and programs between backticks.

    How one ended is read from its own line; of a call `lcm.compaction.facts.ledger` reads it from the result.
    """
    for call in read.calls:
        if command := command_of(call):
            yield _command(command, "", read.text, max(read.text.find(_first_line(command), call.start), 0))
    patterns = (_PROMPTED, _QUOTED) if read.calls else (_PROMPTED, _QUOTED, _RAN, _TOLD)
    for pattern in patterns:
        for match in pattern.finditer(read.text):
            line = read.text[match.end() : _line_end(read.text, match.end())].split(BEFORE)[0]
            # A line of what a tool did tells a failure: one that tells none was none.
            is_step = read.text.endswith(_STEP, 0, match.start("command"))
            ended = outcome(line) or (SUCCEEDED if is_step else "")
            yield _command(match["command"], ended, read.text, match.start("command"))
    for block in _FENCED.finditer(read.text):
        place = block.start("lines")
        for line in block["lines"].splitlines(keepends=True):
            if _RUNS.match(line):
                yield _command(line.strip(), "", read.text, place + len(line) - len(line.lstrip()))
            place += len(line)


def command_of(call: Call) -> str:
    """What a call gives a shell; empty where it is of another tool."""
    for name in _ARGUMENTS:
        given = call.arguments.get(name)
        if isinstance(given, list) and given and all(isinstance(one, str) for one in given):
            return given[-1] if given[0] in ("bash", "sh", "zsh") else " ".join(given)
        if isinstance(given, str) and given.strip() and _SHELLS.search(call.name):
            return given
    return ""


def outcome(told: str) -> str | None:
    """How something ended, by what is told of it: `succeeded`, `failed`, `exit N` of N above 1; None = nobody says."""
    if found := _EXIT.search(told):
        code = int(found["code"])
        return SUCCEEDED if code == 0 else FAILED if code == 1 else f"exit {code}"
    if _FAILED.search(told):
        return FAILED
    return SUCCEEDED if _SUCCEEDED.search(told) else None


def exit_outcome(told: str) -> str | None:
    """How a command ended, where its result names an exit code."""
    return outcome(found[0]) if (found := _EXIT.search(told)) else None


def _first_line(command: str) -> str:
    return next((line.strip() for line in command.splitlines() if line.strip()), "")[:_LONGEST_COMMAND]


def _command(command: str, value: str, text: str, start: int) -> Statement:
    said = _first_line(command)
    is_there = text.startswith(said, start)
    return Statement("command", folded(said), value, said, start, start + len(said) if is_there else start)


def _line_end(text: str, start: int) -> int:
    end = text.find("\n", start)
    return len(text) if end < 0 else end


WRITTEN, GONE = "written", "gone"
_PATH_ARGUMENTS = ("path", "file_path", "filepath", "filename", "file", "notebook_path", "target_file", "AbsolutePath")
_WRITES = ("write", "edit", "create", "str_replace", "insert", "multiedit", "update", "append", "save")
_REMOVES = ("delete", "remove", "unlink")


def changes(read: ReadText) -> Iterator[Statement]:
    """Calls of tools that write or remove files, patches, shell commands that do, and what words say of either.

    Created and modified are one value, for a file that was both is told by either; a file that was moved is written
    under its new path and gone under the old one.
    """
    end = min((call.start for call in read.calls), default=len(read.text))
    yield from _told_changes(read.text[:end], 0, read.text)
    for call in read.calls:
        yield from _called(call, read.text)


def _called(call: Call, text: str) -> Iterator[Statement]:
    name = call.name.lower()
    path = next((call.arguments[key] for key in _PATH_ARGUMENTS if isinstance(call.arguments.get(key), str)), None)
    value = WRITTEN if any(word in name for word in _WRITES) and not _only_views(call.arguments) else None
    value = GONE if any(word in name for word in _REMOVES) else value
    if path and value and "\n" not in path:
        yield _change(path, value, text, call.start)
    elif command := command_of(call) or next(
        (one for one in call.arguments.values() if isinstance(one, str) and "*** Begin Patch" in one), ""
    ):
        yield from _told_changes(command, call.start, text)


def _only_views(arguments: Mapping[str, Any]) -> bool:
    return arguments.get("command") == "view"


def _told_changes(words: str, start: int, text: str) -> Iterator[Statement]:
    for operation in file_operations(words):
        if not is_file(operation.path):
            continue
        yield _change(operation.path, GONE if operation.status == "deleted" else WRITTEN, text, start)
        if operation.status == "renamed" and operation.former:
            yield _change(operation.former, GONE, text, start)


def _change(path: str, value: str, text: str, start: int) -> Statement:
    place = max(text.find(path, start), 0)
    said = path if text.startswith(path, place) else ""
    return Statement("change", path_key(path), value, said, place, place + len(said))


_ERROR = re.compile(
    r"(?<![\w.])(?:[A-Za-z_][\w.]{0,80}(?:Error|Exception|Warning|Timeout)\b[:(][^\n]{1,300}"
    r"|(?:fatal|panic|error|ERROR|Error|FATAL)(?:\[\w+\])?: [^\n]{1,300}"
    r"|FAILED [\w./:\[\]-]+[^\n]{0,200}"
    r"|[^\n:]{0,120}: (?:command not found|No such file or directory|[Pp]ermission denied|[Cc]onnection refused)"
    r"|HTTP(?:/\d(?:\.\d)?)? [45]\d\d[^\n]{0,80})"
)
_CODE = re.compile(r"[{;,(]$|\$\{|\w\(\w+: |\binstanceof\b|\bany\)")
_LONGEST_ERROR = 200


def errors(read: ReadText) -> Iterator[Statement]:
    """Lines that name an error and say what it is; words about errors are none."""
    for match in _ERROR.finditer(read.text):
        said = match[0][:_LONGEST_ERROR].rstrip(" .`'\")")
        if " " in said and not _CODE.search(said) and read.tells(match.start()):
            yield Statement("error", folded(said), "", said, match.start(), match.start() + len(said))
