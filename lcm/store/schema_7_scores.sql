-- What admission scored the candidates of a message, found by the message: kept in step with the decisions by trigger.
CREATE TABLE admission_scores (
  message_key TEXT NOT NULL,
  decision_id INTEGER NOT NULL REFERENCES decisions(decision_id) ON DELETE CASCADE,
  score       REAL NOT NULL,
  PRIMARY KEY (message_key, decision_id)
) WITHOUT ROWID;
CREATE INDEX admission_scores_decision_idx ON admission_scores (decision_id);
INSERT INTO admission_scores (message_key, decision_id, score)
  SELECT DISTINCT s.value, d.decision_id, d.score FROM decisions d, json_each(d.candidate, '$.source_message_ids') s
  WHERE d.score IS NOT NULL;

CREATE TRIGGER admission_scores_insert AFTER INSERT ON decisions WHEN new.score IS NOT NULL
BEGIN
  INSERT INTO admission_scores (message_key, decision_id, score)
    SELECT DISTINCT value, new.decision_id, new.score FROM json_each(new.candidate, '$.source_message_ids');
END;

CREATE TRIGGER admission_scores_update AFTER UPDATE OF score, candidate ON decisions
BEGIN
  DELETE FROM admission_scores WHERE decision_id = old.decision_id;
  INSERT INTO admission_scores (message_key, decision_id, score)
    SELECT DISTINCT value, new.decision_id, new.score FROM json_each(new.candidate, '$.source_message_ids')
    WHERE new.score IS NOT NULL;
END;
