"""What was done, and how it ended: files that were written or removed, commands, errors."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from lcm.compaction.facts.reading import Call, ReadText, Statement, folded
from lcm.protocols.models import TokenEstimator

_SEGMENT = r"[\w.@+%~-]+"
# Tokens are entered at their beginning alone: a line of base64 would otherwise be read once from each of its places.
_PATH = (
    rf"(?<![\w.@+%~/\\-])(?:(?:(?:[A-Za-z]:|~|\.{{1,2}})?(?:[/\\]{_SEGMENT})+|{_SEGMENT}(?:/{_SEGMENT})+)/?"
    rf"|{_SEGMENT}\.[A-Za-z]\w{{0,9}}|Makefile|Dockerfile)(?![\w/\\]|://)"
)
_QUOTED_PATH = rf"[`'\"*]*(?P<path>{_PATH})[`'\"*]*"
_FORMER = rf"[`'\"*]*(?P<former>{_PATH})[`'\"*]*"
_WHOLE_PATH = re.compile(_PATH)
_ABBREVIATION = re.compile(r"(?:[A-Za-z]\.)+[A-Za-z]?")
_VERBS = r"(?P<verb>created|wrote|written|generated|saved|modified|edited|updated|changed|patched|rewrote|refactored"
_VERBS += r"|deleted|removed)"
_ARTICLES = r"(?:\s+(?:the|a|an|new|empty|file|files|module|script|test|at|to|in|successfully|\d+|bytes)\b){0,6}:?\s+"
_AT_LINE_START = r"^[ \t]*(?:[-*>$#%][ \t]+)?"
# A call as JSON or as code: write {"path": "a.py"}, {"name": "edit", "arguments": {"file_path": …, Write(path=…
_CALL = (
    r"\b(?P<verb>write|create|edit|insert|delete|remove|update|multi_?edit|str_?replace)(?:_?file)?\b[\"']?"
    r"[\s:,(\]]*(?:[\"']?(?:arguments|input|args|parameters)[\"']?\s*[:=]\s*[\"']?)?[\s{(\\\"']*"
    r"(?:file_?path|path|file_?name|file)[\\\"']*\s*[:=]\s*\\?[\"'](?P<path>[^\"'\n\\]+)"
)
_PATTERNS = tuple(
    re.compile(pattern, re.MULTILINE | re.IGNORECASE)
    for pattern in (
        r"\*\*\* (?P<verb>Add|Update|Delete) File: (?P<path>[^\n\"\\]+)",
        r"\*\*\* Update File: (?P<former>[^\n\"\\]+)(?:\\n|\n)\*\*\* (?P<verb>Move) to: (?P<path>[^\n\"\\]+)",
        r"^[ \t]*(?P<verb>create|delete) mode \d{6} (?P<path>\S+)",
        r"^[ \t]*(?P<verb>rename) from (?P<former>\S+)\n[ \t]*rename to (?P<path>\S+)",
        _CALL,
        rf"{_AT_LINE_START}\[?(?P<verb>write|create|edit|delete|remove|update)(?:_?file)?\b[:(]?\s*{_QUOTED_PATH}[)\]]?\s*$",
        rf"\b(?P<verb>renamed|moved)(?:\s+(?:the|file)\b){{0,2}}\s+{_FORMER}\s+(?:to|into|as|->|→)\s+{_QUOTED_PATH}",
        rf"\b{_VERBS}{_ARTICLES}{_QUOTED_PATH}",
        rf"{_QUOTED_PATH}\s+(?:has been|have been|was|were)\s+(?:successfully\s+)?{_VERBS}\b",
        rf"\b(?:added|fixed|replaced|changed|inserted)\b(?:\s+[^\s.;]+){{1,8}}?\s+(?P<verb>in|to)\s+{_QUOTED_PATH}",
        rf"\b(?:cat|echo|printf)\b[^\n;&|]{{0,200}}?(?P<verb>>>|>)\s*{_QUOTED_PATH}",
    )
)
_AND_MORE = re.compile(rf"(?:\s*,\s*(?:and\s+)?|\s+and\s+){_QUOTED_PATH}")
_SHELL = re.compile(
    r"(?:^[ \t]*(?:[$>#%][ \t]+)?|[;&|][ \t]*|\"command\"\s*:\s*\")(?:sudo[ \t]+)?(?:git[ \t]+)?"
    r"(?P<verb>rm|mv|cp|touch|tee|sed[ \t]+-i)[ \t]+(?P<arguments>[^\n;&|<>\"\\]+)",
    re.MULTILINE,
)
_NEGATED = re.compile(r"(?:\bnot|n't|\bnever|\bwithout|\bif|\bwould)(?:\s+\w+)?\s*$", re.IGNORECASE)
_NEGATION_REACH = 24
FILES = "Files: "
NO_FILES = "Files: none"
Status = Literal["created", "modified", "deleted", "renamed"]
_STATUS: Mapping[str, Status] = {
    **dict.fromkeys(
        ["created", "wrote", "written", "generated", "saved", "add", "create", "write", "touch", ">", "tee"], "created"
    ),
    **dict.fromkeys(["deleted", "removed", "delete", "remove", "rm"], "deleted"),
    **dict.fromkeys(["renamed", "moved", "rename", "move", "mv"], "renamed"),
}
"""Of a verb; any other one modifies."""
_LINE = re.compile(r"^[ \t]*Files:[ \t]*(?P<entries>\S.*)$", re.MULTILINE)
_ENTRY = re.compile(
    r"(?P<path>.+?)\s*[(:–-]?\s*\b(?P<status>created|modified|deleted|renamed)(?: from (?P<former>.+?))?\)?"
)


class FileOperation(NamedTuple):
    """A file, and what was last done to it."""

    path: str
    status: Status
    former: str = ""
    """The path that it had, where it was renamed."""

    def __str__(self) -> str:
        return f"{self.path} ({self.status}{f' from {self.former}' if self.former else ''})"


def file_operations(text: str) -> list[FileOperation]:
    """Say what became of each file that a text mentions, in the order of their last mention.

    Read are patches, git's own report, calls of editing tools, shell commands (rm, mv, cp, touch, tee, sed -i, >), and
    prose in the past tense ("created src/x.py and src/y.py", "moved a.py to b.py", "fixed the loop in run.py"), unless
    denied; and the `Files:` lines of earlier summaries. The last status of a path holds, but writing a file that was
    created or modified before modifies it, and a file renamed twice keeps its first path. An absolute path that ends in
    a relative one is the same file.

    Source: ours.
    """
    lines = list(_LINE.finditer(text))
    told = [one for one in _mentioned(text) if not any(line.start() <= one[0] < line.end() for line in lines)]
    told += [(line.start(), one) for line in lines for one in _listed(line["entries"])]
    spelling = _spellings(path for _, one in told for path in (one.path, one.former))
    last: dict[str, FileOperation] = {}
    for _, one in sorted(told, key=lambda each: each[0]):
        path, status, former = spelling[one.path], one.status, ""
        before = last.pop(path, None)
        if status == "renamed" and one.former:
            former = spelling[one.former]
            origin = last.pop(former, None)
            former = (origin.former if origin else "") or former
        elif status == "created" and before and before.status in ("created", "modified"):
            status = "modified"
        last[path] = FileOperation(path, status, former)
    return list(last.values())


def _mentioned(text: str) -> Iterator[tuple[int, FileOperation]]:
    """Where something is done to a file, and what."""
    for match in (match for pattern in _PATTERNS for match in pattern.finditer(text)):
        if _NEGATED.search(text[max(0, match.start() - _NEGATION_REACH) : match.start()]):
            continue
        named, status = match.groupdict(), _STATUS.get(match["verb"].lower(), "modified")
        former = _trimmed(named.get("former") or "")
        yield from _operation(match.start(), named["path"], status, former)
        end = match.end()
        while not former and (more := _AND_MORE.match(text, end)):
            yield from _operation(more.start(), more["path"], status)
            end = more.end()
    for match in _SHELL.finditer(text):
        verb = match["verb"].split()[0].lower()
        paths = [word.strip("'\"`,") for word in match["arguments"].split() if not word.startswith("-")]
        paths = [_trimmed(path) for path in paths if _is_path(path)]
        if verb == "mv" and len(paths) == 2:
            yield from _operation(match.start(), paths[1], "renamed", paths[0])
        elif verb == "cp" and len(paths) == 2:
            yield from _operation(match.start(), paths[1], "created")
        elif verb not in ("mv", "cp"):
            for path in paths:
                yield from _operation(match.start(), path, _STATUS.get(verb, "modified"))


def _operation(place: int, path: str, status: Status, former: str = "") -> Iterator[tuple[int, FileOperation]]:
    if not _ABBREVIATION.fullmatch(path := _trimmed(path)):
        yield place, FileOperation(path, status, former)


def _is_path(text: str) -> bool:
    return _WHOLE_PATH.fullmatch(text) is not None and not _ABBREVIATION.fullmatch(text)


def _trimmed(path: str) -> str:
    return path.strip().rstrip(".:,")


def _spellings(paths: Iterable[str]) -> dict[str, str]:
    """For each path the shortest relative one that it ends with, if one has a folder; else itself."""
    found = set(paths)
    relative = {path for path in found if "/" in path.strip("/") and not path.startswith(("/", "~", "."))}
    spelling = {}
    for path in found:
        ends = (path[i + 1 :] for i in range(len(path) - 1, -1, -1) if path[i] == "/")
        spelling[path] = next((end for end in ends if end in relative), path) if path.startswith(("/", "~")) else path
    return spelling


def files_line(operations: Sequence[FileOperation], budget_tokens: int, token_estimator: TokenEstimator) -> str:
    """Write one line of at most `budget_tokens`; where not all fit, the latest are named and the rest counted.

    `Files: none` is exactly what stands where there are none, and at the least a line says how many there are.
    """
    if not operations:
        return NO_FILES
    for shown in range(len(operations), -1, -1):
        named = [str(operation) for operation in operations[len(operations) - shown :]]
        hidden = len(operations) - shown
        line = FILES + ", ".join([*named, f"{hidden} more"] if hidden else named)
        if not shown or token_estimator.count([line])[0] <= budget_tokens:
            return line
    raise AssertionError("the last line names none")


def _listed(entries: str) -> list[FileOperation]:
    """Read the list of an earlier summary, whoever wrote it: what names no path is passed over."""
    found = []
    for entry in re.split(r"[,;]\s+", entries):
        match = _ENTRY.fullmatch(entry.strip().rstrip("."))
        path = (match["path"] if match else entry).strip("`'\"* ")
        if match and ("/" in path or "." in path or _is_path(path)):
            found.append(FileOperation(path, match["status"], match["former"] or ""))  # type: ignore[arg-type]
        elif _is_path(path):
            found.append(FileOperation(path, "modified"))
    return found


_TOLD_PATH = re.compile(
    rf"(?<![\w.@+%~/\\:-])(?:(?:[A-Za-z]:(?:\\{_SEGMENT}){{1,30}}|(?:~|\.{{1,2}})?(?:/{_SEGMENT}){{1,30}}|{_SEGMENT}(?:/{_SEGMENT}){{1,30}})/?"
    rf"|{_SEGMENT}/(?=[\s`'\",;)]|\.?$)|[\w@+%~-][\w.@+%~-]{{0,80}}\.[A-Za-z]\w{{0,9}}|Makefile|Dockerfile)(?![\w/\\(]|://|@)"
)
_FILE_NAME = re.compile(r"[\w-]*\w\.[A-Za-z]\w{0,9}")
_SUBSTITUTION = re.compile(r"[sy]/.+/")
_EXTENSIONS = frozenset(
    """py pyi ipynb js jsx ts tsx mjs cjs json jsonl yaml yml toml ini cfg conf env md rst txt csv tsv parquet sql sh
    bash zsh ps1 bat c h cc cpp hpp cs java kt go rs rb php swift scala r jl lua pl html htm css scss vue svelte xml svg
    png jpg jpeg gif webp pdf doc docx xls xlsx ppt pptx odt zip tar gz tgz log lock db sqlite mp3 mp4 wav proto graphql
    gradle tf dockerfile mod sum diff patch ics eml tex bib""".split()  # noqa: SIM905
)


def paths(read: ReadText) -> Iterator[Statement]:
    """A path has an extension that files have, or begins at a root (`/`, `~`, `./`), or has two separators."""
    for match in _TOLD_PATH.finditer(read.text):
        said = match[0].rstrip(".,:")
        if is_file(said) and read.tells(match.start()):
            yield Statement.at("path", path_key(said), "", said, match.start())


def is_file(said: str) -> bool:
    """Whether a word with separators or a dot is a path, not "and/or", "e.g." or a host."""
    last = said.rstrip("/").replace("\\", "/").rpartition("/")[2]
    if last in ("Makefile", "Dockerfile"):
        return True
    if _FILE_NAME.fullmatch(last.lstrip(".")) and last.rpartition(".")[2].lower() in _EXTENSIONS:
        return True
    inner = said.replace("\\", "/")
    if _SUBSTITUTION.match(inner):
        return False
    if inner.endswith("/") and inner.count("/") == 1 and inner[0].isalpha():
        return True
    is_rooted = inner.startswith(("/", "~/", "./", "../")) and inner.count("/") >= 2
    return (is_rooted or inner.rstrip("/").count("/") >= 2) and any(letter.isalpha() for letter in inner)


def path_key(path: str) -> str:
    return path.replace("\\", "/").removeprefix("./").rstrip("/").strip("`'\"")


def is_same_path(one: str, other: str) -> bool:
    """Equal, or one is the end of the other and names a folder too."""
    if one == other:
        return True
    short, long = sorted((one, other), key=len)
    return "/" in short.strip("/") and long.endswith(f"/{short.lstrip('/~')}")


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
            line_end = read.text.find("\n", match.end())
            line = read.text[match.end() : line_end if line_end >= 0 else None].split(BEFORE)[0]
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


_WRITTEN, _GONE = "written", "gone"
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
        name, given = call.name.lower(), call.arguments
        path = next((given[key] for key in _PATH_ARGUMENTS if isinstance(given.get(key), str)), "")
        is_written = any(word in name for word in _WRITES) and given.get("command") != "view"
        value = _GONE if any(word in name for word in _REMOVES) else _WRITTEN if is_written else ""
        patches = (one for one in given.values() if isinstance(one, str) and "*** Begin Patch" in one)
        if path and value and "\n" not in path:
            yield _change(path, value, read.text, call.start)
        else:
            yield from _told_changes(command_of(call) or next(patches, ""), call.start, read.text)


def _told_changes(words: str, start: int, text: str) -> Iterator[Statement]:
    for operation in file_operations(words):
        if is_file(operation.path):
            yield _change(operation.path, _GONE if operation.status == "deleted" else _WRITTEN, text, start)
            if operation.former:
                yield _change(operation.former, _GONE, text, start)


def _change(path: str, value: str, text: str, start: int) -> Statement:
    place = max(text.find(path, start), 0)
    said = path if text.startswith(path, place) else ""
    return Statement.at("change", path_key(path), value, said, place)


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
            yield Statement.at("error", folded(said), "", said, match.start())
