"""lcm journal store=FILE [KEY=VALUE ...]

Show the newest entries of the journal, oldest first: what a host said before it reset a session or when one ended.
The journal is advice: nothing is found in it, and nothing depends on it. Of too many entries the oldest are dropped
when one is added (session.journal_max_entries).

  lcm journal store=memory.db session=s1

  session=ID             of one session; else of all
  limit=50               entries at most
  json=true              everything as JSON"""

import json
from collections.abc import Sequence
from dataclasses import asdict

from lcm.clock import format_instant
from lcm.store.conversations import read_entries
from pipelines.steps.recall import no_words, opened_store, read_arguments
from pipelines.views.terminal import say, show_table, tell_json

_LIMIT = 50


def main(arguments: Sequence[str]) -> int:
    """`lcm journal store=FILE [KEY=VALUE ...]`."""
    command = read_arguments(arguments, ("session", "limit"))
    no_words(command)
    with opened_store(command) as store, store.reading() as connection:
        entries = read_entries(connection, command.settings.get("session"), command.number("limit") or _LIMIT)
    if command.flag("json"):
        tell_json([asdict(entry) for entry in entries])
        return 0
    if not entries:
        say("The journal is empty.")
        return 0
    rows = []
    for entry in entries:
        said = json.dumps(dict(entry.fields), ensure_ascii=False) if entry.fields else ""
        rows.append((format_instant(entry.happened_at), entry.hook, entry.session_id, said))
    show_table(("when", "hook", "session", "what else was said"), rows)
    return 0
