-- One file is one workspace. Instants are text such as 2026-01-05T09:00:00.000Z, so text order is time order.
-- The program passes every instant; the defaults serve rows that are written by hand.
-- Raw messages are never changed; the three full-text tables follow their base tables by trigger.

CREATE TABLE schema_migrations (
  version    INTEGER PRIMARY KEY,
  name       TEXT NOT NULL,
  applied_at TEXT NOT NULL
);

CREATE TABLE conversations (
  conversation_id INTEGER PRIMARY KEY AUTOINCREMENT,
  session_id      TEXT NOT NULL,  -- of the newest message
  session_key     TEXT,           -- the conversation id that callers use; unique among active rows
  active          INTEGER NOT NULL DEFAULT 1,
  archived_at     TEXT,
  title           TEXT,
  bootstrapped_at TEXT,
  created_at      TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
  updated_at      TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
);

CREATE TABLE messages (
  message_id      INTEGER PRIMARY KEY AUTOINCREMENT,
  message_key     TEXT NOT NULL UNIQUE,  -- the message id that callers use
  conversation_id INTEGER NOT NULL REFERENCES conversations(conversation_id) ON DELETE CASCADE,
  session_id      TEXT NOT NULL,
  seq             INTEGER NOT NULL,      -- from 1
  role            TEXT NOT NULL CHECK (role IN ('system', 'user', 'assistant', 'tool')),
  author          TEXT,
  content         TEXT NOT NULL,
  token_count     INTEGER NOT NULL,
  envelope        TEXT NOT NULL DEFAULT '{}',  -- JSON: the recorded message without its blocks
  created_at      TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
  UNIQUE (conversation_id, seq)
);

CREATE TABLE message_parts (
  part_id         TEXT PRIMARY KEY,
  message_id      INTEGER NOT NULL REFERENCES messages(message_id) ON DELETE CASCADE,
  session_id      TEXT NOT NULL,
  part_type       TEXT NOT NULL CHECK (part_type IN (
                    'text', 'reasoning', 'tool', 'patch', 'file', 'subtask', 'compaction',
                    'step_start', 'step_finish', 'snapshot', 'agent', 'retry')),
  ordinal         INTEGER NOT NULL,  -- from 0
  text_content    TEXT,
  is_ignored      INTEGER,
  is_synthetic    INTEGER,
  tool_call_id    TEXT,
  tool_name       TEXT,
  tool_status     TEXT,
  tool_input      TEXT,
  tool_output     TEXT,
  tool_error      TEXT,
  tool_title      TEXT,
  patch_hash      TEXT,
  patch_files     TEXT,
  file_mime       TEXT,
  file_name       TEXT,
  file_url        TEXT,
  subtask_prompt  TEXT,
  subtask_desc    TEXT,
  subtask_agent   TEXT,
  step_reason     TEXT,
  step_cost       REAL,
  step_tokens_in  INTEGER,
  step_tokens_out INTEGER,
  snapshot_hash   TEXT,
  compaction_auto INTEGER,
  metadata        TEXT,  -- JSON
  UNIQUE (message_id, ordinal)
);

CREATE TABLE summaries (
  summary_id                 TEXT PRIMARY KEY,
  conversation_id            INTEGER NOT NULL REFERENCES conversations(conversation_id) ON DELETE CASCADE,
  kind                       TEXT NOT NULL CHECK (kind IN ('leaf', 'condensed')),
  depth                      INTEGER NOT NULL DEFAULT 0,
  content                    TEXT NOT NULL,
  token_count                INTEGER NOT NULL,
  earliest_at                TEXT,
  latest_at                  TEXT,
  descendant_count           INTEGER NOT NULL DEFAULT 0,
  descendant_token_count     INTEGER NOT NULL DEFAULT 0,
  source_message_token_count INTEGER NOT NULL DEFAULT 0,
  created_at                 TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
  file_ids                   TEXT NOT NULL DEFAULT '[]',  -- JSON
  model                      TEXT NOT NULL DEFAULT 'unknown'
);

-- A leaf summary and the messages that it stands for.
CREATE TABLE summary_messages (
  summary_id TEXT NOT NULL REFERENCES summaries(summary_id) ON DELETE CASCADE,
  message_id INTEGER NOT NULL REFERENCES messages(message_id) ON DELETE RESTRICT,
  ordinal    INTEGER NOT NULL,
  PRIMARY KEY (summary_id, message_id)
);

-- A condensed summary and the summaries it was made from: "parent" is the older node, its source.
CREATE TABLE summary_parents (
  summary_id        TEXT NOT NULL REFERENCES summaries(summary_id) ON DELETE CASCADE,
  parent_summary_id TEXT NOT NULL REFERENCES summaries(summary_id) ON DELETE RESTRICT,
  ordinal           INTEGER NOT NULL,
  PRIMARY KEY (summary_id, parent_summary_id)
);

-- Ordinals have gaps, so that replacing a run by a summary renumbers nothing; readers show the dense rank.
CREATE TABLE context_items (
  conversation_id INTEGER NOT NULL REFERENCES conversations(conversation_id) ON DELETE CASCADE,
  ordinal         INTEGER NOT NULL,
  item_type       TEXT NOT NULL CHECK (item_type IN ('message', 'summary')),
  message_id      INTEGER REFERENCES messages(message_id) ON DELETE RESTRICT,
  summary_id      TEXT REFERENCES summaries(summary_id) ON DELETE RESTRICT,
  created_at      TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
  PRIMARY KEY (conversation_id, ordinal),
  CHECK ((item_type = 'message' AND message_id IS NOT NULL AND summary_id IS NULL)
      OR (item_type = 'summary' AND summary_id IS NOT NULL AND message_id IS NULL))
);

CREATE TABLE large_files (
  file_id             TEXT PRIMARY KEY,
  conversation_id     INTEGER NOT NULL REFERENCES conversations(conversation_id) ON DELETE CASCADE,
  file_name           TEXT,
  mime_type           TEXT,
  byte_size           INTEGER,
  storage_uri         TEXT NOT NULL,
  exploration_summary TEXT,
  created_at          TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
);

CREATE TABLE conversation_bootstrap_state (
  conversation_id           INTEGER PRIMARY KEY REFERENCES conversations(conversation_id) ON DELETE CASCADE,
  session_file_path         TEXT NOT NULL,
  last_seen_size            INTEGER NOT NULL,
  last_seen_mtime_ms        INTEGER NOT NULL,
  last_processed_offset     INTEGER NOT NULL,
  last_processed_entry_hash TEXT,
  updated_at                TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
);

CREATE TABLE documents (
  document_id      TEXT PRIMARY KEY,
  conversation_id  INTEGER NOT NULL REFERENCES conversations(conversation_id) ON DELETE CASCADE,
  session_id       TEXT NOT NULL,
  kind             TEXT NOT NULL,
  text             TEXT NOT NULL,
  category         TEXT NOT NULL,
  scope            TEXT NOT NULL,
  importance       REAL NOT NULL,
  confidence       REAL NOT NULL,
  temporal_type    TEXT NOT NULL CHECK (temporal_type IN ('static', 'dynamic')),
  valid_until      TEXT,
  last_accessed_at TEXT,
  access_count     INTEGER NOT NULL,
  decay_tier       TEXT NOT NULL CHECK (decay_tier IN ('core', 'working', 'peripheral')),
  tokens           INTEGER NOT NULL,
  metadata         TEXT NOT NULL DEFAULT '{}',  -- JSON
  created_at       TEXT NOT NULL
);

CREATE TABLE document_messages (
  document_id TEXT NOT NULL REFERENCES documents(document_id) ON DELETE CASCADE,
  message_id  INTEGER NOT NULL REFERENCES messages(message_id) ON DELETE RESTRICT,
  ordinal     INTEGER NOT NULL,  -- from 0
  PRIMARY KEY (document_id, message_id)
);

CREATE INDEX messages_conv_seq_idx ON messages (conversation_id, seq);
CREATE INDEX summaries_conv_created_idx ON summaries (conversation_id, created_at);
CREATE INDEX message_parts_message_idx ON message_parts (message_id);
CREATE INDEX message_parts_type_idx ON message_parts (part_type);
CREATE INDEX context_items_conv_idx ON context_items (conversation_id, ordinal);
CREATE INDEX large_files_conv_idx ON large_files (conversation_id, created_at);
CREATE INDEX bootstrap_state_path_idx ON conversation_bootstrap_state (session_file_path, updated_at);
CREATE UNIQUE INDEX conversations_active_session_key_idx
  ON conversations (session_key) WHERE session_key IS NOT NULL AND active = 1;
CREATE INDEX conversations_session_key_active_created_idx ON conversations (session_key, active, created_at);
CREATE INDEX documents_scope_idx ON documents (scope);
CREATE INDEX documents_created_idx ON documents (created_at);

-- Without an index on the referring column, each deleted parent row scans the whole referring table.
CREATE INDEX summary_messages_message_idx ON summary_messages (message_id);
CREATE INDEX summary_parents_parent_idx ON summary_parents (parent_summary_id);
CREATE INDEX context_items_message_idx ON context_items (message_id);
CREATE INDEX context_items_summary_idx ON context_items (summary_id);
CREATE INDEX documents_conv_idx ON documents (conversation_id);
CREATE INDEX document_messages_message_idx ON document_messages (message_id);

CREATE VIRTUAL TABLE messages_fts USING fts5(content, tokenize = 'porter unicode61');
CREATE VIRTUAL TABLE summaries_fts USING fts5(summary_id UNINDEXED, content, tokenize = 'porter unicode61');
CREATE VIRTUAL TABLE summaries_fts_cjk USING fts5(summary_id UNINDEXED, content, tokenize = 'trigram');

-- Blank content (ASCII white space alone) is not indexed.
CREATE TRIGGER messages_fts_insert AFTER INSERT ON messages
WHEN trim(new.content, char(9, 10, 11, 12, 13, 32)) <> ''
BEGIN
  INSERT INTO messages_fts (rowid, content) VALUES (new.message_id, new.content);
END;

CREATE TRIGGER messages_fts_delete AFTER DELETE ON messages
BEGIN
  DELETE FROM messages_fts WHERE rowid = old.message_id;
END;

CREATE TRIGGER messages_fts_update AFTER UPDATE OF message_id, content ON messages
BEGIN
  DELETE FROM messages_fts WHERE rowid = old.message_id;
  INSERT INTO messages_fts (rowid, content)
    SELECT new.message_id, new.content WHERE trim(new.content, char(9, 10, 11, 12, 13, 32)) <> '';
END;

-- Joined by summary_id: VACUUM may renumber the hidden row ids of a table whose key is text.
CREATE TRIGGER summaries_fts_insert AFTER INSERT ON summaries
WHEN trim(new.content, char(9, 10, 11, 12, 13, 32)) <> ''
BEGIN
  INSERT INTO summaries_fts (summary_id, content) VALUES (new.summary_id, new.content);
  INSERT INTO summaries_fts_cjk (summary_id, content) VALUES (new.summary_id, new.content);
END;

CREATE TRIGGER summaries_fts_delete AFTER DELETE ON summaries
BEGIN
  DELETE FROM summaries_fts WHERE summary_id = old.summary_id;
  DELETE FROM summaries_fts_cjk WHERE summary_id = old.summary_id;
END;

CREATE TRIGGER summaries_fts_update AFTER UPDATE OF summary_id, content ON summaries
BEGIN
  DELETE FROM summaries_fts WHERE summary_id = old.summary_id;
  DELETE FROM summaries_fts_cjk WHERE summary_id = old.summary_id;
  INSERT INTO summaries_fts (summary_id, content)
    SELECT new.summary_id, new.content WHERE trim(new.content, char(9, 10, 11, 12, 13, 32)) <> '';
  INSERT INTO summaries_fts_cjk (summary_id, content)
    SELECT new.summary_id, new.content WHERE trim(new.content, char(9, 10, 11, 12, 13, 32)) <> '';
END;
