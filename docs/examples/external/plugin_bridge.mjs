// A memory plugin of OpenClaw as an external memory: this program is its host, and speaks the contract of
// docs/external.md over standard input and output.
//
//   LCM_PLUGIN_DIR=/path/to/checkout node plugin_bridge.mjs [add=WAY] [search=WAY]
//
// WAY is `ingest` (of the plugin's context engine), `runtime` (of its memory runtime), the name of a hook, or the name
// of a tool; without it, the first that the plugin registered. LCM_PLUGIN_CONFIG names a JSON file with what the plugin
// needs beside the settings that it is told, such as the address of its embedder.

import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const STORING = ["memory_store", "memory_add"];
const FINDING = ["memory_recall", "memory_search", "lcm_grep"];
const HOOKS = ["agent_end", "message_received"];
const write = process.stdout.write.bind(process.stdout);
process.stdout.write = process.stderr.write.bind(process.stderr); // what a plugin prints is no reply
const asked = Object.fromEntries(process.argv.slice(2).map((word) => word.split(/=(.*)/s).slice(0, 2)));

const readJson = (path) => (existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : undefined);
const isMap = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
const first = (...values) => values.find((value) => value !== undefined && value !== null);

function merged(under, over) {
  const whole = { ...under };
  for (const [key, value] of Object.entries(over))
    whole[key] = isMap(value) && isMap(under[key]) ? merged(under[key], value) : value;
  return whole;
}

/** What a schema knows of a configuration; the paths of all else are put into `ignored`. */
function accepted(schema, config, ignored, path = "") {
  if (!isMap(config) || !isMap(schema?.properties)) return config;
  const kept = {};
  for (const [key, value] of Object.entries(config)) {
    const known = schema.properties[key];
    if (known) kept[key] = accepted(known, value, ignored, `${path}${key}.`);
    else if (schema.additionalProperties === false) ignored.push(path + key);
    else kept[key] = value;
  }
  return kept;
}

async function imported(folder, about) {
  const named = [].concat(first(about.openclaw?.extensions, about.exports?.["."]?.import, about.main, []));
  const names = [...named, "dist/index.js", "index.mjs", "index.js", "index.ts"];
  const entry = names.filter((name) => typeof name === "string").map((name) => join(folder, name)).find(existsSync);
  if (!entry) throw new Error(`${folder} has no entry: none of ${names.join(", ")}`);
  let found;
  if (entry.endsWith(".ts") && !process.features.typescript) {
    let loader;
    try {
      loader = createRequire(join(folder, "package.json"))("jiti");
    } catch {
      throw new Error(`${entry} is TypeScript: build it, npm install jiti there, or run Node 22.18 or newer`);
    }
    found = await (loader.createJiti ?? loader)(pathToFileURL(entry).href).import(entry);
  } else found = await import(pathToFileURL(entry).href);
  const plugin = first(found.default?.default, found.default, found);
  const register = typeof plugin === "function" ? plugin : first(plugin.register, plugin.activate);
  if (typeof register !== "function") throw new Error(`${entry} exports no register(api)`);
  return register.bind(plugin);
}

class Host {
  said = new Map(); // session -> its messages, as the host has them
  session = "main";
  ids = new Map(); // of the plugin's memories -> the ids of the messages that they are of
  tools = new Map();
  engines = new Map();
  hooks = new Map();
  services = [];

  async start({ settings = {} }) {
    if (this.about) throw new Error("one process is one workspace: start another");
    if (!process.env.LCM_PLUGIN_DIR) throw new Error("LCM_PLUGIN_DIR names no checkout of a plugin");
    const folder = resolve(process.env.LCM_PLUGIN_DIR);
    this.about = first(readJson(join(folder, "package.json")), {});
    const manifest = first(readJson(join(folder, "openclaw.plugin.json")), {});
    Object.assign(process.env, settings.variables);
    const beside = process.env.LCM_PLUGIN_CONFIG;
    if (beside && !existsSync(beside)) throw new Error(`LCM_PLUGIN_CONFIG=${beside}: no such file`);
    const ignored = [];
    const told = accepted(manifest.configSchema, settings.config ?? {}, ignored);
    const config = merged(beside ? readJson(beside) : {}, told);
    const id = first(manifest.id, this.about.name, "plugin");
    this.api = this.#api(id, config, folder);
    await (await imported(folder, this.about))(this.api);
    for (const service of this.services) await service.start?.(this.#about());
    await this.#told("gateway_start", {});
    for (const [name, make] of this.engines) this.engine = await this.#engine(name, make);
    this.adding = this.#chosen("add", [...(this.engine?.ingest ? ["ingest"] : []), ...STORING, ...HOOKS]);
    this.finding = this.#chosen("search", [...FINDING, ...(this.runtime ? ["runtime"] : [])]);
    const offers = ["compact", "assemble"].filter((name) => typeof this.engine?.[name] === "function");
    return {
      name: id,
      version: first(this.about.version, ""),
      offers: offers.map((name) => (name === "assemble" ? "context" : name)),
      ...(manifest.configSchema ? { ignores: ignored } : {}),
    };
  }

  async add({ messages }) {
    for (const one of messages) {
      this.session = one.conversation_id;
      const live = this.said.get(this.session) ?? [];
      this.said.set(this.session, live);
      const timestamp = one.created_at === null ? undefined : Date.parse(one.created_at);
      const message = { id: one.id, role: one.role, content: one.content, timestamp };
      live.push(message);
      if (this.adding === "ingest") await this.engine.ingest({ ...this.#where(), message, isHeartbeat: false });
      else if (this.tools.has(this.adding)) this.#remember(one, await this.#called(this.adding, "text", one.content));
    }
    if (!this.hooks.has(this.adding)) return {};
    await this.#told(this.adding, { messages: this.said.get(this.session), success: true });
    return {};
  }

  async search({ query, k }) {
    const asks = this.finding === "runtime" ? this.#ofRuntime(query, k) : this.#called(this.finding, "query", query, k);
    const found = await asks;
    const results = listed(found).map((one) => this.#result(one));
    return { results: results.filter((one) => one.text) };
  }

  async compact() {
    await this.engine.compact({ ...this.#where(), force: true, messages: this.said.get(this.session) ?? [] });
    return {};
  }

  async context({ budget_tokens: tokenBudget, query }) {
    const messages = this.said.get(this.session) ?? [];
    const given = await this.engine.assemble({ ...this.#where(), messages, tokenBudget, prompt: query });
    const before = given.systemPromptAddition ? [{ text: given.systemPromptAddition }] : [];
    const shown = given.messages.map((one) => ({ text: wordsOf(one.content) }));
    return { results: [...before, ...shown].filter((one) => one.text) };
  }

  async close() {
    await this.#told("gateway_stop", {});
    for (const service of this.services) await service.stop?.(this.#about());
    await this.engine?.dispose?.();
  }

  /** What a plugin is given: it registers what it likes, and what has no use here is let pass. */
  #api(id, pluginConfig, folder) {
    const say = (...told) => console.error(...told);
    const logger = { debug: say, info: say, warn: say, error: say };
    const slots = { memory: id, contextEngine: id };
    const config = { plugins: { slots, entries: { [id]: { enabled: true, config: pluginConfig } } } };
    const known = {
      id, name: id, source: folder, config, pluginConfig, logger, runtime: { config: { loadConfig: () => config } },
      resolvePath: (path) => resolve(path.replace(/^~(?=$|\/)/, homedir())),
      registerTool: (tool, options = {}) => {
        const named = typeof tool === "function" ? (options.names ?? options.name ?? tool(this.#about(config))) : tool;
        for (const one of [].concat(named)) this.tools.set(one.name ?? one, tool);
      },
      registerContextEngine: (name, make) => void this.engines.set(name, make),
      registerMemoryRuntime: (runtime) => void (this.runtime = runtime),
      registerService: (service) => void this.services.push(service),
      on: (name, handle) => void this.hooks.set(name, [...(this.hooks.get(name) ?? []), handle]),
      registerHook: (names, handle) => [].concat(names).forEach((name) => known.on(name, handle)),
    };
    return new Proxy(known, {
      get: (target, name) => first(target[name], /^register/.test(String(name)) ? () => undefined : undefined),
    });
  }

  #about(config = this.api.config) {
    const stateDir = join(homedir(), ".openclaw");
    return { config, logger: console, agentId: "main", workspaceDir: homedir(), stateDir, ...this.#where() };
  }

  #where() {
    return { sessionId: this.session, sessionKey: `agent:main:${this.session}` };
  }

  async #engine(name, make) {
    const engine = typeof make === "function" ? await make(this.#about()) : make;
    if (!engine) throw new Error(`the context engine ${name} is nothing`);
    return engine;
  }

  #chosen(call, ways) {
    const there = [...this.tools.keys(), ...this.hooks.keys()];
    if (this.engine?.ingest) there.push("ingest");
    if (this.runtime) there.push("runtime");
    const way = asked[call] ?? ways.find((one) => there.includes(one));
    if (there.includes(way)) return way;
    const names = there.join(", ") || "none";
    throw new Error(`${call}=${way ?? ""}: the plugin registered no such way; there are: ${names}`);
  }

  /** A tool's answer; its arguments are named as its schema names them. */
  async #called(name, what, value, k) {
    const entry = this.tools.get(name);
    const made = typeof entry === "function" ? entry(this.#about()) : entry;
    const tool = Array.isArray(made) ? made.find((one) => one.name === name) : made;
    const known = tool.parameters?.properties;
    const named = (names) => (known ? names.find((one) => one in known) : names[0]);
    const given = { [named(what === "text" ? ["text", "content", "memory"] : ["query", "pattern", "q"])]: value };
    const limit = named(["limit", "k", "topK", "maxResults"]);
    if (k && limit) given[limit] = Math.min(k, known?.[limit]?.maximum ?? k);
    if (known?.mode?.enum?.includes("full_text")) given.mode = "full_text";
    const answer = await tool.execute(`call-${name}`, given);
    const wrong = answer?.details?.error ?? (answer?.isError && wordsOf(answer.content));
    if (wrong) throw new Error(`${name}: ${wrong}`);
    return answer;
  }

  async #ofRuntime(query, k) {
    const made = await this.runtime.getMemorySearchManager?.(this.#about());
    if (made?.error) throw new Error(`memory runtime: ${made.error}`);
    const manager = made?.manager ?? made ?? this.runtime;
    const where = this.#where();
    if (manager.search.length > 1) return await manager.search(query, { maxResults: k, ...where });
    return await manager.search({ query, k, limit: k, ...where });
  }

  async #told(name, event) {
    for (const handle of this.hooks.get(name) ?? []) await handle(event, this.#about());
  }

  #remember(message, answer) {
    const id = first(answer?.details?.id, answer?.details?.memory?.id, answer?.details?.memoryId);
    if (id !== undefined) this.ids.set(String(id), [...(this.ids.get(String(id)) ?? []), message.id]);
  }

  #result(one) {
    const found = one.entry ? { ...one, ...one.entry } : one;
    const score = Number.isFinite(found.score) ? found.score : null;
    const text = wordsOf(first(found.text, found.snippet, found.content, ""));
    return { text, score, source_ids: this.ids.get(String(found.id)) ?? null };
  }
}

/** The list that an answer holds: of a tool its details, else its text, cut at blank lines. */
function listed(answer) {
  if (Array.isArray(answer)) return answer;
  const details = answer?.details ?? answer ?? {};
  const list = ["memories", "results", "matches", "messages"].map((name) => details[name]).find(Array.isArray);
  return list ?? wordsOf(answer?.content ?? "").split(/\n\s*\n/).map((text) => ({ text: text.trim() }));
}

function wordsOf(content) {
  if (typeof content === "string") return content;
  return [].concat(content ?? []).map((part) => first(part.text, "")).filter(Boolean).join("\n");
}

const host = new Host();
for await (const line of createInterface({ input: process.stdin })) {
  const { id, call, ...given } = JSON.parse(line);
  const started = performance.now();
  let reply;
  try {
    reply = call === "reset" ? await host.start(given) : await host[call](given);
  } catch (error) {
    reply = { error: String(error?.message ?? error) };
  }
  write(`${JSON.stringify({ id, took_ms: performance.now() - started, ...reply })}\n`);
}
await host.close().catch((error) => console.error(error));
process.exit(0);
