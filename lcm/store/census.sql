-- What `lcm status` counts: one number, or one for each kind.

-- count: conversations
SELECT count(*) FROM conversations;

-- count: messages
SELECT count(*) FROM messages;

-- count: messages without documents made of them yet
SELECT count(*) FROM messages m LEFT JOIN extraction_state e USING (conversation_id)
WHERE m.seq > coalesce(e.extracted_seq, 0);

-- count: tokens of messages
SELECT coalesce(sum(token_count), 0) FROM messages;

-- count: context items
SELECT count(*) FROM context_items;

-- count: tokens of contexts
SELECT coalesce(sum(coalesce(m.token_count, s.token_count)), 0) FROM context_items i
LEFT JOIN messages m USING (message_id) LEFT JOIN summaries s USING (summary_id);

-- count: summaries
SELECT count(*) FROM summaries;

-- count: compaction failures
SELECT count(*) FROM compaction_events WHERE event IN ('failure', 'auth failure');

-- count: summaries refused
SELECT count(*) FROM compaction_events WHERE event = 'refusal';

-- count: protected messages
SELECT count(*) FROM guidance_shards;

-- count: large files
SELECT count(*) FROM large_files;

-- count: decisions
SELECT count(*) FROM decisions;

-- count: journal entries
SELECT count(*) FROM lifecycle_journal;

-- count: documents
SELECT kind, count(*) FROM documents GROUP BY kind ORDER BY kind;

-- count: documents that are not durable
SELECT kind, count(*) FROM documents WHERE NOT is_durable GROUP BY kind ORDER BY kind;

-- count: documents that have ended
SELECT kind, count(*) FROM documents WHERE invalidated_at IS NOT NULL GROUP BY kind ORDER BY kind;

-- count: scopes
SELECT scope, count(*) FROM documents GROUP BY scope ORDER BY scope;

-- count: authored blocks
SELECT tier, count(*) FROM authored_nodes GROUP BY tier ORDER BY tier;
