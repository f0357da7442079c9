// Elements, requests and numbers. What comes from records only ever becomes a text node.
export function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === false || value == null) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(9)) {
    if (child == null || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return element;
}

export async function ask(path, method = "GET", body) {
  const options = { method, headers: {} };
  if (method !== "GET") {
    options.headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body || {});
  }
  let answer;
  try {
    answer = await fetch("/api/v1" + path, options);
  } catch {
    state(false);
    throw new Error("the broker does not answer");
  }
  state(true);
  const value = await answer.json();
  if (!answer.ok) throw Object.assign(new Error(value.error.message), { status: answer.status });
  return value;
}

export function state(up) {
  const place = document.getElementById("state");
  place.textContent = up ? "connected" : "not connected, trying again";
  place.className = up ? "good" : "bad";
}

export function toast(message) {
  const place = document.getElementById("toast");
  place.textContent = message;
  clearTimeout(toast.timer);
  toast.timer = setTimeout(() => (place.textContent = ""), 8000);
}

export const seg = encodeURIComponent;
export const number = (value) => (value == null ? "–" : Number(value).toLocaleString("en"));
export function bytes(value) {
  if (value == null) return "–";
  let unit = 0;
  while (value >= 1024 && unit < 4) { value /= 1024; unit++; }
  return `${unit ? value.toFixed(1) : value} ${["B", "KiB", "MiB", "GiB", "TiB"][unit]}`;
}
export const moment = (ms) => (ms == null || ms < 0 ? "–" : new Date(ms).toISOString().replace("T", " ").replace("Z", ""));
export function duration(seconds) {
  if (seconds == null) return "–";
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  return seconds < 172800 ? `${(seconds / 3600).toFixed(1)} h` : `${Math.floor(seconds / 86400)} d`;
}

// A table that sorts by its columns and shows so many rows at a time.
export function table(label, columns, rows, { onrow, page = 200 } = {}) {
  let order = null, down = false, shown = page;
  const body = h("tbody"), more = h("button", { type: "button", onclick: () => { shown += 1000; fill(); } });
  const heads = columns.map((column) => !column.name ? h("td", { class: "quiet" }) : h("th", { class: column.number && "number", scope: "col" },
    h("button", { type: "button", title: "Sort", onclick: () => { down = order === column ? !down : !!column.number; order = column; fill(); } }, column.name)));
  const key = (row, column) => { const value = column.key ? column.key(row) : column.show(row); return value == null ? (column.number ? -Infinity : "") : value; };
  function fill() {
    let list = rows;
    if (order) {
      list = [...rows].sort((a, b) => { const x = key(a, order), y = key(b, order); return x < y ? -1 : x > y ? 1 : 0; });
      if (down) list.reverse();
    }
    heads.forEach((head, i) => columns[i] === order ? head.setAttribute("aria-sort", down ? "descending" : "ascending") : head.removeAttribute("aria-sort"));
    body.replaceChildren(...list.slice(0, shown).map((row) => {
      const line = h("tr", null, columns.map((column) => h("td", { class: column.number ? "number" : column.class }, column.show(row))));
      if (onrow) onrow(line, row);
      return line;
    }));
    if (!list.length) body.append(h("tr", null, h("td", { colspan: columns.length, class: "quiet" }, "Nothing here.")));
    more.hidden = shown >= list.length;
    more.textContent = `Show more of ${list.length}`;
  }
  fill();
  const element = h("div", null, h("div", { class: "scroll" }, h("table", { "aria-label": label }, h("thead", null, h("tr", null, heads)), body)), more);
  element.update = (next) => { rows = next; fill(); };
  return element;
}

export function field(label, input, inline) { return h("label", { class: inline ? "inline" : null }, inline ? [input, label] : [label, input]); }
export function button(text, action, kind) {
  const element = h("button", { type: "button", class: kind, onclick: async () => {
    element.disabled = true;
    try { await action(); } catch (error) { toast(error.message); } finally { element.disabled = false; }
  } }, text);
  return element;
}

// One line over time, with its last value in words for those who do not see it.
export function plot(label, points, show) {
  const values = points.map((point) => point[1]), top = Math.max(...values, 1e-9);
  const path = values.map((value, i) => `${i ? "L" : "M"}${(i / Math.max(1, values.length - 1)) * 600},${98 - (value / top) * 94}`).join("");
  const last = values.length ? show(values[values.length - 1]) : "no samples yet";
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 600 100"); svg.setAttribute("preserveAspectRatio", "none"); svg.setAttribute("class", "plot");
  svg.setAttribute("role", "img"); svg.setAttribute("aria-label", `${label}: now ${last}, at most ${show(values.length ? Math.max(...values) : 0)}`);
  const line = document.createElementNS("http://www.w3.org/2000/svg", "path");
  line.setAttribute("d", path || "M0,98"); svg.append(line);
  return h("div", { class: "card" }, h("span", null, label), h("b", null, last), svg);
}
