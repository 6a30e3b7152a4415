"use strict";
// Words of messages are set as text, never as markup: they may hold anything.

const KEYS = { "1": "relevant", "r": "relevant", "2": "partly", "p": "partly", "3": "not", "n": "not", "s": "skip" };
const SAID = { relevant: "relevant", partly: "partly relevant", not: "not relevant", skip: "skipped" };
const at = (id) => document.getElementById(id);
let state = null;
let busy = false;

function element(kind, name, text) {
  const made = document.createElement(kind);
  made.className = name;
  if (text !== undefined) made.textContent = text;
  return made;
}

function message(one) {
  const card = element("article", one.is_judged ? "message judged" : "message");
  const who = element("p", "who");
  who.append(element("b", "", one.who), one.at ? ` · ${one.at}` : "");
  card.append(who, element("p", "text", one.text || "(no words)"));
  return card;
}

function show(found) {
  state = found;
  const task = state.task;
  at("bar").style.width = `${state.total ? (100 * state.done) / state.total : 100}%`;
  at("judge").textContent = state.judge;
  at("count").textContent = `${state.done} of ${state.total}`;
  at("place").textContent = task ? `message ${task.number} of ${task.of} for this question` : "";
  at("work").hidden = !task;
  at("end").hidden = Boolean(task);
  at("keys").hidden = false;
  at("undo").disabled = !state.can_undo;
  for (const button of document.querySelectorAll("[data-grade]")) button.hidden = !task;
  document.querySelector(".ask").hidden = !task;
  if (!task) {
    const tally = Object.entries(state.tally).map(([grade, count]) => `${count} ${SAID[grade]}`);
    at("tally").textContent = tally.join(", ");
    return;
  }
  at("query").textContent = task.query;
  at("about").textContent = [task.category === "all" ? "" : task.category.replaceAll("_", " "), `asked ${task.asked_at}`]
    .filter(Boolean).map((one) => `· ${one}`).join(" ");
  at("messages").replaceChildren(...task.messages.map(message));
  window.scrollTo(0, 0);
  document.querySelector(".judged").scrollIntoView({ block: "nearest" });
}

function gone(title, text) {
  for (const id of ["work", "end", "keys"]) at(id).hidden = true;
  at("gone").hidden = false;
  at("gone-title").textContent = title;
  at("gone-text").textContent = text;
}

async function ask(path, body) {
  if (busy) return;
  busy = true;
  try {
    const asked = body === undefined ? {} : { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
    const reply = await fetch(path, asked);
    if (!reply.ok) throw new Error(await reply.text());
    return await reply.json();
  } catch (error) {
    gone("Not connected", `Whatever you judged is kept. Run the same command to go on. (${error.message})`);
  } finally {
    busy = false;
  }
}

async function judge(grade) {
  if (!state || !state.task || busy) return;
  const { query_id, document_id } = state.task;
  const found = await ask("say", { query_id, document_id, grade });
  if (found) { show(found); at("said").textContent = `The last one: ${SAID[grade]}.`; }
}

async function undo() {
  if (!state || !state.can_undo || busy) return;
  const found = await ask("undo", {});
  if (found) { show(found); at("said").textContent = "Taken back: judge it again."; }
}

async function finish() {
  if (!state || state.task || busy) return;
  const found = await ask("finish", {});
  if (found) gone("Done", found.told);
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  const key = event.key.toLowerCase();
  if (KEYS[key]) judge(KEYS[key]);
  else if (key === "u") undo();
  else if (key === "f") finish();
  else return;
  event.preventDefault();
});
for (const button of document.querySelectorAll("[data-grade]")) {
  button.addEventListener("click", () => { button.blur(); judge(button.dataset.grade); });
}
at("undo").addEventListener("click", () => { at("undo").blur(); undo(); });
at("finish").addEventListener("click", finish);
ask("state").then((found) => found && show(found));
