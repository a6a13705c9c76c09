// The space-time diagram of a schedule: a lane for each client and server, time
// from left to right, the counter as a line under it.
const svgNames = "http://www.w3.org/2000/svg";
const room = { left: 92, column: 96, top: 26, lane: 60, counter: 76 };

function svg(tag, attributes = {}, text) {
  const e = document.createElementNS(svgNames, tag);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  if (text !== undefined) e.textContent = text;
  return e;
}

const cut = (text, most) => ([...text].length > most ? [...text].slice(0, most - 1).join("") + "…" : text);

const serverNames = { redis: "Redis", sql: "PostgreSQL" };

// serverOf is the lane of a step without a client: its server, or Redis, which
// is the one that loses writes and forgets scripts.
const serverOf = (st) => st.s || (st.c < 0 && st.k !== "wait" ? "redis" : "");

function drawDiagram(w) {
  const servers = ["redis", "sql"].filter((s) => w.steps.some((st) => serverOf(st) === s));
  const lanes = [...w.clients.map((c) => ({ id: c, text: c })), ...servers.map((s) => ({ id: s, text: serverNames[s] }))];
  const y = (i) => room.top + 14 + i * room.lane;
  const laneOf = (server) => w.clients.length + servers.indexOf(server);
  const x = (i) => room.left + (i + 0.5) * room.column;
  const end = room.left + w.steps.length * room.column + 16;
  const bottom = y(lanes.length - 1) + 46;
  const height = bottom + room.counter + 14;
  const title = w.steps.map((st) => st.t.trim()).join("; ");
  const root = svg("svg", { width: end, height, viewBox: `0 0 ${end} ${height}`, role: "img", "aria-label": word("diagram") + ": " + title });
  const put = (tag, attributes, text) => root.appendChild(svg(tag, attributes, text));

  w.steps.forEach((st, i) => { // time that passes lies under everything else
    if (st.k !== "wait") return;
    put("rect", { class: "band", x: x(i) - room.column / 2 + 4, y: room.top - 8, width: room.column - 8, height: bottom - room.top });
  });
  lanes.forEach((lane, i) => {
    put("text", { class: "name", x: 10, y: y(i) + 4 }, lane.text);
    put("line", { class: "lane", x1: room.left - 8, x2: end - 8, y1: y(i), y2: y(i) });
  });
  spans(w, x).forEach((s) => put("line", { class: s.stopped ? "stopped" : "op", x1: s.from, x2: s.to, y1: y(s.client), y2: y(s.client) }));
  w.steps.forEach((st, i) => drawStep(st, i, { put, x: x(i), y, laneOf, bottom, clients: w.clients }));
  drawCounter(w, { put, x, top: bottom + 8, height: room.counter - 16, end });
  return root;
}

// spans are the times in which a client is in an operation, or stands still.
function spans(w, x) {
  const list = [], since = w.clients.map(() => null), stopped = w.clients.map(() => null);
  w.steps.forEach((st, i) => {
    const c = st.c;
    if (c >= 0 && since[c] === null && st.k === "command") since[c] = x(i) - 30;
    for (const a of st.a || []) {
      const who = w.clients.indexOf(a.split("=")[0].split(".")[0]);
      if (who >= 0 && since[who] !== null) { list.push({ client: who, from: since[who], to: x(i) + 34 }); since[who] = null; }
    }
    if (c < 0) return;
    if (st.f === "client-crash" && since[c] !== null) { list.push({ client: c, from: since[c], to: x(i) + 34 }); since[c] = null; }
    if (st.f === "client-pause" || st.f === "client-pause-short") {
      stopped[c] = x(i) + 30;
      if (since[c] !== null) { list.push({ client: c, from: since[c], to: stopped[c] - 4 }); since[c] = null; }
    }
    if (st.k === "resume" && stopped[c] !== null) { list.push({ client: c, from: stopped[c], to: x(i), stopped: true }); stopped[c] = null; since[c] = x(i) + 4; }
  });
  w.clients.forEach((_, c) => {
    const last = x(w.steps.length - 1) + 40;
    if (stopped[c] !== null) list.push({ client: c, from: stopped[c], to: last, stopped: true });
    else if (since[c] !== null) list.push({ client: c, from: since[c], to: last });
  });
  return list;
}

// commandWords are a command and its arguments; a script stands by its name.
function commandWords(label) {
  const words = label.replace(/^(SQL\/?\d*|EVALSHA|EVAL) /, "").split(" ");
  return [words[0], words.slice(1).join(" ")];
}

const lostWords = { "request-lost": "lost", "request-delayed": "delayed", "reply-lost": "lost", "commit-reply-lost": "lost" };

function drawStep(st, i, d) {
  const { put, x, y } = d;
  const server = serverOf(st);
  const cross = (cx, cy) => put("path", { class: "cross", d: `M${cx - 5},${cy - 5} l10,10 M${cx + 5},${cy - 5} l-10,10` });
  put("text", { class: "no", x, y: 14, "text-anchor": "middle" }, String(i + 1));
  if (st.k === "wait") {
    put("text", { x, y: (y(0) + d.bottom) / 2, "text-anchor": "middle" }, cut(st.l.replace(/^wait\s+/, ""), 9) + " " + word("pass"));
  } else if (st.c >= 0 && server) {
    const client = y(st.c), store = y(d.laneOf(server));
    const lost = st.f === "request-lost" || st.f === "request-delayed";
    const goes = lost ? client + (store - client) * 0.45 : store;
    const late = st.k === "arrives";
    put("line", { class: "arrow" + (lost ? " broken" : ""), x1: x - 26, y1: client, x2: x - 26 + (lost ? 10 : 22), y2: goes });
    if (lost) cross(x - 16, goes); else put("circle", { class: "dot", cx: x - 4, cy: store, r: 3.5 });
    const replies = st.r && st.r !== "blocked" && !lost;
    const gone = st.f === "reply-lost" || st.f === "commit-reply-lost" || late;
    const back = gone ? store + (client - store) * 0.45 : client;
    if (replies) put("line", { class: "back" + (gone ? " broken" : ""), x1: x - 4, y1: store, x2: x + (gone ? 8 : 22), y2: back });
    if (gone && replies) cross(x + 8, back);
    const [name, rest] = commandWords(st.l);
    put("text", { class: "command", x, y: store + 15, "text-anchor": "middle" }, cut(name, 14)).append(svg("title", {}, st.t.trim()));
    if (rest) put("text", { class: "no", x, y: store + 27, "text-anchor": "middle" }, cut(rest, 15));
    if (st.r) put("text", { class: "reply", x, y: store + (rest ? 39 : 27), "text-anchor": "middle" }, "→ " + cut(st.r, 12));
    if (lost || (gone && !late)) put("text", { class: "bad", x: x + 2, y: client - 8, "text-anchor": "middle" }, word(lostWords[st.f]));
    if (late) put("text", { class: "bad", x, y: client - 8, "text-anchor": "middle" }, word("arrives"));
  } else {
    const at = st.c >= 0 ? y(st.c) : y(d.laneOf(server || "redis"));
    put("circle", { class: "dot", cx: x, cy: at, r: 4 });
    put("text", { class: st.f ? "bad" : "", x, y: at - 9, "text-anchor": "middle" }, cut(st.k === "resume" ? word("resumes") : st.l, 16));
  }
  if (st.f === "client-crash") { cross(x + 34, y(st.c)); put("text", { class: "bad", x: x + 30, y: y(st.c) - 9, "text-anchor": "middle" }, word("crashes")); }
  if (st.f === "client-pause" || st.f === "client-pause-short") put("text", { class: "bad", x: x + 30, y: y(st.c) - 9, "text-anchor": "middle" }, "‖ " + word("pauses"));
  for (const a of st.a || []) {
    const who = a.split("=")[0].split(".")[0], lane = d.clients.indexOf(who);
    put("text", { class: "end", x: x + 34, y: y(lane >= 0 ? lane : st.c) - 9, "text-anchor": "middle" }, a.split("=")[1]);
  }
}

// drawCounter draws the stored units after each step.
function drawCounter(w, d) {
  const values = [w.stock];
  for (const st of w.steps) values.push(st.n === undefined ? values[values.length - 1] : st.n === "unknown" ? null : Number(st.n));
  const known = values.filter((v) => v !== null);
  const most = Math.max(1, ...known), least = Math.min(0, ...known);
  const y = (v) => d.top + ((most - v) / (most - least)) * (d.height - 14) + 8;
  d.put("text", { class: "name", x: 10, y: y(most) + 4 }, word("counter"));
  d.put("line", { class: "zero", x1: room.left - 8, x2: d.end - 8, y1: y(0), y2: y(0) });
  d.put("text", { class: "no", x: room.left - 14, y: y(0) + 4, "text-anchor": "end" }, "0");
  let was = values[0], from = room.left - 8;
  d.put("text", { x: from + 4, y: y(was) - 5 }, String(was));
  w.steps.forEach((st, i) => {
    const is = values[i + 1];
    if (is === was) return;
    const at = d.x(i) - 4;
    if (was !== null) d.put("path", { class: was < 0 ? "below" : "count", d: `M${from},${y(was)} H${at}` + (is === null ? "" : ` V${y(is)}`) });
    d.put("text", { class: is !== null && is < 0 ? "bad" : "", x: at + 5, y: is === null ? y(0) - 4 : y(is) - 5 }, is === null ? word("unknown") : String(is).replace("-", "−"));
    from = at;
    was = is;
  });
  if (was !== null) d.put("path", { class: was < 0 ? "below" : "count", d: `M${from},${y(was)} H${d.end - 8}` });
}
