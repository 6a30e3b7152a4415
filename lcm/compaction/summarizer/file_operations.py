"""Which files a stretch of conversation created, modified, deleted or renamed."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from lcm.protocols.models import TokenEstimator

_SEGMENT = r"[\w.@+%~-]+"
# Tokens are entered at their beginning alone: a line of base64 would otherwise be read once from each of its places.
_PATH = (
    rf"(?<![\w.@+%~/\\-])(?:(?:(?:[A-Za-z]:|~|\.{{1,2}})?(?:[/\\]{_SEGMENT})+|{_SEGMENT}(?:/{_SEGMENT})+)/?"
    rf"|{_SEGMENT}\.[A-Za-z]\w{{0,9}}|Makefile|Dockerfile)(?![\w/\\]|://)"
)
_QUOTED = rf"[`'\"*]*(?P<path>{_PATH})[`'\"*]*"
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
        rf"{_AT_LINE_START}\[?(?P<verb>write|create|edit|delete|remove|update)(?:_?file)?\b[:(]?\s*{_QUOTED}[)\]]?\s*$",
        rf"\b(?P<verb>renamed|moved)(?:\s+(?:the|file)\b){{0,2}}\s+{_FORMER}\s+(?:to|into|as|->|→)\s+{_QUOTED}",
        rf"\b{_VERBS}{_ARTICLES}{_QUOTED}",
        rf"{_QUOTED}\s+(?:has been|have been|was|were)\s+(?:successfully\s+)?{_VERBS}\b",
        rf"\b(?:added|fixed|replaced|changed|inserted)\b(?:\s+[^\s.;]+){{1,8}}?\s+(?P<verb>in|to)\s+{_QUOTED}",
        rf"\b(?:cat|echo|printf)\b[^\n;&|]{{0,200}}?(?P<verb>>>|>)\s*{_QUOTED}",
    )
)
_AND_MORE = re.compile(rf"(?:\s*,\s*(?:and\s+)?|\s+and\s+){_QUOTED}")
_SHELL = re.compile(
    r"(?:^[ \t]*(?:[$>#%][ \t]+)?|[;&|][ \t]*|\"command\"\s*:\s*\")(?:sudo[ \t]+)?(?:git[ \t]+)?"
    r"(?P<verb>rm|mv|cp|touch|tee|sed[ \t]+-i)[ \t]+(?P<arguments>[^\n;&|<>\"\\]+)",
    re.MULTILINE,
)
_NEGATED = re.compile(r"(?:\bnot|n't|\bnever|\bwithout|\bif|\bwould)(?:\s+\w+)?\s*$", re.IGNORECASE)
_NEGATION_REACH = 24
CREATED = frozenset(
    ["created", "wrote", "written", "generated", "saved", "add", "create", "write", "touch", ">", "tee"]
)
DELETED = frozenset(["deleted", "removed", "delete", "remove", "rm"])
RENAMED = frozenset(["renamed", "moved", "rename", "move", "mv"])
FILES = "Files: "
NO_FILES = "Files: none"
Status = Literal["created", "modified", "deleted", "renamed"]
_LINE = re.compile(r"^[ \t]*Files:[ \t]*(?P<entries>\S.*)$", re.MULTILINE)
_ENTRY = re.compile(
    r"(?P<path>.+?)\s*[(:–-]?\s*\b(?P<status>created|modified|deleted|renamed)(?: from (?P<former>.+?))?\)?"
)


class Mention(NamedTuple):
    """One file that one place of a text names."""

    place: int
    verb: str
    """In lower case, as written."""
    path: str
    former: str = ""
    """The path that it had, where it was renamed."""


def mentions(text: str) -> list[Mention]:
    """Find what was done to files, in the order of the text.

    Read are patches, git's own report, calls of editing tools, shell commands (rm, mv, cp, touch, tee, sed -i, >), and
    prose in the past tense ("created src/x.py and src/y.py", "moved a.py to b.py", "fixed the loop in run.py"), unless
    denied.

    Source: ours.
    """
    found = [mention for pattern in _PATTERNS for mention in _matches(pattern, text)]
    found += [mention for match in _SHELL.finditer(text) for mention in _commanded(match)]
    return sorted((m for m in found if not _ABBREVIATION.fullmatch(m.path)), key=lambda m: m.place)


def is_path(text: str) -> bool:
    """Say whether a text is one path or file name."""
    return _WHOLE_PATH.fullmatch(text) is not None and not _ABBREVIATION.fullmatch(text)


def _matches(pattern: re.Pattern[str], text: str) -> Iterator[Mention]:
    for match in pattern.finditer(text):
        if _NEGATED.search(text[max(0, match.start() - _NEGATION_REACH) : match.start()]):
            continue
        groups = match.groupdict()
        verb = groups["verb"].lower()
        yield Mention(match.start(), verb, _trimmed(groups["path"]), _trimmed(groups.get("former") or ""))
        if groups.get("former"):
            continue
        end = match.end()
        while more := _AND_MORE.match(text, end):
            yield Mention(more.start(), verb, _trimmed(more["path"]))
            end = more.end()


def _commanded(match: re.Match[str]) -> Iterator[Mention]:
    verb = match["verb"].split()[0]
    paths = [word.strip("'\"`,") for word in match["arguments"].split() if not word.startswith("-")]
    paths = [_trimmed(path) for path in paths if is_path(path)]
    if verb == "mv" and len(paths) == 2:
        yield Mention(match.start(), verb, paths[1], paths[0])
    elif verb == "cp" and len(paths) == 2:
        yield Mention(match.start(), "create", paths[1])
    elif verb not in ("mv", "cp"):
        yield from (Mention(match.start(), verb, path) for path in paths)


def _trimmed(path: str) -> str:
    return path.strip().rstrip(".:,")


@dataclass(frozen=True, slots=True)
class FileOperation:
    """A file, and what was last done to it."""

    path: str
    status: Status
    former: str = ""
    """The path that it had, where it was renamed."""

    def __str__(self) -> str:
        return f"{self.path} ({self.status}{f' from {self.former}' if self.former else ''})"


def file_operations(text: str) -> list[FileOperation]:
    """Say what became of each file that a text mentions, in the order of their last mention.

    The `Files:` lines of earlier summaries count like the words around them. The last status of a path holds, but
    writing a file that was created or modified before modifies it, and a file renamed twice keeps its first path. An
    absolute path that ends in a relative one is the same file.
    """
    lines = list(_LINE.finditer(text))
    told = [
        (m.place, _status(m.verb), m.path, m.former)
        for m in mentions(text)
        if not any(line.start() <= m.place < line.end() for line in lines)
    ]
    told += [(line.start(), o.status, o.path, o.former) for line in lines for o in _listed(line["entries"])]
    last: dict[str, FileOperation] = {}
    spelling = _spellings(path for _, _, *paths in told for path in paths)
    for _, status, path, former in sorted(told, key=lambda each: each[0]):
        path, former = spelling[path], spelling[former]
        before = last.pop(path, None)
        if status == "renamed" and former:
            origin = last.pop(former, None)
            last[path] = FileOperation(path, "renamed", (origin.former if origin else "") or former)
        elif status == "created" and before and before.status in ("created", "modified"):
            last[path] = FileOperation(path, "modified")
        else:
            last[path] = FileOperation(path, status)
    return list(last.values())


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


def _status(verb: str) -> Status:
    if verb in CREATED:
        return "created"
    if verb in DELETED:
        return "deleted"
    return "renamed" if verb in RENAMED else "modified"


def _listed(entries: str) -> list[FileOperation]:
    """Read the list of an earlier summary, whoever wrote it: what names no path is passed over."""
    found = []
    for entry in re.split(r"[,;]\s+", entries):
        match = _ENTRY.fullmatch(entry.strip().rstrip("."))
        path = (match["path"] if match else entry).strip("`'\"* ")
        if is_path(path) or (match and ("/" in path or "." in path)):
            status = _status(match["status"]) if match else "modified"
            found.append(FileOperation(path, status, (match["former"] or "") if match else ""))
    return found
