"""How far a reader can see: every path of recall reads through one of these."""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, replace

from lcm.store.lineage import StoredFile, beneath, conversations_of, leaves_of, stored_files
from lcm.store.search import SearchBounds


@dataclass(frozen=True, slots=True)
class ReadBounds:
    """The conversations and summaries that may be seen."""

    conversations: tuple[int, ...] | None = None
    """Integer keys; None = all."""
    roots: tuple[str, ...] | None = None
    """Only these summaries, what they were made of, and the messages beneath; None = all."""

    def within(self, conversations: Sequence[int]) -> "ReadBounds":
        """What of this lies in some conversations."""
        return replace(self, conversations=tuple(row for row in conversations if self.holds(row)))

    def holds(self, conversation: int) -> bool:
        return self.conversations is None or conversation in self.conversations

    def seen(self, connection: sqlite3.Connection, summary_ids: Sequence[str]) -> list[str]:
        """Those of some summaries that may be seen, in their order."""
        if self.conversations is None and self.roots is None:
            return list(summary_ids)
        of = conversations_of(connection, summary_ids)
        covered = None if self.roots is None else beneath(connection, self.roots)
        return [one for one in summary_ids if one in of and self.holds(of[one]) and (covered is None or one in covered)]

    def sees_message(self, connection: sqlite3.Connection, number: int, conversation: int) -> bool:
        """Say whether a message may be seen: of what conversation it is, and, where roots count, beneath which."""
        if not self.holds(conversation):
            return False
        leaf = leaves_of(connection, [number]).get(number)
        return self.roots is None or (leaf is not None and bool(self.seen(connection, [leaf])))

    def sees_file(self, connection: sqlite3.Connection, stored: StoredFile) -> bool:
        if self.roots is None or stored.message is None:
            return self.holds(stored.conversation) and self.roots is None
        return self.sees_message(connection, stored.message, stored.conversation)

    def files(self, connection: sqlite3.Connection, file_ids: Sequence[str]) -> tuple[str, ...]:
        """Those of some large files that may be seen; of an unknown one only a reader without bounds is told."""
        if self == EVERYTHING:
            return tuple(file_ids)
        known = stored_files(connection, file_ids)
        return tuple(one for one in file_ids if one in known and self.sees_file(connection, known[one]))

    def bounds(self, connection: sqlite3.Connection) -> SearchBounds:
        """The same for a search."""
        covered = None if self.roots is None else sorted(beneath(connection, self.roots))
        return SearchBounds(conversations=self.conversations, summaries=covered)


EVERYTHING = ReadBounds()
