"""Which files a stretch of conversation created, modified, deleted or renamed."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from lcm.compaction.summarizer.file_mentions import CREATED, DELETED, RENAMED, is_path, mentions
from lcm.protocols.models import TokenEstimator

FILES = "Files: "
NO_FILES = "Files: none"

Status = Literal["created", "modified", "deleted", "renamed"]

_LINE = re.compile(r"^[ \t]*Files:[ \t]*(?P<entries>\S.*)$", re.MULTILINE)
_ENTRY = re.compile(
    r"(?P<path>.+?)\s*[(:–-]?\s*\b(?P<status>created|modified|deleted|renamed)(?: from (?P<former>.+?))?\)?"
)


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
