"""The versions of the schema, and the steps between them."""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib import resources

from lcm.clock import format_instant
from lcm.errors import MigrationError
from lcm.store.connection import transaction


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of the schema; never changed once released, because it is not applied again."""

    version: int
    """Counts up from 1 without gaps."""
    name: str
    step: str | Callable[[sqlite3.Connection], None]
    """SQL text, or a function that gets the connection inside the transaction."""


def create_schema(connection: sqlite3.Connection) -> None:
    run_script(connection, resources.files("lcm.store").joinpath("schema.sql").read_text(encoding="utf-8"))


_EVENTS = """
-- What a session recorded beside its messages.
CREATE TABLE conversation_events (
  conversation_id INTEGER NOT NULL REFERENCES conversations(conversation_id) ON DELETE CASCADE,
  ordinal         INTEGER NOT NULL,  -- from 1
  after_seq       INTEGER NOT NULL,  -- of the last message before it; 0 = none
  kind            TEXT NOT NULL,
  native          TEXT NOT NULL,     -- JSON
  PRIMARY KEY (conversation_id, ordinal)
);
"""

_LIVES = """
-- A document is visible from valid_from until invalidated_at; the one in whose place it stands is in supersedes.
ALTER TABLE documents ADD COLUMN overview TEXT NOT NULL DEFAULT '';
ALTER TABLE documents ADD COLUMN content TEXT NOT NULL DEFAULT '';
ALTER TABLE documents ADD COLUMN valid_from TEXT;  -- NULL: created_at
ALTER TABLE documents ADD COLUMN invalidated_at TEXT;
ALTER TABLE documents ADD COLUMN supersedes TEXT REFERENCES documents(document_id);
CREATE INDEX documents_supersedes_idx ON documents (supersedes);

-- What became of every candidate that was judged, in order.
CREATE TABLE decisions (
  decision_id     INTEGER PRIMARY KEY AUTOINCREMENT,
  conversation_id INTEGER NOT NULL REFERENCES conversations(conversation_id) ON DELETE CASCADE,
  decided_at      TEXT NOT NULL,
  action          TEXT NOT NULL,
  reason          TEXT NOT NULL,
  category        TEXT NOT NULL,  -- of the candidate
  scope           TEXT NOT NULL,  -- where it was to be written
  document_id     TEXT REFERENCES documents(document_id),  -- made of it
  matched_id      TEXT REFERENCES documents(document_id),
  score           REAL,
  features        TEXT NOT NULL,  -- JSON
  audit           TEXT NOT NULL,  -- JSON
  candidate       TEXT NOT NULL   -- JSON, whole
);
CREATE INDEX decisions_conv_idx ON decisions (conversation_id);
CREATE INDEX decisions_document_idx ON decisions (document_id);
CREATE INDEX decisions_matched_idx ON decisions (matched_id);

-- How far extraction has gone: a conversation without a row has none behind it.
CREATE TABLE extraction_state (
  conversation_id INTEGER PRIMARY KEY REFERENCES conversations(conversation_id) ON DELETE CASCADE,
  extracted_seq   INTEGER NOT NULL  -- of the last message that extraction was given
);
INSERT INTO extraction_state (conversation_id, extracted_seq)
  SELECT m.conversation_id, max(m.seq) FROM document_messages d JOIN messages m USING (message_id)
  GROUP BY m.conversation_id;
"""

_COMPACTION = """
-- How a summary came to be.
ALTER TABLE summaries ADD COLUMN level TEXT NOT NULL DEFAULT 'normal';
ALTER TABLE summaries ADD COLUMN method TEXT NOT NULL DEFAULT '';
ALTER TABLE summaries ADD COLUMN confidence REAL NOT NULL DEFAULT 0;

-- What compaction did, in order; `event` is leaf, condensed, or what went wrong.
CREATE TABLE compaction_events (
  event_id        INTEGER PRIMARY KEY AUTOINCREMENT,
  conversation_id INTEGER NOT NULL REFERENCES conversations(conversation_id) ON DELETE CASCADE,
  happened_at     TEXT NOT NULL,
  event           TEXT NOT NULL,
  level           TEXT NOT NULL,
  method          TEXT NOT NULL,
  tokens_before   INTEGER NOT NULL,
  tokens_after    INTEGER NOT NULL,
  summary_id      TEXT REFERENCES summaries(summary_id),
  detail          TEXT NOT NULL
);
CREATE INDEX compaction_events_conv_idx ON compaction_events (conversation_id);
CREATE INDEX compaction_events_summary_idx ON compaction_events (summary_id);

-- A large file is a stretch of a message that stays where it is: the reference says which part, and which of its files.
ALTER TABLE large_files ADD COLUMN message_id INTEGER REFERENCES messages(message_id) ON DELETE CASCADE;
ALTER TABLE large_files ADD COLUMN ordinal INTEGER NOT NULL DEFAULT 0;   -- of the part
ALTER TABLE large_files ADD COLUMN position INTEGER NOT NULL DEFAULT 0;  -- among the part's files
CREATE INDEX large_files_message_idx ON large_files (message_id);

-- What a rule took out of a context (a new session, a heartbeat): it stands in none, and recall finds it.
CREATE TABLE retired_items (
  conversation_id INTEGER NOT NULL REFERENCES conversations(conversation_id) ON DELETE CASCADE,
  ordinal         INTEGER NOT NULL,  -- where it stood
  item_type       TEXT NOT NULL CHECK (item_type IN ('message', 'summary')),
  message_id      INTEGER REFERENCES messages(message_id) ON DELETE CASCADE,
  summary_id      TEXT REFERENCES summaries(summary_id) ON DELETE CASCADE
);
CREATE INDEX retired_items_conv_idx ON retired_items (conversation_id);
CREATE INDEX retired_items_message_idx ON retired_items (message_id);
CREATE INDEX retired_items_summary_idx ON retired_items (summary_id);

-- A hidden message stands in no context, and is there for whoever looks for it.
ALTER TABLE messages ADD COLUMN hidden_at TEXT;

-- Which transcript files a batch has worked through, by what is in them.
CREATE TABLE transcript_files (
  digest      TEXT PRIMARY KEY,  -- sha256 of the file
  path        TEXT NOT NULL,     -- where it was then
  messages    INTEGER NOT NULL,
  state       TEXT NOT NULL CHECK (state IN ('ingested', 'compacted')),
  finished_at TEXT NOT NULL
);
"""

_GUIDANCE = """
-- What a document is to its finders: its author's authority, what a summary's rank loses, whom it points to, and
-- whether other sessions than its own find it.
ALTER TABLE documents ADD COLUMN is_durable INTEGER NOT NULL DEFAULT 1;
ALTER TABLE documents ADD COLUMN authority REAL NOT NULL DEFAULT 0;
ALTER TABLE documents ADD COLUMN decay_rate REAL NOT NULL DEFAULT 0;
ALTER TABLE documents ADD COLUMN hop_targets TEXT NOT NULL DEFAULT '[]';  -- JSON: ids of authored nodes

-- Messages that compaction took out of a context and kept word for word.
CREATE TABLE guidance_shards (
  message_id      INTEGER PRIMARY KEY REFERENCES messages(message_id) ON DELETE CASCADE,
  conversation_id INTEGER NOT NULL REFERENCES conversations(conversation_id) ON DELETE CASCADE,
  text            TEXT NOT NULL,
  created_at      TEXT NOT NULL,
  protected_by    TEXT NOT NULL CHECK (protected_by IN ('words', 'embedding')),
  stability       REAL NOT NULL,
  provenance      TEXT NOT NULL,
  tokens          INTEGER NOT NULL
);
CREATE INDEX guidance_shards_conv_idx ON guidance_shards (conversation_id);

-- The blocks of authored documents, as their files were last read.
CREATE TABLE authored_nodes (
  node_id       TEXT PRIMARY KEY,
  source        TEXT NOT NULL,
  tier          TEXT NOT NULL CHECK (tier IN ('hard', 'soft', 'variant')),
  kind          TEXT NOT NULL,
  text          TEXT NOT NULL,
  position      INTEGER NOT NULL,  -- bytes
  ordinal       INTEGER NOT NULL,
  tokens        INTEGER NOT NULL,
  authority     REAL NOT NULL,
  modality_mask INTEGER NOT NULL,
  hop_targets   TEXT NOT NULL      -- JSON
);

-- What a host said of its sessions: advice, shown and never searched.
CREATE TABLE lifecycle_journal (
  entry_id    TEXT PRIMARY KEY,
  happened_at TEXT NOT NULL,
  hook        TEXT NOT NULL,
  session_id  TEXT NOT NULL,
  fields      TEXT NOT NULL  -- JSON
);
CREATE INDEX lifecycle_journal_time_idx ON lifecycle_journal (happened_at, entry_id);
"""


def _add_guidance(connection: sqlite3.Connection) -> None:
    run_script(connection, _GUIDANCE)
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


MIGRATIONS: tuple[Migration, ...] = (
    Migration(1, "the first schema", create_schema),
    Migration(2, "events beside the messages", _EVENTS),
    Migration(3, "the lives of documents, and decisions on candidates", _LIVES),
    Migration(4, "compaction, large files and hidden messages", _COMPACTION),
    Migration(5, "guidance, authored documents and the journal of sessions", _add_guidance),
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
