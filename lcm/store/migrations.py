"""The versions of the schema, and the steps between them."""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib import resources

from lcm.clock import format_instant
from lcm.errors import MigrationError
from lcm.store.messages import write_parts_texts
from lcm.store.sqlite import transaction


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
