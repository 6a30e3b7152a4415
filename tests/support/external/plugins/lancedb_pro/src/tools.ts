// Tools that store and recall. A recall gives previews of six memories at most, unless it is asked for full texts, and
// what it gave comes first from then on; `memory_debug` leaves no trace.

const MOST_PREVIEWS = 6;
const PREVIEW = 60;

export function registerTools(api: Api) {
  const memories = [];
  let started = false;
  api.registerService({ id: "memory-lancedb-pro", start: () => void (started = true), stop: () => {} });

  const scored = (query: Call) => {
    const words = new Set(query.toLowerCase().split(/\s+/));
    const share = (one: Entry) => one.text.toLowerCase().split(/\s+/).filter((word) => words.has(word)).length / words.size;
    const kept = memories.filter((one) => share(one) >= (api.pluginConfig.retrieval?.hardMinScore ?? 0.35));
    return kept.sort((a, b) => share(b) + b.recalled - share(a) - a.recalled);
  };
  const given = (found: Entry[]) => {
    if (!found.length) return { content: [{ type: "text", text: "No relevant memories found." }], details: { count: 0 } };
    const lines = found.map((one, i) => `${i + 1}. [${one.id}] ${one.text}`).join("\n");
    return { content: [{ type: "text", text: lines }], details: { count: found.length, memories: found } };
  };
  const asked = { query: { type: "string" }, limit: { type: "number", description: "at most 20" } };

  api.registerTool(
    (context: Call) => ({
      name: "memory_store",
      parameters: { type: "object", properties: { text: { type: "string" }, scope: { type: "string" } } },
      async execute(_call, { text }) {
        if (!started || !api.pluginConfig.embedding?.baseURL) {
          return { content: [], details: { error: "store_failed", message: "no embedder at embedding.baseURL" } };
        }
        if (!context.sessionKey.startsWith("agent:main:")) throw new Error("whose session?");
        const id = `memory-${memories.length}`;
        memories.push({ id, text, at: Date.now(), recalled: 0 });
        return { content: [{ type: "text", text: `Stored: ${text}` }], details: { action: "created", id } };
      },
    }),
    { name: "memory_store" },
  );
  api.registerTool(
    () => ({
      name: "memory_recall",
      parameters: { type: "object", properties: { ...asked, includeFullText: { type: "boolean" } } },
      async execute(_call, { query, limit = 3, includeFullText = false }) {
        const found = scored(query).slice(0, Math.min(limit, includeFullText ? 20 : MOST_PREVIEWS));
        for (const one of found) one.recalled += 1;
        const preview = (one: Entry) => ({ id: one.id, text: one.text.slice(0, PREVIEW), at: new Date(one.at).toISOString() });
        return given(found.map((one) => (includeFullText ? { ...preview(one), fullText: one.text } : preview(one))));
      },
    }),
    { name: "memory_recall" },
  );
  api.registerTool(
    () => ({
      name: "memory_debug",
      parameters: { type: "object", properties: asked },
      async execute(_call, { query, limit = 5 }) {
        const day = (at: Call) => (at ? new Date(at) : new Date()).toISOString().slice(0, 10);
        const dated = (one: Entry) => ({ id: one.id, text: `${one.text} (said ${day(one.at)}, asked ${day()})` });
        return given(scored(query).slice(0, limit).map(dated));
      },
    }),
    { name: "memory_debug" },
  );
  return memories;
}
