// A plugin with the surface of lossless-claw: a context engine that compacts within a budget and has its model from the
// host, and a tool that searches by words and answers with a report.

const sessions = new Map();
const NO_BUDGET = { ok: false, compacted: false, reason: "missing token budget in compact params" };

class Engine {
  constructor(config) {
    this.tail = config.freshTailCount ?? 32;
    this.compacted = new Map();
  }
  async ingest({ sessionId, message, isHeartbeat }) {
    if (isHeartbeat) return { ingested: false };
    sessions.set(sessionId, [...(sessions.get(sessionId) ?? []), { ...message, at: new Date() }]);
    return { ingested: true };
  }
  async compact({ sessionId, sessionFile, tokenBudget, force, runtimeContext, compactionTarget }) {
    if (!tokenBudget) return NO_BUDGET;
    if (!sessionFile?.includes(sessionId)) return { ok: false, compacted: false, reason: "no session file" };
    const all = sessions.get(sessionId) ?? [];
    const old = all.slice(0, Math.max(0, all.length - this.tail));
    const model = runtimeContext?.config?.agents?.defaults?.model ?? "EMERGENCY TRUNCATION";
    if (force && old.length) this.compacted.set(sessionId, { n: old.length, by: `${model} for ${compactionTarget ?? "budget"} ${tokenBudget}` });
    return { ok: true, compacted: old.length > 0, reason: old.length ? "compacted" : "already under target" };
  }
  async assemble({ sessionId, messages, tokenBudget }) {
    const { n, by } = this.compacted.get(sessionId) ?? { n: 0 };
    const summary = n ? [{ role: "user", content: `<summary>${n} messages by ${by}</summary>` }] : [];
    const blocks = (content) => (typeof content === "string" ? [{ type: "text", text: content }] : content);
    const shown = [...summary, ...messages.slice(n).map(({ role, content }) => ({ role, content: blocks(content) }))];
    return { messages: shown, estimatedTokens: Math.min(tokenBudget, 1) };
  }
}

function report(pattern, found) {
  const lines = ["## LCM Grep Results", `**Pattern:** \`${pattern}\``, `**Total matches:** ${found.length}`, ""];
  const entries = found.map((one, i) => `- [msg#${i}] (${one.role}, ${one.at.toISOString()}): ${one.content.replace(/\n/g, " ")}`);
  lines.push(...(entries.length ? ["### Messages", "", ...entries, ""] : ["No matches found."]));
  return { content: [{ type: "text", text: lines.join("\n") }], details: { totalMatches: found.length } };
}

export default function register(api) {
  const tail = process.env.LCM_FRESH_TAIL_COUNT ?? api.pluginConfig.freshTailCount ?? 32;
  api.registerContextEngine("lossless-claw", () => new Engine({ ...api.pluginConfig, freshTailCount: Number(tail) }));
  api.registerTool((context) => ({
    name: "lcm_grep",
    parameters: {
      properties: {
        pattern: { type: "string" },
        mode: { type: "string", enum: ["regex", "full_text"] },
        sort: { type: "string", enum: ["recency", "relevance", "hybrid"] },
        allConversations: { type: "boolean" },
        limit: { type: "number", maximum: 200 },
      },
    },
    async execute(_call, { pattern, mode, sort = "recency", allConversations, limit }) {
      if (mode !== "full_text") throw new Error("words are no regular expression");
      const words = new Set(pattern.toLowerCase().split(/\s+/));
      const shared = (one) => one.content.toLowerCase().split(/\s+/).filter((word) => words.has(word)).length;
      const all = allConversations ? [...sessions.values()].flat() : (sessions.get(context.sessionId) ?? []);
      const found = all.filter(shared).reverse();
      if (sort === "relevance") found.sort((a, b) => shared(b) - shared(a));
      return report(pattern, found.slice(0, limit));
    },
  }), { name: "lcm_grep" });
}
