"""What a host says before it resets a session, and when one ends: noted in the journal, then followed by the session's
rules.

The note is advice: where it cannot be written, the rules act all the same, and where they leave the session out, the
note stands all the same.

Source: libravdb memory 1.3.17, whose hooks write the journal alone; what becomes of the session is lossless-claw's.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from lcm.clock import EPOCH
from lcm.memory.memory import Memory
from lcm.plugins.lossless_claw import rollover
from lcm.records.conversation import JournalEntry

_MILLISECOND = timedelta(milliseconds=1)


def before_reset(
    memory: Memory, now: datetime, reason: str, session_id: str, session_key: str = "", **said: Any
) -> None:
    """Note that a session is about to be reset, and prune or replace its context as `rollover.before_reset` does.

    Args:
        memory: whose session.
        now: when the host said so.
        reason: `new` or `reset`; any other is noted alone.
        session_id: of the host.
        session_key: of the conversation; else it goes by its id.
        said: JSON: what else the host tells (message_count, session_file, workspace ...).
    """
    _note(memory, now, "before_reset", session_id, {"reason": reason, "session_key": session_key} | said)
    rollover.before_reset(memory.store, memory.system.session, now, reason, session_id, session_key)


def session_end(
    memory: Memory,
    now: datetime,
    reason: str,
    session_id: str,
    session_key: str = "",
    next_session_id: str = "",
    next_session_key: str = "",
    **said: Any,
) -> None:
    """Note that a session has ended, and archive its conversation as `rollover.session_end` does."""
    following = {"next_session_id": next_session_id, "next_session_key": next_session_key}
    fields = {"reason": reason, "session_key": session_key} | {k: v for k, v in following.items() if v} | said
    _note(memory, now, "session_end", session_id, fields)
    rollover.session_end(
        memory.store, memory.system.session, now, reason, session_id, session_key, next_session_id, next_session_key
    )


def _note(memory: Memory, now: datetime, hook: str, session_id: str, fields: Mapping[str, Any]) -> None:
    known = {entry.entry_id for entry in memory.journal(session_id)}
    base = f"{hook}:{session_id}:{(now - EPOCH) // _MILLISECOND}"
    numbered = (base if not number else f"{base}#{number}" for number in range(len(known) + 1))
    entry_id = next(one for one in numbered if one not in known)
    memory.note_lifecycle(JournalEntry(entry_id, now, hook, session_id, {k: v for k, v in fields.items() if v != ""}))
