// Records of a topic: read, search with progress and stop, follow, one by its place, write.
import { h, ask, state, toast, seg, number, moment, table, field, button } from "./dom.js";
import { canWrite, onleave } from "./console.js";

const text = (part) => part.type === "null" ? "null" : part.type === "json" ? part.text || JSON.stringify(part.value) : String(typeof part.value === "string" ? part.value : JSON.stringify(part.value));
const place = (topic, m) => `#/topics/${seg(topic)}/record/${m.partition}/${m.offset}`;

export async function messagesPage(main, topic, info) {
  const query = new URLSearchParams(location.hash.split("?")[1] || "");
  const from = h("select", null, [["newest", "newest first"], ["earliest", "the beginning"], ["offset", "an offset"], ["time", "a time (UTC)"]].map(([value, name]) => h("option", { value }, name)));
  from.value = query.get("from") || "newest";
  const where = h("input", { placeholder: "offset, or 2026-01-31T12:00", value: query.get("where") || "" });
  const partition = h("select", null, h("option", { value: "" }, "all"), Array.from({ length: info.partitions }, (_, i) => h("option", { value: i }, i)));
  partition.value = query.get("partition") || "";
  const filter = h("input", { type: "search", size: 34, placeholder: "word  key:42  $.total > 100  -header:test", value: query.get("filter") || "" });
  const committed = h("input", { type: "checkbox" });
  const bar = h("progress", { max: 1, value: 0, "aria-label": "Searched" }), words = h("span", { role: "status" });
  let rows = [], cursor = null, stopped = false, source = null, busy = false;

  const list = table("Messages", [
    { name: "Offset", number: true, key: (m) => m.offset, show: (m) => h("a", { href: place(topic, m) }, `${m.partition}:${m.offset}`) },
    { name: "Time (UTC)", key: (m) => m.timestamp, show: (m) => moment(m.timestamp) },
    { name: "Key", class: "cut", show: (m) => text(m.key) }, { name: "Value", class: "cut", show: (m) => text(m.value) },
    { name: "Headers", class: "cut", show: (m) => m.headers.map((header) => `${header.name}=${text(header)}`).join(" ") },
  ], rows, { page: 100 });

  const path = () => {
    const kind = ["offset", "time"].includes(from.value) ? `${from.value}:${where.value}` : from.value;
    return `/topics/${seg(topic)}/messages?limit=100&from=${seg(kind)}&partition=${partition.value}&filter=${seg(filter.value)}&committed=${committed.checked}`;
  };
  // Steps until enough was found, all was seen, or somebody stops it.
  async function go(wanted) {
    if (busy) return;
    busy = true; stopped = false;
    stop.disabled = false; more.disabled = true;
    try {
      let answer;
      do {
        answer = await ask(path() + (cursor ? `&cursor=${seg(JSON.stringify(cursor))}` : ""));
        cursor = answer.cursor;
        rows = [...rows, ...answer.messages];
        list.update(rows);
        bar.max = Math.max(1, answer.of); bar.value = answer.done ? bar.max : answer.passed;
        words.textContent = `${number(answer.passed)} of ${number(answer.of)} searched, ${number(rows.length)} found${answer.done ? ", all seen" : ""}${answer.skipped.length ? `; could not read ${answer.skipped[0]}` : ""}`;
      } while (!answer.done && rows.length < wanted && !stopped);
      more.disabled = answer.done;
    } finally { busy = false; stop.disabled = true; }
  }
  const search = () => {
    rows = []; cursor = null; list.update(rows);
    history.replaceState(null, "", `#/topics/${seg(topic)}?${new URLSearchParams({ from: from.value, where: where.value, partition: partition.value, filter: filter.value })}`);
    return go(100);
  };
  const stop = button("Stop", () => { stopped = true; });
  const more = button("More", () => go(rows.length + 100));
  const follow = button("Follow", () => {
    if (source) { source.close(); source = null; follow.textContent = "Follow"; return; }
    source = new EventSource(`/api/v1/topics/${seg(topic)}/messages/follow?partition=${partition.value}&filter=${seg(filter.value)}`);
    source.addEventListener("messages", (event) => { rows = [...JSON.parse(event.data).messages.reverse(), ...rows].slice(0, 2000); list.update(rows); words.textContent = `following, ${number(rows.length)} shown`; });
    source.onopen = () => { state(true); words.textContent = "following"; }; source.onerror = () => state(false);
    follow.textContent = "Stop following";
  });
  const save = button("Download JSONL", () => {
    const url = URL.createObjectURL(new Blob(rows.map((row) => JSON.stringify(row) + "\n"), { type: "application/x-ndjson" }));
    h("a", { href: url, download: `${topic}.jsonl` }).click();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
  });
  stop.disabled = true;
  onleave(() => { stopped = true; if (source) source.close(); });
  main.append(h("form", { onsubmit: (event) => { event.preventDefault(); stopped = true; search().catch((error) => toast(error.message)); } },
    field("From", from), field("Which", where), field("Partition", partition), field("Filter", filter), field("Only committed", committed, true),
    h("button", { class: "main" }, "Search"), stop, more, follow, save), h("div", { class: "bar" }, bar, words), list);
  search().catch((error) => toast(error.message));
}

export async function recordPage(main, topic, partition, offset) {
  const record = await ask(`/topics/${seg(topic)}/messages/${seg(partition)}/${seg(offset)}`);
  const pretty = (part) => part.type === "json" || part.type === "schema" && part.value !== null && typeof part.value === "object" ? JSON.stringify(part.value, null, 2) : text(part);
  const note = (part) => `${part.type}${part.schema_id != null ? ` ${part.schema_id} (${part.inner})` : ""}, ${number(part.size)} bytes${part.cut ? ", cut" : ""}${part.problem ? `: ${part.problem}` : ""}${part.integer != null ? `, as integer ${part.integer}` : ""}${part.uuid ? `, as UUID ${part.uuid}` : ""}`;
  const near = (step) => h("a", { href: `#/topics/${seg(topic)}/record/${partition}/${Number(offset) + step}` }, step < 0 ? "← before" : "after →");
  main.append(h("p", null, near(-1), ` partition ${record.partition}, offset ${record.offset}, ${moment(record.timestamp)} UTC `, near(1)),
    h("p", { class: "quiet" }, `leader epoch ${record.leader_epoch}, producer ${record.producer_id}${record.is_transactional ? ", in a transaction" : ""}, compression ${record.compression}`),
    h("h2", null, "Key"), h("p", { class: "quiet" }, note(record.key)), h("pre", null, pretty(record.key)),
    h("h2", null, "Value"), h("p", { class: "quiet" }, note(record.value)), h("pre", { id: "value" }, pretty(record.value)));
  if (record.headers.length) main.append(h("h2", null, "Headers"), table("Headers", [{ name: "Name", show: (x) => x.name }, { name: "Value", show: (x) => text(x) }], record.headers));
  const readers = h("div", { role: "status" });
  main.append(h("div", { class: "bar" }, button("Who has read it?", () => showReaders(readers, topic, record)),
    canWrite() && h("a", { href: `#/topics/${seg(topic)}/produce?p=${partition}&o=${offset}` }, "Use as a template")), readers);
}

const ASKED = 200;  // groups

// Each group that knows the record's partition, and why it has the record or has not.
async function showReaders(place, topic, record) {
  const { partitions } = await ask(`/topics/${seg(topic)}/partitions`);
  const stable = partitions.find((p) => p.partition === record.partition)?.last_stable_offset;
  const { count, groups } = await ask("/groups");
  const rows = [];
  for (const { group_id } of groups.slice(0, ASKED)) {
    const group = await ask(`/groups/${seg(group_id)}`).catch(() => null);  // gone meanwhile
    const at = group?.offsets.find((o) => o.topic === topic && o.partition === record.partition);
    if (at) rows.push({ group, at });
  }
  const who = (o) => (o.member ? `${o.member} reads the partition` : "nobody reads the partition");
  const where = ({ group, at }) => {
    if (at.committed == null) return `It has committed nothing here; ${who(at)}. A new group begins where auto.offset.reset says, by default behind all records.`;
    if (at.committed > record.offset) return `It is past it and goes on at ${number(at.committed)}: reset the group to have it read again.`;
    return `It is not there yet: ${number(record.offset - at.committed)} records before this one; ${who(at)} (${group.state}).`;
  };
  place.replaceChildren(
    stable != null && record.offset >= stable && h("p", { class: "warn" }, "A transaction is open before or at it: who reads with isolation.level=read_committed waits for its end. ", h("a", { href: "#/transactions" }, "Transactions")) || "",
    rows.length ? table("Groups", [{ name: "Group", show: (r) => h("a", { href: `#/groups/${seg(r.group.group_id)}` }, r.group.group_id) }, { name: "This record", show: where }], rows)
      : h("p", null, `No group knows partition ${record.partition} of ${topic}: none has a member for it, and none has committed.`),
    count > ASKED ? h("p", { class: "quiet" }, `The first ${ASKED} of ${number(count)} groups were asked.`) : "");
}

export async function producePage(main, topic, info) {
  const query = new URLSearchParams(location.hash.split("?")[1] || "");
  const key = h("input"), value = h("textarea", { required: false }), headers = h("textarea", { placeholder: "name=value, one on a line" });
  const partition = h("select", null, h("option", { value: "" }, "the key's"), Array.from({ length: info.partitions }, (_, i) => h("option", { value: i }, i)));
  const tombstone = h("input", { type: "checkbox" }), compression = h("select", null, ["none", "gzip", "snappy", "lz4", "zstd"].map((c) => h("option", { value: c }, c)));
  const result = h("p", { role: "status" });
  if (query.has("o")) {
    const record = await ask(`/topics/${seg(topic)}/messages/${query.get("p")}/${query.get("o")}`);
    key.value = record.key.type === "null" ? "" : text(record.key); value.value = record.value.type === "null" ? "" : text(record.value);
    headers.value = record.headers.map((x) => `${x.name}=${text(x)}`).join("\n"); tombstone.checked = record.value.type === "null";
  }
  main.append(h("form", { onsubmit: async (event) => {
    event.preventDefault();
    const body = { key: key.value === "" ? null : key.value, value: tombstone.checked ? null : value.value, compression: compression.value,
      headers: headers.value.split("\n").filter(Boolean).map((line) => { const at = line.indexOf("="); return at < 0 ? { name: line, value: null } : { name: line.slice(0, at), value: line.slice(at + 1) }; }) };
    if (partition.value !== "") body.partition = Number(partition.value);
    try {
      const [written] = (await ask(`/topics/${seg(topic)}/messages`, "POST", body)).written;
      result.replaceChildren("Written: ", h("a", { href: place(topic, written) }, `partition ${written.partition}, offset ${written.offset}`));
    } catch (error) { toast(error.message); }
  } }, field("Key (empty: none)", key), field("Partition", partition), field("Compression", compression), field("Tombstone", tombstone, true), field("Value", value), field("Headers", headers), h("button", { class: "main" }, "Produce")), result);
}
