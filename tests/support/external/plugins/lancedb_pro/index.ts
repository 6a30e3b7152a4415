// A plugin with the surface of memory-lancedb-pro, and with its manners: TypeScript that imports `./x.js`, keys named by
// variables, a hook that returns before it has captured anything.

import type { Api, Message } from "openclaw/plugin-sdk";
import { registerTools } from "./src/tools.js";

function resolved(key?: Config) {
  return key?.replace(/\$\{(\w+)\}/g, (_, name) => {
    if (!process.env[name]) throw new Error(`Environment variable ${name} is not set`);
    return process.env[name];
  });
}

function register(api: Api) {
  console.log("memory-lancedb-pro: registered"); // which is no reply
  api.logger.info("resolved", api.resolvePath("~/.openclaw/memory"));
  resolved(api.pluginConfig.embedding?.apiKey);
  api.registerCli(() => {}, { commands: ["memory-pro"] });
  const memories = registerTools(api);
  api.on("agent_end", (event: Call) => {
    const captured = async (one: Message) => {
      await new Promise((done) => setTimeout(done, 30));
      memories.push({ id: `captured-${memories.length}`, text: one.content, at: Date.now(), recalled: 0 });
    };
    for (const one of event.messages) if (one.role === "user") void captured(one);
  });
}

export default { id: "memory-lancedb-pro", kind: "memory", register };
