-- The checks of the doctor in their order: a name, what a finding means beside failing, the rule in a sentence, and the
-- query whose rows are the sentences that it finds. A check without a query is a function of `lcm.store.doctor`.
-- `lineage`: the totals of summaries rest on it. `warns`: a finding is no failure. `of_file`: of the whole file alone.
-- `derived`: what is wrong can be worked out anew from the rest, where the check, or the checks of that flag, that it
-- names pass.
-- `:conversation` is the key of a conversation, NULL for all; repr() shows a value as Python does.
-- Source: lossless-claw 0.6.3 for the first eight, among them references, duplicates, summaries without sources and
-- orphans; the others are ours.

-- check: conversation_exists lineage
-- A conversation that is asked for is there.
SELECT printf('there is no conversation %d', :conversation)
WHERE :conversation IS NOT NULL AND :conversation NOT IN (SELECT conversation_id FROM conversations);

-- check: context_items_contiguous lineage
-- Where ordinals are dense, as the original's are, those of a context run from 0 without gaps.
SELECT printf('conversation %d: context ordinals are not 0 to %d', conversation_id, count(*) - 1)
FROM context_items
WHERE :is_dense AND conversation_id IN (
  SELECT conversation_id FROM conversations WHERE :conversation IS NULL UNION SELECT :conversation)
GROUP BY conversation_id HAVING min(ordinal) <> 0 OR max(ordinal) <> count(*) - 1 ORDER BY conversation_id;

-- check: context_items_valid_refs lineage
-- A context item names a message or a summary of its own conversation.
SELECT printf('conversation %d: context item %d names no %s of its own', i.conversation_id, i.ordinal,
              i.item_type)
FROM context_items i LEFT JOIN messages m USING (message_id) LEFT JOIN summaries s USING (summary_id)
WHERE (:conversation IS NULL OR i.conversation_id = :conversation)
  AND coalesce(m.conversation_id, s.conversation_id, -1) <> i.conversation_id;

-- check: summaries_have_lineage lineage
-- A leaf summary has messages as its sources, a condensed one summaries.
SELECT printf('%s summary %s has no source', kind, summary_id) FROM summaries s
WHERE (:conversation IS NULL OR conversation_id = :conversation) AND NOT CASE kind
  WHEN 'leaf' THEN EXISTS (SELECT 1 FROM summary_messages l WHERE l.summary_id = s.summary_id)
  ELSE EXISTS (SELECT 1 FROM summary_parents p WHERE p.summary_id = s.summary_id) END;

-- check: no_orphan_summaries lineage warns
-- A summary stands in a context, has left one, or is a source.
SELECT printf('summary %s stands in no context and is no source', summary_id) FROM summaries s
WHERE (:conversation IS NULL OR conversation_id = :conversation)
  AND NOT EXISTS (SELECT 1 FROM context_items i WHERE i.summary_id = s.summary_id)
  AND NOT EXISTS (SELECT 1 FROM retired_items r WHERE r.summary_id = s.summary_id)
  AND NOT EXISTS (SELECT 1 FROM summary_parents p WHERE p.parent_summary_id = s.summary_id);

-- check: context_token_consistency
-- The tokens of a context's items add up to those of its messages and summaries.
SELECT printf('conversation %d: the context''s items have %s tokens, all together %s', conversation_id, summed, total)
FROM (
  SELECT conversation_id, coalesce(sum(iif(typeof(tokens) IN ('integer', 'real'), tokens, 0)), 0) AS summed,
         coalesce(sum(of_message), 0) + coalesce(sum(of_summary), 0) AS total
  FROM (
    SELECT i.conversation_id, m.token_count AS of_message, s.token_count AS of_summary,
           iif(i.ordinal > -1, coalesce(m.token_count, s.token_count), NULL) AS tokens  -- others are not read
    FROM context_items i LEFT JOIN messages m USING (message_id) LEFT JOIN summaries s USING (summary_id)
  ) WHERE conversation_id IN (
  SELECT conversation_id FROM conversations WHERE :conversation IS NULL UNION SELECT :conversation)
  GROUP BY conversation_id
) WHERE summed <> total ORDER BY conversation_id;

-- check: message_seq_contiguous lineage
-- The messages of a conversation are numbered without gaps.
SELECT printf('conversation %d: %d messages are numbered %s to %s', conversation_id, count(*), min(seq), max(seq))
FROM messages
WHERE conversation_id IN (
  SELECT conversation_id FROM conversations WHERE :conversation IS NULL UNION SELECT :conversation)
GROUP BY conversation_id
HAVING min(seq) <> coalesce(:first_seq, min(seq)) OR max(seq) <> min(seq) + count(*) - 1 ORDER BY conversation_id;

-- check: no_duplicate_context_refs lineage
-- A message or summary stands in a context once.
SELECT printf('conversation %d: %s %s stands %d times in the context', conversation_id, item_type,
              coalesce(message_id, summary_id), count(*))
FROM context_items WHERE :conversation IS NULL OR conversation_id = :conversation
GROUP BY conversation_id, item_type, message_id, summary_id HAVING count(*) > 1;

-- check: context_in_order lineage
-- The messages that context items stand for follow each other as they were said.
WITH RECURSIVE beneath (ordinal, conversation_id, summary_id) AS (
  SELECT ordinal, conversation_id, summary_id FROM context_items
  WHERE summary_id IS NOT NULL AND (:conversation IS NULL OR conversation_id = :conversation)
  UNION
  SELECT b.ordinal, b.conversation_id, p.parent_summary_id FROM beneath b JOIN summary_parents p USING (summary_id)
),
spans (conversation_id, ordinal, first, last) AS (
  SELECT i.conversation_id, i.ordinal, m.seq, m.seq FROM context_items i JOIN messages m USING (message_id)
  WHERE :conversation IS NULL OR i.conversation_id = :conversation
  UNION ALL
  SELECT b.conversation_id, b.ordinal, min(m.seq), max(m.seq)
  FROM beneath b JOIN summary_messages l USING (summary_id) JOIN messages m USING (message_id)
  GROUP BY b.conversation_id, b.ordinal
)
SELECT printf('conversation %d: context item %d begins at message %d, before the end of the one before it',
              conversation_id, ordinal, first)
FROM (SELECT *, lag(last) OVER (PARTITION BY conversation_id ORDER BY ordinal) AS before FROM spans)
WHERE first <= before;

-- check: messages_reachable lineage
-- A message that is not hidden is reached from an item that is, or was, in the context.
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
WHERE (:conversation IS NULL OR conversation_id = :conversation) AND hidden_at IS NULL
  AND message_id NOT IN (SELECT message_id FROM reached);

-- check: items_stand_once lineage
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
WHERE :conversation IS NULL OR coalesce(m.conversation_id, s.conversation_id) = :conversation
GROUP BY p.item, p.message_id, p.summary_id HAVING count(*) > 1;

-- check: retired_items_valid_refs
-- An item that left the context names a message or a summary of its own conversation.
SELECT printf('conversation %d: an item that left the context names no %s of its own', r.conversation_id,
              r.item_type)
FROM retired_items r LEFT JOIN messages m USING (message_id) LEFT JOIN summaries s USING (summary_id)
WHERE (:conversation IS NULL OR r.conversation_id = :conversation)
  AND coalesce(m.conversation_id, s.conversation_id, -1) <> r.conversation_id;

-- check: hidden_out_of_use
-- A hidden message, hidden by taking it out of the context, stands there no more and in no summary.
SELECT printf('message %s is hidden, and stands in %s', m.message_key, used.place)
FROM messages m JOIN (
  SELECT message_id, 'the context' AS place FROM context_items WHERE message_id IS NOT NULL
  UNION ALL
  SELECT message_id, 'summary ' || summary_id FROM summary_messages
) used USING (message_id)
WHERE m.hidden_at IS NOT NULL AND (:conversation IS NULL OR m.conversation_id = :conversation);

-- check: conversations_named
-- A conversation has the id that callers ask for it by.
SELECT printf('conversation %d has no session key: nobody can ask for it', conversation_id) FROM conversations
WHERE session_key IS NULL AND (:conversation IS NULL OR conversation_id = :conversation);

-- check: summaries_acyclic lineage
-- No summary is beneath itself.

-- check: summary_depths lineage
-- A leaf summary has depth 0, a condensed one is one deeper than its deepest source.
SELECT printf('%s summary %s has depth %d, its sources make it %d', kind, summary_id, depth, right) FROM (
  SELECT s.*, CASE s.kind WHEN 'leaf' THEN 0 ELSE 1 + (
    SELECT max(below.depth) FROM summary_parents p
    JOIN summaries below ON below.summary_id = p.parent_summary_id
    WHERE p.summary_id = s.summary_id) END AS right
  FROM summaries s WHERE :conversation IS NULL OR s.conversation_id = :conversation
) WHERE depth <> right;

-- check: sources_of_own_conversation lineage
-- A summary is made of what its own conversation holds.
SELECT printf('summary %s of conversation %d is made of %s, of conversation %d', s.summary_id,
              s.conversation_id, e.source, e.conversation_id)
FROM summaries s JOIN (
  SELECT l.summary_id, m.message_key AS source, m.conversation_id
  FROM summary_messages l JOIN messages m USING (message_id)
  UNION ALL
  SELECT p.summary_id, b.summary_id, b.conversation_id
  FROM summary_parents p JOIN summaries b ON b.summary_id = p.parent_summary_id
) e USING (summary_id)
WHERE e.conversation_id <> s.conversation_id
  AND (:conversation IS NULL OR :conversation IN (e.conversation_id, s.conversation_id));

-- check: sources_fit_kind lineage
-- No leaf summary is made of summaries, no condensed one of messages.
SELECT printf('%s summary %s is made of %s', kind, summary_id, CASE kind WHEN 'leaf' THEN 'summaries'
              ELSE 'messages' END)
FROM summaries s WHERE (:conversation IS NULL OR conversation_id = :conversation) AND CASE kind
  WHEN 'leaf' THEN EXISTS (SELECT 1 FROM summary_parents p WHERE p.summary_id = s.summary_id)
  ELSE EXISTS (SELECT 1 FROM summary_messages l WHERE l.summary_id = s.summary_id) END;

-- check: sources_numbered lineage
-- The sources of a summary are numbered from 0.
SELECT DISTINCT printf('the sources of summary %s are not numbered from 0 without gaps', summary_id) FROM (
  SELECT summary_id, ordinal, row_number() OVER (PARTITION BY summary_id ORDER BY ordinal) - 1 AS right FROM (
    SELECT summary_id, ordinal FROM summary_messages UNION ALL SELECT summary_id, ordinal FROM summary_parents
  )
) JOIN summaries USING (summary_id)
WHERE ordinal IS NOT right AND (:conversation IS NULL OR conversation_id = :conversation);

-- check: sources_in_order lineage
-- Sources follow each other as the messages do; instants do not always rise along a transcript.
WITH RECURSIVE beneath (source, summary_id) AS (
  SELECT p.parent_summary_id, p.parent_summary_id FROM summary_parents p JOIN summaries s USING (summary_id)
  WHERE :conversation IS NULL OR s.conversation_id = :conversation
  UNION
  SELECT b.source, p.parent_summary_id FROM beneath b JOIN summary_parents p USING (summary_id)
),
leaves (summary_id, first, last) AS (
  SELECT l.summary_id, min(m.seq), max(m.seq) FROM summary_messages l JOIN messages m USING (message_id)
  GROUP BY l.summary_id
),
spans (source, first, last) AS (
  SELECT b.source, min(first), max(last) FROM beneath b JOIN leaves USING (summary_id) GROUP BY b.source
),
found (depth, place, summary_id, ordinal, finding) AS (
  SELECT -1, 0, summary_id, ordinal,
         printf('leaf summary %s: source %d is message %d, after message %d', summary_id, ordinal, seq, before)
  FROM (
    SELECT l.summary_id, l.ordinal, m.seq, m.conversation_id,
           lag(m.seq) OVER (PARTITION BY l.summary_id ORDER BY l.ordinal) AS before
    FROM summary_messages l JOIN messages m USING (message_id)
  ) WHERE seq <= before AND (:conversation IS NULL OR conversation_id = :conversation)
  UNION ALL
  SELECT depth, place, summary_id, ordinal, printf('condensed summary %s: source %s begins at message %d, not after %d',
                                                   summary_id, source, first, before)
  FROM (
    SELECT s.depth, s.rowid AS place, p.summary_id, p.ordinal, source, first,
           lag(last) OVER (PARTITION BY p.summary_id ORDER BY p.ordinal, p.rowid) AS before
    FROM summary_parents p JOIN summaries s USING (summary_id) JOIN spans ON source = p.parent_summary_id
    WHERE :conversation IS NULL OR s.conversation_id = :conversation
  ) WHERE first <= before
)
SELECT finding FROM found ORDER BY depth, place, summary_id, ordinal;

-- check: leaves_without_gaps lineage
-- A leaf stands for a stretch of messages; only what was taken out of the context may lie between them.
WITH spans AS (
  SELECT l.summary_id, m.conversation_id, min(m.seq) AS first, max(m.seq) AS last
  FROM summary_messages l JOIN messages m USING (message_id) GROUP BY l.summary_id, m.conversation_id
  HAVING max(m.seq) - min(m.seq) >= count(*)
)
SELECT printf('leaf summary %s: message %s lies between its messages, and is none of them', summary_id,
              m.message_key)
FROM spans CROSS JOIN messages m ON m.conversation_id = spans.conversation_id AND m.seq BETWEEN first AND last
WHERE (:conversation IS NULL OR m.conversation_id = :conversation) AND m.hidden_at IS NULL
  AND NOT EXISTS (SELECT 1 FROM summary_messages l
                  WHERE l.summary_id = spans.summary_id AND l.message_id = m.message_id)
  AND NOT EXISTS (SELECT 1 FROM retired_items r WHERE r.message_id = m.message_id);

-- check: tokens_are_counts lineage
-- Tokens are whole numbers from 0; whether they are right depends on the estimator, which no store names.
SELECT printf('message %s has %s tokens', message_key, token_count) FROM messages
WHERE (typeof(token_count) <> 'integer' OR token_count < 0)
  AND (:conversation IS NULL OR conversation_id = :conversation)
UNION ALL
SELECT printf('summary %s has %s tokens', summary_id, token_count) FROM summaries
WHERE (typeof(token_count) <> 'integer' OR token_count < 0)
  AND (:conversation IS NULL OR conversation_id = :conversation);

-- check: instants lineage
-- An instant stands in the one form whose order as text is that of time.
WITH instants (owner, name, value) AS (
  SELECT 'message ' || message_key, 'created_at', created_at FROM messages
  WHERE :conversation IS NULL OR conversation_id = :conversation
  UNION ALL
  SELECT 'message ' || message_key, 'hidden_at', hidden_at FROM messages
  WHERE hidden_at IS NOT NULL AND (:conversation IS NULL OR conversation_id = :conversation)
  UNION ALL
  SELECT 'summary ' || summary_id, 'created_at', created_at FROM summaries
  WHERE :conversation IS NULL OR conversation_id = :conversation
  UNION ALL
  SELECT 'conversation ' || conversation_id, 'created_at', created_at FROM conversations
  WHERE :conversation IS NULL OR conversation_id = :conversation
  UNION ALL
  SELECT 'conversation ' || conversation_id, 'updated_at', updated_at FROM conversations
  WHERE :conversation IS NULL OR conversation_id = :conversation
)
SELECT owner || ': ' || name || ' is no instant: ' || repr(value) FROM instants
WHERE value IS NULL OR value < '0001' OR value IS NOT strftime('%Y-%m-%dT%H:%M:%fZ', value, '+0 days');

-- check: summary_words
-- Kind, level and confidence of a summary are such as there are.
WITH named (place, summary_id, name, value, is_known) AS (
  SELECT rowid, summary_id, 'kind', kind, coalesce(kind, '') IN (SELECT value FROM json_each(:kinds)) FROM summaries
  WHERE :conversation IS NULL OR conversation_id = :conversation
  UNION ALL
  SELECT rowid, summary_id, 'level', level, coalesce(level, '') IN (SELECT value FROM json_each(:levels)) FROM summaries
  WHERE :conversation IS NULL OR conversation_id = :conversation
  UNION ALL
  SELECT rowid, summary_id, 'confidence', confidence,
         typeof(confidence) IN ('integer', 'real') AND confidence BETWEEN 0 AND 1 FROM summaries
  WHERE :conversation IS NULL OR conversation_id = :conversation
)
SELECT 'summary ' || summary_id || ' has the ' || name || ' ' || repr(value) FROM named
WHERE NOT is_known ORDER BY place, name = 'confidence', name;

-- check: summaries_say_something
-- A summary has words.
SELECT printf('summary %s says nothing', summary_id) FROM summaries
WHERE trim(content, char(9, 10, 11, 12, 13, 32)) = '' AND (:conversation IS NULL OR conversation_id = :conversation);

-- check: summary_file_ids
-- The large files that a summary names are a JSON list of texts.
SELECT 'summary ' || summary_id || ': file_ids is no JSON list of texts' FROM summaries
WHERE file_ids IS NOT '[]' AND (:conversation IS NULL OR conversation_id = :conversation)
  AND CASE WHEN json_valid(file_ids) THEN json_type(file_ids) <> 'array'
             OR EXISTS (SELECT 1 FROM json_each(file_ids) WHERE type <> 'text')
           ELSE TRUE END;

-- check: summary_files_known warns
-- A file that a summary names is there; ids are found by their form, so that it may be a word that looks like one.
SELECT 'summary ' || s.summary_id || ' names the unknown file ' || named.value
FROM summaries s, json_each(iif(json_valid(s.file_ids), s.file_ids, '[]')) named
WHERE file_ids IS NOT '[]' AND (:conversation IS NULL OR s.conversation_id = :conversation)
  AND named.type = 'text' AND typeof(named.key) = 'integer'
  AND NOT EXISTS (SELECT 1 FROM json_each(iif(json_valid(s.file_ids), s.file_ids, '[]')) other
                  WHERE other.type <> 'text')
  AND NOT EXISTS (SELECT 1 FROM large_files f WHERE f.file_id = named.value)
ORDER BY s.rowid, named.key;

-- check: message_parts_whole
-- The parts of a message are numbered from 0 without gaps.
SELECT printf('message %s has %d parts, the last is number %d', m.message_key, p.number, p.last)
FROM (SELECT message_id, count(*) AS number, max(ordinal) AS last FROM message_parts GROUP BY message_id) p
JOIN messages m USING (message_id)
WHERE p.last <> p.number - 1 AND (:conversation IS NULL OR m.conversation_id = :conversation);

-- check: messages_as_recorded
-- A message is what its recorded original says.

-- check: parts_searchable derived=messages_as_recorded
-- What the parts of a message say is kept for searching.

-- check: summaries_whole warns
-- A summary summarises: it does not end with the mark of a cut.

-- check: pages lineage of_file
-- The pages of the file are as SQLite wrote them.
SELECT integrity_check FROM pragma_integrity_check WHERE integrity_check <> 'ok';

-- check: foreign_keys lineage of_file
-- A row that is named is there.
SELECT 'row ' || coalesce(rowid, 'None') || ' of ' || "table" || ' names a row of ' || parent || ' that is not there'
FROM pragma_foreign_key_check;

-- check: admission_scores of_file derived
-- The scores that are found by message are those of the decisions.
WITH scored AS (
  SELECT DISTINCT s.value, d.decision_id, d.score FROM decisions d, json_each(d.candidate, '$.source_message_ids') s
  WHERE d.score IS NOT NULL
),
kept AS (SELECT message_key, decision_id, score FROM admission_scores)
SELECT DISTINCT printf('decision %d: its messages have another score', decision_id) FROM (
  SELECT * FROM (SELECT * FROM scored EXCEPT SELECT * FROM kept)
  UNION ALL SELECT * FROM (SELECT * FROM kept EXCEPT SELECT * FROM scored)
) ORDER BY decision_id;

-- check: messages_fts of_file derived
-- The full-text table of messages holds their words, and what their parts say.

-- check: summaries_fts of_file derived
-- The full-text table of summaries holds their words.

-- check: summaries_fts_cjk of_file derived
-- So does the one by trigrams, for Chinese, Japanese and Korean.

-- check: summary_spans derived=lineage
-- The time that a summary covers is two instants in their order, where it names them.
WITH spans AS (
  SELECT rowid AS place, summary_id, earliest_at, latest_at,
         earliest_at < '0001' OR earliest_at IS NOT strftime('%Y-%m-%dT%H:%M:%fZ', earliest_at, '+0 days') AS no_start,
         latest_at < '0001' OR latest_at IS NOT strftime('%Y-%m-%dT%H:%M:%fZ', latest_at, '+0 days') AS no_end
  FROM summaries WHERE :conversation IS NULL OR conversation_id = :conversation
)
SELECT finding FROM (
  SELECT place, 1 AS part, 'summary ' || summary_id || ': earliest_at is no instant: ' || repr(earliest_at) AS finding
  FROM spans WHERE no_start
  UNION ALL
  SELECT place, 2, 'summary ' || summary_id || ': latest_at is no instant: ' || repr(latest_at) FROM spans WHERE no_end
  UNION ALL
  SELECT place, 3, 'summary ' || summary_id || ' begins at ' || earliest_at || ', after its end at ' || latest_at
  FROM spans WHERE NOT no_start AND NOT no_end AND earliest_at > latest_at
) ORDER BY place, part;

-- check: summary_totals derived=lineage
-- The totals of a summary are those of its sources.
