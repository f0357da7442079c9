// The console: pages by the part of the address after #, all from /api/v1.
import { h, ask, state, toast, seg, number, bytes, moment, duration, table, field, button, plot } from "./dom.js";
import { messagesPage, recordPage, producePage } from "./messages.js";
import { faultsPage, schemasPage, securityPage } from "./control.js";

let facts = {}, leave = () => {};
const main = document.getElementById("main");

const PAGES = [
  ["overview", "Overview"], ["topics", "Topics"], ["groups", "Groups"], ["transactions", "Transactions"],
  ["clients", "Clients", "is_broker"], ["live", "Live", "is_broker"], ["faults", "Faults", "has_control"], ["schemas", "Schemas", "has_registry"], ["security", "Security"],
];

// Repeats `work` while the page is shown and its tab is visible. A lone broker is first asked whether
// anything happened: if not, ever more rarely, up to every QUIET_S, and `work` is left out for up to STALE_S.
const QUIET_S = 10, STALE_S = 60;
export function repeat(work, seconds) {
  let over = false, seen = null, worked = 0, pause = seconds;
  const run = async () => {
    if (over) return;
    let quiet = false;
    if (!document.hidden) {
      try {
        const pulse = facts.is_broker ? (await ask("/pulse")).pulse : null;
        quiet = pulse !== null && pulse === seen && performance.now() - worked < STALE_S * 1000;
        if (!quiet) { await work(); seen = pulse; worked = performance.now(); }
      } catch (error) { if (error.status) toast(error.message); }
    }
    pause = quiet ? Math.min(pause * 2, QUIET_S) : seconds;
    if (!over) timer = setTimeout(run, pause * 1000);
  };
  let timer = setTimeout(run, seconds * 1000);
  onleave(() => { over = true; clearTimeout(timer); });
}
export function onleave(action) { const before = leave; leave = () => { before(); action(); }; }
export const canWrite = () => facts.can_write;
const link = (path, text) => h("a", { href: "#/" + path }, text);
const topicLink = (name) => link("topics/" + seg(name), name);
const groupLink = (name) => link("groups/" + seg(name), name);

async function overview(place) {
  const rates = h("div", { class: "cards" }), cards = h("div", { class: "cards" });
  const card = (label, value) => h("div", { class: "card" }, h("span", null, label), h("b", null, value));
  place.append(h("h1", null, "Overview"), cards, rates, h("h2", null, "Brokers"));
  place.append(table("Brokers", [
    { name: "Id", number: true, show: (b) => b.id }, { name: "Address", show: (b) => `${b.host}:${b.port}` },
    { name: "Rack", show: (b) => b.rack || "–" }, { name: "Role", show: (b) => (b.is_controller ? "controller" : "broker") },
    { name: "Settings", show: (b) => link(`brokers/${b.id}`, "show") },
  ], facts.brokers));
  const fill = async () => {
    const [cluster, topics, groups] = await Promise.all([ask("/cluster"), ask("/topics?internal=true"), ask("/groups?lag=true")]);
    const lag = groups.groups.reduce((sum, group) => sum + (group.lag || 0), 0);
    const leaderless = topics.topics.reduce((sum, topic) => sum + topic.without_leader, 0);
    const behind = topics.topics.reduce((sum, topic) => sum + topic.under_replicated, 0);
    cards.replaceChildren(card("Cluster", cluster.cluster_id), card("Bootstrap", cluster.bootstrap || "–"),
      card("Profile", cluster.profile || "any Kafka"), card("Topics", number(topics.count)), card("Groups", number(groups.count)),
      card("Lag of all groups", number(lag)), card("Without leader", number(leaderless)), card("Under-replicated", number(behind)));
    if (!facts.is_broker) return;
    const { points } = await ask("/rates");
    const series = (name) => points.map((point) => [point.at_ms, point[name]]);
    rates.replaceChildren(plot("Records in per second, last hour", series("messages_in"), number),
      plot("Bytes in per second", series("bytes_in"), bytes), plot("Bytes out per second", series("bytes_out"), bytes),
      plot("Lag of all groups", points.map((p) => [p.at_ms, Object.values(p.lags).reduce((a, b) => a + b, 0)]), number));
  };
  await fill();
  repeat(fill, 5);
}

async function topics(place) {
  const search = h("input", { type: "search", placeholder: "part of a name" }), internal = h("input", { type: "checkbox" });
  const load = async () => (await ask(`/topics?search=${seg(search.value)}&internal=${internal.checked}`)).topics;
  const list = table("Topics", [
    { name: "Topic", key: (t) => t.name, show: (t) => topicLink(t.name) },
    { name: "Partitions", number: true, key: (t) => t.partitions, show: (t) => number(t.partitions) },
    { name: "Replicas", number: true, key: (t) => t.replication_factor, show: (t) => t.replication_factor },
    { name: "Records", number: true, key: (t) => t.records, show: (t) => number(t.records) },
    { name: "Size", number: true, key: (t) => t.bytes, show: (t) => bytes(t.bytes) },
    { name: "State", show: (t) => t.without_leader ? h("span", { class: "bad" }, `${t.without_leader} without leader`) : t.under_replicated ? h("span", { class: "warn" }, `${t.under_replicated} under-replicated`) : h("span", { class: "good" }, "ok") },
  ], await load());
  const refresh = async () => list.update(await load());
  search.addEventListener("input", refresh); internal.addEventListener("change", refresh);
  place.append(h("h1", null, "Topics"), h("div", { class: "bar" }, field("Search", search), field("Kafka's own too", internal, true)), list);
  if (canWrite()) {
    const name = h("input", { required: true, maxlength: 249 }), count = h("input", { type: "number", min: 1, value: 1 });
    place.append(h("h2", null, "New topic"), h("form", { onsubmit: async (event) => {
      event.preventDefault();
      try { await ask("/topics", "POST", { name: name.value, partitions: Number(count.value) }); location.hash = "#/topics/" + seg(name.value); } catch (error) { toast(error.message); }
    } }, field("Name", name), field("Partitions", count), h("button", { class: "main" }, "Create")));
  }
  repeat(refresh, 5);
}

function tabs(base, names, current) {
  return h("div", { class: "tabs", role: "navigation", "aria-label": "Parts" }, names.map(([path, text]) => {
    const element = link(path ? `${base}/${path}` : base, text);
    if (path === current) element.setAttribute("aria-current", "page");
    return element;
  }));
}

async function topic(place, name, part = "", ...rest) {
  const base = "topics/" + seg(name);
  place.append(h("h1", null, "Topic ", name), tabs(base, [["", "Messages"], ...(canWrite() ? [["produce", "Produce"]] : []), ["partitions", "Partitions"], ["config", "Settings"], ["groups", "Groups"]], part === "record" ? "" : part));
  const info = await ask("/topics/" + seg(name));
  if (part === "") return messagesPage(place, name, info);
  if (part === "produce") return producePage(place, name, info);
  if (part === "record") return recordPage(place, name, ...rest);
  if (part === "config") return configs(place, "topic", name);
  if (part === "partitions") return partitions(place, name);
  const { groups } = await ask(`/topics/${seg(name)}/groups`);
  place.append(groupTable(groups));
}

async function partitions(place, name) {
  const load = async () => (await ask(`/topics/${seg(name)}/partitions`)).partitions;
  const list = table("Partitions", [
    { name: "Partition", number: true, show: (p) => p.partition }, { name: "Leader", number: true, show: (p) => (p.leader < 0 ? "none" : p.leader) },
    { name: "Epoch", number: true, show: (p) => p.leader_epoch }, { name: "Replicas", show: (p) => p.replicas.join(", ") },
    { name: "In sync", show: (p) => h("span", { class: p.isr.length < p.replicas.length ? "warn" : "" }, p.isr.join(", ")) },
    { name: "First offset", number: true, key: (p) => p.start, show: (p) => number(p.start) },
    { name: "Last stable", number: true, key: (p) => p.last_stable_offset, show: (p) => h("span", { class: p.last_stable_offset < p.high_watermark ? "warn" : "" }, number(p.last_stable_offset)) },
    { name: "High watermark", number: true, key: (p) => p.high_watermark, show: (p) => number(p.high_watermark) },
    { name: "Size", number: true, key: (p) => p.bytes, show: (p) => bytes(p.bytes) },
  ], await load());
  place.append(list);
  if (canWrite()) place.append(h("div", { class: "bar" },
    button("Let the first replica lead", () => ask(`/topics/${seg(name)}/elect`, "POST")),
    button("Delete all records", async () => { if (confirm(`Delete all records of ${name}?`)) { await ask(`/topics/${seg(name)}/empty`, "POST"); list.update(await load()); } }, "bad"),
    button("Delete the topic", async () => { if (confirm(`Delete the topic ${name}?`)) { await ask(`/topics/${seg(name)}`, "DELETE"); location.hash = "#/topics"; } }, "bad")));
  repeat(async () => list.update(await load()), 2);
}

async function configs(place, type, name) {
  const path = `/configs/${type}/${seg(name)}`, only = h("input", { type: "checkbox" });
  let all = (await ask(path)).configs;
  const shown = () => all.filter((config) => !only.checked || !config.is_default);
  const list = table("Settings", [
    { name: "Setting", key: (c) => c.name, show: (c) => h("span", { title: c.documentation || "" }, c.name) },
    { name: "Value", class: "cut", key: (c) => c.value, show: (c) => (c.sensitive ? "(hidden)" : c.value ?? "–") },
    { name: "From", show: (c) => c.source },
    { name: "", show: (c) => canWrite() && !c.read_only && button(`Change ${c.name}`, async () => {
      const value = prompt(`${c.name}\n\n${c.documentation || ""}\n\nEmpty: back to the default.`, c.value ?? "");
      if (value === null) return;
      await ask(path, "POST", value === "" ? { delete: [c.name] } : { set: { [c.name]: value } });
      all = (await ask(path)).configs; list.update(shown());
    }) },
  ], all);
  only.addEventListener("change", () => list.update(shown()));
  place.append(h("div", { class: "bar" }, field("Only what differs from the default", only, true)), list);
}

const groupTable = (groups) => table("Groups", [
  { name: "Group", key: (g) => g.group_id, show: (g) => groupLink(g.group_id) }, { name: "Type", show: (g) => g.type },
  { name: "State", show: (g) => h("span", { class: g.state === "Stable" ? "good" : g.state === "Empty" ? "quiet" : "warn" }, g.state) },
  { name: "Protocol", show: (g) => g.protocol }, { name: "Coordinator", number: true, show: (g) => g.coordinator },
  { name: "Topics", show: (g) => (g.topics || []).map((t, i) => [i ? ", " : "", topicLink(t)]) },
  { name: "Lag", number: true, key: (g) => g.lag, show: (g) => number(g.lag) },
], groups);

async function groups(place) {
  const load = async () => (await ask("/groups?lag=true")).groups;
  const list = groupTable(await load());
  place.append(h("h1", null, "Groups"), list);
  repeat(async () => list.update(await load()), 3);
}

async function group(place, name) {
  const path = "/groups/" + seg(name), about = h("p"), chart = h("div");
  let found = await ask(path);
  const members = table("Members", [
    { name: "Member", show: (m) => m.member_id }, { name: "Client", show: (m) => m.client_id }, { name: "Host", show: (m) => m.host },
    { name: "Instance", show: (m) => m.instance_id || "–" },
    { name: "Assigned", show: (m) => m.assignment.map((a) => `${a.topic}: ${a.partitions.join(", ")}`).join("; ") || "nothing" },
    { name: "", show: (m) => canWrite() && button("Remove", async () => { if (confirm(`Remove ${m.member_id}?`)) { await ask(`${path}/members/${seg(m.member_id)}`, "DELETE"); await fill(); } }, "bad") },
  ], found.members);
  const offsets = table("Offsets", [
    { name: "Topic", key: (o) => o.topic, show: (o) => topicLink(o.topic) }, { name: "Partition", number: true, show: (o) => o.partition },
    { name: "Committed", number: true, key: (o) => o.committed, show: (o) => o.committed == null ? "none" : link(`topics/${seg(o.topic)}/record/${o.partition}/${o.committed}`, number(o.committed)) },
    { name: "End", number: true, key: (o) => o.end, show: (o) => number(o.end) },
    { name: "Lag", number: true, key: (o) => o.lag, show: (o) => number(o.lag) },
    { name: "Oldest unread is", number: true, key: (o) => o.lag_seconds, show: (o) => duration(o.lag_seconds) },
    { name: "Member", show: (o) => o.member || h("span", { class: "warn" }, "nobody reads it") },
  ], found.offsets);
  const fill = async () => {
    found = await ask(path);
    about.replaceChildren(h("span", { class: found.state === "Stable" ? "good" : "warn" }, found.state), ` · ${found.type} · ${found.assignor || "no assignor"} · coordinator ${found.coordinator} · lag ${number(found.lag)}`);
    members.update(found.members); offsets.update(found.offsets);
    if (facts.is_broker) { const { points } = await ask("/rates"); chart.replaceChildren(plot("Lag, last hour", points.filter((p) => name in p.lags).map((p) => [p.at_ms, p.lags[name]]), number)); }
  };
  place.append(h("h1", null, "Group ", name), about, chart, h("h2", null, "Members"), members, h("h2", null, "Offsets"), offsets);
  if (canWrite()) place.append(reset(path, () => found, fill), h("div", { class: "bar" }, button("Delete the group", async () => { if (confirm(`Delete group ${name}?`)) { await ask(path, "DELETE"); location.hash = "#/groups"; } }, "bad")));
  await fill();
  repeat(fill, 3);
}

function reset(path, found, done) {
  const kind = h("select", null, ["earliest", "latest", "time", "offset", "shift"].map((k) => h("option", { value: k }, k)));
  const text = h("input", { placeholder: "2026-01-31T12:00, an offset, or -100" }), result = h("div", { role: "status" });
  const body = (dry) => ({ to: ["time", "offset", "shift"].includes(kind.value) ? `${kind.value}:${text.value}` : kind.value, dry_run: dry });
  const show = (plan) => result.replaceChildren(table("Plan", [
    { name: "Topic", show: (c) => c.topic }, { name: "Partition", number: true, show: (c) => c.partition }, { name: "Now", number: true, show: (c) => number(c.before) },
    { name: "Then", number: true, show: (c) => number(c.after) }, { name: "Lag then", number: true, show: (c) => number(c.lag) },
  ], plan.changes), h("p", { class: plan.dry_run ? "quiet" : "good" }, plan.dry_run ? "Nothing has changed yet." : "Done."));
  const apply = button("Reset", async () => { show(await ask(path + "/reset", "POST", body(false))); apply.disabled = true; await done(); }, "main");
  return h("section", null, h("h2", null, "Reset offsets"), h("p", { class: "quiet" }, "First look at the plan; a group with members cannot be reset, they would commit over it."),
    h("div", { class: "bar" }, field("To", kind), field("Which", text), button("Show the plan", async () => { show(await ask(path + "/reset", "POST", body(true))); }), apply), result);
}

async function transactions(place) {
  const open = h("input", { type: "checkbox" });
  const load = async () => (await ask(`/transactions?open=${open.checked}`)).transactions;
  const list = table("Transactions", [
    { name: "Transactional id", show: (t) => t.transactional_id },
    { name: "State", show: (t) => h("span", { class: t.state === "Ongoing" ? "warn" : "" }, t.state) },
    { name: "Open for", number: true, key: (t) => t.started_ms && -t.started_ms, show: (t) => (t.started_ms ? duration((Date.now() - t.started_ms) / 1000) : "–") },
    { name: "Timeout", number: true, key: (t) => t.timeout_ms, show: (t) => duration(t.timeout_ms / 1000) },
    { name: "Producer", number: true, show: (t) => `${t.producer_id} epoch ${t.producer_epoch}` },
    { name: "Partitions", show: (t) => t.partitions.map((p) => `${p.topic}: ${p.partitions.join(", ")}`).join("; ") },
    { name: "", show: (t) => canWrite() && t.state === "Ongoing" && button("Abort", async () => { if (confirm(`Abort ${t.transactional_id}? Its producer is fenced.`)) { await ask(`/transactions/${seg(t.transactional_id)}/abort`, "POST"); list.update(await load()); } }, "bad") },
  ], await load());
  open.addEventListener("change", async () => list.update(await load()));
  place.append(h("h1", null, "Transactions"), h("div", { class: "bar" }, field("Only open ones", open, true)), list);
  repeat(async () => list.update(await load()), 3);
}

async function clients(place) {
  const load = async () => (await ask("/clients")).clients;
  const list = table("Clients", [
    { name: "Client id", show: (c) => c.client_id || "–" }, { name: "Software", show: (c) => (c.software ? `${c.software} ${c.version}` : "–") },
    { name: "From", show: (c) => c.peer }, { name: "Listener", show: (c) => c.listener }, { name: "User", show: (c) => c.principal },
    { name: "Waits in", show: (c) => c.waits_in || "–" },
    { name: "Lately", show: (c) => Object.entries(c.recent).map(([api, n]) => `${api} ${n}`).join(", ") },
    { name: "", show: (c) => canWrite() && button("Disconnect", async () => { await ask(`/clients/${c.connection_id}`, "DELETE"); list.update(await load()); }, "bad") },
  ], await load());
  const pushed = h("section"), showPushed = async () => {
    const found = (await ask("/client-metrics")).clients;
    pushed.replaceChildren(h("h2", null, "Their own metrics (KIP-714)"), ...found.length ? found.map((c) => h("details", null, h("summary", null, `${c.instance_id}: ${c.pushes} pushes, ${bytes(c.pushed_bytes)}`),
      table("Metrics", [{ name: "Metric", show: (m) => m[0] }, { name: "Value", number: true, key: (m) => m[1], show: (m) => number(m[1]) }], Object.entries(c.metrics)))) : [h("p", { class: "quiet" }, "No client pushes any: add a subscription with kafka-client-metrics.")]);
  };
  place.append(h("h1", null, "Clients"), list, pushed);
  await showPushed();
  repeat(async () => list.update(await load()), 2);
}

async function live(place) {
  const api = h("input", { placeholder: "Produce" }), client = h("input", { placeholder: "part of a client id" }), topicName = h("input", { placeholder: "topic" });
  const failed = h("input", { type: "checkbox" }), detail = h("section", { "aria-live": "polite" }), waits = h("div");
  let rows = [], source = null, paused = false;
  const list = table("Requests", [
    { name: "Time", show: (r) => moment(r.at_ms).slice(11) }, { name: "API", show: (r) => `${r.api} v${r.version}` }, { name: "Client", show: (r) => r.client_id },
    { name: "Topics", show: (r) => r.topics.join(", ") }, { name: "Took ms", number: true, key: (r) => r.total_ms, show: (r) => r.total_ms },
    { name: "Waited ms", number: true, key: (r) => r.wait_ms, show: (r) => r.wait_ms }, { name: "Out", number: true, key: (r) => r.response_bytes, show: (r) => bytes(r.response_bytes) },
    { name: "Errors", show: (r) => h("span", { class: "bad" }, r.errors.join(", ")) },
    { name: "", show: (r) => button(`Show ${r.id}`, async () => { const whole = await ask(`/requests/${r.id}`); detail.replaceChildren(h("h2", null, `${whole.api} v${whole.version}, request`), h("pre", null, JSON.stringify(whole.request, null, 2)), h("h2", null, "Answer"), h("pre", null, JSON.stringify(whole.response, null, 2))); detail.scrollIntoView(); }) },
  ], rows, { page: 100 });
  const start = async () => {
    if (source) source.close();
    const query = `api=${seg(api.value)}&client_id=${seg(client.value)}&topic=${seg(topicName.value)}&failed=${failed.checked}`;
    rows = (await ask(`/requests?limit=100&${query}`)).requests; list.update(rows);
    source = new EventSource(`/api/v1/requests/follow?${query}`);
    source.addEventListener("request", (event) => { if (!paused) { rows = [JSON.parse(event.data), ...rows].slice(0, 1000); later(); } });
    source.onerror = () => state(false); source.onopen = () => state(true);
  };
  let planned = false;
  const later = () => { if (!planned) { planned = true; setTimeout(() => { planned = false; list.update(rows); }, 200); } };
  const pause = button("Pause", () => { paused = !paused; pause.textContent = paused ? "Go on" : "Pause"; });
  const showWaits = async () => { const { waiting } = await ask("/waiting"); waits.replaceChildren(table("Who waits", [{ name: "Client", show: (w) => w.client_id }, { name: "From", show: (w) => w.peer }, { name: "API", show: (w) => w.api }, { name: "Waits for", show: (w) => w.waits_for }], waiting)); };
  place.append(h("h1", null, "Live requests"), h("form", { onsubmit: (event) => { event.preventDefault(); start().catch((error) => toast(error.message)); } },
    field("API", api), field("Client", client), field("Topic", topicName), field("Only failed", failed, true), h("button", { class: "main" }, "Filter"), pause), list, detail, h("h2", null, "Who waits for what, now"), waits);
  onleave(() => source && source.close());
  await Promise.all([start(), showWaits()]);
  repeat(showWaits, 2);
}

const ROUTES = { overview, topics: (p, name, ...rest) => (name ? topic(p, name, ...rest) : topics(p)), groups: (p, name) => (name ? group(p, name) : groups(p)), transactions, clients, live, faults: faultsPage, schemas: schemasPage, security: securityPage, brokers: (p, id) => { p.append(h("h1", null, `Broker ${id}`)); return configs(p, "broker", id); } };

let turn = 0;
async function route() {
  leave(); leave = () => {};
  const mine = ++turn, parts = (location.hash.replace(/^#\/?/, "") || "overview").split("?")[0].split("/").map(decodeURIComponent);
  const place = h("div");
  for (const item of document.querySelectorAll("#nav a")) item.getAttribute("href") === "#/" + parts[0] ? item.setAttribute("aria-current", "page") : item.removeAttribute("aria-current");
  try {
    if (!facts.brokers) await begin();
    await (ROUTES[parts[0]] || ((p) => p.append(h("h1", null, "There is no such page"))))(place, ...parts.slice(1));
  } catch (error) {
    place.append(h("p", { class: "bad", role: "alert" }, error.message));
    if (!error.status) setTimeout(() => mine === turn && route(), 1500);
  }
  if (mine !== turn) return;
  main.replaceChildren(place);
  document.title = `${place.querySelector("h1")?.textContent || "kafkalite"} – kafkalite`;
  main.dataset.page = location.hash || "#/overview";
}

async function begin() {
  facts = await ask("/cluster");
  document.getElementById("nav").replaceChildren(...PAGES.filter(([, , need]) => !need || facts[need]).map(([path, text]) => link(path, text)));
  for (const item of document.querySelectorAll("#nav a")) if (item.getAttribute("href") === "#/" + (location.hash.slice(2).split("/")[0] || "overview")) item.setAttribute("aria-current", "page");
}

window.addEventListener("hashchange", () => { route().then(() => main.focus()); });
route();
