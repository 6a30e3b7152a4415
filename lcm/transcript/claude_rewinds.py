"""Where the user of Claude Code went back: a prompt whose parent stands before the prompts that were said meanwhile."""

import re
from array import array
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from lcm.transcript.branches import stretches_but
from lcm.transcript.fields import object_in
from lcm.transcript.identity import digest, native_id
from lcm.transcript.plain_text import RESULT_TYPES, block_type, plain_text
from lcm.transcript.recorded_file import RecordedFile

_NOT_TYPED = ("isSidechain", "isMeta", "isCompactSummary")
_BY_PROGRAM = re.compile(r"\s*(<[a-z-]+>|\[Request interrupted)")
"""How a record of type `user` begins that nobody typed: what a command printed, a task that is done."""


def rewound(path: Path) -> list[list[range]]:
    """The places, from 0, of the turns that were undone each time, but those that had been undone before.

    Other forks say nothing: records of a message that calls two tools have two children too.
    """
    ids, prompts = array("Q"), list[tuple[int, int]]()  # digests of the ids; each prompt's place and parent
    seen = set[int]()
    for place, (_, record) in enumerate(RecordedFile(path).values()):
        found = record if isinstance(record, dict) else {}
        ids.append(_digest(found, "uuid"))
        if ids[-1] not in seen and _is_typed(found):  # a copy of a prompt is no other
            seen.add(ids[-1])
            prompts.append((place, _digest(found, "parentUuid")))
    return _stretches(prompts, ids) if len(prompts) > 1 else []


def _stretches(prompts: list[tuple[int, int]], ids: "array[int]") -> list[list[range]]:
    digests = np.frombuffer(ids, np.uint64)
    order = np.argsort(digests, kind="stable")
    ordered = digests[order]
    live: list[int] = []
    undone: list[list[range]] = []
    for place, parent in prompts:
        wanted = np.uint64(parent)
        same = order[ordered.searchsorted(wanted) : ordered.searchsorted(wanted, side="right")] if parent else order[:0]
        before = int(same.searchsorted(place)) - 1
        if before >= 0:
            left = [one for one in live if one > same[before]]
            if left:
                undone.append(stretches_but(range(left[0], place), undone))
                del live[-len(left) :]
        live.append(place)
    return undone


def _is_typed(record: Mapping[str, Any]) -> bool:
    if record.get("type") != "user" or any(record.get(key) is True for key in _NOT_TYPED):
        return False
    content = object_in(record, "message").get("content")
    blocks = content if isinstance(content, list) else []
    if any(block_type(block) in RESULT_TYPES for block in blocks):
        return False
    words = plain_text({"content": content})
    return bool(words.strip()) and _BY_PROGRAM.match(words) is None


def _digest(record: Mapping[str, Any], key: str) -> int:
    named = native_id(record.get(key))
    return digest(named) if named else 0
