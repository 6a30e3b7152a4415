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
