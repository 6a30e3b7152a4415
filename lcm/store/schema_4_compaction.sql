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
