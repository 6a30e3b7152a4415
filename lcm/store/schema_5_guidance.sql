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
