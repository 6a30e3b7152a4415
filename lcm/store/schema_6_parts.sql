-- What the parts of a message say besides its words (calls of tools, reasoning, results): searched and shown with them.
-- The column parts_text, and full_text of both, are there; whoever writes a message writes it.
DROP TRIGGER messages_fts_insert;
DROP TRIGGER messages_fts_delete;
DROP TRIGGER messages_fts_update;
DROP TABLE messages_fts;

CREATE VIRTUAL TABLE messages_fts USING fts5(content, parts_text, tokenize = 'porter unicode61');
INSERT INTO messages_fts (rowid, content, parts_text)
  SELECT message_id, content, parts_text FROM messages
  WHERE trim(full_text, char(9, 10, 11, 12, 13, 32)) <> '' ORDER BY message_id;

CREATE TRIGGER messages_fts_insert AFTER INSERT ON messages
WHEN trim(new.full_text, char(9, 10, 11, 12, 13, 32)) <> ''
BEGIN
  INSERT INTO messages_fts (rowid, content, parts_text) VALUES (new.message_id, new.content, new.parts_text);
END;

CREATE TRIGGER messages_fts_delete AFTER DELETE ON messages
BEGIN
  DELETE FROM messages_fts WHERE rowid = old.message_id;
END;

CREATE TRIGGER messages_fts_update AFTER UPDATE OF message_id, content, parts_text ON messages
BEGIN
  DELETE FROM messages_fts WHERE rowid = old.message_id;
  INSERT INTO messages_fts (rowid, content, parts_text)
    SELECT new.message_id, new.content, new.parts_text
    WHERE trim(new.full_text, char(9, 10, 11, 12, 13, 32)) <> '';
END;
