// A plugin with the surface of libravdb memory: an entry that its host defines, a context engine that takes in, a memory
// capability that searches.

import { definePluginEntry } from "openclaw/plugin-sdk/plugin-entry";
import { capability } from "./memory-runtime.js";

const turns = [];

function register(api: Api) {
  if (api.config.plugins.slots.memory !== "libravdb-memory") throw new Error("not in the memory slot");
  if (api.registrationMode !== "full") return;
  api.registerMemoryCapability("libravdb-memory", capability(turns));
  api.registerContextEngine("libravdb-memory", async () => ({
    ingest: async ({ sessionId, message }) => void turns.push({ ...message, sessionId }),
    assemble: async ({ sessionId, prompt }) => ({
      messages: turns.filter((one) => one.sessionId === sessionId).slice(-2).map(({ role, content }) => ({ role, content })),
      systemPromptAddition: `<recalled>${prompt}</recalled>`,
    }),
    compact: async () => ({ ok: true }),
  }));
  api.on("session_end", () => {});
}

export default definePluginEntry({ id: "libravdb-memory", register });
