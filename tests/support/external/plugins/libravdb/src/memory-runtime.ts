// A search that takes words alone, or one map of them; no parameter counts as one that it has.

function found(turns: Entry[], query: Call, k: Call) {
  const words = new Set(query.toLowerCase().split(/\s+/));
  const scored = turns.map((one) => ({
    path: `user%3Amain::${one.id}`,
    snippet: one.content,
    score: one.content.toLowerCase().split(/\s+/).filter((word) => words.has(word)).length / words.size,
    source: "memory",
  }));
  return scored.sort((a, b) => b.score - a.score).slice(0, k);
}

export function capability(turns: Entry[]) {
  const manager = {
    async search(asked: Call = {}, more: Call = {}) {
      const query = typeof asked === "string" ? asked : (asked.query ?? asked.q);
      const list = found(turns, query, asked.k ?? more.k ?? 8);
      return typeof asked === "string" ? { results: list } : list;
    },
  };
  return {
    promptBuilder: () => [],
    runtime: {
      async getMemorySearchManager({ agentId }) {
        return agentId === "main" ? { manager } : { manager: null, error: "whose memory?" };
      },
    },
  };
}
