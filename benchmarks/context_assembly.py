"""A context of the newest messages of a long conversation, against two queries that find and read as many."""

import sqlite3
import tempfile
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from benchmarks import corpus
from benchmarks.timing import Comparison, DisagreementError, compared_times, take_turns
from lcm.checks import check_range
from lcm.context.assembly.lossless import Lossless
from lcm.protocols.context import ContextRequest
from lcm.records.context import Context
from lcm.store.store import Store

_Read = list[tuple[str, str]]
"""Ids and words."""


@dataclass(frozen=True, slots=True)
class ContextAssembly:
    """`Store.context_records` and `Lossless.assemble`, against sqlite3 alone.

    Bare: every id and token count is read, newest first, then the words of as many as ours shows. Ours decodes
    messages with their parts, pairs calls with results, and says of every other why it is left out.
    """

    assembly: Lossless
    messages: int
    budget_tokens: int

    def __post_init__(self) -> None:
        check_range(self, "messages", "budget_tokens", ge=1)

    def run(self, repeats: int, seed: int) -> list[Comparison]:
        said = corpus.transcript(self.messages, seed)
        with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "store.db") as store:
            store.ingest(said, self.assembly.token_estimator, self.assembly.rendered)

            def ours() -> Context:
                items = store.context_records(said.conversation_id)
                return self.assembly.assemble(items, [ContextRequest(self.budget_tokens)])[0]

            shown = len(ours().items)
            with closing(sqlite3.connect(Path(folder) / "store.db")) as connection:

                def bare() -> _Read:
                    rows = connection.execute(
                        """
                        SELECT m.message_id, m.message_key, m.token_count FROM context_items i
                        JOIN messages m USING (message_id) ORDER BY i.ordinal DESC
                        """
                    ).fetchall()
                    words = "SELECT message_key, content FROM messages WHERE message_id = ?"
                    return [connection.execute(words, (key,)).fetchone() for key, *_ in rows[shown - 1 :: -1]]

                rounds = take_turns(lambda: ours, lambda: bare, _check, repeats)
        facts = {"messages": self.messages, "budget_tokens": self.budget_tokens, "shown": shown}
        return [compared_times("context assembly", "ms a context", 1e3, rounds, None, facts)]


def _check(ours: Context, bare: _Read) -> None:
    if [item.item_id for item in ours.items] != [message_id for message_id, _ in bare]:
        raise DisagreementError("the assembly and the bare queries showed different messages")
