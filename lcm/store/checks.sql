-- Checks of the doctor that one query each can make: its rows are the sentences that it finds.
-- `?1` is the conversation's key, NULL for all. A check begins with its name.
-- Source: lossless-claw 0.6.3 for references, duplicates, summaries without sources and orphans; the others are ours.

-- name: context_items_valid_refs
SELECT printf('conversation %d: context item %d names no %s of its own', i.conversation_id, i.ordinal,
              i.item_type)
FROM context_items i LEFT JOIN messages m USING (message_id) LEFT JOIN summaries s USING (summary_id)
WHERE (?1 IS NULL OR i.conversation_id = ?1)
  AND coalesce(m.conversation_id, s.conversation_id, -1) <> i.conversation_id;

-- name: no_duplicate_context_refs
SELECT printf('conversation %d: %s %s stands %d times in the context', conversation_id, item_type,
              coalesce(message_id, summary_id), count(*))
FROM context_items WHERE ?1 IS NULL OR conversation_id = ?1
GROUP BY conversation_id, item_type, message_id, summary_id HAVING count(*) > 1;

-- name: context_in_order
WITH RECURSIVE beneath (ordinal, conversation_id, summary_id) AS (
  SELECT ordinal, conversation_id, summary_id FROM context_items
  WHERE summary_id IS NOT NULL AND (?1 IS NULL OR conversation_id = ?1)
  UNION
  SELECT b.ordinal, b.conversation_id, p.parent_summary_id FROM beneath b JOIN summary_parents p USING (summary_id)
),
spans (conversation_id, ordinal, first, last) AS (
  SELECT i.conversation_id, i.ordinal, m.seq, m.seq FROM context_items i JOIN messages m USING (message_id)
  WHERE ?1 IS NULL OR i.conversation_id = ?1
  UNION ALL
  SELECT b.conversation_id, b.ordinal, min(m.seq), max(m.seq)
  FROM beneath b JOIN summary_messages l USING (summary_id) JOIN messages m USING (message_id)
  GROUP BY b.conversation_id, b.ordinal
)
SELECT printf('conversation %d: context item %d begins at message %d, before the end of the one before it',
              conversation_id, ordinal, first)
FROM (SELECT *, lag(last) OVER (PARTITION BY conversation_id ORDER BY ordinal) AS before FROM spans)
WHERE first <= before;

-- name: messages_reachable
WITH RECURSIVE roots AS (
  SELECT message_id, summary_id FROM context_items UNION ALL SELECT message_id, summary_id FROM retired_items
),
seen (summary_id) AS (
  SELECT summary_id FROM roots WHERE summary_id IS NOT NULL
  UNION
  SELECT p.parent_summary_id FROM seen JOIN summary_parents p USING (summary_id)
),
reached (message_id) AS (
  SELECT message_id FROM roots WHERE message_id IS NOT NULL
  UNION
  SELECT l.message_id FROM seen JOIN summary_messages l USING (summary_id)
)
SELECT printf('message %s is reached from no context item', message_key) FROM messages
WHERE (?1 IS NULL OR conversation_id = ?1) AND hidden_at IS NULL
  AND message_id NOT IN (SELECT message_id FROM reached);

-- name: retired_items_valid_refs
SELECT printf('conversation %d: an item that left the context names no %s of its own', r.conversation_id,
              r.item_type)
FROM retired_items r LEFT JOIN messages m USING (message_id) LEFT JOIN summaries s USING (summary_id)
WHERE (?1 IS NULL OR r.conversation_id = ?1)
  AND coalesce(m.conversation_id, s.conversation_id, -1) <> r.conversation_id;

-- name: hidden_out_of_use
-- Messages are hidden by taking them out of the context; one that a summary stands for is never hidden.
SELECT printf('message %s is hidden, and stands in %s', m.message_key, used.place)
FROM messages m JOIN (
  SELECT message_id, 'the context' AS place FROM context_items WHERE message_id IS NOT NULL
  UNION ALL
  SELECT message_id, 'summary ' || summary_id FROM summary_messages
) used USING (message_id)
WHERE m.hidden_at IS NOT NULL AND (?1 IS NULL OR m.conversation_id = ?1);

-- name: items_stand_once
-- An item stands in the context, left it by a rule, or went into one summary: one of these, once.
WITH places (item, message_id, summary_id, place) AS (
  SELECT DISTINCT item_type, message_id, summary_id, 'the context' FROM context_items
  UNION ALL
  SELECT DISTINCT item_type, message_id, summary_id, 'what left the context' FROM retired_items
  UNION ALL
  SELECT 'message', message_id, NULL, 'summary ' || summary_id FROM summary_messages
  UNION ALL
  SELECT 'summary', NULL, parent_summary_id, 'summary ' || summary_id FROM summary_parents
)
SELECT printf('%s %s stands in %s', p.item, coalesce(m.message_key, p.summary_id), group_concat(place, ' and '))
FROM places p LEFT JOIN messages m USING (message_id) LEFT JOIN summaries s USING (summary_id)
WHERE ?1 IS NULL OR coalesce(m.conversation_id, s.conversation_id) = ?1
GROUP BY p.item, p.message_id, p.summary_id HAVING count(*) > 1;

-- name: conversations_named
SELECT printf('conversation %d has no session key: nobody can ask for it', conversation_id) FROM conversations
WHERE session_key IS NULL AND (?1 IS NULL OR conversation_id = ?1);

-- name: summaries_have_lineage
SELECT printf('%s summary %s has no source', kind, summary_id) FROM summaries s
WHERE (?1 IS NULL OR conversation_id = ?1) AND NOT CASE kind
  WHEN 'leaf' THEN EXISTS (SELECT 1 FROM summary_messages l WHERE l.summary_id = s.summary_id)
  ELSE EXISTS (SELECT 1 FROM summary_parents p WHERE p.summary_id = s.summary_id) END;

-- name: no_orphan_summaries
SELECT printf('summary %s stands in no context and is no source', summary_id) FROM summaries s
WHERE (?1 IS NULL OR conversation_id = ?1)
  AND NOT EXISTS (SELECT 1 FROM context_items i WHERE i.summary_id = s.summary_id)
  AND NOT EXISTS (SELECT 1 FROM retired_items r WHERE r.summary_id = s.summary_id)
  AND NOT EXISTS (SELECT 1 FROM summary_parents p WHERE p.parent_summary_id = s.summary_id);

-- name: summary_depths
SELECT printf('%s summary %s has depth %d, its sources make it %d', kind, summary_id, depth, right) FROM (
  SELECT s.*, CASE s.kind WHEN 'leaf' THEN 0 ELSE 1 + (
    SELECT max(below.depth) FROM summary_parents p
    JOIN summaries below ON below.summary_id = p.parent_summary_id
    WHERE p.summary_id = s.summary_id) END AS right
  FROM summaries s WHERE ?1 IS NULL OR s.conversation_id = ?1
) WHERE depth <> right;

-- name: sources_of_own_conversation
SELECT printf('summary %s of conversation %d is made of %s, of conversation %d', s.summary_id,
              s.conversation_id, e.source, e.conversation_id)
FROM summaries s JOIN (
  SELECT l.summary_id, m.message_key AS source, m.conversation_id
  FROM summary_messages l JOIN messages m USING (message_id)
  UNION ALL
  SELECT p.summary_id, b.summary_id, b.conversation_id
  FROM summary_parents p JOIN summaries b ON b.summary_id = p.parent_summary_id
) e USING (summary_id)
WHERE e.conversation_id <> s.conversation_id AND (?1 IS NULL OR ?1 IN (e.conversation_id, s.conversation_id));

-- name: sources_fit_kind
SELECT printf('%s summary %s is made of %s', kind, summary_id, CASE kind WHEN 'leaf' THEN 'summaries'
              ELSE 'messages' END)
FROM summaries s WHERE (?1 IS NULL OR conversation_id = ?1) AND CASE kind
  WHEN 'leaf' THEN EXISTS (SELECT 1 FROM summary_parents p WHERE p.summary_id = s.summary_id)
  ELSE EXISTS (SELECT 1 FROM summary_messages l WHERE l.summary_id = s.summary_id) END;

-- name: sources_numbered
-- The sources of a summary are numbered from 0.
SELECT DISTINCT printf('the sources of summary %s are not numbered from 0 without gaps', summary_id) FROM (
  SELECT summary_id, ordinal, row_number() OVER (PARTITION BY summary_id ORDER BY ordinal) - 1 AS right FROM (
    SELECT summary_id, ordinal FROM summary_messages UNION ALL SELECT summary_id, ordinal FROM summary_parents
  )
) JOIN summaries USING (summary_id)
WHERE ordinal IS NOT right AND (?1 IS NULL OR conversation_id = ?1);

-- name: sources_in_order
SELECT printf('leaf summary %s: source %d is message %d, after message %d', summary_id, ordinal, seq, before)
FROM (
  SELECT l.summary_id, l.ordinal, m.seq, m.conversation_id,
         lag(m.seq) OVER (PARTITION BY l.summary_id ORDER BY l.ordinal) AS before
  FROM summary_messages l JOIN messages m USING (message_id)
) WHERE seq <= before AND (?1 IS NULL OR conversation_id = ?1);

-- name: leaves_without_gaps
-- A leaf stands for a stretch of messages; only what was taken out of the context may lie between them.
WITH spans AS (
  SELECT l.summary_id, m.conversation_id, min(m.seq) AS first, max(m.seq) AS last
  FROM summary_messages l JOIN messages m USING (message_id) GROUP BY l.summary_id, m.conversation_id
  HAVING max(m.seq) - min(m.seq) >= count(*)
)
SELECT printf('leaf summary %s: message %s lies between its messages, and is none of them', summary_id,
              m.message_key)
FROM spans CROSS JOIN messages m ON m.conversation_id = spans.conversation_id AND m.seq BETWEEN first AND last
WHERE (?1 IS NULL OR m.conversation_id = ?1) AND m.hidden_at IS NULL
  AND NOT EXISTS (SELECT 1 FROM summary_messages l
                  WHERE l.summary_id = spans.summary_id AND l.message_id = m.message_id)
  AND NOT EXISTS (SELECT 1 FROM retired_items r WHERE r.message_id = m.message_id);

-- name: tokens_are_counts
-- Tokens are whole numbers from 0. Whether the number is right depends on the estimator that counted, which no store
-- names.
SELECT printf('message %s has %s tokens', message_key, token_count) FROM messages
WHERE (typeof(token_count) <> 'integer' OR token_count < 0) AND (?1 IS NULL OR conversation_id = ?1)
UNION ALL
SELECT printf('summary %s has %s tokens', summary_id, token_count) FROM summaries
WHERE (typeof(token_count) <> 'integer' OR token_count < 0) AND (?1 IS NULL OR conversation_id = ?1);

-- name: summaries_say_something
SELECT printf('summary %s says nothing', summary_id) FROM summaries
WHERE trim(content, char(9, 10, 11, 12, 13, 32)) = '' AND (?1 IS NULL OR conversation_id = ?1);

-- name: message_parts_whole
-- The parts of a message are numbered from 0 without gaps.
SELECT printf('message %s has %d parts, the last is number %d', m.message_key, p.number, p.last)
FROM (SELECT message_id, count(*) AS number, max(ordinal) AS last FROM message_parts GROUP BY message_id) p
JOIN messages m USING (message_id)
WHERE p.last <> p.number - 1 AND (?1 IS NULL OR m.conversation_id = ?1);
