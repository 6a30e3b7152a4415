// The explorer of a report page. Data lies in this file in packed blocks; each is unpacked when it is looked at.
// Whatever comes from a transcript becomes text of an element, never markup.
"use strict";

const byId = (id) => document.getElementById(id);
const STEERING = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2028\u2029\u2066-\u2069]/g;
const LONG = 900;
const KINDS = { message: "other messages", summary: "summaries", document: "recalled", evidence: "evidence", free: "free" };
const PLACES = { late: "ranked too low all along", source: "found by no branch" };
// In words where evidence was lost: a stage that lost it, or why nothing could be seen of it.
const lostWords = (place) => PLACES[place] ?? (index.unseen.includes(place) ? place : `lost at ${place}`);
const STATES = { verbatim: "shown whole", summarised: "in the words of a summary", reachable: "below a summary", absent: "left out" };

// What would steer a display, made visible.
function plain(text) {
  return String(text).replace(STEERING, (found) => `[U+${found.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}]`);
}

// An element: `make("p", "class", "text", child, ...)`.
function make(name, kind, ...children) {
  const made = document.createElement(name);
  if (kind) made.className = kind;
  for (const child of children) if (child !== null && child !== undefined) made.append(child instanceof Node ? child : plain(child));
  return made;
}

function drawn(name, attributes, title) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (title) made.append(drawn("title", {})), (made.firstChild.textContent = plain(title));
  return made;
}

const unpacked = new Map();

// The JSON of a block; those used last stay at hand.
async function block(name) {
  if (!unpacked.has(name)) {
    if (unpacked.size > 60) unpacked.delete(unpacked.keys().next().value);
    unpacked.set(name, read(name));
  }
  return unpacked.get(name);
}

async function read(name) {
  const bytes = decoded(byId(`block-${name}`).textContent);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

function decoded(packed) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(packed);
  const letters = atob(packed);
  const bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
  return bytes;
}

// The row of a list that was cut into blocks, by its number.
async function row(series, letter, number) {
  const starts = index.starts[series];
  let low = 0, high = starts.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (starts[middle] <= number) low = middle; else high = middle - 1;
  }
  return (await block(`${letter}${low}`))[number - starts[low]];
}

const message = async (number) => {
  const [id, who, at, conversation, text] = await row("messages", "m", number);
  return { id, who, at, conversation, text };
};
const folded = async (number) => {
  const [id, depth, tokens, level, text, sources, isLeaf] = await row("summaries", "s", number);
  return { id, depth, tokens, level, text, sources, isLeaf };
};

let index = null;
let shown = [];
let opened = null;
let openedData = null;

const chosen = () => ({
  one: Number(byId("one").value), other: Number(byId("other").value), measure: Number(byId("measure").value),
  words: byId("search").value.toLowerCase().trim(), category: byId("category").value, lost: byId("lost").value,
  change: byId("change").value,
});
const written = (value) => value === null || value === undefined ? "–" : Math.abs(value) >= 20 ? value.toFixed(0) : value.toFixed(3);
const signed = (value) => (value > 0 ? `+${written(value)}` : value < 0 ? `−${written(-value)}` : "±0");

// How much better a question is in one ranking than in the other; without another: how good.
function gain(question, choice) {
  const own = question[4][choice.one][choice.measure];
  const sign = index.lower[choice.measure] ? -1 : 1;
  if (own === undefined || own === null) return null;
  if (choice.other < 0) return sign * own;
  const held = question[4][choice.other][choice.measure];
  return held === undefined || held === null ? null : sign * (own - held);
}

function filter() {
  const choice = chosen();
  const keeps = {
    all: () => true, worse: (by) => by < 0, better: (by) => by > 0, same: (by) => by === 0,
    missed: (_, own) => own !== null && own !== undefined && own < 1,
  }[choice.change];
  shown = index.questions
    .map((question) => [question, gain(question, choice)])
    .filter(([question, by]) =>
      (!choice.category || question[1] === choice.category) &&
      (!choice.lost || question[5][choice.one] === choice.lost) &&
      (choice.change === "all" || (by !== null && keeps(by, question[4][choice.one][choice.measure]))) &&
      (!choice.words || `${question[0]} ${question[1]} ${question[2]}`.toLowerCase().includes(choice.words)))
    .sort(([first, a], [second, b]) =>
      (a === null) - (b === null) || a - b ||
      (first[4][choice.one][choice.measure] ?? 2) - (second[4][choice.one][choice.measure] ?? 2));
  const fragment = document.createDocumentFragment();
  for (const [question, by] of shown) fragment.append(entry(question, by, choice));
  byId("list").replaceChildren(fragment);
  const named = index.measures[choice.measure] ?? "nothing measured";
  byId("count").textContent =
    `${shown.length.toLocaleString("en")} of ${index.questions.length.toLocaleString("en")} questions, ` +
    (choice.other < 0 ? `the worst by ${named} first` : `by ${named}; first what ${plain(index.columns[choice.one])} answers worse than ${plain(index.columns[choice.other])}`);
  mark();
}

function entry(question, by, choice) {
  const own = question[4][choice.one][choice.measure];
  const link = make("a", "", make("span", "what", question[2] || question[0]));
  link.href = `#q=${encodeURIComponent(question[0])}`;
  link.dataset.question = question[0];
  const number = make("span", "number", written(own));
  if (choice.other >= 0 && by !== null && by !== 0) number.append(make("br"), make("span", by < 0 ? "pill worse" : "pill better", signed(index.lower[choice.measure] ? -by : by)));
  const lost = question[5][choice.one];
  link.append(number, make("span", "where", `${question[0]} · ${question[1]}${question[3] ? "" : " · not judged"}${lost ? ` · ${lostWords(lost)}` : ""}`));
  return link;
}

function mark() {
  for (const link of byId("list").querySelectorAll("[aria-current]")) link.removeAttribute("aria-current");
  const link = [...byId("list").children].find((one) => one.dataset.question === opened);
  if (!link) return;
  link.setAttribute("aria-current", "true");
  const list = byId("list");
  if (link.offsetTop < list.scrollTop || link.offsetTop + link.offsetHeight > list.scrollTop + list.clientHeight)
    list.scrollTop = Math.max(0, link.offsetTop - list.clientHeight / 3);
}

async function open(questionId) {
  const place = index.questions.findIndex((question) => question[0] === questionId);
  opened = questionId;
  mark();
  if (place < 0) return byId("question").replaceChildren(make("p", "hint", `No question has the id ${questionId}.`));
  const data = (await block(`q${Math.floor(place / index.at_once)}`))[place % index.at_once];
  const gold = await Promise.all(data.evidence.map(message));
  const choice = chosen();
  const parts = [
    make("h3", "asked", data.text),
    make("p", "meta", [questionId, index.questions[place][1], data.workspace, data.asked_at && `asked ${data.asked_at}`].filter(Boolean).join(" · ")),
    actions(), valuesOf(index.questions[place], choice),
    make("h3", "", `Evidence: ${gold.length ? `${gold.length} message${gold.length > 1 ? "s" : ""}` : "nobody has judged it"}`),
    ...gold.map((one) => said(one, true)),
    make("h3", "", "What was ranked"), await rankings(data, choice),
    ...(await ladders(data, choice)), ...(await contexts(data, choice)),
  ];
  if (opened !== questionId) return;
  openedData = { id: questionId, row: index.questions[place], data, gold };
  byId("question").replaceChildren(...parts);
  const { top } = byId("question").getBoundingClientRect();
  if (top < 0 || top > innerHeight / 2) bring();
}

// Bring the opened question into view at once: a smooth way there would end where it lay before the page grew.
function bring() {
  byId("question").scrollIntoView({ behavior: "instant", block: "start" });
  mark();
}

function actions() {
  const copy = make("button", "", "Copy for a bug report");
  copy.type = "button";
  copy.id = "copy";
  copy.addEventListener("click", copyReport);
  const told = make("span", "meta");
  told.id = "copied";
  told.setAttribute("role", "status");
  return make("p", "actions", copy, told);
}

function valuesOf(question, choice) {
  const sides = [choice.one, ...(choice.other >= 0 && choice.other !== choice.one ? [choice.other] : [])];
  const head = make("tr", "", make("th", "words", "ranking"), ...index.measures.map((name) => make("th", "", name)));
  const rows = sides.map((side) => make("tr", "", make("th", "words", index.columns[side]), ...index.measures.map((_, i) => make("td", "", written(question[4][side][i])))));
  const table = make("table", "", make("thead", "", head), make("tbody", "", ...rows));
  return region("wide", "What this question is worth to each measure", table);
}

// What scrolls by itself, so that a keyboard reaches it.
function region(kind, label, child) {
  const made = make("div", kind, child);
  made.tabIndex = 0;
  made.setAttribute("role", "region");
  made.setAttribute("aria-label", label);
  return made;
}

function said(one, isGold) {
  const words = one.text === null ? "Its words are not in this page." : one.text || "(no words)";
  const text = make("p", "text", words.length > LONG ? `${words.slice(0, LONG - 200)} … ` : words);
  if (words.length > LONG) {
    const more = make("button", "", `all ${words.length.toLocaleString("en")} letters`);
    more.type = "button";
    more.addEventListener("click", () => (text.textContent = plain(words)));
    text.append(more);
  }
  return make("div", isGold ? "said gold" : "said",
    make("p", "who", [one.who, one.at, one.id].filter(Boolean).join(" · "), isGold ? make("span", "gold-word", "  evidence") : null),
    text);
}

async function rankings(data, choice) {
  const sides = [choice.one, ...(choice.other >= 0 && choice.other !== choice.one ? [choice.other] : [])];
  return make("div", "sides", ...(await Promise.all(sides.map(async (side) => {
    const list = make("ol", "ranked");
    await Promise.all(data.rankings[side].map(([number]) => row("documents", "d", number))); // unpacked side by side
    let before = 0;
    for (const [number, rank, score, gold] of data.rankings[side]) {
      if (rank > before + 1) list.append(make("li", "gap", before ? `${rank - before - 1} more` : `first of rank ${rank}`));
      before = rank;
      list.append(await ranked(number, rank, score, gold, data));
    }
    if (!data.rankings[side].length) list.append(make("li", "gap", "nothing, or the rankings are not at hand"));
    const found = new Set(data.rankings[side].flatMap((one) => one[3])).size;
    const told = data.evidence.length ? ` · ${found} of ${data.evidence.length} evidence` : "";
    return make("section", "", make("h4", "", index.columns[side] + told), list);
  }))));
}

async function ranked(number, rank, score, gold, data) {
  const [id, tokens, sources, own, first, at] = await row("documents", "d", number);
  const summary = make("summary", "", make("span", "rank", rank), make("span", "preview", gold.length ? make("span", "gold-word", "evidence ") : null, at === null ? null : `dated ${at}: `, (own ?? first ?? id).slice(0, 220)),
    make("span", "score", Number(score).toFixed(3)));
  const details = make("details", gold.length ? "gold" : "", summary);
  onOpen(details, async () => [
    make("p", "meta", `${id}${tokens === null ? "" : ` · ${tokens} tokens`}${at === null ? "" : ` · the memory has it as of ${at}`}`),
    own === null ? null : make("p", "said", own),
    ...(await Promise.all(sources.map(async (one) => said(await message(one), data.evidence.includes(one))))),
  ].filter(Boolean));
  return make("li", "", details);
}

async function ladders(data, choice) {
  const told = data.ladders[choice.one];
  if (!told.length) return [];
  const parts = [make("h3", "", `How ${index.columns[choice.one]} treated the evidence`)];
  for (const ladder of told) {
    const of = await message(ladder.message);
    const steps = ladder.steps.map(([stage, rank, score, words, reason]) => make("tr", stage === ladder.lost ? "lost" : "",
      make("th", "words", stage), make("td", "", rank === null ? "–" : `rank ${rank}`), make("td", "", score === null ? "" : Number(score).toFixed(3)), make("td", "words", [words, reason].filter(Boolean).join("; "))));
    const details = make("details", "", make("summary", "", `${ladder.lost ? lostWords(ladder.lost) : "found"}: ${(of.text ?? of.id).slice(0, 100)}`),
      ladder.held_at === null ? null : make("p", "meta", `the memory has it as of ${ladder.held_at}`),
      ladder.held === null ? null : make("p", "meta", "the memory holds:"), ladder.held === null ? null : make("p", "said", ladder.held),
      make("table", "steps", make("tbody", "", ...steps)));
    details.open = told.length === 1;
    parts.push(details);
  }
  return parts;
}

function onOpen(details, fill) {
  details.addEventListener("toggle", async () => {
    if (!details.open || details.dataset.filled) return;
    details.dataset.filled = "yes";
    details.append(...(await fill()));
  });
}

async function copyReport() {
  if (!openedData) return;
  const { id, row: question, data, gold } = openedData;
  const choice = chosen();
  const lines = [`Question ${id} (${question[1]}): ${data.text}`, "", ...Object.entries(index.about).map(([name, value]) => `- ${name}: ${value}`)];
  for (const side of [choice.one, choice.other].filter((one, i, all) => one >= 0 && all.indexOf(one) === i)) {
    lines.push("", `${index.columns[side]}: ${index.measures.map((name, i) => `${name} ${written(question[4][side][i])}`).join(", ")}`);
    for (const [number, rank, score, held] of data.rankings[side].slice(0, 10)) lines.push(`  ${rank}. ${(await row("documents", "d", number))[0]} ${Number(score).toFixed(3)}${held.length ? " evidence" : ""}`);
  }
  lines.push("", "Evidence:", ...gold.map((one) => `- ${one.id} ${one.text === null ? "" : one.text.slice(0, 300)}`));
  const text = plain(lines.join("\n"));
  try {
    await navigator.clipboard.writeText(text);
    byId("copied").textContent = "copied";
  } catch {
    const area = make("textarea", "");
    area.value = text;
    area.setAttribute("aria-label", "The report, to be copied");
    byId("copied").replaceChildren(area);
    area.select();
  }
}

function step(by) {
  if (!shown.length) return;
  const at = shown.findIndex(([question]) => question[0] === opened);
  const next = shown[Math.min(shown.length - 1, Math.max(0, at + by))][0];
  location.hash = `q=${encodeURIComponent(next[0])}`;
}

const KEYS = {
  j: () => step(1), ArrowDown: () => step(1), k: () => step(-1), ArrowUp: () => step(-1),
  Enter: () => byId("question").focus(), Escape: () => byId("list").focus(), "/": () => byId("search").focus(),
  c: copyReport, "?": () => byId("help").showModal(),
};

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || byId("help").open) return;
  const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
  if (typing && event.key === "Escape") return event.target.blur(), byId("list").focus();
  if (typing || (event.key === "Enter" && /^(A|BUTTON|SUMMARY)$/.test(event.target.tagName) && !event.target.dataset.question)) return;
  if (event.key.startsWith("Arrow") && !byId("list").contains(event.target)) return;
  if (!(event.key in KEYS)) return;
  event.preventDefault();
  KEYS[event.key]();
}

async function follow() {
  const found = /^#(q|c)=(.*)$/.exec(location.hash);
  if (!found) return;
  let id = found[2];
  try { id = decodeURIComponent(id); } catch { /* a link that nobody encoded */ }
  await (found[1] === "q" ? open(id) : openConversation(id));
}

function options(select, pairs) {
  select.replaceChildren(...pairs.map(([value, name]) => new Option(plain(name), value)));
}

async function start() {
  index = await block("index");
  options(byId("one"), index.columns.map((name, i) => [i, name]));
  options(byId("other"), [[-1, "nothing"], ...index.columns.map((name, i) => [i, name])]);
  byId("other").value = index.columns.length > 1 ? "1" : "-1";
  options(byId("measure"), index.measures.map((name, i) => [i, name]));
  options(byId("change"), [["all", "all"], ["worse", "got worse"], ["better", "got better"], ["same", "the same"], ["missed", "evidence missed"]]);
  options(byId("category"), [["", "every kind"], ...[...new Set(index.questions.map((one) => one[1]))].sort().map((name) => [name, name])]);
  const stages = [...new Set(index.questions.flatMap((one) => one[5]).filter(Boolean))].sort();
  byId("lost-label").hidden = !stages.length;
  options(byId("lost"), [["", "any stage"], ...stages.map((name) => [name, PLACES[name] ?? name])]);
  byId("explorer-notes").hidden = !index.notes.length;
  byId("explorer-notes").append(...index.notes.map((note) => make("li", "", note)));
  for (const select of byId("filters").querySelectorAll("select")) select.addEventListener("change", () => { filter(); if (opened) open(opened); });
  byId("search").addEventListener("input", filter);
  byId("filters").addEventListener("submit", (event) => event.preventDefault());
  byId("help-close").addEventListener("click", () => byId("help").close());
  document.addEventListener("keydown", onKey);
  window.addEventListener("hashchange", follow);
  byId("folding").hidden = !index.folded.length;
  options(byId("conversation"), index.folded.map(([id, workspace, column], i) => [i, `${id} · ${workspace}${index.columns.length > 1 ? ` · ${index.columns[column]}` : ""}`]));
  byId("conversation").addEventListener("change", () => (location.hash = `c=${byId("conversation").value}`));
  if (index.folded.length) new IntersectionObserver((seen, watch) => seen[0].isIntersecting && (watch.disconnect(), byId("folded").childElementCount || openConversation(0))).observe(byId("folding"));
  filter();
  if (!location.hash.startsWith("#q=")) return follow();
  history.scrollRestoration = "manual"; // what a reload would restore was true of a page without the question
  await follow();
  bring();
  byId("question").focus({ preventScroll: true });
}

if (byId("block-index")) start();
