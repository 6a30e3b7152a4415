// A plugin with the surface of memory-lancedb-pro: tools that store and recall, a service, hooks.

const memories = [];
let started = false;

function execute(config, { query, limit = 5 }) {
  const words = new Set(query.toLowerCase().split(/\s+/));
  const scored = memories.map((entry) => {
    const shared = entry.text.toLowerCase().split(/\s+/).filter((word) => words.has(word)).length;
    return { ...entry, score: shared / words.size };
  });
  const kept = scored.filter((one) => one.score >= (config.retrieval?.hardMinScore ?? 0.35));
  return kept.sort((a, b) => b.score - a.score).slice(0, limit);
}

export default {
  id: "memory-lancedb-pro",
  kind: "memory",
  register(api) {
    console.log("memory-lancedb-pro: registered"); // which is no reply
    api.logger.info("resolved", api.resolvePath("~/.openclaw/memory"));
    api.registerCli(() => {}, { commands: ["memory-pro"] });
    api.registerService({ id: "memory-lancedb-pro", start: () => void (started = true), stop: () => {} });
    api.registerTool(
      (context) => ({
        name: "memory_store",
        parameters: { type: "object", properties: { text: { type: "string" }, scope: { type: "string" } } },
        async execute(_call, { text }) {
          if (!started || !api.pluginConfig.embedding?.baseURL) throw new Error("no embedder at embedding.baseURL");
          if (!context.sessionKey.startsWith("agent:main:")) throw new Error("whose session?");
          const id = `memory-${memories.length}`;
          memories.push({ id, text });
          return { content: [{ type: "text", text: `Stored: ${text}` }], details: { action: "created", id } };
        },
      }),
      { name: "memory_store" },
    );
    api.registerTool(
      () => ({
        name: "memory_recall",
        parameters: { type: "object", properties: { query: { type: "string" }, limit: { type: "number", maximum: 20 } } },
        async execute(_call, given) {
          const found = execute(api.pluginConfig, given);
          const lines = found.map((one, i) => `${i + 1}. [${one.id}] ${one.text}`).join("\n");
          return { content: [{ type: "text", text: lines }], details: { count: found.length, memories: found } };
        },
      }),
      { name: "memory_recall" },
    );
    api.on("agent_end", async (event) => {
      for (const one of event.messages) if (one.role === "user") memories.push({ id: `captured-${memories.length}`, text: one.content });
    });
  },
};
