"""Words to raw BM25: one module a choice."""
