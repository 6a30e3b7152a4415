"""What was done to files: written, or gone."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lcm.compaction.facts.commands import command_of
from lcm.compaction.facts.paths import is_file, path_key
from lcm.compaction.facts.statement import Call, ReadText, Statement
from lcm.compaction.summarizer.file_operations import file_operations

WRITTEN, GONE = "written", "gone"
_PATHS = ("path", "file_path", "filepath", "filename", "file", "notebook_path", "target_file", "AbsolutePath")
_WRITES = ("write", "edit", "create", "str_replace", "insert", "multiedit", "update", "append", "save")
_REMOVES = ("delete", "remove", "unlink")


@dataclass(frozen=True, slots=True)
class Changes:
    """Calls of tools that write or remove files, patches, shell commands that do, and what words say of either.

    Created and modified are one value, for a file that was both is told by either; a file that was moved is written
    under its new path and gone under the old one.
    """

    def find(self, read: ReadText) -> Iterator[Statement]:
        end = min((call.start for call in read.calls), default=len(read.text))
        yield from _told(read.text[:end], 0, read.text)
        for call in read.calls:
            yield from _called(call, read.text)


def _called(call: Call, text: str) -> Iterator[Statement]:
    name = call.name.lower()
    path = next((call.arguments[key] for key in _PATHS if isinstance(call.arguments.get(key), str)), None)
    value = WRITTEN if any(word in name for word in _WRITES) and not _only_views(call.arguments) else None
    value = GONE if any(word in name for word in _REMOVES) else value
    if path and value and "\n" not in path:
        yield _statement(path, value, text, call.start)
    elif command := command_of(call) or next(
        (one for one in call.arguments.values() if isinstance(one, str) and "*** Begin Patch" in one), ""
    ):
        yield from _told(command, call.start, text)


def _only_views(arguments: Mapping[str, Any]) -> bool:
    return arguments.get("command") == "view"


def _told(words: str, start: int, text: str) -> Iterator[Statement]:
    for operation in file_operations(words):
        if not is_file(operation.path):
            continue
        yield _statement(operation.path, GONE if operation.status == "deleted" else WRITTEN, text, start)
        if operation.status == "renamed" and operation.former:
            yield _statement(operation.former, GONE, text, start)


def _statement(path: str, value: str, text: str, start: int) -> Statement:
    place = max(text.find(path, start), 0)
    said = path if text.startswith(path, place) else ""
    return Statement("change", path_key(path), value, said, place, place + len(said))
