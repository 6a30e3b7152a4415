"""What was run in a shell, and how it ended."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from lcm.compaction.facts.statement import Call, ReadText, Statement
from lcm.compaction.facts.wording import folded

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
"""Before a command in a summary: `lcm.compaction.lossless.steps`."""
_LONGEST = 200


@dataclass(frozen=True, slots=True)
class Commands:
    """Calls of a shell, lines behind a prompt, blocks of shell, and programs between backticks.

    How one ended is read from its own line; of a call `lcm.compaction.facts.ledger` reads it from the result.
    """

    def find(self, read: ReadText) -> Iterator[Statement]:
        for call in read.calls:
            if command := command_of(call):
                yield _statement(command, "", read.text, max(read.text.find(_first_line(command), call.start), 0))
        patterns = (_PROMPTED, _QUOTED) if read.calls else (_PROMPTED, _QUOTED, _RAN, _TOLD)
        for pattern in patterns:
            for match in pattern.finditer(read.text):
                line = read.text[match.end() : _line_end(read.text, match.end())].split(BEFORE)[0]
                # A line of what a tool did tells a failure: one that tells none was none.
                is_step = read.text.endswith(_STEP, 0, match.start("command"))
                ended = outcome(line) or (SUCCEEDED if is_step else "")
                yield _statement(match["command"], ended, read.text, match.start("command"))
        for block in _FENCED.finditer(read.text):
            place = block.start("lines")
            for line in block["lines"].splitlines(keepends=True):
                if _RUNS.match(line):
                    yield _statement(line.strip(), "", read.text, place + len(line) - len(line.lstrip()))
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
    return next((line.strip() for line in command.splitlines() if line.strip()), "")[:_LONGEST]


def _statement(command: str, value: str, text: str, start: int) -> Statement:
    said = _first_line(command)
    is_there = text.startswith(said, start)
    return Statement("command", folded(said), value, said, start, start + len(said) if is_there else start)


def _line_end(text: str, start: int) -> int:
    end = text.find("\n", start)
    return len(text) if end < 0 else end
