"""Where the user of Claude Code went back: a prompt whose parent stands before the prompts that were said meanwhile."""

import re
from array import array
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lcm.transcript.branches import stretches_but
from lcm.transcript.claude_prompts import clears, is_typed, is_typed_meanwhile
from lcm.transcript.identity import digest, native_id
from lcm.transcript.json_scanner import JsonError, parse
from lcm.transcript.recorded_file import RecordedFile

_ID = re.compile(rb'"uuid"\s*:\s*"([^"\\]+)"')
_PARENT = re.compile(rb'"parentUuid"\s*:\s*(?:null|"([^"\\]*)")')
_SIDECHAIN = re.compile(rb'"isSidechain"\s*:\s*true')

_Numbers = npt.NDArray[np.uint64]


class _Prompt(NamedTuple):
    line: int
    uuid: int
    """A digest, as the parent is."""
    parent: int | None
    """None = the prompt begins a talk; 0 = nothing is said of it."""
    session_id: str
    is_queued: bool
    """Typed while the agent worked: it went back behind nothing."""


@dataclass(slots=True)
class _Survey:
    """What is known of a file's records: ids and parents as digests, and the prompts among them."""

    ids: "array[int]" = field(default_factory=lambda: array("Q"))
    lines: "array[int]" = field(default_factory=lambda: array("Q"))
    """Of each id."""
    parents: "array[int]" = field(default_factory=lambda: array("Q"))
    prompts: dict[int, _Prompt] = field(default_factory=dict)
    """By their ids: a copy of a prompt is no other."""
    begun_anew: int | None = None
    """The first line, behind a prompt, from which on the talk may have another beginning: a summary, a `/clear`."""

    def add(self, number: int, line: bytes) -> None:
        for found in _ID.findall(line):
            self.ids.append(digest(found.decode(errors="replace")))
            self.lines.append(number)
        parents = _PARENT.findall(line)
        self.parents.extend(digest(found.decode(errors="replace")) for found in parents if found)
        record = _typed(line)
        if uuid := digest(native_id(record.get("uuid"))) if native_id(record.get("uuid")) else 0:
            is_queued = record.get("type") == "attachment"
            session_id = native_id(record.get("sessionId"))
            self.prompts.setdefault(uuid, _Prompt(number, uuid, _parent(record), session_id, is_queued))
        begins = clears(record) if record else b"" in parents and not _SIDECHAIN.search(line)
        if begins and self.prompts and self.begun_anew is None:
            self.begun_anew = number


def rewound(file: RecordedFile) -> list[list[range]]:
    """The lines that were undone each time, but those that had been undone before.

    Only prompts are parsed, of the other records the ids are looked for. Other forks say nothing: records of a message
    that calls two tools have two children too. Nor do prompts where one goes on from what another went back behind: the
    file's order is that of the conversation then.
    """
    if file.shape != "lines":
        return []
    survey = _Survey()
    for number, line in RecordedFile(file.path).lines():
        survey.add(number, line)
    return _stretches(survey) if len(survey.prompts) > 1 else []


def _stretches(survey: _Survey) -> list[list[range]]:
    places = _Places(np.frombuffer(survey.ids, np.uint64), np.frombuffer(survey.lines, np.uint64))
    followed = np.unique(np.frombuffer(survey.parents, np.uint64)) if survey.parents else np.empty(0, np.uint64)
    live: list[_Prompt] = []
    undone: list[list[range]] = []
    for prompt in survey.prompts.values():
        if prompt.is_queued:
            if _holds(followed, prompt.uuid):  # else it may stand beside the talk
                live.append(prompt)
            continue
        parent = places.first(prompt.parent or 0)
        if any(parent in stretch for each in undone for stretch in each):
            return []  # two windows wrote, or the user went back to what was undone: nothing of it is left for good
        if parent:
            left = live[bisect_right(live, parent, key=lambda one: one.line) :]
        else:
            left = live if _is_first_again(prompt, live, followed, survey.begun_anew) else []
        if left:
            start = left[0].line
            undone.append(stretches_but(range(start, places.written_again(start, prompt.line)), undone))
            live = live[: -len(left)]
        live.append(prompt)
    return undone


def _is_first_again(prompt: _Prompt, live: Sequence[_Prompt], followed: _Numbers, begun_anew: int | None) -> bool:
    """Whether the prompt stands in the place of the first, which somebody answered, and which has no parent either."""
    if prompt.parent is not None or not live or (begun_anew is not None and begun_anew <= prompt.line):
        return False
    first = live[0]
    return first.parent is None and first.session_id == prompt.session_id and _holds(followed, first.uuid)


class _Places:
    """On which lines the records stand, by the digests of their ids; some are written more than once."""

    def __init__(self, ids: _Numbers, lines: _Numbers) -> None:
        self._ids, first, which = np.unique(ids, return_index=True, return_inverse=True)
        self._firsts = lines[first]
        self._lines, self._first_of_each = lines, self._firsts[which]

    def first(self, record: int) -> int:
        """The line on which it stands first; 0 where it does on none."""
        at = int(self._ids.searchsorted(np.uint64(record)))
        return int(self._firsts[at]) if at < len(self._ids) and self._ids[at] == record else 0

    def written_again(self, start: int, stop: int) -> int:
        """The first of these lines on which a record stands that stood before them all; `stop` where there is none."""
        within = slice(*(int(self._lines.searchsorted(np.uint64(line))) for line in (start, stop)))
        again = self._lines[within][self._first_of_each[within] < start]
        return int(again[0]) if len(again) else stop


def _holds(numbers: _Numbers, number: int) -> bool:
    at = int(numbers.searchsorted(np.uint64(number)))
    return at < len(numbers) and int(numbers[at]) == number


def _parent(record: dict[str, Any]) -> int | None:
    if "parentUuid" in record and record["parentUuid"] is None:
        return None
    parent = native_id(record.get("parentUuid"))
    return digest(parent) if parent else 0


def _typed(line: bytes) -> dict[str, Any]:
    """The record of a line that somebody typed; empty for any other."""
    if b'"queued_command"' not in line and (b'"user"' not in line or b'"tool_result"' in line):
        return {}
    try:
        record = parse(line.decode("utf-8-sig"))
    except (JsonError, UnicodeDecodeError):
        return {}
    if not isinstance(record, dict):
        return {}
    is_main = record.get("isSidechain") is not True
    return record if is_typed(record) or (is_main and is_typed_meanwhile(record)) else {}
