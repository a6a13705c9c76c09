"use strict";
// The matrix, its filters, the language, and the address of what is open.
let data, lang = "en";
const opened = new Map(); // witnesses by scheme

const byId = (id) => document.getElementById(id);
const say = (text) => (text ? text[lang] || text.en : "");
const word = (key) => say(data.words[key]) || key;

function make(tag, attributes = {}, ...children) {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(attributes)) {
    if (v === undefined || v === false) continue;
    if (k.startsWith("on")) e.addEventListener(k.slice(2), v);
    else e.setAttribute(k, v === true ? "" : v);
  }
  e.append(...children.filter((c) => c !== undefined && c !== ""));
  return e;
}

async function unpack(id) {
  const bytes = Uint8Array.from(atob(byId(id).textContent), (c) => c.charCodeAt(0));
  const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(plain).text());
}

async function witnessesOf(scheme) {
  if (!opened.has(scheme)) opened.set(scheme, byId("witnesses-" + scheme) ? await unpack("witnesses-" + scheme) : { witnesses: [], pictures: [] });
  return opened.get(scheme);
}

const remember = (value) => { try { localStorage.setItem("stockproof-language", value); } catch { /* file:// may have no storage */ } };
function remembered() {
  try { return localStorage.getItem("stockproof-language"); } catch { return null; }
}

function speak(to) {
  lang = to;
  document.documentElement.lang = to === "zh" ? "zh-Hans" : "en";
  document.title = word("title");
  const button = byId("language");
  button.hidden = false;
  button.textContent = word("language");
  button.setAttribute("aria-label", word("language-label"));
  button.lang = to === "zh" ? "en" : "zh-Hans";
  byId("filters").setAttribute("aria-label", word("filters"));
  byId("parts").setAttribute("aria-label", word("navigation"));
  fillFilters();
  drawMatrices();
  if (byId("cell").open) showCell(current);
}

const named = (list, id) => data[list].find((n) => n.id === id) || { id, name: { en: id, zh: id }, says: { en: "", zh: "" } };
const nameOf = (list, id) => { const n = named(list, id); return lang === "zh" && n.name.zh !== id ? n.name.zh : id; };
const fullName = (list, id) => { const n = nameOf(list, id); return n === id ? id : id + " " + n; };

// fillFilters says the choices in the language of the page and keeps what is chosen.
function fillFilters() {
  const choices = {
    "by-property": data.properties.map((p) => [p.id, p.letter + " " + nameOf("properties", p.id)]),
    "by-workload": data.workloads.filter((w) => data.groups.some((g) => g.w === w.id)).map((w) => [w.id, nameOf("workloads", w.id)]),
    "by-retries": [...new Set(data.groups.map((g) => g.r))].map((r) => [r, word(r)]),
    "by-world": [...new Set(data.groups.map((g) => g.o))].map((o) => [o, word(o)]),
  };
  for (const [id, list] of Object.entries(choices)) {
    const select = byId(id), was = select.value;
    select.replaceChildren(make("option", { value: "" }, word("all")), ...list.map(([value, text]) => make("option", { value }, text)));
    select.value = was;
  }
  byId("filters").hidden = false;
}

const chosen = () => ({ property: byId("by-property").value, workload: byId("by-workload").value, retries: byId("by-retries").value, world: byId("by-world").value });

function drawMatrices() {
  const f = chosen();
  const fits = (g) => (!f.workload || g.w === f.workload) && (!f.retries || g.r === f.retries) && (!f.world || g.o === f.world);
  const bounded = data.groups.filter((g) => g.c !== "any" && fits(g));
  byId("matrix-table").replaceChildren(drawMatrix(bounded, f, "matrix", false));
  byId("shown").textContent = bounded.length + " " + word("shown");
  if (byId("any-table")) byId("any-table").replaceChildren(drawMatrix(data.groups.filter((g) => g.c === "any" && fits(g)), f, "any", true));
  byId("letters").replaceChildren(
    ...data.properties.map((p) => make("li", {}, make("b", { class: "letter" }, p.letter), " " + nameOf("properties", p.id))),
    make("li", {}, "✓ " + word("holds")), make("li", {}, "? " + word("inconclusive")), make("li", {}, "– " + word("no-place")),
    make("li", {}, "‼ " + word("surprise")), make("li", {}, word("world-explore")), make("li", {}, word("world-live")), make("li", {}, word("world-confirmed")));
}

// sum is what the groups of one place in the matrix come to.
function sum(groups, property) {
  const s = { broken: [], amount: null, open: false, holds: false, odd: false, worlds: new Set(), confirmed: false, applies: false };
  data.properties.forEach((p, i) => {
    if (property && p.id !== property) return;
    let worst = null;
    for (const g of groups) {
      const v = g.v[i];
      if (v === "V" || v === "H" || v === "N") s.odd = true;
      if (v === "i" || v === "I") s.open = true;
      if (v === "h" || v === "H") s.holds = true;
      if (v !== "v" && v !== "V") continue;
      const d = (g.d && g.d[p.id]) || {};
      if (worst === null || Math.abs(d.a || 0) > Math.abs(worst)) worst = d.a || 0;
      s.worlds.add(g.o);
      if (g.o === "explore" && d.c === "yes") s.confirmed = true;
    }
    if (worst !== null) s.broken.push({ property: p, amount: worst });
  });
  s.applies = s.broken.length > 0 || s.open || s.holds;
  if (!s.broken.length) for (const g of groups) s.worlds.add(g.o);
  return s;
}

const worldsText = (s) => ["explore", "live"].filter((o) => s.worlds.has(o)).map((o) => (o === "live" ? "L" : s.confirmed ? "E✓" : "E")).join("+");

const signed = (n) => (n > 0 ? "+" : n < 0 ? "−" : "") + Math.abs(n);
const amountText = (p, n) => say(p.unit) + (lang === "zh" ? "：" : ": ") + signed(n).replace("+", "");

function drawMatrix(groups, f, id, any) {
  const places = new Map();
  for (const g of groups) {
    const at = g.s + "/" + g.f;
    places.set(at, [...(places.get(at) || []), g]);
  }
  const kinds = data.faults.filter((k) => groups.some((g) => g.f === k.id));
  const schemes = data.schemes.filter((s) => groups.some((g) => g.s === s.id));
  const head = make("tr", {}, make("th", { scope: "col" }, word("scheme")),
    ...kinds.map((k) => make("th", { scope: "col", class: "law", title: say(k.says) }, make("span", { class: "turn" }, nameOf("faults", k.id)))));
  const body = schemes.map((s) => make("tr", {}, make("th", { scope: "row" }, s.id), ...kinds.map((k) => drawPlace(places.get(s.id + "/" + k.id) || [], s, k, f.property, any))));
  return make("table", { class: "grid", id: id + "-grid" }, make("caption", { class: "hidden" }, word(id)), make("thead", {}, head), make("tbody", {}, ...body));
}

function drawPlace(groups, scheme, kind, property, any) {
  const label = make("span", { class: "small", "aria-hidden": true }, nameOf("faults", kind.id));
  if (!groups.length) return make("td", { class: "void" }, make("span", { class: "hidden" }, word("nothing-there")));
  const s = sum(groups, property);
  if (!s.applies) return make("td", { class: "void" }, label, make("span", { "aria-hidden": true }, "–"), make("span", { class: "hidden" }, word("no-place")));
  let look = "h", what = "✓", more = worldsText(s), told = word("holds");
  if (s.broken.length) {
    look = s.broken.every((b) => b.property.id === "unsold") ? "u" : "v";
    const first = s.broken[0];
    what = property ? "✕" : s.broken.map((b) => b.property.letter).join("");
    more = signed(first.amount) + (property ? "" : " " + first.property.letter) + " · " + more;
    told = s.broken.map((b) => nameOf("properties", b.property.id) + " " + amountText(b.property, b.amount)).join(", ");
    if (s.open) what += "?";
  } else if (s.open) {
    [look, what, told] = ["i", "?", word("inconclusive")];
  }
  if (s.odd) { what += " ‼"; told += ", " + word("surprise"); }
  const spoken = scheme.id + " × " + nameOf("faults", kind.id) + ": " + told;
  return make("td", {}, label, make("button", {
    type: "button", class: look + (s.odd ? " odd" : ""), "aria-label": spoken, title: told,
    "data-scheme": scheme.id, "data-fault": kind.id, onclick: () => { location.hash = "cell/" + scheme.id + "/" + kind.id + (any ? "/any" : ""); },
  }, make("span", { class: "what" }, what), make("span", { class: "more" }, more)));
}

// follow opens what the address names.
function follow() {
  const [what, scheme, fault, kind] = decodeURIComponent(location.hash.slice(1)).split("/");
  if (what === "cell" && scheme && fault) {
    openCell({ scheme, fault, any: kind === "any" });
    return;
  }
  if (byId("cell").open) byId("cell").close();
  const claim = what.startsWith("claim-") && byId(what);
  if (claim) claim.open = true;
}

async function begin() {
  if (typeof DecompressionStream === "undefined") {
    byId("matrix-table").append(document.documentElement.lang === "en" ? "This browser cannot unpack the matrix (it has no DecompressionStream)." : "");
    return;
  }
  data = await unpack("index");
  byId("language").addEventListener("click", () => { const to = lang === "zh" ? "en" : "zh"; remember(to); speak(to); });
  byId("filters").addEventListener("change", drawMatrices);
  byId("filters").addEventListener("reset", () => setTimeout(drawMatrices));
  byId("filters").addEventListener("submit", (e) => e.preventDefault());
  addEventListener("hashchange", follow);
  addEventListener("beforeprint", () => document.querySelectorAll("details.claim").forEach((d) => { d.open = true; }));
  prepareCell();
  speak((remembered() || navigator.language || "en").startsWith("zh") ? "zh" : "en");
  follow();
  document.documentElement.dataset.ready = "yes";
}
begin();
