"""lcm grep PATTERN store=FILE [KEY=VALUE ...]

Search messages, those that no longer stand in a context too, and summaries.

  lcm grep "database timeout" store=memory.db
  lcm grep 'error: \\w+' mode=regex scope=messages since=2026-01-05 limit=10
  lcm grep 会議 conversation=ryokou json=true

  mode=full_text         or regex, in the syntax of Python's package regex
  scope=both             or messages, summaries
  since=... before=...   ISO 8601, UTC unless it names a zone
  limit=50               of messages, and again of summaries
$RECALL"""

from collections.abc import Sequence
from typing import cast, get_args

from eval.table import Column, Table
from lcm.context.recall.grep import Grep, Mode, Scope, minute, one_line
from lcm.errors import LcmError
from pipelines.steps.recall import one_word, opened, read_arguments
from pipelines.views.terminal import say, show, tell_json, warn

_KEYS = ("mode", "scope", "conversation", "agent", "since", "before", "limit")


def main(arguments: Sequence[str]) -> int:
    """`lcm grep PATTERN store=FILE [KEY=VALUE ...]`."""
    command = read_arguments(arguments, _KEYS)
    pattern = one_word(command, "pattern", "grep").strip()
    if not pattern:
        raise LcmError("the pattern must say what to search for, got nothing")
    mode = cast("Mode", command.choice("mode", get_args(Mode), "full_text"))
    scope = cast("Scope", command.choice("scope", get_args(Scope), "both"))
    with opened(command) as (_, reader):
        found = reader.grep(
            pattern,
            mode=mode,
            scope=scope,
            conversation=reader.conversation(command.settings.get("conversation")),
            since=command.instant("since"),
            before=command.instant("before"),
            limit=command.number("limit"),
        )
    if found.is_refused:
        raise LcmError("; ".join(found.notes))
    if command.flag("json"):
        hits = {name: [hit._asdict() for hit in getattr(found, name)] for name in ("messages", "summaries")}
        tell_json({**hits, "notes": list(found.notes)})
    else:
        _show(found)
    for note in found.notes:
        warn(note)
    return 0


def _show(found: Grep) -> None:
    if not found.total:
        say("No matches found.")
        return
    rows = [(f"msg#{hit.number}", hit.conversation_id, hit.role, hit.created_at, hit.snippet) for hit in found.messages]
    rows += [(hit.summary_id, hit.conversation_id, hit.kind, hit.created_at, hit.snippet) for hit in found.summaries]
    is_one = len({conversation for _, conversation, *_ in rows}) == 1
    told = [
        (name, *(() if is_one else (conversation,)), what, minute(at), one_line(snippet))
        for name, conversation, what, at, snippet in rows
    ]
    titles = ("id", *(() if is_one else ("conversation",)), "what", "when", "words")
    show(Table(list(map(Column, titles)), told, f"conversation {rows[0][1]}" if is_one else ""))
