// A plugin with the surface of libravdb memory: a context engine that takes in, a memory runtime that searches.

const turns = [];

export function register(api) {
  if (api.config.plugins.slots.memory !== "libravdb-memory") throw new Error("not in the memory slot");
  api.registerMemoryPromptSection(() => "");
  api.registerContextEngine("libravdb-memory", async () => ({
    ingest: async ({ sessionId, message }) => void turns.push({ ...message, sessionId }),
    assemble: async ({ sessionId, prompt }) => ({
      messages: turns.filter((one) => one.sessionId === sessionId).slice(-2).map(({ role, content }) => ({ role, content })),
      systemPromptAddition: `<recalled>${prompt}</recalled>`,
    }),
    compact: async () => ({ ok: true }),
  }));
  api.registerMemoryRuntime({
    async getMemorySearchManager({ agentId }) {
      if (agentId !== "main") return { manager: null, error: "whose memory?" };
      return {
        manager: {
          async search(asked) {
            const words = new Set((asked.query ?? asked.q).toLowerCase().split(/\s+/));
            const scored = turns.map((one) => ({
              path: `user%3Amain::${one.id}`,
              snippet: one.content,
              score: one.content.toLowerCase().split(/\s+/).filter((word) => words.has(word)).length / words.size,
              source: "memory",
            }));
            return { results: scored.sort((a, b) => b.score - a.score).slice(0, asked.k) };
          },
        },
      };
    },
  });
  api.on("session_end", () => {});
}
