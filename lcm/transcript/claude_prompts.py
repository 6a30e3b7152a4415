"""What somebody typed in Claude Code, and what a program says in the user's name."""

import re
from collections.abc import Mapping
from typing import Any

from lcm.transcript.fields import object_in
from lcm.transcript.plain_text import MEDIA_TYPES, RESULT_TYPES, block_type, plain_text

_NOT_TYPED = ("isSidechain", "isMeta")
_BY_PROGRAM = re.compile(r"\s*(<(?!command-|bash-input>)[a-z-]+[\s>]|\[Request interrupted)")
"""How a record of type `user` begins that nobody typed: what a command printed, a task that is done."""

_CLEARED = re.compile(r"<command-name>/?(clear|new)</command-name>")
_NOTIFICATION = "<task-notification"


def is_typed(record: Mapping[str, Any]) -> bool:
    """Whether it is a prompt, or a command, that began a turn or could have."""
    if record.get("type") != "user" or is_summary(record) or any(record.get(key) is True for key in _NOT_TYPED):
        return False
    content = object_in(record, "message").get("content")
    if any(block_type(block) in RESULT_TYPES for block in _blocks(content)):
        return False
    return _says_something(content) and _BY_PROGRAM.match(plain_text({"content": content})) is None


def is_summary(record: Mapping[str, Any]) -> bool:
    """Whether a compaction left it in the place of the talk before."""
    return record.get("isCompactSummary") is True


def is_typed_meanwhile(record: Mapping[str, Any]) -> bool:
    """Whether somebody typed it while the agent worked: what a program queued (a task that is done) has the same shape.

    To a sub-agent its coordinator speaks as to the agent its user.
    """
    queued = object_in(record, "attachment") if record.get("type") == "attachment" else {}
    prompt = queued.get("prompt")
    if queued.get("type") != "queued_command" or not isinstance(prompt, str | list):
        return False
    by = object_in(queued, "origin").get("kind", "human")
    if by == "coordinator" and record.get("isSidechain") is True:
        return True
    is_meta = queued.get("isMeta") is True or record.get("isMeta") is True
    is_prompt = queued.get("commandMode", "prompt") == "prompt" and by == "human" and not is_meta
    words = plain_text({"content": prompt}).strip()
    return is_prompt and _says_something(prompt) and not words.startswith(_NOTIFICATION)


def clears(record: Mapping[str, Any]) -> bool:
    """Whether it is the command after which the talk begins anew."""
    return _CLEARED.search(plain_text(object_in(record, "message"))) is not None


def _says_something(content: Any) -> bool:
    has_media = any(block_type(block) in MEDIA_TYPES for block in _blocks(content))
    return has_media or bool(plain_text({"content": content}).strip())


def _blocks(content: Any) -> list[Any]:
    return content if isinstance(content, list) else []
