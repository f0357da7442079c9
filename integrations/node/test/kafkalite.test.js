"use strict";

const assert = require("node:assert/strict");
const { after, before, test } = require("node:test");
const { Kafkalite, KafkaliteError } = require("..");

let kafka;
before(async () => (kafka = await Kafkalite.start({ settings: { "num.partitions": 2 } })));
after(() => kafka.stop());

test("a topic is made, counted and gone after a reset", async () => {
  await kafka.createTopic("orders", { partitions: 3, settings: { "retention.ms": "1000" } });
  assert.deepEqual(await kafka.topics(), ["orders"]);
  assert.equal(await kafka.recordCount("orders"), 0);
  assert.equal(await kafka.lag("nobody", "orders"), 0);
  await kafka.reset();
  assert.deepEqual(await kafka.topics(), []);
});

test("the clock is turned", async () => {
  const start = await kafka.clock.now();
  await kafka.clock.advance({ days: 1, hours: 1, minutes: 1, seconds: 1 });
  assert.ok((await kafka.clock.now()) - start >= 90_061_000);
  await kafka.clock.freeze();
  assert.equal(await kafka.clock.now(), await kafka.clock.now());
  await kafka.clock.resume();
  await kafka.clock.rate(1);
  await kafka.clock.set(new Date("2030-01-01T00:00:00Z"));
  assert.equal(new Date(await kafka.clock.now()).getUTCFullYear(), 2030);
  await kafka.clock.reset();
});

test("what the broker refuses is told in its words", async () => {
  await assert.rejects(kafka.faults.add({ api: "Prduce", disconnect: true }), {
    name: "KafkaliteError",
    message: /no API named/,
  });
  const never = await kafka.faults.add({ api: "Produce", topic: "misspelt", disconnect: true });
  assert.equal((await kafka.faults.list()).length, 1);
  assert.equal(await never.hits(), 0);
  await assert.rejects(never.waitForHits(1, { timeoutMs: 10 }), /0 of 1/);
  await assert.rejects(kafka.faults.clear({ strict: true }), /never fired: .*misspelt/);
  await kafka.faults.clear({ strict: true });
  await assert.rejects(kafka.waitForGroup("nobody", 1, { timeoutMs: 50 }), KafkaliteError);
  await assert.rejects(Kafkalite.attach("http://127.0.0.1:1"), /does not answer/);
});

test("a broker that does not start says why", async () => {
  await assert.rejects(Kafkalite.start({ settings: { "num.partitions": "many" } }), /num.partitions/);
  await assert.rejects(Kafkalite.start({ command: "/nowhere/kafkalite" }), /pip install/);
});

test("a broker that runs is used, and runs on", async () => {
  const other = await Kafkalite.attach(kafka.http);
  assert.equal(other.bootstrapServers, kafka.bootstrapServers);
  assert.deepEqual(other.brokers, [kafka.bootstrapServers]);
  await other.stop();
  assert.deepEqual(await kafka.topics(), []);
});
