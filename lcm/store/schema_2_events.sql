-- What a session recorded beside its messages.
CREATE TABLE conversation_events (
  conversation_id INTEGER NOT NULL REFERENCES conversations(conversation_id) ON DELETE CASCADE,
  ordinal         INTEGER NOT NULL,  -- from 1
  after_seq       INTEGER NOT NULL,  -- of the last message before it; 0 = none
  kind            TEXT NOT NULL,
  native          TEXT NOT NULL,     -- JSON
  PRIMARY KEY (conversation_id, ordinal)
);
