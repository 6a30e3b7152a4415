"""lcm status store=FILE [json=true]

Count what a store holds: messages and their tokens, contexts, summaries, documents by kind, protected messages,
authored blocks, journal entries; and what waits: messages of which no documents were made yet, failed compactions.

  lcm status store=memory.db"""

from collections.abc import Sequence

from eval.table import Column
from lcm.store.doctor import census
from pipelines.steps.recall import no_words, opened_store, read_arguments
from pipelines.views.terminal import show_table, tell_json


def main(arguments: Sequence[str]) -> int:
    """`lcm status store=FILE [json=true]`."""
    command = read_arguments(arguments, ())
    no_words(command)
    with opened_store(command) as store, store.reading() as connection:
        found = census(connection)
    if command.flag("json"):
        tell_json(found)
        return 0
    rows = list[tuple[str, object]]()
    for name, value in found.items():
        if isinstance(value, dict):
            rows += ((f"{name}: {kind}", count) for kind, count in value.items())
        else:
            rows.append((name, value if isinstance(value, int) else value or ""))
    show_table(("what", Column("count", "number")), rows)
    return 0
