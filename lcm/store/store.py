"""The store: what was said and what retrieval may return, in one SQLite file; and the versions of its schema."""

import hashlib
import json
import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import wraps
from importlib import resources
from pathlib import Path
from types import TracebackType
from typing import Concatenate, Literal, ParamSpec, Self, TypeVar

from filelock import FileLock

from lcm.clock import InstantError, format_instant
from lcm.errors import MigrationError, StoreError
from lcm.faults import StoreFaultError, told
from lcm.files import open_to, private
from lcm.records.conversation import Message
from lcm.records.summary import Summary
from lcm.store import conversations as conversation_rows
from lcm.store import documents as document_rows
from lcm.store import messages as message_rows
from lcm.store import summaries as summary_rows
from lcm.store.messages import write_parts_texts
from lcm.store.sqlite import TEMPORARY, connect, transaction, without_log


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of the schema; never changed once released, because it is not applied again."""

    version: int
    """Counts up from 1 without gaps."""
    name: str
    step: str | Callable[[sqlite3.Connection], None]
    """SQL text, or a function that gets the connection inside the transaction."""


def _script(name: str) -> str:
    return resources.files("lcm.store").joinpath(name).read_text(encoding="utf-8")


def _add_guidance(connection: sqlite3.Connection) -> None:
    run_script(connection, _script("schema_5_guidance.sql"))
    # Authored documents are of no conversation. Only the constraint goes, so the rows stay as they are: the way that
    # SQLite's description of ALTER TABLE names for it; a table made anew would take what refers to it along.
    version = connection.execute("PRAGMA schema_version").fetchone()[0]
    connection.execute("PRAGMA writable_schema = ON")
    changed = connection.execute(
        """
        UPDATE sqlite_schema
        SET sql = replace(sql, 'conversation_id  INTEGER NOT NULL REFERENCES', 'conversation_id  INTEGER REFERENCES')
        WHERE type = 'table' AND name = 'documents' AND sql LIKE '%conversation_id  INTEGER NOT NULL REFERENCES%'
        """
    )
    if changed.rowcount != 1:
        raise sqlite3.DatabaseError("the table of documents is not as this program made it")
    connection.execute(f"PRAGMA schema_version = {version + 1}")
    connection.execute("PRAGMA writable_schema = OFF")


def _add_parts_text(connection: sqlite3.Connection) -> None:
    connection.execute("ALTER TABLE messages ADD COLUMN parts_text TEXT NOT NULL DEFAULT ''")
    connection.execute(
        """
        ALTER TABLE messages ADD COLUMN full_text TEXT GENERATED ALWAYS AS (
          CASE WHEN parts_text = '' THEN content
               WHEN trim(content, char(9, 10, 11, 12, 13, 32)) = '' THEN parts_text
               ELSE content || char(10) || parts_text END) VIRTUAL
        """
    )
    write_parts_texts(connection)
    run_script(connection, _script("schema_6_parts.sql"))


MIGRATIONS: tuple[Migration, ...] = (
    Migration(1, "the first schema", _script("schema_1.sql")),
    Migration(2, "events beside the messages", _script("schema_2_events.sql")),
    Migration(3, "the lives of documents, and decisions on candidates", _script("schema_3_lives.sql")),
    Migration(4, "compaction, large files and hidden messages", _script("schema_4_compaction.sql")),
    Migration(5, "guidance, authored documents and the journal of sessions", _add_guidance),
    Migration(6, "what the parts of messages say, beside their words", _add_parts_text),
    Migration(7, "the scores of admission by message", _script("schema_7_scores.sql")),
)


def migrate(connection: sqlite3.Connection, applied_at: datetime, migrations: Sequence[Migration] = MIGRATIONS) -> None:
    """Bring the database up to date: each pending step and its record are one transaction.

    Raises:
        MigrationError: if the database is newer than `migrations`, or a step failed. A failed step is rolled
            back and stays pending; the steps before it stay applied.
    """
    newest = migrations[-1].version
    if (found := schema_version(connection)) > newest:
        raise MigrationError(
            f"the database has schema version {found}, this program knows {newest}; use a newer program"
        )
    for migration in migrations[found:]:
        try:
            with transaction(connection):
                if schema_version(connection) < migration.version:  # else another process was faster
                    _apply(connection, migration, applied_at)
        except sqlite3.Error as err:
            raise MigrationError(
                f"migration {migration.version} ({migration.name}) failed and was rolled back: {err}"
            ) from err


def require_current(connection: sqlite3.Connection) -> None:
    """Refuse a database of another schema than this program's.

    Raises:
        MigrationError: naming both versions.
    """
    newest = MIGRATIONS[-1].version
    if (found := schema_version(connection)) != newest:
        older = "`lcm status` brings it up to date" if found < newest else "use a newer program"
        raise MigrationError(f"the database has schema version {found}, this program reads {newest}; {older}")


def schema_version(connection: sqlite3.Connection) -> int:
    """Read the newest applied version; 0 for an empty database."""
    named = connection.execute("SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'schema_migrations'")
    if named.fetchone()[0] == 0:
        return 0
    newest: int = connection.execute("SELECT coalesce(max(version), 0) FROM schema_migrations").fetchone()[0]
    return newest


def run_script(connection: sqlite3.Connection, sql: str) -> None:
    """Run statements one by one; `executescript` would commit the open transaction first."""
    for statement in _statements(sql):
        connection.execute(statement)


def _apply(connection: sqlite3.Connection, migration: Migration, applied_at: datetime) -> None:
    if isinstance(migration.step, str):
        run_script(connection, migration.step)
    else:
        migration.step(connection)
    connection.execute(
        "INSERT INTO schema_migrations (version, name, applied_at) VALUES (?, ?, ?)",
        (migration.version, migration.name, format_instant(applied_at)),
    )


def _statements(sql: str) -> Iterator[str]:
    """Cut a script where SQLite sees a whole statement: a semicolon in a trigger or in quotes ends none."""
    pending = ""
    for piece in sql.split(";"):
        pending += piece + ";"
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""


P = ParamSpec("P")
R = TypeVar("R")

_LOCKS = 64
"""Lock files of a store: conversations that share one wait for each other without need, but seldom."""
_UNREADABLE = (json.JSONDecodeError, UnicodeError, InstantError)
"""What reading a damaged row raises."""


def _reads(function: Callable[Concatenate[sqlite3.Connection, P], R]) -> Callable[Concatenate["Store", P], R]:
    """The method that reads by a function of the connection, all of one state."""

    @wraps(function)
    def method(self: "Store", /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self.reading() as connection:
            return function(connection, *args, **kwargs)

    return method


def _writes(function: Callable[Concatenate[sqlite3.Connection, P], R]) -> Callable[Concatenate["Store", P], R]:
    """The method that writes by a function of the connection, as one transaction."""

    @wraps(function)
    def method(self: "Store", /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self.writing() as connection:
            return function(connection, *args, **kwargs)

    return method


def _named(
    function: Callable[Concatenate[sqlite3.Connection, int, P], R],
) -> Callable[Concatenate[sqlite3.Connection, str, P], R]:
    """The function of a conversation's id that one of its integer key is."""

    @wraps(function)
    def by_id(connection: sqlite3.Connection, conversation_id: str, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return function(connection, conversation_rows.conversation_row(connection, conversation_id), *args, **kwargs)

    return by_id


class Store:
    """One workspace's SQLite file: conversations, messages, summaries, contexts and documents.

    What it reads and writes are functions of the connection, each told where it is defined. Every write is one
    transaction: after a crash the file is what it was before the call or after it, never between. Two processes may
    write the same file; they take turns.
    """

    def __init__(
        self, path: Path | str = ":memory:", opened_at: datetime | None = None, *, may_write: bool = True
    ) -> None:
        """Open or create the file and bring its schema up to date.

        Args:
            path: a file, ":memory:", or "" for a temporary file of this process.
            opened_at: dates the migrations that this opening applies; None reads the clock.
            may_write: False: nothing of a file that is there is ever written, and one of an older schema is refused.

        Raises:
            StoreError: if the path cannot be opened as a SQLite database.
            MigrationError: if the file is newer than this program, or a migration failed.
        """
        self._path = path
        self._locks = None if str(path) in (":memory:", TEMPORARY) else Path(f"{path}-locks")
        if self._locks is not None:
            _refuse_emptied(Path(path))
        with ExitStack() as closed_on_error:
            self._connection = closed_on_error.enter_context(closing(connect(path)))
            if may_write:
                migrate(self._connection, opened_at or datetime.now(UTC))
            else:
                require_current(self._connection)
                self._connection.execute("PRAGMA query_only = ON")
            closed_on_error.pop_all()

    def close(self) -> None:
        """Close the file; closing again does nothing."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def transaction(self) -> AbstractContextManager[None]:
        """Make several writes one: all of them happen, or none; one that fails inside undoes only itself."""
        return transaction(self._connection)

    def bulk(self) -> AbstractContextManager[None]:
        """Write much in few transactions, with no log beside the file that grows as it does."""
        return nullcontext() if self._locks is None else without_log(self._connection)

    def writing(self) -> AbstractContextManager[sqlite3.Connection]:
        """One transaction, and the connection for the functions of `lcm.store` that work inside it.

        Raises:
            StoreError: if a row is not as it was written: no JSON, or no instant, where there must be one.
        """
        return self._lent("IMMEDIATE")

    def reading(self) -> AbstractContextManager[sqlite3.Connection]:
        """Lend the connection likewise for several reads of one state; it must not be written through."""
        return self._lent("DEFERRED")

    @contextmanager
    def _lent(self, mode: Literal["IMMEDIATE", "DEFERRED"]) -> Iterator[sqlite3.Connection]:
        try:
            with transaction(self._connection, mode):
                yield self._connection
        except _UNREADABLE as error:
            raise StoreError(
                f"the store {self._path} is damaged: a row is not as it was written ({error}); `lcm doctor "
                f"{self._path}` tells which"
            ) from error

    @classmethod
    def copied_from(cls, path: Path) -> Self:
        """A store in this process alone that holds what a file holds.

        Raises:
            StoreError: if there is no such file, or it is no SQLite database.
        """
        store = cls(TEMPORARY)
        try:
            with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True)) as original:
                original.backup(store._connection)
        except sqlite3.Error as error:
            store.close()
            raise StoreError(f"cannot copy the store {told(error, path) or f'{path}: {error}'}") from error
        migrate(store._connection, datetime.now(UTC))
        return store

    @private()
    def copy_to(self, path: Path) -> None:
        """Write all that is here into a new file.

        Raises:
            StoreError: if it cannot be written, for instance because the disk is full.
        """
        try:
            with closing(sqlite3.connect(path)) as copy:
                self._connection.backup(copy)
        except sqlite3.Error as error:
            raise StoreFaultError(f"cannot copy to {told(error, path) or f'{path}: {error}'}") from error

    @property
    def changes(self) -> int:
        """A count that rises whenever something is written through this object."""
        return self._connection.total_changes

    def serialised(self, conversation_id: str) -> AbstractContextManager[object]:
        """Let nobody else work on the conversation meanwhile, in whichever thread or process.

        For work that reads, asks a model and then writes; each write is a transaction besides. Whoever holds one
        conversation must not ask for another.
        """
        if self._locks is None:
            return nullcontext()
        with private():
            self._locks.mkdir(exist_ok=True)
        number = hashlib.sha256(conversation_id.encode("utf-8", "surrogatepass")).digest()[0] % _LOCKS
        return FileLock(self._locks / f"{number}.lock", mode=open_to(0o666))

    def written_elsewhere(self) -> int:
        """A number that changes whenever another connection has written to the file, and at no write of this one."""
        version: tuple[int] = self._connection.execute("PRAGMA data_version").fetchone()
        return version[0]

    def context_records(self, conversation_id: str) -> Sequence[Message | Summary]:
        """What the context items of a conversation stand for, in order: each is read when it is looked at."""
        return summary_rows.ContextRecords(self.context(conversation_id), self.records)

    ingest = _writes(message_rows.add_transcript)
    ingest_pieces = _writes(message_rows.add_pieces)
    append = _writes(message_rows.append)
    has_words = _reads(message_rows.messages_have_words)
    messages = _reads(message_rows.read_messages)
    messages_by_id = _reads(message_rows.messages_by_key)
    contents = _reads(_named(message_rows.contents))
    image_counts = _reads(_named(message_rows.image_counts))
    message_frame = _reads(conversation_rows.message_frame)

    conversations = _reads(conversation_rows.conversation_frame)
    conversation_totals = _reads(_named(conversation_rows.conversation_totals))
    events = _reads(conversation_rows.read_events)
    put_events = _writes(_named(conversation_rows.put_events))
    last_message = _reads(conversation_rows.read_last)
    last_said = _reads(conversation_rows.last_said)
    latest_instant = _reads(_named(conversation_rows.latest_instant))
    extracted = _reads(conversation_rows.read_extracted)
    set_extracted = _writes(conversation_rows.put_extracted)
    is_done = _reads(conversation_rows.is_done)
    note_done = _writes(conversation_rows.note_done)

    context = _reads(_named(summary_rows.read_context))
    records = _reads(summary_rows.read_records)
    standing = _reads(_named(summary_rows.read_standing))
    retired = _reads(_named(summary_rows.read_retired))
    replace_range = _writes(_named(summary_rows.replace_range))
    remove_from_context = _writes(_named(summary_rows.remove_from_context))

    summaries = _reads(summary_rows.read_summaries)
    summaries_by_id = _reads(summary_rows.summaries_by_id)
    has_summary = _reads(summary_rows.is_summary)
    summary_frame = _reads(summary_rows.summary_frame)
    edges = _reads(_named(summary_rows.edge_frame))
    compactions = _reads(summary_rows.compaction_frame)
    note_compaction = _writes(_named(summary_rows.add_compaction))
    last_noted = _reads(_named(summary_rows.last_detail))

    documents = _reads(document_rows.document_frame)
    document = _reads(document_rows.read_document)
    history = _reads(document_rows.history)
    add_documents = _writes(document_rows.add_documents)
    end_documents = _writes(document_rows.end_documents)
    annotate_documents = _writes(document_rows.annotate_documents)
    update_use = _writes(document_rows.update_use)
    decisions = _reads(document_rows.decision_frame)
    add_decisions = _writes(document_rows.add_decisions)


def _refuse_emptied(path: Path) -> None:
    """Refuse a file without a byte beside which lies what belongs to a store: it was one, and is no new one.

    A log that was not written back into its store yet may hold the only copy, and SQLite would remove it.
    """
    try:
        if path.exists() and path.stat().st_size:
            return
        log = path.with_name(f"{path.name}-wal")
        beside = [log] if log.is_file() and log.stat().st_size else []
        if path.exists():
            ours = re.compile(rf"{re.escape(path.name)}(-locks|\.[0-9a-f]{{16}}\.(vectors(\.\d+)?|words))")
            beside += [one for one in path.parent.iterdir() if ours.fullmatch(one.name)]
        if path.exists() and path.stat().st_size:  # another process has just made it
            return
    except OSError as error:
        raise StoreError(f"cannot open the store {told(error, path)}") from error
    if beside:
        names = ", ".join(sorted(one.name for one in beside))
        is_what = "is empty" if path.exists() else "is gone"
        raise StoreError(
            f"the store {path} {is_what}, but of one there lies beside it: {names}; restore a copy of the store, or "
            "remove those to begin anew"
        )
