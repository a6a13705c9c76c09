// A cell of the matrix, opened: its verdicts, and the witness of one of them.
let current = null;

function prepareCell() {
  const dialog = byId("cell");
  dialog.addEventListener("close", () => {
    const from = current;
    current = null;
    if (location.hash.startsWith("#cell/")) history.replaceState(null, "", location.pathname + location.search);
    const button = from && document.querySelector(`#${from.any ? "any" : "matrix"}-grid button[data-scheme="${CSS.escape(from.scheme)}"][data-fault="${CSS.escape(from.fault)}"]`);
    if (button) button.focus();
  });
  dialog.addEventListener("click", (e) => { if (e.target === dialog) dialog.close(); });
}

// groupsOf are the groups of a place; a kind of fault alone stands for all its settings.
const groupsOf = (at) => data.groups.filter((g) => g.s === at.scheme && (g.f === at.fault || g.f.startsWith(at.fault + "(")) && (g.c === "any") === at.any);
const broken = (g) => data.properties.filter((_, i) => g.v[i] === "v" || g.v[i] === "V");

function openCell(at) {
  const groups = groupsOf(at);
  if (!groups.length) return;
  const f = chosen();
  const fits = (g) => (!f.workload || g.w === f.workload) && (!f.retries || g.r === f.retries) && (!f.world || g.o === f.world);
  const shows = (g) => broken(g).some((p) => !f.property || p.id === f.property);
  at.group = data.groups.indexOf(groups.find((g) => fits(g) && shows(g)) || groups.find(fits) || groups[0]);
  at.property = f.property;
  showCell(at);
  if (!byId("cell").open) byId("cell").showModal();
  byId("cell").scrollTop = 0;
}

const groupName = (g, at) => [g.f === at.fault ? "" : g.f, nameOf("workloads", g.w), word("retries") + " " + word(g.r), word(g.o)].filter(Boolean).join(" · ");

function showCell(at) {
  current = at;
  const g = data.groups[at.group];
  const list = broken(g);
  if (!list.some((p) => p.id === at.property)) at.property = list.length ? list[0].id : "";
  const kind = named("faults", at.fault), scheme = named("schemes", at.scheme);
  const pick = make("select", { id: "variant", onchange: (e) => { at.group = Number(e.target.value); showCell(at); byId("variant").focus(); } },
    ...groupsOf(at).map((o) => make("option", { value: data.groups.indexOf(o), selected: o === g }, groupName(o, at) + " — " + (broken(o).map((p) => p.letter).join("") || "✓"))));
  const declared = (scheme.why || []).filter((w) => w.fault === at.fault);
  const witnessBox = make("div", { id: "witness", "aria-live": "polite" });
  byId("cell").replaceChildren(
    make("div", { class: "sheet-head" },
      make("div", {}, make("h2", { id: "cell-title" }, at.scheme + " × " + fullName("faults", at.fault)), make("p", {}, say(kind.says))),
      make("button", { type: "button", id: "close", onclick: () => byId("cell").close() }, word("close"))),
    make("div", { class: "sheet" },
      make("div", { class: "pick" }, make("label", {}, word("variant"), pick)),
      make("ul", { class: "facts" }, ...factsOf(g).map((f) => make("li", {}, f))),
      lawsTable(g, at), others(g, "h", "others-hold"), others(g, "n", "others-none"),
      witnessBox,
      ...(declared.length ? [make("h3", {}, word("author")), make("ul", {}, ...declared.map((w) => make("li", { lang: "en" }, w.text)))] : [])));
  showWitness(witnessBox, g, at.property);
}

function factsOf(g) {
  const number = (n) => (Number.isSafeInteger(Number(n)) ? Number(n).toLocaleString("en") : n);
  const list = [g.c === "any" ? word("any-clients") : word("clients") + " " + g.c, word("faults-most") + " " + g.m];
  if (g.k) list.push(word("stock") + " " + g.k.join(", "));
  if (g.e) list.push(word("executions") + " " + number(g.e));
  if (g.t) list.push(word("states") + " " + number(g.t));
  if (g.n) list.push(word("runs") + " " + number(g.n));
  if (g.f !== "none") list.push(word("places") + " " + g.p[1] + "/" + g.p[0]);
  if (g.o === "explore") list.push(g.x ? word("covered") : word("not-covered-all"));
  if (g.u[0] + g.u[1] > 0) list.push(word("unknowns") + " " + g.u.join(", "));
  return list;
}

// others names the laws that need no line of their own.
function others(g, verdict, key) {
  const list = data.properties.filter((_, i) => g.v[i] === verdict).map((p) => nameOf("properties", p.id));
  return list.length ? make("p", { class: "others tag-" + verdict }, word(key) + " " + list.join(", ")) : "";
}

const verdictNames = { v: "violated", h: "holds", i: "inconclusive", n: "not-applicable" };

function lawsTable(g, at) {
  const rows = data.properties.map((p, i) => {
    const v = g.v[i].toLowerCase(), odd = g.v[i] !== v, d = (g.d && g.d[p.id]) || {};
    if (v === "." || ((v === "h" || v === "n") && !odd)) return null;
    const shown = v === "v";
    return make("tr", { class: shown && p.id === at.property ? "on" : undefined },
      make("th", { scope: "row" }, make("b", { class: "letter" }, p.letter), " " + nameOf("properties", p.id)),
      make("td", { class: "tag-" + v }, word(verdictNames[v]) + (odd ? " ‼ " + word("surprise") : "")),
      make("td", {}, shown ? amountText(p, d.a || 0) : ""),
      make("td", { class: "extra" }, data.strings[d.r || 0]),
      make("td", {}, shown ? make("button", { type: "button", "aria-pressed": String(p.id === at.property), "aria-label": word("show") + ": " + nameOf("properties", p.id),
        onclick: () => { at.property = p.id; showCell(at); document.querySelector('#cell button[aria-pressed="true"]').focus(); } }, word("show")) : ""));
  });
  if (!rows.some(Boolean)) return "";
  return make("div", { class: "laws" }, make("table", {}, make("caption", { class: "hidden" }, word("verdict")),
    make("thead", { class: "hidden" }, make("tr", {}, ...["property", "verdict", "amount", "evidence", "witness"].map((k) => make("th", { scope: "col" }, word(k))))),
    make("tbody", {}, ...rows.filter(Boolean))));
}

// shellWord quotes a path for a shell, where it needs it.
const shellWord = (s) => (/^[\w@%+=:,./-]+$/.test(s) ? s : "'" + s.replaceAll("'", "'\\''") + "'");

function commandLine(text) {
  const button = make("button", { type: "button", onclick: async () => { try { await navigator.clipboard.writeText(text); button.textContent = word("copied"); } catch { getSelection().selectAllChildren(line); } } }, word("copy"));
  const line = make("pre", {}, text);
  return make("div", { class: "command" }, line, button);
}

async function showWitness(box, g, property) {
  if (!property) {
    box.append(make("p", { class: "quiet" }, word("no-witness")));
    return;
  }
  const d = (g.d && g.d[property]) || { w: -1 };
  const path = data.strings[d.p || 0];
  const isLive = g.o === "live";
  box.append(make("h3", {}, word("witness") + ": " + fullName("properties", property)), make("p", { class: "reason", lang: "en" }, data.strings[d.r || 0]));
  if (isLive) box.append(make("p", { class: "quiet" }, word("seen-live")));
  else box.append(make("p", { class: "quiet" }, word("confirmed-" + (d.c || "open")) + (d.q ? ": " + data.strings[d.q] : "")));
  const pack = await witnessesOf(g.s);
  if (current === null || data.groups[current.group] !== g || current.property !== property) return; // something else was opened meanwhile
  const w = pack.witnesses[d.w];
  const schedulePath = path.replace(/\.jsonl$/, ".schedule");
  if (!w || w.missing) {
    box.append(make("p", { class: "warning" }, word(w ? w.missing : "left-witnesses") + " ", make("code", {}, path)));
  } else {
    const hits = w.steps.map((st) => st.f !== undefined || (st.n !== undefined && st.n.startsWith("-")));
    box.append(make("h3", {}, word("diagram")), make("p", { class: "quiet" }, word("diagram-says")),
      make("div", { class: "drawing", tabindex: "0", role: "region", "aria-label": word("diagram") }, drawDiagram(w)),
      make("h3", {}, word("schedule")),
      make("ol", { class: "steps", tabindex: "0" }, ...w.steps.map((st, i) => make("li", { class: hits[i] ? "hit" : undefined }, st.t))),
      make("details", {}, make("summary", {}, word("schedule-file") + ": " + schedulePath), make("pre", { tabindex: "0" }, w.text)),
      make("h3", {}, word("replay")), commandLine("stockproof replay " + shellWord(schedulePath)),
      make("p", { class: "quiet" }, word("replay-live")), commandLine("stockproof replay " + shellWord(schedulePath) + " --world live"));
  }
  if (path.endsWith(".jsonl")) box.append(commandLine("stockproof check " + shellWord(path)));
  if (w && w.picture >= 0) {
    const frame = make("details", {}, make("summary", {}, word("porcupine")));
    frame.addEventListener("toggle", () => {
      if (!frame.open || frame.querySelector("iframe")) return;
      frame.append(make("iframe", { title: word("porcupine"), sandbox: "allow-scripts", srcdoc: data.porcupine[0] + JSON.stringify(pack.pictures[w.picture]) + data.porcupine[1] }));
    });
    box.append(frame);
  }
}
