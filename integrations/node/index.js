"use strict";

const { spawn } = require("node:child_process");
const { accessSync, constants } = require("node:fs");
const path = require("node:path");
const { setTimeout: sleep } = require("node:timers/promises");

const READY = /^kafkalite ready: bootstrap=(\S+) .*?http=(\S+) /m;
const START_TIMEOUT_MS = 60_000;
const TIMEOUT_MS = 10_000;
const OUTPUT_MAX = 16_384;

/** The broker refused something, or could not be started; the message says why. */
class KafkaliteError extends Error {
  name = "KafkaliteError";
}

/** The HTTP port of a broker. */
class Port {
  constructor(http) {
    const url = new URL(http);
    this.origin = url.origin;
    this.token = url.searchParams.get("token");
  }

  async ask(method, path, body, allowed = []) {
    const headers = { "Content-Type": "application/json" };
    if (this.token !== null) headers.Authorization = `Bearer ${this.token}`;
    let answer;
    try {
      answer = await fetch(this.origin + path, {
        method,
        headers,
        body: body === undefined ? undefined : JSON.stringify(body),
      });
    } catch (error) {
      throw new KafkaliteError(`the broker's HTTP port at ${this.origin} does not answer`, {
        cause: error,
      });
    }
    const said = await answer.json();
    if (answer.ok || allowed.includes(answer.status)) return answer.ok ? said : null;
    throw new KafkaliteError(`${path}: ${said.error?.message ?? said.reason}`);
  }
}

/** A rule of a broker. */
class Fault {
  constructor(port, said) {
    this._port = port;
    this._path = `/api/v1/control/faults/${said.id}`;
    this.id = said.id;
    this.rule = said.rule;
    this.lastHits = said.hits;
  }

  /** How often it fired, asked now. */
  async hits() {
    this.lastHits = (await this._port.ask("GET", this._path)).hits;
    return this.lastHits;
  }

  /** Resolves when it fired so many times; rejects after `timeoutMs`, with how often it did. */
  async waitForHits(hits = 1, { timeoutMs = TIMEOUT_MS } = {}) {
    const query = `?wait_hits=${hits}&timeout_s=${timeoutMs / 1_000}`;
    this.lastHits = (await this._port.ask("GET", this._path + query)).hits;
  }

  async remove() {
    await this._port.ask("DELETE", this._path);
  }
}

/** Rules that make a broker fail on purpose. */
class Faults {
  constructor(port) {
    this._port = port;
  }

  /** Adds a rule: `{ api: "OffsetCommit", group: "billing", lose_reply: true, once: true }`. */
  async add(rule) {
    return new Fault(this._port, await this._port.ask("POST", "/api/v1/control/faults", rule));
  }

  async list() {
    const said = await this._port.ask("GET", "/api/v1/control/faults");
    return said.faults.map((each) => new Fault(this._port, each));
  }

  /**
   * Removes all rules, also those about the disk.
   *
   * With `strict`, rejects if one of them never fired: a misspelt topic makes a test that tests
   * nothing.
   */
  async clear({ strict = false } = {}) {
    const { removed } = await this._port.ask("DELETE", "/api/v1/control/faults");
    const unfired = removed.filter((each) => each.hits === 0);
    if (strict && unfired.length > 0) {
      throw new KafkaliteError(`never fired: ${unfired.map((each) => each.rule).join("; ")}`);
    }
  }
}

/** The clock of a broker. Clients have clocks of their own. */
class Clock {
  constructor(port) {
    this._port = port;
  }

  /** What time it is for the broker, in milliseconds since the epoch. */
  async now() {
    return (await this._port.ask("GET", "/api/v1/control/clock")).now_ms;
  }

  /** Lets time pass: `{ days, hours, minutes, seconds }`; what was due in it has been done then. */
  async advance({ days = 0, hours = 0, minutes = 0, seconds = 0 }) {
    await this._change({ advance_s: ((days * 24 + hours) * 60 + minutes) * 60 + seconds });
  }

  /** Stands still until `resume`: clients are served, and nothing expires. */
  async freeze() {
    await this._change({ freeze: true });
  }

  async resume() {
    await this._change({ resume: true });
  }

  /** Sets the wall clock to a `Date`; no deadline moves. */
  async set(date) {
    await this._change({ set: date.toISOString() });
  }

  /** Makes so many seconds pass in one. */
  async rate(rate) {
    await this._change({ rate });
  }

  /** Makes it the machine's clock again. */
  async reset() {
    await this._change({ reset: true });
  }

  async _change(change) {
    await this._port.ask("POST", "/api/v1/control/clock", change);
  }
}

/** A broker that a test uses: one that it started as a process, or one that runs already. */
class Kafkalite {
  constructor(bootstrapServers, port, child) {
    this.bootstrapServers = bootstrapServers;
    this.faults = new Faults(port);
    this.clock = new Clock(port);
    this._port = port;
    this._child = child;
  }

  /**
   * Starts a broker, or uses the one that the variable `KAFKALITE_HTTP` names.
   *
   * It is started by `kafkalite`, or by what `command` or the variable `KAFKALITE_COMMAND` says, and
   * ends with this process, however that ends.
   */
  static async start({ settings = {}, command = process.env.KAFKALITE_COMMAND } = {}) {
    const http = process.env.KAFKALITE_HTTP;
    if (http) {
      if (Object.keys(settings).length > 0) {
        throw new KafkaliteError(`the broker at ${http} runs already: it cannot be given settings`);
      }
      return Kafkalite.attach(http);
    }
    const { child, bootstrap, http: own } = await startProcess(settings, command);
    return new Kafkalite(bootstrap, new Port(own), child);
  }

  /** Uses a broker that runs, by the address of its HTTP port, with `?token=...` if it wants one. */
  static async attach(http) {
    const port = new Port(http);
    const { bootstrap } = await port.ask("GET", "/api/v1/cluster");
    return new Kafkalite(bootstrap, port, null);
  }

  /** Address of its HTTP port: the console for a browser, and what `attach` takes. */
  get http() {
    const { origin, token } = this._port;
    return token === null ? origin : `${origin}/?token=${token}`;
  }

  /** `["HOST:PORT"]`, as kafkajs takes them. */
  get brokers() {
    return this.bootstrapServers.split(",");
  }

  /** Ends the process that was started; a broker that ran before runs on. */
  async stop() {
    const child = this._child;
    if (child === null || child.exitCode !== null || child.signalCode !== null) return;
    child.ref();
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGTERM");
    await ended;
  }

  async [Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose")]() {
    await this.stop();
  }

  /** Deletes all topics, groups and faults; the clock is that of the machine again. */
  async reset() {
    await this._port.ask("POST", "/api/v1/control/reset", {});
  }

  /** Makes a topic; when this resolves, any client can use it. */
  async createTopic(name, { partitions = 1, settings = {} } = {}) {
    await this._port.ask("POST", "/api/v1/topics", { name, partitions, configs: settings });
  }

  /** Names of all topics but internal ones. */
  async topics() {
    const { topics } = await this._port.ask("GET", "/api/v1/topics");
    return topics.map((topic) => topic.name);
  }

  /** How many records (and markers of transactions) all partitions of a topic hold now. */
  async recordCount(topic) {
    return (await this._port.ask("GET", `/api/v1/topics/${encodeURIComponent(topic)}`)).records;
  }

  /** Resolves when a group is stable with so many members. */
  async waitForGroup(group, members = 1, { timeoutMs = TIMEOUT_MS } = {}) {
    const query = new URLSearchParams({ group, members, timeout: timeoutMs });
    await this._port.ask("GET", `/health/ready?${query}`);
  }

  /** Resolves when a group has committed everything that a topic holds. */
  async waitForCommits(group, topic, { timeoutMs = TIMEOUT_MS } = {}) {
    const end = Date.now() + timeoutMs;
    for (let lag = await this.lag(group, topic); lag > 0; lag = await this.lag(group, topic)) {
      if (Date.now() > end) {
        throw new KafkaliteError(`group ${group} is ${lag} records behind in ${topic}`);
      }
      await sleep(20);
    }
  }

  /** How many records of a topic a group has not committed; all of them if it never did. */
  async lag(group, topic) {
    const said = await this._port.ask("GET", `/api/v1/groups/${encodeURIComponent(group)}`, undefined, [404]);
    const committed = new Map();
    for (const each of said?.offsets ?? []) {
      if (each.topic === topic && each.committed !== null) {
        committed.set(each.partition, each.committed);
      }
    }
    const path = `/api/v1/topics/${encodeURIComponent(topic)}/partitions`;
    const { partitions } = await this._port.ask("GET", path);
    return partitions
      .map((each) => each.high_watermark - Math.max(committed.get(each.partition) ?? 0, each.start))
      .reduce((sum, each) => sum + Math.max(0, each), 0);
  }
}

async function startProcess(settings, command) {
  const [program, ...words] = command ? command.trim().split(/\s+/) : defaultCommand();
  words.push("serve", "--profile", "test", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0");
  words.push("--until-stdin-ends");
  for (const [name, value] of Object.entries(settings)) words.push("--set", `${name}=${value}`);
  const env = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !name.startsWith("KAFKA_"))
  );
  const child = spawn(program, words, { env, stdio: "pipe" });
  let output = "";
  const [, bootstrap, http] = await new Promise((resolve, reject) => {
    const fail = (why) => {
      clearTimeout(timer);
      child.kill("SIGKILL");
      reject(new KafkaliteError(`${why}:\n${output}`));
    };
    const timer = setTimeout(() => fail("kafkalite is not ready"), START_TIMEOUT_MS);
    const look = (chunk) => {
      output = (output + chunk).slice(-OUTPUT_MAX);
      const found = READY.exec(output);
      if (found !== null) {
        clearTimeout(timer);
        resolve(found);
      }
    };
    child.stdout.on("data", look);
    child.stderr.on("data", look);
    child.once("exit", (code) => fail(`kafkalite ended with code ${code}`));
    child.once("error", (error) =>
      fail(`${program} cannot be run (${error.message}): \`pip install kafkalite\`, or say by the ` +
        "variable KAFKALITE_COMMAND how it is run")
    );
  });
  // A test run that is over does not wait for its broker: that ends with its standard input.
  for (const each of [child, child.stdin, child.stdout, child.stderr]) each.unref();
  return { child, bootstrap, http };
}

function defaultCommand() {
  for (const folder of (process.env.PATH ?? "").split(path.delimiter)) {
    try {
      accessSync(path.join(folder, "kafkalite"), constants.X_OK);
      return ["kafkalite"];
    } catch {
      // not in this folder
    }
  }
  return ["python3", "-m", "kafkalite"];
}

module.exports = { Kafkalite, KafkaliteError };
