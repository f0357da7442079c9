// Faults and the clock, schemas, and who may do what.
import { h, ask, toast, seg, number, moment, table, field, button, duration } from "./dom.js";
import { repeat, canWrite } from "./console.js";

const TEMPLATES = {
  "Three Produce requests are refused": { api: "Produce", error: "NOT_ENOUGH_REPLICAS", times: 3 },
  "The next commit is applied, its answer lost": { api: "OffsetCommit", lose_reply: true, once: true },
  "Every Fetch waits two seconds": { api: "Fetch", delay_s: 2 },
  "One Heartbeat in ten is answered with a rebalance": { api: "Heartbeat", error: "REBALANCE_IN_PROGRESS", probability: 0.1 },
  "The connection breaks at the next Produce": { api: "Produce", disconnect: true, once: true },
};

export async function faultsPage(place) {
  const load = async () => (await ask("/control/faults"));
  let found = await load();
  const list = table("Fault rules", [
    { name: "Id", show: (r) => r.id }, { name: "Rule", show: (r) => r.rule },
    { name: "Matched", number: true, key: (r) => r.matched, show: (r) => number(r.matched) },
    { name: "Fired", number: true, key: (r) => r.hits, show: (r) => number(r.hits) },
    { name: "State", show: (r) => (r.spent ? h("span", { class: "quiet" }, "spent") : h("span", { class: "warn" }, "in force")) },
    { name: "", show: (r) => button(`Remove ${r.id}`, async () => { await ask(`/control/faults/${seg(r.id)}`, "DELETE"); await fill(); }, "bad") },
  ], found.faults);
  const disks = h("section");
  const fill = async () => {
    found = await load(); list.update(found.faults);
    disks.replaceChildren(...(found.disk_faults.length ? [h("h2", null, "Faults of the disk"), h("pre", null, JSON.stringify(found.disk_faults, null, 2))] : []));
  };
  const text = h("textarea", { rows: 4, spellcheck: false, value: JSON.stringify(Object.values(TEMPLATES)[0]) });
  const templates = h("select", { onchange: () => { text.value = JSON.stringify(TEMPLATES[templates.value]); } }, Object.keys(TEMPLATES).map((name) => h("option", { value: name }, name)));
  place.append(h("h1", null, "Faults and clock"), h("p", { class: "quiet" }, "Rules that make this broker fail requests on purpose, to see what a client does then."), list, disks,
    h("form", { onsubmit: async (event) => {
      event.preventDefault();
      try { await ask("/control/faults", "POST", JSON.parse(text.value)); await fill(); } catch (error) { toast(error.message); }
    } }, field("For example", templates), field("Rule", text), h("button", { class: "main" }, "Add the rule"),
      button("Remove all rules", async () => { await ask("/control/faults", "DELETE"); await fill(); }, "bad")));
  await fill();
  await clock(place);
  repeat(fill, 2);
}

async function clock(place) {
  const now = h("p"), by = h("input", { type: "number", value: 60, min: 0, step: "any" });
  const show = (c) => now.replaceChildren(`The broker's clock says ${moment(c.now_ms)}: `, Math.abs(c.ahead_s) > 0.5 ? h("span", { class: "warn" }, `${duration(Math.abs(c.ahead_s))} ${c.ahead_s > 0 ? "ahead" : "behind"}`) : "the real time", c.frozen ? ", and stands still" : c.rate !== 1 ? `, and goes ${c.rate} times as fast` : "");
  let first;
  try { first = await ask("/control/clock"); } catch { return; }
  const change = async (said) => show(await ask("/control/clock", "POST", said));
  show(first);
  place.append(h("h2", null, "Clock"), now, h("div", { class: "bar" }, field("Seconds", by),
    button("Go forward", () => change({ advance_s: Number(by.value) })), button("Stand still", () => change({ freeze: true })),
    button("Go on", () => change({ resume: true })), button("Real time", () => change({ reset: true }))));
}

export async function securityPage(place) {
  place.append(h("h1", null, "Security"));
  const [users, acls] = await Promise.all([ask("/users").catch((error) => ({ users: [], error: error.message })), ask("/acls")]);
  place.append(h("h2", null, "Users (SCRAM)"), users.error ? h("p", { class: "quiet" }, users.error) : table("Users", [
    { name: "User", key: (u) => u.name, show: (u) => u.name },
    { name: "Logs in by", show: (u) => u.credentials.map((c) => `${c.mechanism} (${number(c.iterations)} iterations)`).join(", ") },
  ], users.users), h("h2", null, "Who may do what"));
  if (!acls.authorizer) return place.append(h("p", null, "There is no authorizer: everybody may do everything (authorizer.class.name)."));
  place.append(table("Access control list", [
    { name: "Resource", key: (a) => a.resource, show: (a) => `${a.resource_type.toLowerCase()} ${a.resource}${a.pattern_type === "PREFIXED" ? "…" : ""}` },
    { name: "Principal", key: (a) => a.principal, show: (a) => a.principal }, { name: "From", show: (a) => a.host },
    { name: "Operation", key: (a) => a.operation, show: (a) => a.operation },
    { name: "", show: (a) => h("span", { class: a.permission === "DENY" ? "bad" : "good" }, a.permission.toLowerCase()) },
  ], acls.acls), h("p", { class: "quiet" }, "Changed by kafkalite acls and kafkalite users, or Kafka's own tools."));
}

async function registry(path, method = "GET", body) {
  const options = { method, headers: {} };
  if (method !== "GET") { options.headers["Content-Type"] = "application/json"; options.body = JSON.stringify(body); }
  const answer = await fetch("/schema-registry" + path, options), value = await answer.json();
  if (!answer.ok) throw Object.assign(new Error(value.message), { status: answer.status });
  return value;
}

const pretty = (found) => { try { return JSON.stringify(JSON.parse(found.schema), null, 2); } catch { return found.schema; } };

// Lines of `after`, and those of `before` that it lacks, each with a sign.
function difference(before, after) {
  const a = before.split("\n"), b = after.split("\n");
  const sizes = Array.from({ length: a.length + 1 }, () => new Uint32Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--) for (let j = b.length - 1; j >= 0; j--) sizes[i][j] = a[i] === b[j] ? sizes[i + 1][j + 1] + 1 : Math.max(sizes[i + 1][j], sizes[i][j + 1]);
  const lines = [];
  for (let i = 0, j = 0; i < a.length || j < b.length;) {
    if (i < a.length && j < b.length && a[i] === b[j]) { lines.push(h("span", null, `  ${a[i]}\n`)); i++; j++; }
    else if (j < b.length && (i === a.length || sizes[i][j + 1] > sizes[i + 1][j])) lines.push(h("span", { class: "good" }, `+ ${b[j++]}\n`));
    else lines.push(h("span", { class: "bad" }, `- ${a[i++]}\n`));
  }
  return lines;
}

export async function schemasPage(place, subject, version) {
  if (!subject) {
    const subjects = await registry("/subjects");
    place.append(h("h1", null, "Schemas"), table("Subjects", [{ name: "Subject", key: (s) => s, show: (s) => h("a", { href: `#/schemas/${seg(s)}` }, s) }], subjects));
    return subjects.length || place.append(h("p", { class: "quiet" }, `Serializers register here: schema.registry.url=${location.origin}/schema-registry`));
  }
  const path = `/subjects/${seg(subject)}/versions`, versions = await registry(path);
  const found = await registry(`${path}/${version || "latest"}`), config = await registry(`/config/${seg(subject)}?defaultToGlobal=true`);
  const earlier = versions.filter((each) => each < found.version).pop();
  place.append(h("h1", null, "Schemas of ", subject), h("p", null, `Version ${found.version} · id ${found.id} · ${found.schemaType || "AVRO"} · compatibility ${config.compatibilityLevel}`),
    h("div", { class: "tabs", role: "navigation", "aria-label": "Versions" }, versions.map((each) => h("a", { href: `#/schemas/${seg(subject)}/${each}`, "aria-current": each === found.version && "page" }, `v${each}`))),
    h("pre", null, pretty(found)));
  if (earlier) place.append(h("h2", null, `What changed since version ${earlier}`), h("pre", null, difference(pretty(await registry(`${path}/${earlier}`)), pretty(found))));
  if (!canWrite()) return;
  const text = h("textarea", { rows: 8, spellcheck: false, value: pretty(found) }), result = h("p", { role: "status" });
  const body = () => ({ schema: text.value, ...(found.schemaType ? { schemaType: found.schemaType } : {}) });
  place.append(h("h2", null, "Next version"), field("Schema", text), h("div", { class: "bar" },
    button("Check", async () => {
      const answer = await registry(`/compatibility${path}/latest?verbose=true`, "POST", body());
      result.className = answer.is_compatible ? "good" : "bad";
      result.textContent = answer.is_compatible ? "It is compatible." : `It is not compatible. ${(answer.messages || []).join(" ")}`;
    }),
    button("Register", async () => { await registry(path, "POST", body()); location.hash = `#/schemas/${seg(subject)}`; dispatchEvent(new HashChangeEvent("hashchange")); }, "main")), result);
}
