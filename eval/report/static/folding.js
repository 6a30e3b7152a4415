// What contexts held, and the summaries of a conversation over its messages; a part of the page's one script, read before the rest.
"use strict";

// A conversation as it is folded: a drawing of its summaries over its messages, and the same as a tree.
async function openConversation(number) {
  const place = Number(number);
  if (!index.folded[place]) return;
  byId("conversation").value = String(place);
  const one = await block(`c${place}`);
  const [first, count] = one.summaries;
  const summaries = await Promise.all(Array.from({ length: count }, (_, i) => folded(first + i)));
  const at = (at) => summaries[at - first];
  const spans = summaries.map(() => null);
  const span = (at) => {
    const known = spans[at - first];
    if (known) return known;
    const { sources, isLeaf } = summaries[at - first];
    const ends = sources.map((source) => (isLeaf ? [source, source] : span(source)));
    return (spans[at - first] = [Math.min(...ends.map(([low]) => low)), Math.max(...ends.map(([, high]) => high))]);
  };
  summaries.forEach((_, i) => span(first + i));
  const told = make("p", "meta", `${one.id} · ${count.toLocaleString("en")} summaries, ${one.entries.length.toLocaleString("en")} entries in the context now`);
  byId("folded").replaceChildren(told, dag(one, summaries, spans), tree(one.entries.map(([kind, at]) => [kind === "s", at]), at));
}

// Summaries over the messages that they cover, the deepest on top; what stands in the context now is outlined by the tree.
function dag(one, summaries, spans) {
  const [, , begin, length] = index.conversations[one.conversation] ?? [0, 0, Math.min(...spans.map(([low]) => low)), 1];
  const messages = Math.max(length, ...spans.map(([, high]) => high - begin + 1));
  const deepest = Math.max(...summaries.map(({ depth }) => depth));
  const high = 22, wide = 1000, height = (deepest + 2) * high;
  const svg = drawn("svg", { viewBox: `0 0 ${wide} ${height}`, class: "dag", role: "img", "aria-label": `${summaries.length} summaries in ${deepest + 1} depths over ${messages} messages; the tree below tells them` });
  svg.append(drawn("rect", { class: "raw", x: 0, y: height - high + 4, width: wide, height: high - 8 }, `${messages} messages`));
  summaries.forEach(({ id, depth, tokens }, i) => {
    const [low, last] = spans[i];
    svg.append(drawn("rect", { class: `depth${Math.min(depth, 2)}`, x: (wide * (low - begin)) / messages, y: (deepest - depth) * high + 2, width: Math.max(1, (wide * (last - low + 1)) / messages), height: high - 4 }, `${id}: depth ${depth}, ${tokens} tokens over ${last - low + 1} messages`));
  });
  return region("wide", "Summaries over messages", svg);
}

// Messages and summaries in order; a summary unfolds into what it was made of.
function tree(nodes, at) {
  const list = make("ul", "tree");
  for (let i = 0; i < nodes.length; ) {
    const [isSummary, number] = nodes[i];
    let end = i + 1;
    if (!isSummary) while (end < nodes.length && !nodes[end][0]) end++;
    const details = isSummary
      ? make("details", "", make("summary", "", make("span", "pill", `depth ${at(number).depth}`), ` ${at(number).tokens} tokens, of ${at(number).sources.length} ${at(number).isLeaf ? "messages" : "summaries"}: ${at(number).text.slice(0, 120)}`))
      : make("details", "", make("summary", "", `${end - i} message${end - i > 1 ? "s" : ""} as said`));
    const inner = nodes.slice(i, end).map(([, one]) => one);
    onOpen(details, async () => isSummary
      ? [make("p", "said", at(number).text), tree(at(number).sources.map((source) => [!at(number).isLeaf, source]), at)]
      : (await Promise.all(inner.slice(0, 200).map(message))).map((one) => said(one, false)));
    list.append(make("li", "", details));
    i = end;
  }
  return list;
}

async function contexts(data, choice) {
  const told = data.contexts[choice.one];
  if (!told.length) return [];
  const select = make("select", "");
  told.forEach(([budget], i) => select.append(new Option(`${budget} tokens`, i)));
  const body = make("div", "");
  const show = async () => body.replaceChildren(...(await contextOf(data, choice.one, told[Number(select.value)])));
  select.addEventListener("change", show);
  await show();
  return [make("h3", "", "What a model would be shown"), make("label", "meta", "Budget ", select), body];
}

async function contextOf(data, column, [budget, at, states]) {
  const context = await row("contexts", "x", at);
  const gold = new Set(data.evidence);
  const spent = { evidence: 0, summary: 0, document: 0, message: 0 };
  const list = make("ol", "ranked");
  for (const [kind, number, tokens, text, sources] of context.items) {
    const isGold = kind === "message" ? gold.has(number) : kind === "document" && sources.some((one) => gold.has(one));
    spent[isGold ? "evidence" : kind] += tokens;
    list.append(item(kind, number, tokens, text, isGold));
  }
  const whole = Math.max(budget, context.tokens);
  const bar = make("div", "bar");
  bar.setAttribute("role", "img");
  bar.setAttribute("aria-label", `${context.tokens} of ${budget} tokens: ${Object.entries(spent).map(([kind, tokens]) => `${KINDS[kind]} ${tokens}`).join(", ")}`);
  const key = make("ul", "key");
  for (const [kind, tokens] of [...Object.entries(spent), ["free", Math.max(0, budget - context.tokens)]]) {
    if (!tokens) continue;
    const part = make("span", `is-${kind}`);
    part.style.width = `${(100 * tokens) / whole}%`;
    bar.append(part);
    key.append(make("li", "", make("i", `is-${kind}`), `${KINDS[kind]} ${tokens.toLocaleString("en")}`));
  }
  if (context.evicted) key.append(make("li", "", `${context.evicted.toLocaleString("en")} entries are not shown`));
  const where = make("ul", "notes");
  for (let i = 0; i < states.length; i++) where.append(make("li", "", `${(await message(data.evidence[i])).id}: ${STATES[states[i]]}`));
  const folding = make("details", "", make("summary", "", `its ${context.items.length} entries, in order`), region("scroll", "The entries of the context", list));
  return [bar, key, where, folding];
}

// An entry of a context; its words are unpacked when it is opened.
function item(kind, number, tokens, text, isGold) {
  const name = make("span", "preview", isGold ? make("span", "gold-word", "evidence ") : null, kind, text ? `: ${text.slice(0, 140)}` : ` ${number}`);
  const details = make("details", isGold ? "gold" : "", make("summary", "", make("span", "rank", ""), name, make("span", "score", `${tokens} tokens`)));
  onOpen(details, async () => [kind === "message" ? said(await message(number), isGold) : make("p", "said", text ?? (await folded(number)).text)]);
  return make("li", "", details);
}
