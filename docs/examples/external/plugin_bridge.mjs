// A memory plugin of OpenClaw as an external memory: this program is its host, and speaks the contract of
// docs/external.md over standard input and output.
//
//   LCM_PLUGIN_DIR=/path/to/checkout node plugin_bridge.mjs [add=WAY] [search=WAY] [authors=false] [clock=false]
//
// WAY is `ingest` (of the plugin's context engine), `runtime` (of its memory runtime), the name of a hook, or the name
// of a tool; without it, the first that the plugin registered. A text begins with its author, and the plugin's clock
// (Date) follows messages and questions, unless switched off; target=threshold is how far a context engine compacts.
// LCM_PLUGIN_CONFIG names a JSON file with what the plugin needs beside the settings that it is told, such as the
// address of its embedder; LCM_PLUGIN_HOST one with the host's own settings, as in openclaw.json.

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { homedir, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as passed } from "node:timers/promises";
import { pathToFileURL } from "node:url";

const STORING = ["memory_store", "memory_add"];
const FINDING = ["memory_recall", "runtime", "memory_search", "lcm_grep"];
const HOOKS = ["agent_end", "message_received"];
const WORDS = ["add", "search", "authors", "clock", "target"];
const WINDOW = 128_000; // tokens, where the host's settings do not say agents.defaults.contextTokens
const QUIET_MS = 20;
const write = process.stdout.write.bind(process.stdout);
process.stdout.write = process.stderr.write.bind(process.stderr); // what a plugin prints is no reply
const asked = Object.fromEntries(process.argv.slice(2).map((word) => word.split(/=(.*)/s).slice(0, 2)));

const readJson = (path) => (existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : undefined);
const isPlaceholder = (value) => /^\$\{\w+\}(,\$\{\w+\})*$/.test(String(value));
const isMap = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
const first = (...values) => values.find((value) => value !== undefined && value !== null);

/** One configuration over another; the name of a variable, which is what an export has for a key, is under any key. */
function merged(under, over) {
  const whole = { ...under };
  for (const [key, value] of Object.entries(over))
    if (isMap(value) && isMap(under[key])) whole[key] = merged(under[key], value);
    else if (!(key in under && isPlaceholder(value))) whole[key] = value;
  return whole;
}

/** The JSON file that a variable names. */
function fileOf(variable) {
  const path = process.env[variable];
  if (path && !existsSync(path)) throw new Error(`${variable}=${path}: no such file`);
  return path ? readJson(path) : {};
}

/** A clock that goes on from where it is set, in the place of the plugin's. */
const clock = {
  now: Date.now,
  ahead: 0,
  start() {
    Date.now = () => this.now() + this.ahead;
    const follow = { construct: (date, given, made) => Reflect.construct(date, given.length ? given : [Date.now()], made) };
    globalThis.Date = new Proxy(Date, follow);
  },
  set(time) {
    if (asked.clock !== "false" && time) this.ahead = Date.parse(time) - this.now();
  },
};

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
  const found = entry.endsWith(".ts") ? await translated(folder, entry) : await asItIs(folder, entry);
  const plugin = first(found.default?.default, found.default, found);
  const register = typeof plugin === "function" ? plugin : first(plugin.register, plugin.activate);
  if (typeof register !== "function") throw new Error(`${entry} exports no register(api)`);
  return register.bind(plugin);
}

async function asItIs(folder, entry) {
  try {
    return await import(pathToFileURL(entry).href);
  } catch (error) {
    if (!/'openclaw['/]/.test(error.message)) throw error;
    return await translated(folder, entry);
  }
}

/** A module by jiti, which finds `x.ts` where `./x.js` is imported; what is imported of an absent host is made up. */
async function translated(folder, entry) {
  const places = [join(folder, "package.json"), import.meta.url].map(createRequire);
  const place = places.find((one) => isThere(one, "jiti"));
  if (!place) throw new Error(`${entry} needs jiti: npm install --no-save jiti in ${folder}, or beside ${process.argv[1]}`);
  const absent = join(tmpdir(), "openclaw-is-absent.cjs");
  writeFileSync(absent, HOST);
  for (const alias = {}; ; ) {
    try {
      return await place("jiti").createJiti(pathToFileURL(entry).href, { alias }).import(entry);
    } catch (error) {
      const wanted = /'(openclaw(?:\/[^']*)?)'/.exec(error.message)?.[1];
      if (!wanted || wanted in alias) throw error;
      alias[wanted] = absent;
    }
  }
}

function isThere(place, name) {
  try {
    return Boolean(place.resolve(name));
  } catch {
    return false;
  }
}

/** A module of the host: what defines an entry gives it back, and nothing else can be called. */
const HOST = `
const called = (name) => (entry) => {
  if (name.startsWith("define")) return entry;
  throw new Error("openclaw is not installed, and the plugin calls its " + name + ": npm install openclaw in the checkout");
};
const isNone = (name) => typeof name === "symbol" || name === "then" || name === "default";
const get = (own, name) => own[name] ?? (isNone(name) ? undefined : called(name));
module.exports = new Proxy({ __esModule: true }, { get, has: () => true });
`;

class Host {
  said = new Map(); // session -> its messages, as the host has them
  grown = new Set(); // sessions that nothing was compacted of since they grew
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
    const wrong = Object.keys(asked).find((word) => !WORDS.includes(word));
    if (wrong) throw new Error(`${wrong}= is no word of this program; there are: ${WORDS.join(", ")}`);
    const ignored = [];
    const told = accepted(manifest.configSchema, settings.config ?? {}, ignored);
    const config = merged(fileOf("LCM_PLUGIN_CONFIG"), told);
    const id = first(manifest.id, this.about.name, "plugin");
    if (asked.clock !== "false") clock.start();
    this.api = this.#api(id, config, folder);
    await (await imported(folder, this.about))(this.api);
    for (const service of this.services) await service.start?.(this.#about());
    await this.#told("gateway_start", {});
    for (const [name, make] of this.engines) this.engine = await this.#engine(name, make);
    this.adding = this.#chosen("add", [...(this.engine?.ingest ? ["ingest"] : []), ...STORING, ...HOOKS]);
    this.finding = this.#chosen("search", FINDING);
    const offers = ["compact", "assemble"].filter((name) => typeof this.engine?.[name] === "function");
    return {
      name: id,
      version: first(this.about.version, ""),
      offers: offers.map((name) => (name === "assemble" ? "context" : name)),
      notes: [
        `adds by ${this.adding}, searches by ${this.finding}; there are: ${this.#ways().join(", ")}`,
        asked.authors === "false" ? "texts without their authors" : "each text begins with its author, where one is named",
        asked.clock === "false"
          ? "all is dated when it is added"
          : "its clock (Date) follows messages and questions, that of its database or daemon does not",
      ],
      ...(manifest.configSchema ? { ignores: ignored } : {}),
    };
  }

  async add({ messages }) {
    for (const one of messages) {
      clock.set(one.created_at);
      this.session = one.conversation_id;
      this.grown.add(this.session);
      const live = this.said.get(this.session) ?? [];
      this.said.set(this.session, live);
      const timestamp = one.created_at === null ? undefined : Date.parse(one.created_at);
      const text = one.author && asked.authors !== "false" ? `${one.author}: ${one.content}` : one.content;
      const content = one.parts ? [{ type: "text", text }, ...one.parts] : text;
      const message = { id: one.id, role: one.role, content, timestamp };
      live.push(message);
      if (this.adding === "ingest") await this.engine.ingest({ ...this.#where(), message, isHeartbeat: false });
      else if (this.tools.has(this.adding)) this.#remember(one, await this.#called(this.adding, "text", text));
    }
    if (!this.hooks.has(this.adding)) return {};
    const before = active();
    await this.#told(this.adding, { messages: this.said.get(this.session), success: true });
    await settled(before, this.hooks.get(this.adding));
    return {};
  }

  async search({ query, k, asked_at }) {
    clock.set(asked_at);
    const asks = this.finding === "runtime" ? this.#ofRuntime(query, k) : this.#called(this.finding, "query", query, k);
    const results = listed(await asks).map((one) => this.#result(one));
    return { results: results.filter((one) => one.text) };
  }

  /** Each session that grew; what could not be compacted, with the plugin's reason, is an error. */
  async compact() {
    const outcomes = [];
    for (const session of this.grown) {
      this.session = session;
      const outcome = await this.engine.compact(this.#compaction());
      if (outcome?.ok === false && !outcome.compacted) throw new Error(`compact: ${outcome.reason ?? "ok is false"}`);
      outcomes.push(outcome ?? {});
    }
    this.grown.clear();
    const reasons = [...new Set(outcomes.map((one) => one.reason).filter(Boolean))];
    return { compacted: outcomes.some((one) => one.compacted), reason: reasons.join("; ") };
  }

  #compaction() {
    const { config } = this.api;
    const tokenBudget = config.agents?.defaults?.contextTokens ?? WINDOW;
    return {
      ...this.#where(), tokenBudget, force: true, messages: this.said.get(this.session) ?? [],
      sessionFile: join(homedir(), ".openclaw/agents/main/sessions", `${this.session}.jsonl`),
      runtimeContext: { config, tokenBudget },
      ...(asked.target ? { compactionTarget: asked.target } : {}),
    };
  }

  async context({ budget_tokens: tokenBudget, query, asked_at }) {
    clock.set(asked_at);
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
    const plugins = { slots, entries: { [id]: { enabled: true, config: pluginConfig } } };
    const config = merged(fileOf("LCM_PLUGIN_HOST"), { plugins });
    const known = {
      id, name: id, source: folder, config, pluginConfig, logger, registrationMode: "full",
      runtime: { config: { loadConfig: () => config, current: () => config } },
      resolvePath: (path) => resolve(path.replace(/^~(?=$|\/)/, homedir())),
      registerTool: (tool, options = {}) => {
        const named = typeof tool === "function" ? (options.names ?? options.name ?? tool(this.#about(config))) : tool;
        for (const one of [].concat(named)) this.tools.set(one.name ?? one, tool);
      },
      registerContextEngine: (name, make) => void this.engines.set(name, make),
      registerMemoryRuntime: (runtime) => void (this.runtime = runtime),
      registerMemoryCapability: (...given) => void (this.runtime = given.at(-1).runtime),
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

  /** Tools, hooks and what else was registered that may add or search. */
  #ways() {
    const others = { ingest: this.engine?.ingest, runtime: this.runtime };
    return [...this.tools.keys(), ...this.hooks.keys(), ...Object.keys(others).filter((name) => others[name])];
  }

  #chosen(call, ways) {
    const there = this.#ways();
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
    for (const [key, value] of Object.entries(WISHES))
      if (k && known?.[key] && (known[key].enum ?? [value]).includes(value)) given[key] = value;
    const answer = await tool.execute(`call-${name}`, given);
    const { error, message } = answer?.details ?? {};
    const wrong = [error, error && message, answer?.isError && !error && wordsOf(answer.content)].filter(Boolean);
    if (wrong.length) throw new Error(`${name}: ${wrong.join(": ")}`);
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
    const text = wordsOf(first(found.fullText, found.text, found.snippet, found.content, ""));
    return { text, score, source_ids: this.ids.get(String(found.id)) ?? null };
  }
}

/** What a search asks for besides words and number, as far as a tool knows it: whole texts of all sessions, best first. */
const WISHES = { mode: "full_text", sort: "relevance", includeFullText: true, allConversations: true };

/** The list that an answer holds: of a tool its details, else the lines of its text below headings, else its
 * paragraphs. */
function listed(answer) {
  if (Array.isArray(answer)) return answer;
  const details = answer?.details ?? answer ?? {};
  const list = ["memories", "results", "matches", "messages"].map((name) => details[name]).find(Array.isArray);
  if (list || details.count === 0) return list ?? [];
  const text = wordsOf(answer?.content ?? "");
  const isReport = /^#+ /.test(text);
  const texts = isReport ? [...text.matchAll(ENTRY)].map((one) => one[1]) : text.split(/\n\s*\n/);
  return texts.map((one) => ({ text: one.trim() }));
}

/** An entry of a report: `- [time or id] (role): text`, up to the next entry, a blank line or a heading. */
const ENTRY = /^- \[[^\]]*\](?: \([^)]*\))?:? ((?:(?!\n(?:- \[|\s*\n|#))[^])*)/gm;

const active = () => process.getActiveResourcesInfo().length;

/** Wait until what hooks began is done, though they returned before: what they name, then what else is at work. */
async function settled(before, hooks) {
  for (const hook of hooks) await hook.__lastRun;
  for (let quiet = 0; quiet < 3; quiet = active() > before ? 0 : quiet + 1) await passed(QUIET_MS);
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
