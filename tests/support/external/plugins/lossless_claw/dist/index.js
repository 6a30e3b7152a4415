// A plugin with the surface of lossless-claw: a context engine, and a tool that searches by words.

const sessions = new Map();

class Engine {
  constructor(config) {
    this.tail = config.freshTailCount ?? 32;
    this.compacted = new Map();
  }
  async ingest({ sessionId, message, isHeartbeat }) {
    if (isHeartbeat) return { ingested: false };
    sessions.set(sessionId, [...(sessions.get(sessionId) ?? []), message]);
    return { ingested: true };
  }
  async compact({ sessionId, force }) {
    const all = sessions.get(sessionId) ?? [];
    const old = all.slice(0, Math.max(0, all.length - this.tail));
    if (force && old.length) this.compacted.set(sessionId, old.length);
    return { ok: true, compacted: old.length > 0 };
  }
  async assemble({ sessionId, messages, tokenBudget }) {
    const n = this.compacted.get(sessionId) ?? 0;
    const summary = n ? [{ role: "user", content: `<summary>${n} messages</summary>` }] : [];
    const shown = [...summary, ...messages.slice(n).map(({ role, content }) => ({ role, content: [{ type: "text", text: content }] }))];
    return { messages: shown, estimatedTokens: Math.min(tokenBudget, 1) };
  }
}

export default function register(api) {
  api.registerContextEngine("lossless-claw", () => new Engine({ ...api.pluginConfig, freshTailCount: Number(process.env.LCM_FRESH_TAIL_COUNT ?? api.pluginConfig.freshTailCount ?? 32) }));
  api.registerTool({
    name: "lcm_grep",
    parameters: { properties: { pattern: { type: "string" }, mode: { type: "string", enum: ["regex", "full_text"] }, limit: { type: "number" } } },
    async execute(_call, { pattern, mode, limit }) {
      if (mode !== "full_text") throw new Error("words are no regular expression");
      const words = new Set(pattern.toLowerCase().split(/\s+/));
      const counted = [...sessions.values()].flat().map((one) => [one.content, one.content.toLowerCase().split(/\s+/).filter((word) => words.has(word)).length]);
      const best = counted.filter(([, n]) => n).sort((a, b) => b[1] - a[1]).slice(0, limit);
      return { content: [{ type: "text", text: best.map(([text]) => text).join("\n\n") }] };
    },
  });
}
