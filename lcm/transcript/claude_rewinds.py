"""Where the user of Claude Code went back: a prompt whose parent stands before the prompts that were said meanwhile."""

import re
from array import array
from bisect import bisect_right
from collections.abc import Mapping
from typing import Any

import numpy as np

from lcm.transcript.branches import stretches_but
from lcm.transcript.fields import object_in
from lcm.transcript.identity import digest, native_id
from lcm.transcript.json_scanner import JsonError, parse
from lcm.transcript.plain_text import RESULT_TYPES, block_type, plain_text
from lcm.transcript.recorded_file import RecordedFile

_ID = re.compile(rb'"uuid"\s*:\s*"([^"\\]+)"')
_NOT_TYPED = ("isSidechain", "isMeta", "isCompactSummary")
_BY_PROGRAM = re.compile(r"\s*(<[a-z-]+[\s>]|\[Request interrupted)")
"""How a record of type `user` begins that nobody typed: what a command printed, a task that is done."""


def rewound(file: RecordedFile) -> list[list[range]]:
    """The lines that were undone each time, but those that had been undone before.

    Only prompts are parsed, of the other records the ids are looked for. Other forks say nothing: records of a message
    that calls two tools have two children too. Nor do prompts where one goes on from what another went back behind: the
    file's order is that of the conversation then.
    """
    if file.shape != "lines":
        return []
    ids, lines, prompts = array("Q"), array("Q"), dict[str, tuple[int, str]]()
    for number, line in RecordedFile(file.path).lines():
        for found in _ID.findall(line):
            ids.append(digest(found.decode(errors="replace")))
            lines.append(number)
        record = _prompt(line)
        if uuid := native_id(record.get("uuid")):
            prompts.setdefault(uuid, (number, native_id(record.get("parentUuid"))))  # a copy of a prompt is no other
    if len(prompts) < 2:
        return []
    return _stretches(list(prompts.values()), np.frombuffer(ids, np.uint64), np.frombuffer(lines, np.uint64))


def _stretches(
    prompts: list[tuple[int, str]], ids: np.ndarray[Any, Any], lines: np.ndarray[Any, Any]
) -> list[list[range]]:
    order = np.argsort(ids, kind="stable")
    ids, lines = ids[order], lines[order]
    live: list[int] = []
    undone: list[list[range]] = []
    for line, parent in prompts:
        wanted = np.uint64(digest(parent))
        same = lines[ids.searchsorted(wanted) : ids.searchsorted(wanted, side="right")]
        before = int(same.searchsorted(np.uint64(line))) - 1
        if before >= 0 and any(int(same[before]) in stretch for each in undone for stretch in each):
            return []  # two windows wrote, or the user went back to what was undone: nothing of it is left for good
        left = live[bisect_right(live, int(same[before])) :] if before >= 0 else []
        if left:
            undone.append(stretches_but(range(left[0], line), undone))
            del live[-len(left) :]
        live.append(line)
    return undone


def _prompt(line: bytes) -> dict[str, Any]:
    """The record of a line that somebody typed; empty for any other."""
    if b'"user"' not in line or b'"tool_result"' in line:
        return {}
    try:
        record = parse(line.decode("utf-8-sig"))
    except (JsonError, UnicodeDecodeError):
        return {}
    return record if isinstance(record, dict) and _is_typed(record) else {}


def _is_typed(record: Mapping[str, Any]) -> bool:
    if record.get("type") != "user" or any(record.get(key) is True for key in _NOT_TYPED):
        return False
    content = object_in(record, "message").get("content")
    blocks = content if isinstance(content, list) else []
    if any(block_type(block) in RESULT_TYPES for block in blocks):
        return False
    words = plain_text({"content": content})
    return bool(words.strip()) and _BY_PROGRAM.match(words) is None
